//go:build cuda

package cuda

import "github.com/attnb/attnb/cudaops"

// lsePlan says how the keys of an LSE are shared out: chunk of them a launch, perBlock of these a block, whose slots of maxima and sums,
// and one more for what came before, lie in scratch memory unless one block sees all keys of a row.
type lsePlan struct {
	rows            rowPlan
	chunk, perBlock int
	slots           int   // 0: every block writes the results themselves
	state, bytes    int64 // of the slots; with the panels
}

func (b *Backend) planLSE(q, k cudaops.View, fast bool) lsePlan {
	const group = 16
	p := lsePlan{rows: rowPlan{pools: 1, parts: ceil(q.S, group), group: group}, chunk: k.S}
	if fast {
		each, _ := panelBytes(keysOf(k, 0, min(k.S, cellKeys))) // of a tile of keys
		most := max(1, int(b.cellScratch/each))
		p.chunk = min(k.S, ceil(ceil(k.S, cellKeys), ceil(ceil(k.S, cellKeys), most))*cellKeys)
	}
	p.perBlock = b.share(q.H*p.rows.tiles(), ceil(p.chunk, cellKeys)) * cellKeys
	if blocks := ceil(p.chunk, p.perBlock); blocks > 1 || p.chunk < k.S {
		p.slots = 1 + blocks
	}
	p.state = 8 * int64(p.slots) * int64(q.H) * int64(q.S)
	p.bytes = p.state
	if fast {
		panels, _ := panelBytes(keysOf(k, 0, p.chunk))
		p.state = (p.state + 15) / 16 * 16
		p.bytes = p.state + panels
	}
	return p
}

// LSE writes the natural log of each row's sum of exp(scale * q.k).
func (b *Backend) LSE(dst, q, k cudaops.View, scale float32, m cudaops.Mask) error {
	return b.queue("LSE", func() error {
		if b.cellsPay(q.S, k.S, q.D) {
			if done, err := b.lse(dst, q, k, scale, m, b.planLSE(q, k, true), true); done || err != nil {
				return err
			}
		}
		plan := b.planLSE(q, k, false)
		if done, err := b.lse(dst, q, k, scale, m, plan, false); done || err != nil {
			return err
		}
		plan.perBlock, plan.slots, plan.bytes = ceil(k.S, cellKeys)*cellKeys, 0, 0
		_, err := b.lse(dst, q, k, scale, m, plan, false)
		return err
	})
}

// lse queues what a plan says. done is false where there is no memory for that.
func (b *Backend) lse(dst, q, k cudaops.View, scale float32, m cudaops.Mask, plan lsePlan, fast bool) (done bool, err error) {
	var scratch, panels pointer
	if plan.bytes > 0 {
		var ok bool
		if scratch, ok, err = b.tryAlloc(plan.bytes); !ok {
			return false, err
		}
		defer b.free(scratch) // behind what is queued
	}
	if fast {
		panels = scratch + pointer(plan.state)
	}
	rows := int64(q.H) * int64(q.S)
	for from := 0; from < k.S; from += plan.chunk {
		keys := keysOf(k, from, min(from+plan.chunk, k.S))
		c := newCells(q, keys, scale, m)
		plan.rows.set(&c)
		c.t, c.first, c.keys, c.perBlock = uint32(k.S), uint32(from), uint32(keys.S), uint32(plan.perBlock)
		blocks := ceil(keys.S, plan.perBlock)
		if plan.slots > 0 {
			c.parts, c.slot = scratch, 1
		} else {
			c.out, c.lseStride = address(dst.Mem, dst.Offset), int64(dst.RowStride)
		}
		if err := b.launchCells("lse", &c, keys, panels, grid{plan.rows.tiles(), q.H, blocks}); err != nil {
			return true, err
		}
		if plan.slots == 0 {
			continue
		}
		j := lseJoinParams{parts: scratch, rows: uint64(rows), s: uint32(q.S), from: 1, to: uint32(1 + blocks)}
		if from > 0 {
			j.from = 0
		}
		if from+plan.chunk >= k.S {
			j.out, j.stride = address(dst.Mem, dst.Offset), int64(dst.RowStride)
		} else {
			j.state = scratch
		}
		if err := launch(b, "lse_join", grid{ceil(int(rows), blockThreads), 1, 1}, blockThreads, 0, &j); err != nil {
			return true, err
		}
	}
	return true, nil
}
