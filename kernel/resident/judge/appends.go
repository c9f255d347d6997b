package judge

import (
	"fmt"

	"github.com/attnb/attnb/kernel/resident/show"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/resident/trust"
	"github.com/attnb/attnb/kernel/wire"
)

// checkAppends follows the writes to a cache by what made it, and how often its rows were rotated.
func (j *Judge) checkAppends(r wire.Request) (wire.Answer, error) {
	const name = "CheckWrites"
	if len(r.IDs) != 1 {
		return wire.Answer{}, wire.Errorf(wire.BadRequest, "%s: %d tensors", name, len(r.IDs))
	}
	_, nodes, inputs, done, err := j.Use(name, r.IDs, []string{"cache"})
	if err != nil {
		return wire.Answer{}, err
	}
	defer done()
	ask := trust.Case{Topic: "writes"}
	st := j.Store
	st.Lock()
	writes, err := show.Writes(nodes[0])
	turns := turnsOf(nodes[0])
	st.Unlock()
	if err != nil {
		return wire.Answer{}, refusedAs(name, err, inputs)
	}
	for _, w := range writes {
		if w.Trim {
			ask.Settings = append(ask.Settings, wire.Fact{Name: "trim", Numbers: []float64{float64(w.Length)}})
		}
		for i, slot := range w.Slots {
			position := -1
			if w.Positions != nil {
				position = w.Positions[i]
			}
			ask.Settings = append(ask.Settings, wire.Fact{Name: "write", Numbers: []float64{float64(slot), 1, float64(position)}})
		}
	}
	for _, t := range turns {
		ask.Settings = append(ask.Settings, wire.Fact{Name: "turns", Numbers: []float64{float64(t.rows), float64(t.times)}})
	}
	o, err := trust.Answer(j.Ctx, ask)
	if err != nil {
		return wire.Answer{}, refusedAs(name, fmt.Errorf("%w", err), inputs)
	}
	return j.finish(o)
}

// turn is how often RoPE turned some rows of a cache.
type turns struct{ rows, times int }

// turnsOf counts the rotations of the rows that a cache was made of, oldest first.
func turnsOf(n *store.Node) []turns {
	var out []turns
	var visit func(n *store.Node, times int)
	visit = func(n *store.Node, times int) {
		switch {
		case n.Op == wire.OpAppend:
			chain := []*store.Node{}
			for n.Op == wire.OpAppend { // a loop: a cache may have many appends
				chain = append(chain, n.In[1])
				n = n.In[0]
			}
			visit(n, times)
			for i := len(chain) - 1; i >= 0; i-- {
				visit(chain[i], times)
			}
		case n.Op == wire.OpRoPE:
			visit(n.In[0], times+1)
		case n.SameRows() || n.Op == wire.OpRows && !n.In[0].Appended():
			if n.Op == wire.OpRows {
				out = append(out, turns{n.Rows(), times + rotations(n.In[0])})
				return
			}
			visit(n.In[0], times)
		case n.Op == wire.OpRows: // a trim: what is behind it is gone
			before := len(out)
			visit(n.In[0], times)
			left := n.Params.Count
			for i := before; i < len(out); i++ {
				out[i].rows = min(out[i].rows, left)
				left -= out[i].rows
			}
		default:
			out = append(out, turns{n.Rows(), times})
		}
	}
	visit(n, 0)
	return out
}

// rotations are the RoPE steps above rows that no append made.
func rotations(n *store.Node) int {
	times := 0
	for n.Op == wire.OpRoPE || n.Op == wire.OpRows || n.SameRows() {
		if n.Op == wire.OpRoPE {
			times++
		}
		n = n.In[0]
	}
	return times
}
