package resident

import (
	"context"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/wire"
)

// maxRerun bounds the steps that one turn of a control runs.
const maxRerun = 4096

// rerun is a part of a lineage that runs again: the steps that the knobs turn and what comes after them. What comes before is
// held as it was.
type rerun struct {
	root    *node
	order   []*node          // the steps to run, inputs first
	uses    map[*node]int    // how many of the steps in order take a step's result
	held    map[*node]*array // inputs that stay: one reference each
	prepare []*node          // steps before those, whose results are gone and must be made once
	names   map[*node]string // what errors call them
}

// newRerun plans and holds what is needed. The store's lock is held.
func newRerun(root *node, turned map[*node]bool) (*rerun, error) {
	r := &rerun{root: root, uses: map[*node]int{}, held: map[*node]*array{}, names: map[*node]string{}}
	after := map[*node]bool{}
	var reach func(n *node) bool
	reach = func(n *node) bool {
		if on, seen := after[n]; seen {
			return on
		}
		on := turned[n]
		for _, i := range n.in {
			on = reach(i) || on
		}
		after[n] = on
		return on
	}
	reach(root)
	planned := map[*node]bool{}
	var plan func(n *node) error
	plan = func(n *node) error {
		if planned[n] {
			return nil
		}
		planned[n] = true
		r.names[n] = n.label
		if !after[n] {
			if a := n.here(); a != nil {
				r.held[n] = a
				return nil
			}
			if n.op == wire.OpNone {
				return wire.Errorf(wire.Freed, "Explore: %s cannot be run again: its leaf %s %s was freed", root.called(), n.called(), shapeWords(n.shape, n.axes))
			}
		}
		for _, i := range n.in {
			if err := plan(i); err != nil {
				return err
			}
		}
		if !after[n] {
			r.prepare = append(r.prepare, n)
			return nil
		}
		for _, i := range n.in {
			r.uses[i]++
		}
		r.order = append(r.order, n)
		return nil
	}
	if err := plan(root); err != nil {
		return nil, err
	}
	if n := len(r.order) + len(r.prepare); n > maxRerun {
		return nil, wire.Errorf(wire.Refused, "Explore: %d steps made this: at most %d can be run again", n, maxRerun)
	}
	for _, a := range r.held {
		a.refs++
	}
	return r, nil
}

// here is the array of a node that has one.
func (n *node) here() *array {
	if n.live != nil {
		return n.live
	}
	return n.leaf
}

// ready makes what must be there before the first run. What only helped to make it goes again.
func (r *rerun) ready(ctx context.Context, d *cudaops.Device, s *store) error {
	if len(r.prepare) == 0 {
		return nil
	}
	keep := func(n *node) bool { return r.uses[n] > 0 || n == r.root }
	made, err := r.run(ctx, d, r.prepare, nil, keep)
	s.mu.Lock()
	defer s.unlock()
	for n, x := range made {
		if keep(n) {
			r.held[n] = &array{buf: x.buf, refs: 1}
		} else {
			s.dead = append(s.dead, x.buf)
		}
	}
	r.prepare = nil
	for n, a := range r.held {
		if !keep(n) {
			s.dropArray(a)
			delete(r.held, n)
		}
	}
	return err
}

// once runs the steps, with other parameters where params says so. The caller releases the result where it is fresh.
func (r *rerun) once(ctx context.Context, d *cudaops.Device, params map[*node]wire.Params) (x operand, fresh bool, err error) {
	if a := r.held[r.root]; a != nil {
		return operand{a.buf, r.root.meta}, false, nil
	}
	made, err := r.run(ctx, d, r.order, params, func(n *node) bool { return n == r.root })
	for n, y := range made {
		if n != r.root || err != nil {
			_ = y.buf.Release() // made by this run, once
		}
	}
	return made[r.root], err == nil, err
}

// run runs steps in order. What no later one of them takes is released on the way, but for what to keep.
func (r *rerun) run(ctx context.Context, d *cudaops.Device, steps []*node, params map[*node]wire.Params, keep func(*node) bool) (map[*node]operand, error) {
	made := map[*node]operand{}
	left := map[*node]int{}
	for _, n := range steps {
		for _, i := range n.in {
			left[i]++
		}
	}
	for _, n := range steps {
		if err := ctx.Err(); err != nil {
			return made, explain("Explore", err, nil)
		}
		p, ok := params[n]
		if !ok {
			p = n.params
		}
		x, err := r.step(d, n, p, made)
		if err != nil {
			return made, err
		}
		made[n] = x
		for _, i := range n.in {
			left[i]--
			if x, ok := made[i]; ok && left[i] == 0 && !keep(i) {
				_ = x.buf.Release() // made by this run, once
				delete(made, i)
			}
		}
	}
	return made, nil
}

// step runs one step and keeps the output that it stands for.
func (r *rerun) step(d *cudaops.Device, n *node, p wire.Params, made map[*node]operand) (operand, error) {
	def := ops[n.op]
	args, err := def.names(p)
	if err != nil {
		return operand{}, wire.Errorf(wire.Internal, "Explore: %v: %v", n.op, err)
	}
	in := make([]operand, len(n.in))
	about := make([]input, len(n.in))
	for i, from := range n.in {
		x, ok := made[from]
		if a := r.held[from]; a != nil {
			x = operand{a.buf, from.meta}
		} else if !ok {
			return operand{}, wire.Errorf(wire.Internal, "Explore: an input of %v is not there", n.op)
		}
		in[i], about[i] = x, input{args[i], r.names[from], x.meta}
	}
	results, err := runJob(&job{d: d, op: n.op}, def, p, in)
	if err != nil {
		return operand{}, explain(opName(n.op, p), err, about)
	}
	for i, res := range results {
		if i != n.out {
			_ = res.buf.Release() // made by this step, once
		}
	}
	return operand(results[n.out]), nil
}

// drop gives back what is held. The store's lock is held.
func (r *rerun) drop(s *store) {
	for _, a := range r.held {
		s.dropArray(a)
	}
	r.held = nil
}
