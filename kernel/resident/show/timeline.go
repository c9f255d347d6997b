package show

import (
	"cmp"
	"slices"

	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/viz"
)

// drawTimeline shows the writes to a cache: those given, or those in the lineage of a tensor.
func drawTimeline(c *store.Client, r wire.Request, _ []store.Operand, nodes []*store.Node) (viz.Drawable, error) {
	t := viz.Timeline{Title: r.Text}
	if len(nodes) == 0 {
		for _, w := range r.Draw.Writes {
			t.Steps = append(t.Steps, viz.Write{Trim: w.Trim, Length: w.Length, Slots: w.Slots, Positions: w.Positions})
		}
		t.Title = cmp.Or(t.Title, "KV cache")
		return t, nil
	}
	if len(r.Draw.Writes) > 0 {
		return nil, unfit("", "either a cache or its writes")
	}
	c.Store.Lock()
	defer c.Store.Unlock()
	t.Title = cmp.Or(t.Title, nodes[0].Title()+", slot by slot")
	var err error
	t.Steps, err = Writes(nodes[0])
	return t, err
}

// Writes reads a cache's writes from its lineage, oldest first: the rows that it began with, those that were appended, and where
// only its first rows were kept. Where positions of some rows cannot be told, none are.
func Writes(n *store.Node) ([]viz.Write, error) {
	if n.RowAxis() < 0 {
		return nil, unfit("cache", "has no rows, and so no slots")
	}
	var back []viz.Write
	known := true
	for {
		rows := n
		switch {
		case n.Op == wire.OpAppend:
			rows = n.In[1]
			n = n.In[0]
		case n.Op == wire.OpRows && n.Params.Index == 0 && n.In[0].Appended():
			back = append(back, viz.Write{Trim: true, Length: n.Params.Count})
			n = n.In[0]
			continue
		case n.SameRows() && n.In[0].Appended():
			n = n.In[0]
			continue
		default:
			n = nil
		}
		first := 0
		if n != nil {
			first = n.Rows()
		}
		w := viz.Write{Positions: positionsOf(rows)}
		known = known && w.Positions != nil
		for i := range rows.Rows() {
			w.Slots = append(w.Slots, first+i)
		}
		if back = append(back, w); n == nil {
			break
		}
	}
	slices.Reverse(back)
	if !known {
		for i := range back {
			back[i].Positions = nil
		}
	}
	return back, nil
}

// positionsOf are those to which the rows of n were rotated; nil where no RoPE step made them, or more than one.
func positionsOf(n *store.Node) []int {
	from, count := 0, n.Rows()
	for {
		switch {
		case n.Op == wire.OpRoPE:
			at := make([]int, count)
			for i := range at {
				at[i] = n.Params.Offset + from + i
				if n.Params.Positions != nil {
					at[i] = n.Params.Positions[from+i]
				}
			}
			if positionsOf(n.In[0]) != nil {
				return nil
			}
			return at
		case n.Op == wire.OpRows:
			from += n.Params.Index
		case n.SameRows():
		default:
			return nil
		}
		n = n.In[0]
	}
}
