package cudaops

import "github.com/attnb/attnb/cudaops/plan"

// GatherHeads takes heads out of rows. src is read as a flat, packed array of at least g.SrcLen elements. The result is
// [g.Heads, g.Rows, g.Dim] when g.HeadsMajor, else [1, g.Rows, g.Heads*g.Dim].
func (d *Device) GatherHeads(src *Buffer, g plan.Gather) (*Buffer, error) {
	c, err := d.begin("GatherHeads", operand{"src", src})
	if err != nil {
		return nil, err
	}
	defer c.end()
	v := c.views[0]
	need, err := g.SrcLen()
	switch {
	case err != nil:
		return nil, c.bad([]int{0}, "%s", reason(err))
	case !v.packed():
		return nil, c.bad([]int{0}, "its rows do not touch: copy it first")
	case need > v.H*v.S*v.D:
		return nil, c.bad([]int{0}, "gather ends at %d, past its %d elements", need, v.H*v.S*v.D)
	}
	from := gatherView(v, g)
	out := shape{h: g.Heads, s: g.Rows, d: g.Dim}
	if !g.HeadsMajor {
		out = shape{h: 1, s: g.Rows, d: g.Heads * g.Dim}
	}
	return c.run1(out, func(o View) error {
		return d.backend.Gather([]View{asHeads(o, g.Heads)}, []View{from})
	})
}

// gatherView is what a gather reads, as a view.
func gatherView(src View, g plan.Gather) View {
	return View{src.Mem, g.Heads, g.Rows, g.Dim, src.Offset + g.CompOffset, g.HeadStride, g.SrcRowStride}
}

// asHeads views the rows of an output by head; an output that has heads already stays.
func asHeads(v View, heads int) View {
	if v.H == heads {
		return v
	}
	d := v.D / heads
	return View{v.Mem, heads, v.S, d, v.Offset, d, v.RowStride}
}

// SplitHeads splits fused rows x, [1, S, (heads + 2 kvHeads) * dim], into query [heads, S, dim], key and value
// [kvHeads, S, dim], in one launch.
func (d *Device) SplitHeads(x *Buffer, l plan.Layout, heads, kvHeads, dim int) (q, k, v *Buffer, err error) {
	c, err := d.begin("SplitHeads", operand{"x", x})
	if err != nil {
		return nil, nil, nil, err
	}
	defer c.end()
	src := c.views[0]
	if src.H != 1 {
		return nil, nil, nil, c.bad([]int{0}, "fused rows have 1 head, not %d", src.H)
	}
	split := plan.Split{Layout: l, Rows: src.S, Heads: heads, KVHeads: kvHeads, Dim: dim, RowStride: src.RowStride}
	row, err := split.RowLen()
	if err != nil {
		return nil, nil, nil, c.bad([]int{0}, "%s", reason(err))
	}
	if row != src.D {
		return nil, nil, nil, c.bad([]int{0}, "%d elements a row, but layout %v with %d heads, %d KV heads and dim %d has %d",
			src.D, l, heads, kvHeads, dim, row)
	}
	qs, ks, vs, err := split.Pieces()
	if err != nil {
		return nil, nil, nil, c.bad([]int{0}, "%s", reason(err))
	}
	kv := shape{h: kvHeads, s: src.S, d: dim}
	out, err := c.run([]shape{{h: heads, s: src.S, d: dim}, kv, kv}, func(o []View) error {
		var to, from []View
		for i, pieces := range [][]plan.Piece{qs, ks, vs} {
			for _, p := range pieces {
				t := o[i]
				t.Offset += p.FirstHead * t.HeadStride
				t.H = p.Heads
				to, from = append(to, t), append(from, gatherView(src, p.Gather))
			}
		}
		return d.backend.Gather(to, from)
	})
	if err != nil {
		return nil, nil, nil, err
	}
	return out[0], out[1], out[2], nil
}

// MergeHeads puts the heads of each row side by side: [H, S, d] becomes [1, S, H*d].
func (d *Device) MergeHeads(x *Buffer) (*Buffer, error) {
	c, err := d.begin("MergeHeads", operand{"x", x})
	if err != nil {
		return nil, err
	}
	defer c.end()
	v := c.views[0]
	width, err := plan.Elements("output", plan.Dim{Name: "heads", N: v.H}, plan.Dim{Name: "dim", N: v.D})
	if err != nil {
		return nil, c.bad([]int{0}, "%s", reason(err))
	}
	return c.run1(shape{h: 1, s: v.S, d: width}, func(o View) error {
		return d.backend.Gather([]View{asHeads(o, v.H)}, []View{v})
	})
}

// Swap exchanges heads and rows: [A, B, d] becomes [B, A, d].
func (d *Device) Swap(x *Buffer) (*Buffer, error) {
	c, err := d.begin("Swap", operand{"x", x})
	if err != nil {
		return nil, err
	}
	defer c.end()
	v := c.views[0]
	v.H, v.S, v.HeadStride, v.RowStride = v.S, v.H, v.RowStride, v.HeadStride
	return c.run1(shape{h: v.H, s: v.S, d: v.D}, func(o View) error {
		return d.backend.Gather([]View{o}, []View{v})
	})
}
