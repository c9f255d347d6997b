package resident

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/viz"
)

// maxExplorations bounds those that are held; the oldest ends when there is one more.
const maxExplorations = 64

// exploration is a picture that can be made again with other parameters.
type exploration struct {
	id     int
	root   *node // one reference
	knobs  []knob
	title  string
	labels []string
	goal   *goal          // what it is to come to; nil: nothing
	turned map[*node]bool // steps that a knob turns

	mu   sync.Mutex // of one run, and of the end
	run  *rerun
	over bool
}

// explorations are those of all notebooks' cells, by ID.
type explorations struct {
	mu    sync.Mutex
	byID  map[int]*exploration
	order []int // oldest first
}

func newExplorations() *explorations { return &explorations{byID: map[int]*exploration{}} }

// add keeps x under a new ID and returns what must make room for it.
func (xs *explorations) add(x *exploration) (ended []*exploration) {
	xs.mu.Lock()
	defer xs.mu.Unlock()
	for x.id == 0 || xs.byID[x.id] != nil {
		x.id = int(rand.Int64())
	}
	xs.byID[x.id] = x
	xs.order = append(xs.order, x.id)
	for len(xs.order) > maxExplorations {
		ended = append(ended, xs.byID[xs.order[0]])
		delete(xs.byID, xs.order[0])
		xs.order = xs.order[1:]
	}
	return ended
}

func (xs *explorations) get(id int) (*exploration, error) {
	xs.mu.Lock()
	defer xs.mu.Unlock()
	if x := xs.byID[id]; x != nil {
		return x, nil
	}
	return nil, wire.Errorf(wire.NotFound, "this picture is no longer live: run its cell again")
}

// take removes one, or all where id is 0.
func (xs *explorations) take(id int) (ended []*exploration) {
	xs.mu.Lock()
	defer xs.mu.Unlock()
	kept := xs.order[:0]
	for _, have := range xs.order {
		if id != 0 && have != id {
			kept = append(kept, have)
			continue
		}
		ended = append(ended, xs.byID[have])
		delete(xs.byID, have)
	}
	xs.order = kept
	return ended
}

// endExplorations gives back what explorations held, each after its run.
func (s *store) endExplorations(xs []*exploration) {
	for _, x := range xs {
		x.mu.Lock()
		s.mu.Lock()
		if !x.over {
			x.over = true
			x.run.drop(s)
			s.dropNode(x.root)
		}
		s.unlock()
		x.mu.Unlock()
	}
}

// explore makes a picture with controls that run its chain again.
func (c *conn) explore(r wire.Request) (wire.Answer, error) {
	if len(r.IDs) != 1 || len(r.Controls) > maxControls {
		return wire.Answer{}, wire.Errorf(wire.BadRequest, "Explore: %d tensors and %d controls, it takes 1 and at most %d", len(r.IDs), len(r.Controls), maxControls)
	}
	x, in, err := c.newExploration(r)
	if err != nil {
		return wire.Answer{}, err
	}
	refuse := func(err error) (wire.Answer, error) {
		c.s.store.endExplorations([]*exploration{x})
		return wire.Answer{}, err
	}
	if err := x.run.ready(c.ctx, c.d, c.s.store); err != nil {
		return refuse(err)
	}
	if r.Expected != 0 {
		if x.goal, err = c.goalFor(x.root.meta, r); err != nil {
			return refuse(err)
		}
	}
	display, err := x.picture(c.s, nil)
	if err != nil {
		var known *wire.Error
		if errors.As(err, &known) {
			known.Message = "Explore: " + known.Message + about(nil, in)
		}
		return refuse(err)
	}
	display.Exploration = &wire.Exploration{}
	for _, k := range x.knobs {
		display.Exploration.Controls = append(display.Exploration.Controls, k.Control)
	}
	c.s.store.endExplorations(c.s.explorations.add(x))
	display.Exploration.ID = x.id
	id, err := c.s.displays.put(display)
	return wire.Answer{DisplayID: id}, err
}

// newExploration makes the knobs and plans the run.
func (c *conn) newExploration(r wire.Request) (*exploration, []input, error) {
	st := c.s.store
	st.mu.Lock()
	defer st.unlock()
	t, err := st.get("Explore", r.IDs[0])
	if err != nil {
		return nil, nil, err
	}
	in := []input{{"x", t.name, t.node.meta}}
	x := &exploration{root: t.node, title: r.Text, labels: r.Labels}
	if x.title == "" {
		x.title = t.node.title()
	}
	if x.knobs, err = knobsFor(t.node, r.Controls); err != nil {
		return nil, nil, wire.Errorf(wire.BadInput, "Explore: %v%s", err, about(nil, in))
	}
	turned := map[*node]bool{}
	for _, k := range x.knobs {
		for _, n := range k.steps {
			turned[n] = true
		}
	}
	x.turned = turned
	if x.run, err = newRerun(t.node, turned); err != nil {
		return nil, nil, err
	}
	t.node.refs++
	return x, in, nil
}

