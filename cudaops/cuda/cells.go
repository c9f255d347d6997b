//go:build cuda

package cuda

import (
	"errors"
	"fmt"

	"github.com/attnb/attnb/cudaops"
)

const (
	cellRows     = 128 // slots of a block, and keys of a tile (kernels/cells.cuh)
	cellKeys     = 128
	cellStages   = 4
	cellBarriers = 5 << 10  // CellBarriers (kernels/cells_warpgroup.cu)
	cellScratch  = 48 << 20 // bytes of scratch memory that LSE and Pool take at most, but for a single unit's
	cellBlocks   = 8        // blocks a multiprocessor that launches are cut into, where there is enough to do
	cellTiles    = 8        // tiles that a block has at least
	cellMax      = 128      // head dim up to which a block's queries and panels of keys fit into shared memory
)

// cellsShared is the bytes of shared memory that a block takes on tensor cores, by its panels of head dims.
func cellsShared(panels int) int {
	const plain = 4 * 2 * 2 * cellRows * (16 + 4) // CellSlices, which FFMA takes in its place
	return max(1<<10+panels*panelSize+cellStages*panelSize+cellBarriers, plain)
}

// cellsPay says whether scores that stay in registers are to be made by warpgroups.
func (b *Backend) cellsPay(queries, keys, dim int) bool {
	switch {
	case !b.gpu.hasWarpgroups() || b.products == ProductsFFMA || b.products == ProductsWarp || dim < shortest || dim > cellMax:
		return false
	case b.products != ProductsAuto:
		return true
	}
	return queries >= cellRows/2 && keys >= cellKeys
}

// newCells gives the parameters that LSE and Pool share, for all heads and keys.
func newCells(q, k cudaops.View, scale float32, m cudaops.Mask) cellsParams {
	c := cellsParams{
		q: viewOf(q), k: viewOf(k), s: uint32(q.S), t: uint32(k.S), d: uint32(q.D), group: uint32(q.H / k.H),
		scale: scale, causal: flag(m.Causal), diagonal: int64(m.Diagonal),
	}
	c.vec = flag(aligned(dims{q.H, q.S, q.D}, &c.q) && aligned(dims{k.H, k.S, k.D}, &c.k))
	return c
}

// rowPlan cuts the rows of pools into groups, of which a warp's 16 rows hold one or more.
type rowPlan struct{ pools, parts, group int }

// planRows cuts s rows in pools. Groups are a power of two up to 16, and no larger than the smallest pool.
func planRows(s, pools int) rowPlan {
	r := rowPlan{pools: pools, group: 1}
	for r.group < 16 && 2*r.group <= s/pools {
		r.group *= 2
	}
	r.parts = ceil(ceil(s, pools), r.group)
	return r
}

func (r rowPlan) pieces() int { return r.pools * r.parts }

// tiles is how many blocks hold all groups.
func (r rowPlan) tiles() int { return ceil(r.pieces(), cellRows/r.group) }

func (r rowPlan) set(c *cellsParams) {
	c.rowPools, c.rowParts, c.rowGroup, c.pieces = uint32(r.pools), uint32(r.parts), uint32(r.group), uint32(r.pieces())
}

// share says how many of a launch's tiles of keys a block takes, where there are so many columns of blocks.
func (b *Backend) share(columns, tiles int) int {
	return max(cellTiles, ceil(tiles, ceil(cellBlocks*b.gpu.sms, columns)))
}

// keysOf is the view of some keys.
func keysOf(k cudaops.View, from, to int) cudaops.View {
	k.Offset += from * k.RowStride
	k.S = to - from
	return k
}

// headsOf is the view of some heads.
func headsOf(v cudaops.View, from, to int) cudaops.View {
	v.Offset += from * v.HeadStride
	v.H = to - from
	return v
}

func warpgroupName(name string, panels int) string {
	return fmt.Sprintf("%s_warpgroup_%d", name, panels)
}

// launchCells queues a kernel by its plain name, in FFMA, or with the panels of keys at an address, unless that is 0.
func (b *Backend) launchCells(name string, c *cellsParams, k cudaops.View, at pointer, g grid) error {
	if at == 0 {
		return launch(b, name, g, blockThreads, 0, c)
	}
	_, p := panelBytes(k)
	if err := b.makePanels(k, &p, at); err != nil {
		return err
	}
	h := cellsHalvesParams{cellsParams: *c, panels: p.at, factors: p.factors, holds: p.holds, blocks: uint32(p.blocks)}
	return launch(b, warpgroupName(name, p.count), g, blockThreads, cellsShared(p.count), &h)
}

// tryAlloc is alloc where memory that is not there is no error: ok is false then.
func (b *Backend) tryAlloc(bytes int64) (p pointer, ok bool, err error) {
	p, err = b.alloc(bytes)
	if errors.Is(err, cudaops.ErrOutOfMemory) {
		return 0, false, nil
	}
	return p, err == nil, err
}
