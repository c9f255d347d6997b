//go:build cuda

package cuda

import (
	"math"

	"github.com/attnb/attnb/cudaops"
)

// RoPE writes the rotated src to dst, in launches of up to ropeFrequencies pairs.
func (b *Backend) RoPE(dst, src cudaops.View, r cudaops.RoPE) error {
	return b.queue("RoPE", func() error {
		p := ropeParams{
			dst: viewOf(dst), src: viewOf(src),
			offset: int64(r.Offset), magnitude: r.Magnitude,
			heads: uint32(src.H), rows: uint32(src.S), cols: uint32(src.D),
			pairs: uint32(r.Rotary / 2), floatAngles: uint32(flag(r.Angle == cudaops.AngleFloat32)),
		}
		if r.Positions != nil {
			scratch, err := b.positions(r.Positions)
			if err != nil {
				return err
			}
			defer b.free(scratch)
			p.positions = scratch
		}
		d := dims{src.H, src.S, src.D}
		name, width := ropeKernel(r, aligned(d, &p.dst, &p.src))
		for first := 0; first < r.Rotary/2; first += ropeFrequencies {
			last := min(first+ropeFrequencies, r.Rotary/2)
			for i, f := range r.InvFreq[first:last] {
				if r.Angle != cudaops.AngleFloat32 {
					f /= math.Pi // half turns a position
				}
				p.frequency[i] = f
			}
			p.first, p.count, p.copyFrom = uint32(first), uint32(last-first), p.cols
			if last == r.Rotary/2 {
				p.copyFrom = uint32(r.Rotary)
			}
			g := ropeGrid(&p, width, b.gpu.sms)
			if err := launch(b, name, g, blockThreads, 0, &p); err != nil {
				return err
			}
		}
		return nil
	})
}

// ropeKernel chooses the kernel, of which a thread takes width pairs of a row.
func ropeKernel(r cudaops.RoPE, aligned bool) (name string, width int) {
	switch pairs := r.Rotary / 2; {
	case r.Convention == cudaops.Interleaved && aligned && pairs%2 == 0:
		return "rope_inter4", 2
	case r.Convention == cudaops.Interleaved:
		return "rope_inter1", 1
	case aligned && pairs%4 == 0:
		return "rope_half4", 4
	}
	return "rope_half1", 1
}

// ropeGrid shares out rows, and heads: as many to a block as it asks for at once, fewer where there are too few rows to fill the GPU.
func ropeGrid(p *ropeParams, width, sms int) grid {
	count, rows, heads := int(p.count), int(p.rows), int(p.heads)
	groups := blockThreads / min(count/width, blockThreads) // of threads that cover a row
	per := max(1, min(16, blockThreads/count, groups, rows))
	p.rowsPerBlock = uint32(per)
	g := grid{ceil(rows, per), 1, 1}
	parts := min(heads, max(ceil(2*sms, g.x), ceil(heads, unroll*max(1, groups/per))), math.MaxUint16)
	p.headsPerBlock = uint32(ceil(heads, parts))
	g.y = ceil(heads, int(p.headsPerBlock))
	return g
}

// positions brings the positions of the rows to the GPU. The caller frees them.
func (b *Backend) positions(positions []int) (pointer, error) {
	narrow := make([]int32, len(positions)) // |position| <= MaxPosition
	for i, p := range positions {
		narrow[i] = int32(p)
	}
	scratch, err := b.alloc(4 * int64(len(narrow)))
	if err != nil {
		return 0, err
	}
	if err := b.upload(scratch, bytesOf(narrow)); err != nil {
		b.free(scratch)
		return 0, err
	}
	return scratch, nil
}
