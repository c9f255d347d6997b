//go:build cuda

package cuda

import (
	"errors"

	"github.com/attnb/attnb/cudaops"
)

const (
	panelRows  = 128 // of a block of rows
	panelCols  = 64
	panelParts = 8                             // blocks of threads that write a block of rows
	panelSize  = 2 * panelRows * panelCols * 2 // bytes
	// gemmShared is three panels of each side, from a multiple of 1024 bytes on (gemm_warpgroup.cu).
	gemmShared = 1<<10 + 3*2*panelSize
	// gemmLeast is the rows, columns and length of products from which making panels pays.
	gemmLeast = 128
	// gemmWide is the columns and length from which they pay for fewer rows too: with 4096 of both, 256 rows took 198 us on an H200, where 64 took
	// 431 and 16 took 240 in FFMA.
	gemmWide = 1024
	// shortest is the length of a sum from which its bound holds for fp16x3 as for plain f32 (docs/tolerances.md).
	shortest = 48
)

// panels is a matrix as halves_rows writes it.
type panels struct {
	at, factors, holds pointer
	blocks, count      int
}

// panelBytes is the memory that the panels of a view take, and how they are cut.
func panelBytes(v cudaops.View) (bytes int64, p panels) {
	p.blocks, p.count = ceil(v.S, panelRows), ceil(v.D, panelCols)
	blocks := int64(v.H) * int64(p.blocks)
	p.factors = pointer(blocks * int64(p.count) * panelSize)
	p.holds = p.factors + pointer(blocks*panelRows*4)
	return (int64(p.holds) + blocks*panelParts*4 + 15) / 16 * 16, p
}

// makePanels queues the making of the panels of a view at an address.
func (b *Backend) makePanels(v cudaops.View, p *panels, at pointer) error {
	p.at, p.factors, p.holds = at, p.factors+at, p.holds+at
	make := halvesRowsParams{
		m: viewOf(v), panels: p.at, factors: p.factors, holds: p.holds,
		rows: uint32(v.S), cols: uint32(v.D), blocks: uint32(p.blocks), count: uint32(p.count),
	}
	make.vec = flag(aligned(dims{v.H, v.S, v.D}, &make.m))
	return launch(b, "halves_rows", grid{p.blocks * panelParts, v.H, 1}, blockThreads, 0, &make)
}

// gemmPays says whether a product is to run in fp16x3 by warpgroups.
func (b *Backend) gemmPays(rows, cols, length int) bool {
	switch {
	case !b.gpu.hasWarpgroups() || b.products == ProductsFFMA || b.products == ProductsWarp:
		return false
	case b.products != ProductsAuto:
		return length >= shortest
	}
	return min(rows, cols, length) >= gemmLeast || rows > gemvMost && min(cols, length) >= gemmWide
}

// gemmHalves queues a product in fp16x3. done is false where there is no memory for that.
func (b *Backend) gemmHalves(plain gemmParams, x, y cudaops.View) (done bool, err error) {
	xBytes, left := panelBytes(x)
	yBytes, right := panelBytes(y)
	scratch, err := b.alloc(xBytes + yBytes)
	if errors.Is(err, cudaops.ErrOutOfMemory) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer b.free(scratch) // behind what is queued
	if err := b.makePanels(x, &left, scratch); err != nil {
		return true, err
	}
	if err := b.makePanels(y, &right, scratch+pointer(xBytes)); err != nil {
		return true, err
	}
	p := gemmHalvesParams{
		gemmParams: plain, a: left.at, b: right.at, aFactors: left.factors, bFactors: right.factors, aHolds: left.holds, bHolds: right.holds,
		aBlocks: uint32(left.blocks), bBlocks: uint32(right.blocks), count: uint32(left.count),
	}
	return true, launch(b, "gemm_warpgroup", grid{left.blocks * right.blocks, x.H, 1}, blockThreads, gemmShared, &p)
}
