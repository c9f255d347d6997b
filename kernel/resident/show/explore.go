package show

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/attnb/attnb/kernel/resident/chain"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/viz"
)

// MaxLive bounds the explorations that are held, and the live maps; the oldest ends when there is one more.
const MaxLive = 64

// exploration is a picture that can be made again with other parameters.
type exploration struct {
	id     int
	root   *store.Node // one reference
	knobs  []knob
	title  string
	labels []string
	goal   *goal                // what it is to come to; nil: nothing
	turned map[*store.Node]bool // steps that a knob turns

	mu   sync.Mutex // of one run, and of the end
	run  *chain.Rerun
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
	for len(xs.order) > MaxLive {
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
func endExplorations(s *store.Store, xs []*exploration) {
	for _, x := range xs {
		x.mu.Lock()
		s.Lock()
		if !x.over {
			x.over = true
			x.run.Drop(s)
			s.DropNode(x.root)
		}
		s.Unlock()
		x.mu.Unlock()
	}
}

// Explore makes a picture with controls that run its chain again.
func (g *Gallery) Explore(c *store.Client, r wire.Request) (wire.Answer, error) {
	if len(r.IDs) != 1 || len(r.Controls) > maxControls {
		return wire.Answer{}, wire.Errorf(wire.BadRequest, "Explore: %d tensors and %d controls, it takes 1 and at most %d", len(r.IDs), len(r.Controls), maxControls)
	}
	x, in, err := newExploration(c, r)
	if err != nil {
		return wire.Answer{}, err
	}
	refuse := func(err error) (wire.Answer, error) {
		endExplorations(c.Store, []*exploration{x})
		return wire.Answer{}, err
	}
	if err := x.run.Ready(c.Ctx, c.Device, c.Store); err != nil {
		return refuse(err)
	}
	if r.Expected != 0 {
		if x.goal, err = goalFor(c, x.root.Meta, r); err != nil {
			return refuse(err)
		}
	}
	display, err := x.picture(g.own, nil)
	if err != nil {
		var known *wire.Error
		if errors.As(err, &known) {
			known.Message = "Explore: " + known.Message + store.About(nil, in)
		}
		return refuse(err)
	}
	display.Exploration = &wire.Exploration{}
	for _, k := range x.knobs {
		display.Exploration.Controls = append(display.Exploration.Controls, k.Control)
	}
	endExplorations(c.Store, g.explorations.add(x))
	display.Exploration.ID = x.id
	id, err := g.Put(display)
	return wire.Answer{DisplayID: id}, err
}

// newExploration makes the knobs and plans the run.
func newExploration(c *store.Client, r wire.Request) (*exploration, []store.Input, error) {
	st := c.Store
	st.Lock()
	defer st.Unlock()
	t, err := st.Get("Explore", r.IDs[0])
	if err != nil {
		return nil, nil, err
	}
	in := []store.Input{{Arg: "x", Name: t.Name, Meta: t.Node.Meta}}
	x := &exploration{root: t.Node, title: r.Text, labels: r.Labels}
	if x.title == "" {
		x.title = t.Node.Title()
	}
	if x.knobs, err = knobsFor(t.Node, r.Controls); err != nil {
		return nil, nil, wire.Errorf(wire.BadInput, "Explore: %v%s", err, store.About(nil, in))
	}
	turned := map[*store.Node]bool{}
	for _, k := range x.knobs {
		for _, n := range k.steps {
			turned[n] = true
		}
	}
	x.turned = turned
	if x.run, err = chain.NewRerun(t.Node, turned); err != nil {
		return nil, nil, err
	}
	t.Node.Hold()
	return x, in, nil
}

// knobsFor makes the knobs asked for, or all that turn anything.
func knobsFor(root *store.Node, asked []wire.Control) ([]knob, error) {
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

// Rerun makes the picture anew. It answers the display itself: the one who asks is the one who shows it.
func (g *Gallery) Rerun(r wire.Request) (wire.Answer, error) {
	x, err := g.explorations.get(r.Number)
	if err != nil {
		return wire.Answer{}, err
	}
	display, err := x.picture(g.own, r.Controls)
	if err != nil {
		return wire.Answer{}, err
	}
	return wire.Answer{Display: &display}, nil
}

// picture draws the result under the settings, which may leave controls out: those stand as they were recorded.
func (x *exploration) picture(c *store.Client, settings []wire.Control) (wire.Display, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return wire.Display{}, wire.Errorf(wire.NotFound, "this picture is no longer live: run its cell again")
	}
	params, head, err := x.settle(settings)
	if err != nil {
		return wire.Display{}, wire.Errorf(wire.BadInput, "%v", err)
	}
	out, fresh, err := x.run.Once(c.Ctx, c.Device, params)
	if err != nil {
		return wire.Display{}, err
	}
	if fresh {
		defer func() { _ = out.Buf.Release() }() // made by this run, once
	}
	data, err := store.Fetch(c.Device, out)
	if err != nil {
		return wire.Display{}, store.Explain("Explore", err, nil)
	}
	hm, err := Heatmap(store.ViewOf(out.Meta), x.title, kindOf(out.Quantity), data, x.labels)
	if err != nil {
		return wire.Display{}, wire.Errorf(wire.BadInput, "%v", err)
	}
	if head >= 0 && head < len(hm.Matrices) {
		hm.Matrices = hm.Matrices[head : head+1]
	}
	shown := viz.Drawable(hm)
	if x.goal != nil {
		apart, err := x.goal.against(store.ViewOf(out.Meta), data, x.labels)
		if err != nil {
			return wire.Display{}, wire.Errorf(wire.BadInput, "%v", err)
		}
		if head >= 0 && head < len(apart.Matrices) {
			apart.Matrices = apart.Matrices[head : head+1]
		}
		shown = viz.Sheet{Pictures: []viz.Drawable{hm, apart}}
	}
	d, err := Bundle(shown, seeNothing(out.Empty))
	c.Store.Lock()
	d.Code = goLine(x.root, x.turned, params)
	c.Store.Unlock()
	var bad *viz.InputError
	if errors.As(err, &bad) {
		err = wire.Errorf(wire.BadInput, "%s", bad.Reason)
	}
	return d, err
}

// settle turns settings into the parameters of the steps that they change, and the matrix to show, -1 for all.
func (x *exploration) settle(settings []wire.Control) (params map[*store.Node]wire.Params, head int, err error) {
	values := map[string]float64{}
	for _, c := range settings {
		values[c.Name] = c.Value
	}
	params, head = map[*store.Node]wire.Params{}, -1
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
				p = n.Params
			}
			k.set(&p, n, v)
			params[n] = p
		}
	}
	return params, head, nil
}

// Release ends an exploration, or a live map; one that is gone already is no error.
func (g *Gallery) Release(r wire.Request) {
	if r.Number != 0 {
		endExplorations(g.own.Store, g.explorations.take(r.Number))
		g.maps.end(r.Number)
	}
}
