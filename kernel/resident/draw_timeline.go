package resident

import (
	"slices"

	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/viz"
)

// drawTimeline shows the writes to a cache: those given, or those in the lineage of a tensor.
func drawTimeline(c *conn, r wire.Request, _ []operand, nodes []*node) (viz.Drawable, error) {
	t := viz.Timeline{Title: r.Text}
	if len(nodes) == 0 {
		for _, w := range r.Draw.Writes {
			t.Steps = append(t.Steps, viz.Write{Trim: w.Trim, Length: w.Length, Slots: w.Slots, Positions: w.Positions})
		}
		t.Title = or(t.Title, "KV cache")
		return t, nil
	}
	if len(r.Draw.Writes) > 0 {
		return nil, unfit("", "either a cache or its writes")
	}
	c.s.store.mu.Lock()
	defer c.s.store.unlock()
	t.Title = or(t.Title, nodes[0].title()+", slot by slot")
	var err error
	t.Steps, err = writesOf(nodes[0])
	return t, err
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// writesOf reads a cache's writes from its lineage, oldest first: the rows that it began with, those that were appended, and where
// only its first rows were kept. Where positions of some rows cannot be told, none are.
func writesOf(n *node) ([]viz.Write, error) {
	if n.rowAxis() < 0 {
		return nil, unfit("cache", "has no rows, and so no slots")
	}
	var back []viz.Write
	known := true
	for {
		rows := n
		switch {
		case n.op == wire.OpAppend:
			rows = n.in[1]
			n = n.in[0]
		case n.op == wire.OpRows && n.params.Index == 0 && appended(n.in[0]):
			back = append(back, viz.Write{Trim: true, Length: n.params.Count})
			n = n.in[0]
			continue
		case n.sameRows() && appended(n.in[0]):
			n = n.in[0]
			continue
		default:
			n = nil
		}
		first := 0
		if n != nil {
			first = n.rows()
		}
		w := viz.Write{Positions: positionsOf(rows)}
		known = known && w.Positions != nil
		for i := range rows.rows() {
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

// sameRows says that a step moves or picks heads, and that its rows are those of its input.
func (n *node) sameRows() bool {
	switch n.op {
	case wire.OpAxes, wire.OpSwap, wire.OpIndex:
		return n.in[0].rowAxis() >= 0 && n.in[0].rows() == n.rows()
	}
	return false
}

// appended says that appends made the rows of n, or those of which it kept the first.
func appended(n *node) bool {
	for n.sameRows() || n.op == wire.OpRows {
		n = n.in[0]
	}
	return n.op == wire.OpAppend
}

// positionsOf are those to which the rows of n were rotated; nil where no RoPE step made them, or more than one.
func positionsOf(n *node) []int {
	from, count := 0, n.rows()
	for {
		switch {
		case n.op == wire.OpRoPE:
			at := make([]int, count)
			for i := range at {
				at[i] = n.params.Offset + from + i
				if n.params.Positions != nil {
					at[i] = n.params.Positions[from+i]
				}
			}
			if positionsOf(n.in[0]) != nil {
				return nil
			}
			return at
		case n.op == wire.OpRows:
			from += n.params.Index
		case n.sameRows():
		default:
			return nil
		}
		n = n.in[0]
	}
}