// knobsFor makes the knobs asked for, or all that turn anything.
func knobsFor(root *node, asked []wire.Control) ([]knob, error) {
	chain := stepsOf(root)
	var knobs []knob
	names := map[string]bool{}
	for _, ask := range asked {
		k, err := chain.knob(ask)
		if err != nil {
			return nil, err
		}
		if names[k.Label] {
			return nil, fmt.Errorf("%q is there twice", k.Label)
		}
		names[k.Label] = true
		knobs = append(knobs, k)
	}
	if len(asked) > 0 {
		return knobs, nil
	}
	for _, name := range parameterNames {
		if k, err := chain.knob(wire.Control{Name: name}); err == nil {
			knobs = append(knobs, k)
		}
	}
	if len(knobs) == 0 {
		return nil, errors.New("there is nothing to turn: no RoPE step made this, and it has one matrix")
	}
	return knobs, nil
}

// rerun makes the picture anew. It answers the display itself: the one who asks is the one who shows it.
func (c *conn) rerun(r wire.Request) (wire.Answer, error) {
	x, err := c.s.explorations.get(r.Number)
	if err != nil {
		return wire.Answer{}, err
	}
	display, err := x.picture(c.s, r.Controls)
	if err != nil {
		return wire.Answer{}, err
	}
	return wire.Answer{Display: &display}, nil
}

// picture draws the result under the settings, which may leave controls out: those stand as they were recorded.
func (x *exploration) picture(s *server, settings []wire.Control) (wire.Display, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return wire.Display{}, wire.Errorf(wire.NotFound, "this picture is no longer live: run its cell again")
	}
	params, head, err := x.settle(settings)
	if err != nil {
		return wire.Display{}, wire.Errorf(wire.BadInput, "%v", err)
	}
	out, fresh, err := x.run.once(s.ctx, s.d, params)
	if err != nil {
		return wire.Display{}, err
	}
	if fresh {
		defer func() { _ = out.buf.Release() }() // made by this run, once
	}
	data, err := fetch(s.d, out)
	if err != nil {
		return wire.Display{}, explain("Explore", err, nil)
	}
	hm, err := arrange(out.meta).heatmap(x.title, out.quantity.kind(), data, x.labels)
	if err != nil {
		return wire.Display{}, wire.Errorf(wire.BadInput, "%v", err)
	}
	if head >= 0 && head < len(hm.Matrices) {
		hm.Matrices = hm.Matrices[head : head+1]
	}
	shown := viz.Drawable(hm)
	if x.goal != nil {
		apart, err := x.goal.against(arrange(out.meta), data, x.labels)
		if err != nil {
			return wire.Display{}, wire.Errorf(wire.BadInput, "%v", err)
		}
		if head >= 0 && head < len(apart.Matrices) {
			apart.Matrices = apart.Matrices[head : head+1]
		}
		shown = viz.Sheet{Pictures: []viz.Drawable{hm, apart}}
	}
	d, err := bundle(shown, seeNothing(out.empty))
	s.store.mu.Lock()
	d.Code = goLine(x.root, x.turned, params)
	s.store.unlock()
	var bad *viz.InputError
	if errors.As(err, &bad) {
		err = wire.Errorf(wire.BadInput, "%s", bad.Reason)
	}
	return d, err
}

// settle turns settings into the parameters of the steps that they change, and the matrix to show, -1 for all.
func (x *exploration) settle(settings []wire.Control) (params map[*node]wire.Params, head int, err error) {
	values := map[string]float64{}
	for _, c := range settings {
		values[c.Name] = c.Value
	}
	params, head = map[*node]wire.Params{}, -1
	for i := range x.knobs {
		k := &x.knobs[i]
		v, set := values[k.Name]
		if set {
			if err := k.accept(v); err != nil {
				return nil, 0, err
			}
		} else {
			v = k.Value
		}
		if k.steps == nil {
			head = int(v)
			if k.Options != nil {
				head-- // the first option is all of them
			}
			continue
		}
		if v == k.Value {
			continue // as recorded, to the bit
		}
		for _, n := range k.steps {
			p, ok := params[n]
			if !ok {
				p = n.params
			}
			k.set(&p, n, v)
			params[n] = p
		}
	}
	return params, head, nil
}

// release ends an exploration, or a live map; one that is gone already is no error.
func (c *conn) release(r wire.Request) {
	if r.Number != 0 {
		c.s.store.endExplorations(c.s.explorations.take(r.Number))
		c.s.maps.end(r.Number)
	}
}
