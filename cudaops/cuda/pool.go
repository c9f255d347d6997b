//go:build cuda

package cuda

import (
	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/plan"
)

const (
	poolNarrow = 32   // keys of a pool below which each key has a part by itself
	poolUnit   = 4096 // keys that a part stands for at most
)

// poolPlan says how a pooled view is cut: rows into groups, pools of keys into units, units into launches, and these into blocks.
type poolPlan struct {
	rows             rowPlan
	colParts         int // units of a pool of keys; 0: pools are narrow, and launches are cut into pools, parts are keys'
	columns          int // units, or pools, in all
	chunk            int // of a launch
	heads            int // key heads of a launch
	parts, bytes     int64
	t, pools, group  int
	keys, partsWidth int // of a launch, at most
}

func (b *Backend) planPool(dst, q, k cudaops.View, fast bool) poolPlan {
	p := poolPlan{rows: planRows(q.S, dst.S), columns: dst.D, t: k.S, pools: dst.D, group: q.H / k.H, heads: k.H}
	wide := ceil(k.S, dst.D)
	if k.S/dst.D >= poolNarrow {
		p.colParts = ceil(wide, poolUnit)
		p.columns *= p.colParts
		wide = ceil(wide, p.colParts)
	}
	// Bytes of a column, of one key head.
	each := 4 * int64(p.rows.pieces()) * int64(p.group)
	if p.colParts == 0 {
		each *= int64(wide)
	}
	if fast {
		panel, _ := panelBytes(cudaops.View{H: 1, S: cellKeys, D: k.D})
		each += panel*int64(wide)/cellKeys + 1
	}
	most := b.cellScratch / each // columns of one key head
	p.heads = int(max(1, min(int64(k.H), most/int64(min(p.columns, ceil(1<<13, wide))))))
	p.chunk = ceil(p.columns, ceil(p.columns, int(max(1, min(int64(p.columns), most/int64(p.heads))))))
	p.keys = min(k.S, p.chunk*wide)
	p.partsWidth = p.chunk
	if p.colParts == 0 {
		p.partsWidth = p.keys
	}
	p.parts = (4*int64(p.rows.pieces())*int64(p.group*p.heads)*int64(p.partsWidth) + 15) / 16 * 16
	p.bytes = p.parts
	if fast {
		panels, _ := panelBytes(cudaops.View{H: p.heads, S: p.keys, D: k.D})
		p.bytes += panels
	}
	return p
}

// start is the first key of a column.
func (p poolPlan) start(column int) int {
	if p.colParts <= 1 {
		return plan.Edge(column, p.t, p.pools)
	}
	pool := column / p.colParts
	from := plan.Edge(pool, p.t, p.pools)
	if pool == p.pools {
		return from
	}
	return from + plan.Edge(column%p.colParts, plan.Edge(pool+1, p.t, p.pools)-from, p.colParts)
}

// Pool writes scores, or probabilities, pooled.
func (b *Backend) Pool(dst, q, k, lse cudaops.View, scale float32, m cudaops.Mask, by cudaops.Reduce) error {
	return b.queue("Pool", func() error {
		if b.cellsPay(q.S, k.S, q.D) {
			p := b.planPool(dst, q, k, true)
			scratch, ok, err := b.tryAlloc(p.bytes)
			if err != nil {
				return err
			}
			if ok {
				defer b.free(scratch) // behind what is queued
				return b.poolAll(dst, q, k, lse, scale, m, by, p, scratch, true)
			}
		}
		p := b.planPool(dst, q, k, false)
		scratch, err := b.alloc(p.bytes)
		if err != nil {
			return err
		}
		defer b.free(scratch)
		return b.poolAll(dst, q, k, lse, scale, m, by, p, scratch, false)
	})
}

// poolAll queues what a plan says: for some heads, and some of the keys, at a time.
func (b *Backend) poolAll(dst, q, k, lse cudaops.View, scale float32, m cudaops.Mask, by cudaops.Reduce, p poolPlan, scratch pointer, fast bool) error {
	for h := 0; h < k.H; h += p.heads {
		end := min(h+p.heads, k.H)
		dst, q, k := headsOf(dst, h*p.group, end*p.group), headsOf(q, h*p.group, end*p.group), headsOf(k, h, end)
		lse := lse
		lse.Offset += h * p.group * lse.RowStride
		for column := 0; column < p.columns; column += p.chunk {
			if err := b.poolChunk(dst, q, k, lse, scale, m, by, p, column, min(column+p.chunk, p.columns), scratch, fast); err != nil {
				return err
			}
		}
	}
	return nil
}

// poolChunk queues the columns from up to to.
func (b *Backend) poolChunk(dst, q, k, lse cudaops.View, scale float32, m cudaops.Mask, by cudaops.Reduce, p poolPlan, from, to int, scratch pointer, fast bool) error {
	first, last := p.start(from), p.start(to)
	keys := keysOf(k, first, last)
	c := newCells(q, keys, scale, m)
	p.rows.set(&c)
	c.parts, c.t, c.first, c.keys = scratch, uint32(k.S), uint32(first), uint32(keys.S)
	c.colPools, c.colParts = uint32(dst.D), uint32(p.colParts)
	switch by {
	case cudaops.Max:
		c.extreme = 1
	case cudaops.Min:
		c.extreme = -1
	}
	if lse.Mem != nil {
		c.lse, c.lseStride = address(lse.Mem, lse.Offset), int64(lse.RowStride)
	}
	j := poolJoinParams{
		parts: scratch, out: viewOf(dst), diagonal: int64(m.Diagonal), heads: uint32(q.H), s: uint32(q.S), t: uint32(k.S),
		rowPools: c.rowPools, rowParts: c.rowParts, rowGroup: c.rowGroup, pieces: c.pieces,
		colPools: c.colPools, colParts: c.colParts, first: c.first,
		extreme: c.extreme, mean: flag(by == cudaops.Mean), probabilities: flag(lse.Mem != nil), causal: c.causal,
	}
	share := b.share(q.H*p.rows.tiles(), ceil(keys.S, cellKeys)) * cellKeys
	var blocks int
	if p.colParts == 0 {
		c.perBlock, blocks = uint32(share), ceil(keys.S, share)
		j.columns, j.pool0, j.pools = c.keys, uint32(from), uint32(to-from)
	} else {
		blocks = min(to-from, ceil(keys.S, share))
		c.unit0, c.units = uint32(from), uint32(to-from)
		c.perBlock = uint32(ceil(to-from, blocks))
		blocks = ceil(to-from, int(c.perBlock))
		j.unit0, j.units, j.columns = c.unit0, c.units, c.units
		j.pool0 = uint32(from / p.colParts)
		j.pools = uint32(ceil(to, p.colParts)) - j.pool0
	}
	var panels pointer
	if fast {
		panels = scratch + pointer(p.parts)
	}
	if err := b.launchCells("pool", &c, keys, panels, grid{p.rows.tiles(), q.H, blocks}); err != nil {
		return err
	}
	results := q.H * dst.S * int(j.pools)
	j.cells, j.lanes = uint64(results), 1
	for parts := p.rows.parts * ceil(int(j.columns), int(j.pools)); j.lanes < blockThreads && int(j.lanes)*8 < parts; {
		j.lanes *= 2
	}
	return launch(b, "pool_join", grid{ceil(results, blockThreads/int(j.lanes)), 1, 1}, blockThreads, 0, &j)
}
