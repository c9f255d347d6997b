//go:build cuda

package cuda

import (
	"math"

	"github.com/attnb/attnb/cudaops"
)

// The tile of variant_prefill (variant.cu).
const (
	changedRows    = 32
	changedColumns = 128
)

// SoftmaxChanged writes the softmax of each row of src, as c changes it.
func (b *Backend) SoftmaxChanged(dst, src cudaops.View, c cudaops.Changes) (empty int, err error) {
	p := changedParams{out: viewOf(dst), q: viewOf(src), heads: uint32(src.H), s: uint32(src.S), t: uint32(src.D)}
	return b.changed("Softmax", c, &p, func() error {
		return launch(b, "variant_softmax", grid{src.H * src.S, 1, 1}, blockThreads, 0, &p)
	})
}

// PrefillChanged writes the softmax of scale * q k^T, as c changes it, times v.
func (b *Backend) PrefillChanged(dst, lse, q, k, v cudaops.View, scale float32, c cudaops.Changes) (empty int, err error) {
	blocks := ceil(q.S, changedRows)
	p := changedParams{
		out: viewOf(dst), q: viewOf(q), k: viewOf(k), v: viewOf(v), heads: uint32(q.H), s: uint32(q.S), t: uint32(k.S), d: uint32(q.D),
		group: uint32(q.H / k.H), rowBlocks: uint32(blocks), scale: scale,
	}
	if lse.Mem != nil {
		p.lse, p.lseStride = address(lse.Mem, lse.Offset), int64(lse.RowStride)
	}
	return b.changed("Prefill", c, &p, func() error {
		return launch(b, "variant_prefill", grid{blocks * q.H, ceil(q.D, changedColumns), 1}, blockThreads, 0, &p)
	})
}

// changed queues a kernel with changes. What rows see depends on values only where there are allowed cells: then the GPU counts the rows
// that see nothing, and this waits for it.
func (b *Backend) changed(op string, c cudaops.Changes, p *changedParams, run func() error) (empty int, err error) {
	heads, s, t := int(p.heads), int(p.s), int(p.t)
	p.diagonal, p.cap = int64(c.Mask.Diagonal), c.Softcap
	for _, x := range []struct {
		from cudaops.View
		to   *view
	}{{c.Bias, &p.bias}, {c.Allowed, &p.allowed}} {
		if x.from.Mem != nil {
			*x.to = viewOf(x.from)
		}
	}
	if c.Sinks.Mem != nil {
		p.sinks = address(c.Sinks.Mem, c.Sinks.Offset)
	}
	table := make([]uint32, 0, 2*s+len(c.Slopes)+1)
	for _, seen := range c.Mask.Intervals(s, t) {
		if seen[1] == 0 {
			empty += heads
		}
		table = append(table, uint32(seen[0]), uint32(seen[1]))
	}
	for _, slope := range c.Slopes {
		table = append(table, math.Float32bits(slope))
	}
	count := len(table)
	table = append(table, 0)
	err = b.queue(op, func() error {
		scratch, err := b.alloc(4 * int64(len(table)))
		if err != nil {
			return err
		}
		defer b.free(scratch) // behind what is queued
		if err := b.upload(scratch, bytesOf(table)); err != nil {
			return err
		}
		p.intervals = scratch
		if c.Slopes != nil {
			p.slopes = scratch + pointer(4*2*s)
		}
		if c.Allowed.Mem == nil {
			return run()
		}
		p.empty = scratch + pointer(4*count)
		if err := run(); err != nil {
			return err
		}
		counted := []uint32{0}
		err = b.download(bytesOf(counted), p.empty)
		empty = int(counted[0])
		return err
	})
	return empty, err
}
