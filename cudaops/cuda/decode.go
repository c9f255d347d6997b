//go:build cuda

package cuda

import (
	"fmt"

	"github.com/attnb/attnb/cudaops"
)

// decodeKernel reads rows of up to dim elements, for group query heads of those that share a key head.
type decodeKernel struct{ dim, group int }

var (
	decodeDims   = []int{32, 64, 96, 128, 192, 256}
	decodeGroups = []int{1, 2, 4, 8}
)

const (
	decodeThreads = 128
	decodeStages  = 4    // tiles on their way, at most
	decodeTiles   = 4    // that a block should have at least
	decodeLong    = 2048 // keys of a block from which twice as many blocks pay
	decodePerSM   = 8    // blocks, at most
)

func (d decodeKernel) name() string { return fmt.Sprintf("decode_%d_%d", d.dim, d.group) }

// keys of a tile.
func (d decodeKernel) keys() int {
	if d.dim > 128 {
		return 16
	}
	return 32
}

// shared is the bytes of shared memory that a block takes in any case, and those of a tile (decode.cu).
func (d decodeKernel) shared() (fixed, stage int) {
	lanes := 8
	for _, c := range []int{32, 16} {
		if d.dim/4%c == 0 {
			lanes = c
			break
		}
	}
	padding := 0
	if lanes < 32 {
		padding = lanes
	}
	return 4 * (d.group*d.dim + 4*d.group*32 + 4*d.group*d.keys()), 4 * d.keys() * (2*d.dim + 4 + padding)
}

// fit is the number of tiles that a block holds, the shared memory that it takes, and how many blocks run on a
// multiprocessor: two if each of them can hold two tiles.
func (d decodeKernel) fit(g gpu) (stages, bytes, resident int) {
	fixed, stage := d.shared()
	if stages = (g.sharedSM/2 - blockShared - fixed) / stage; stages < 2 {
		stages = (g.shared - fixed) / stage
	}
	stages = min(stages, decodeStages)
	bytes = fixed + stages*stage
	return stages, bytes, g.resident(decodeThreads, bytes)
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
	stages, shared, resident := kernel.fit(b.gpu)
	p := decodeParams{
		out: viewOf(dst), q: viewOf(q), k: viewOf(k), v: viewOf(v), part: b.decodeScratch.parts, done: b.decodeScratch.done,
		heads: uint32(q.H), t: uint32(k.S), d: uint32(q.D), group: uint32(q.H / k.H), scale: scale,
		stages: uint32(stages), stride: uint32(partStride(q.D)),
	}
	p.vec = flag(aligned(dims{q.H, 1, q.D}, &p.q) && aligned(dims{k.H, k.S, k.D}, &p.k, &p.v))
	parts := ceil(q.H/k.H, kernel.group)
	splits, keys := splitKeys(k.S, k.H*parts, kernel.keys(), min(resident, decodePerSM/2)*b.gpu.sms)
	p.splits, p.keys = uint32(splits), uint32(keys)
	return b.queue("Decode", func() error {
		return launch(b, kernel.name(), grid{splits, k.H, parts}, decodeThreads, shared, &p)
	})
}

// splitKeys shares out the keys of a cache over blocks, as many as run at a time, or twice as many where each has much to
// do; each has a few tiles at least.
func splitKeys(keys, heads, tile, slots int) (splits, each int) {
	splits = slots / heads
	if keys > splits*decodeLong {
		splits *= 2
	}
	splits = max(1, min(splits, ceil(keys, decodeTiles*tile)))
	each = ceil(ceil(keys, splits), tile) * tile
	return ceil(keys, each), each
}

// decodeScratch is where the blocks of one head leave their parts for each other. Decodes follow each other on the stream, so
// one is enough.
type decodeScratch struct{ parts, done pointer }

// partStride is the floats of one part: the columns, padded, and 4 for the maximum and the sum.
func partStride(dim int) int { return ceil(dim, 4)*4 + 4 }

// makeDecodeScratch takes what the largest decode needs: splits are only made while heads are fewer than blocks.
func (b *Backend) makeDecodeScratch() (err error) {
	blocks := decodePerSM * b.gpu.sms
	most := decodeKernel{decodeDims[len(decodeDims)-1], decodeGroups[len(decodeGroups)-1]}
	s := &b.decodeScratch
	if s.parts, err = memAlloc(4*int64(blocks*most.group*partStride(most.dim)), b.stream); err != nil {
		return err
	}
	if s.done, err = memAlloc(4*int64(blocks), b.stream); err != nil {
		return err
	}
	return b.upload(s.done, make([]byte, 4*blocks))
}
