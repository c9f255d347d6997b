//go:build cuda

package cuda

import (
	"fmt"

	"github.com/attnb/attnb/cudaops"
)

// decodeKernel reads rows of up to dim elements, for group query heads of those that share a key head.
type decodeKernel struct{ dim, group int }

var (
	decodeDims   = []int{32, 64, 128, 256}
	decodeGroups = []int{1, 2, 4, 8}
)

const (
	decodeKeys  = 32 // that a block should have at least
	decodeUnit  = 32 // keys of a block are a multiple of
	decodePerSM = 4  // blocks, at most
)

func (d decodeKernel) name() string { return fmt.Sprintf("decode_%d_%d", d.dim, d.group) }

// block is the threads of a block, and how many blocks run on a multiprocessor (decode.cu).
func (d decodeKernel) block() (threads, resident int) {
	switch {
	case d.group == 4 && (d.dim == 64 || d.dim == 128):
		return 256, 2
	case d.dim == 256 && d.group == 8:
		return 128, 2
	case d.dim == 256 && d.group == 4 || d.dim == 128 && d.group == 8:
		return 128, 3
	}
	return 128, decodePerSM
}

func chooseDecode(dim, group int) (decodeKernel, bool) {
	k := decodeKernel{group: decodeGroups[len(decodeGroups)-1]}
	for _, d := range decodeDims {
		if dim <= d {
			k.dim = d
			break
		}
	}
	for _, g := range decodeGroups {
		if group <= g {
			k.group = g
			break
		}
	}
	return k, k.dim != 0
}

// Decode writes softmax(scale * q k^T) v for one query row a head.
func (b *Backend) Decode(dst, q, k, v cudaops.View, scale float32) error {
	kernel, ok := chooseDecode(q.D, q.H/k.H)
	if !ok {
		return headDim("Decode", q.D)
	}
	threads, resident := kernel.block()
	p := decodeParams{
		out: viewOf(dst), q: viewOf(q), k: viewOf(k), v: viewOf(v), part: b.decodeScratch.parts, tickets: b.decodeScratch.tickets,
		heads: uint32(q.H), t: uint32(k.S), d: uint32(q.D), group: uint32(q.H / k.H), scale: scale, stride: uint32(partStride(q.D)),
	}
	p.vec = flag(aligned(dims{q.H, 1, q.D}, &p.q, &p.out) && aligned(dims{k.H, k.S, k.D}, &p.k, &p.v))
	parts := ceil(q.H/k.H, kernel.group)
	splits, keys := splitKeys(k.S, k.H*parts, resident*b.gpu.sms)
	p.splits, p.keys = uint32(splits), uint32(keys)
	return b.queue("Decode", func() error {
		return launch(b, kernel.name(), grid{splits, k.H, parts}, threads, 0, &p)
	})
}

// splitKeys shares out the keys of a cache over blocks, as many as run at a time; each has some keys at least.
func splitKeys(keys, heads, slots int) (splits, each int) {
	splits = max(1, min(slots/heads, ceil(keys, decodeKeys)))
	each = ceil(ceil(keys, splits), decodeUnit) * decodeUnit
	return ceil(keys, each), each
}

// decodeScratch is where the blocks of one head leave their parts for each other. Decodes follow each other on the stream, so
// one is enough. Between them it is 0.
type decodeScratch struct{ parts, tickets pointer }

// partStride is the numbers of one part: the columns, padded, and the maximum and the sum.
func partStride(dim int) int { return ceil(dim, 4)*4 + 2 }

// makeDecodeScratch takes what the largest decode needs: splits are only made while heads are fewer than blocks.
func (b *Backend) makeDecodeScratch() (err error) {
	const flagged = 8 // bytes of a number and its flag
	blocks := decodePerSM * b.gpu.sms
	most := decodeKernel{decodeDims[len(decodeDims)-1], decodeGroups[len(decodeGroups)-1]}
	s := &b.decodeScratch
	bytes := flagged * blocks * most.group * partStride(most.dim)
	if s.parts, err = memAlloc(int64(bytes), b.stream); err != nil {
		return err
	}
	if s.tickets, err = memAlloc(4*int64(blocks), b.stream); err != nil {
		return err
	}
	if err := b.upload(s.parts, make([]byte, bytes)); err != nil {
		return err
	}
	return b.upload(s.tickets, make([]byte, 4*blocks))
}
