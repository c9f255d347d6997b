package plan

// Gather takes heads out of rows. The source has Rows rows of SrcRowStride elements; head h is the columns
// CompOffset + h*HeadStride up to Dim further. One gather covers the split of a fused row, [S, H, d] to [H, S, d] and
// back, and the merge of heads.
//
// The output is [Heads, Rows, Dim] when HeadsMajor, else [Rows, Heads*Dim].
type Gather struct {
	Rows, SrcRowStride     int
	CompOffset, HeadStride int
	Heads, Dim             int
	HeadsMajor             bool
}

// Merge is the gather that turns heads [heads, rows, dim] into rows [rows, heads*dim].
func Merge(heads, rows, dim int) Gather {
	return Gather{Rows: rows, SrcRowStride: dim, HeadStride: rows * dim, Heads: heads, Dim: dim}
}

// Len is the number of elements of the output. It refuses dimensions of zero and below, and products that overflow.
func (g Gather) Len() (int, error) {
	return Elements("gather", Dim{"heads", g.Heads}, Dim{"rows", g.Rows}, Dim{"dim", g.Dim})
}

// SrcLen is the number of elements that the source must have at least.
func (g Gather) SrcLen() (int, error) {
	const what = "gather"
	if _, err := g.Len(); err != nil {
		return 0, err
	}
	switch {
	case g.CompOffset < 0:
		return 0, refuse(what, "component offset is %d, must not be negative", g.CompOffset)
	case g.HeadStride < 0:
		return 0, refuse(what, "head stride is %d, must not be negative", g.HeadStride)
	case g.SrcRowStride < g.Dim:
		return 0, refuse(what, "row stride %d is below the head dim %d", g.SrcRowStride, g.Dim)
	}
	end, ok := mulAdd(g.Heads-1, g.HeadStride, g.CompOffset)
	if ok {
		end, ok = mulAdd(g.Rows-1, g.SrcRowStride, end)
	}
	if ok {
		end, ok = mulAdd(1, end, g.Dim)
	}
	if !ok {
		return 0, refuse(what, "end of the source (%d rows of %d, %d heads at %d + %d each) overflows",
			g.Rows, g.SrcRowStride, g.Heads, g.CompOffset, g.HeadStride)
	}
	return end, nil
}

// Copies is the plan: one copy a head, in the order of the heads.
func (g Gather) Copies() ([]PitchedCopy, error) {
	if _, err := g.SrcLen(); err != nil {
		return nil, err
	}
	copies := make([]PitchedCopy, g.Heads)
	for h := range copies {
		c := PitchedCopy{
			SrcOffset: g.CompOffset + h*g.HeadStride, SrcPitch: g.SrcRowStride,
			Width: g.Dim, Height: g.Rows,
		}
		if g.HeadsMajor {
			c.DstOffset, c.DstPitch = h*g.Rows*g.Dim, g.Dim
		} else {
			c.DstOffset, c.DstPitch = h*g.Dim, g.Heads*g.Dim
		}
		copies[h] = c
	}
	return copies, nil
}
