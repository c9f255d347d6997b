package resident

import (
	"fmt"

	"github.com/attnb/attnb/kernel/resident/trust"
	"github.com/attnb/attnb/kernel/wire"
)

// checkAppends follows the writes to a cache by what made it, and how often its rows were rotated.
func (c *conn) checkAppends(r wire.Request) (wire.Answer, error) {
	const name = "CheckWrites"
	if len(r.IDs) != 1 {
		return wire.Answer{}, wire.Errorf(wire.BadRequest, "%s: %d tensors", name, len(r.IDs))
	}
	_, nodes, inputs, done, err := c.use(name, r.IDs, []string{"cache"})
	if err != nil {
		return wire.Answer{}, err
	}
	defer done()
	ask := trust.Case{Topic: "writes"}
	st := c.s.store
	st.mu.Lock()
	writes, err := writesOf(nodes[0])
	turns := turnsOf(nodes[0])
	st.unlock()
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
	o, err := trust.Answer(ask)
	if err != nil {
		return wire.Answer{}, refusedAs(name, fmt.Errorf("%w", err), inputs)
	}
	return c.finish(o)
}

// turn is how often RoPE turned some rows of a cache.
type turns struct{ rows, times int }

// turnsOf counts the rotations of the rows that a cache was made of, oldest first.
func turnsOf(n *node) []turns {
	var out []turns
	var visit func(n *node, times int)
	visit = func(n *node, times int) {
		switch {
		case n.op == wire.OpAppend:
			chain := []*node{}
			for n.op == wire.OpAppend { // a loop: a cache may have many appends
				chain = append(chain, n.in[1])
				n = n.in[0]
			}
			visit(n, times)
			for i := len(chain) - 1; i >= 0; i-- {
				visit(chain[i], times)
			}
		case n.op == wire.OpRoPE:
			visit(n.in[0], times+1)
		case n.sameRows() || n.op == wire.OpRows && !appended(n.in[0]):
			if n.op == wire.OpRows {
				out = append(out, turns{n.rows(), times + rotations(n.in[0])})
				return
			}
			visit(n.in[0], times)
		case n.op == wire.OpRows: // a trim: what is behind it is gone
			before := len(out)
			visit(n.in[0], times)
			left := n.params.Count
			for i := before; i < len(out); i++ {
				out[i].rows = min(out[i].rows, left)
				left -= out[i].rows
			}
		default:
			out = append(out, turns{n.rows(), times})
		}
	}
	visit(n, 0)
	return out
}

// rotations are the RoPE steps above rows that no append made.
func rotations(n *node) int {
	times := 0
	for n.op == wire.OpRoPE || n.op == wire.OpRows || n.sameRows() {
		if n.op == wire.OpRoPE {
			times++
		}
		n = n.in[0]
	}
	return times
}
