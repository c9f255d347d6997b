package chain

import (
	"context"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
)

// maxRerun bounds the steps that one turn of a control runs.
const maxRerun = 4096

// Rerun is a part of a lineage that runs again: the steps that the knobs turn and what comes after them. What comes before is
// held as it was.
type Rerun struct {
	root    *store.Node
	order   []*store.Node                // the steps to run, inputs first
	uses    map[*store.Node]int          // how many of the steps in order take a step's result
	held    map[*store.Node]*store.Array // inputs that stay: one reference each
	prepare []*store.Node                // steps before those, whose results are gone and must be made once
	names   map[*store.Node]string       // what errors call them
}

// NewRerun plans and holds what is needed. The store's lock is held.
func NewRerun(root *store.Node, turned map[*store.Node]bool) (*Rerun, error) {
	r := &Rerun{root: root, uses: map[*store.Node]int{}, held: map[*store.Node]*store.Array{}, names: map[*store.Node]string{}}
	after := map[*store.Node]bool{}
	var reach func(n *store.Node) bool
	reach = func(n *store.Node) bool {
		if on, seen := after[n]; seen {
			return on
		}
		on := turned[n]
		for _, i := range n.In {
			on = reach(i) || on
		}
		after[n] = on
		return on
	}
	reach(root)
	planned := map[*store.Node]bool{}
	var plan func(n *store.Node) error
	plan = func(n *store.Node) error {
		if planned[n] {
			return nil
		}
		planned[n] = true
		r.names[n] = n.Label
		if !after[n] {
			if a := n.Here(); a != nil {
				r.held[n] = a
				return nil
			}
			if n.Op == wire.OpNone {
				return wire.Errorf(wire.Freed, "Explore: %s cannot be run again: its leaf %s %s was freed", root.Called(), n.Called(), store.ShapeWords(n.Shape, n.Axes))
			}
		}
		for _, i := range n.In {
			if err := plan(i); err != nil {
				return err
			}
		}
		if !after[n] {
			r.prepare = append(r.prepare, n)
			return nil
		}
		for _, i := range n.In {
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
		a.Hold()
	}
	return r, nil
}

// Ready makes what must be there before the first run. What only helped to make it goes again.
func (r *Rerun) Ready(ctx context.Context, d *cudaops.Device, s *store.Store) error {
	if len(r.prepare) == 0 {
		return nil
	}
	keep := func(n *store.Node) bool { return r.uses[n] > 0 || n == r.root }
	made, err := r.run(ctx, d, r.prepare, nil, keep)
	s.Lock()
	defer s.Unlock()
	for n, x := range made {
		if keep(n) {
			r.held[n] = store.NewArray(x.Buf)
		} else {
			s.Bury(x.Buf)
		}
	}
	r.prepare = nil
	for n, a := range r.held {
		if !keep(n) {
			s.DropArray(a)
			delete(r.held, n)
		}
	}
	return err
}

// Once runs the steps, with other parameters where params says so. The caller releases the result where it is fresh.
func (r *Rerun) Once(ctx context.Context, d *cudaops.Device, params map[*store.Node]wire.Params) (x store.Operand, fresh bool, err error) {
	if a := r.held[r.root]; a != nil {
		return store.Operand{Buf: a.Buf, Meta: r.root.Meta}, false, nil
	}
	made, err := r.run(ctx, d, r.order, params, func(n *store.Node) bool { return n == r.root })
	for n, y := range made {
		if n != r.root || err != nil {
			_ = y.Buf.Release() // made by this run, once
		}
	}
	return made[r.root], err == nil, err
}

// run runs steps in order. What no later one of them takes is released on the way, but for what to keep.
func (r *Rerun) run(ctx context.Context, d *cudaops.Device, steps []*store.Node, params map[*store.Node]wire.Params, keep func(*store.Node) bool) (map[*store.Node]store.Operand, error) {
	made := map[*store.Node]store.Operand{}
	left := map[*store.Node]int{}
	for _, n := range steps {
		for _, i := range n.In {
			left[i]++
		}
	}
	for _, n := range steps {
		if err := ctx.Err(); err != nil {
			return made, store.Explain("Explore", err, nil)
		}
		p, ok := params[n]
		if !ok {
			p = n.Params
		}
		x, err := r.step(d, n, p, made)
		if err != nil {
			return made, err
		}
		made[n] = x
		for _, i := range n.In {
			left[i]--
			if x, ok := made[i]; ok && left[i] == 0 && !keep(i) {
				_ = x.Buf.Release() // made by this run, once
				delete(made, i)
			}
		}
	}
	return made, nil
}

// StepAgain runs one step on inputs that are held, as it was recorded.
func StepAgain(d *cudaops.Device, n *store.Node, held map[*store.Node]*store.Array) (store.Operand, error) {
	r := &Rerun{held: held, names: map[*store.Node]string{}}
	return r.step(d, n, n.Params, nil)
}

// step runs one step and keeps the output that it stands for.
func (r *Rerun) step(d *cudaops.Device, n *store.Node, p wire.Params, made map[*store.Node]store.Operand) (store.Operand, error) {
	def := ops[n.Op]
	args, err := def.names(p)
	if err != nil {
		return store.Operand{}, wire.Errorf(wire.Internal, "Explore: %v: %v", n.Op, err)
	}
	in := make([]store.Operand, len(n.In))
	about := make([]store.Input, len(n.In))
	for i, from := range n.In {
		x, ok := made[from]
		if a := r.held[from]; a != nil {
			x = store.Operand{Buf: a.Buf, Meta: from.Meta}
		} else if !ok {
			return store.Operand{}, wire.Errorf(wire.Internal, "Explore: an input of %v is not there", n.Op)
		}
		in[i], about[i] = x, store.Input{Arg: args[i], Name: r.names[from], Meta: x.Meta}
	}
	results, err := runJob(&Job{D: d, op: n.Op}, def, p, in)
	if err != nil {
		return store.Operand{}, store.Explain(store.OpName(n.Op, p), err, about)
	}
	for i, res := range results {
		if i != n.Out {
			_ = res.Buf.Release() // made by this step, once
		}
	}
	return results[n.Out], nil
}

// Drop gives back what is held. The store's lock is held.
func (r *Rerun) Drop(s *store.Store) {
	for _, a := range r.held {
		s.DropArray(a)
	}
	r.held = nil
}
