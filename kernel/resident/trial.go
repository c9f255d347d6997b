package resident

import (
	"errors"
	"iter"

	"github.com/attnb/attnb/kernel/resident/trust"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference"
)

// trial is a question about a function that only the client can call. The question runs as it would with a function at hand: each
// time that it calls, it waits here until the client has come back with the result.
type trial struct {
	name string
	next func() (call, bool)
	stop func()
	held []*tensor       // the arguments of the call under way
	back reference.Heads // its result
	out  trust.Outcome
	err  error
}

// call is what the function is asked.
type call struct {
	tensors []reference.Heads
	numbers []int
}

var errLeft = errors.New("the client left")

// maxTrials bounds the trials of one client that wait.
const maxTrials = 16

// begin answers a question, or makes the first call that it takes.
func (c *conn) begin(ask trust.Case, inputs []input) (wire.Answer, error) {
	t := &trial{name: trust.Name(ask.Topic)}
	t.next, t.stop = iter.Pull(func(yield func(call) bool) {
		ask.Call = func(tensors []reference.Heads, numbers []int) (reference.Heads, error) {
			if !yield(call{tensors, numbers}) {
				return nil, errLeft
			}
			return t.back, nil
		}
		t.out, t.err = trust.Answer(ask)
	})
	return c.step(t, inputs)
}

// step runs a trial up to its next call, or to its end.
func (c *conn) step(t *trial, inputs []input) (wire.Answer, error) {
	now, more := t.next()
	if !more {
		t.stop()
		if t.err != nil {
			return wire.Answer{}, refusedAs(t.name, t.err, inputs)
		}
		return c.finish(t.out)
	}
	if len(c.trials) >= maxTrials {
		t.stop()
		return wire.Answer{}, wire.Errorf(wire.Refused, "%s: %d functions are asked at once", t.name, maxTrials)
	}
	var a wire.Answer
	for _, x := range now.tensors {
		data, shape := packedHeads(x)
		one, err := c.leaf(t.name, t.name, shape, defaultAxes(3), data)
		if err != nil {
			t.stop()
			c.drop(t)
			return wire.Answer{}, err
		}
		a.Tensors = append(a.Tensors, one.Tensors...)
		c.s.store.mu.Lock()
		t.held = append(t.held, c.s.store.tensors[one.Tensors[0].ID])
		c.s.store.unlock()
	}
	if c.trials == nil {
		c.trials = map[int]*trial{}
	}
	c.asked++
	c.trials[c.asked] = t
	a.Call = &wire.Call{ID: c.asked, Numbers: now.numbers}
	return a, nil
}

// drop gives back the arguments of the call.
func (c *conn) drop(t *trial) {
	c.s.store.mu.Lock()
	defer c.s.store.unlock()
	for _, x := range t.held {
		if c.held[x] && c.s.store.tensors[x.id] == x {
			delete(c.held, x)
			c.s.store.unhold(x)
		}
	}
	t.held = nil
}

// askOn takes the result of a call.
func (c *conn) askOn(r wire.Request) (wire.Answer, error) {
	t := c.trials[r.Number]
	if t == nil || len(r.IDs) != 1 {
		return wire.Answer{}, wire.Errorf(wire.BadRequest, "no function is asked under number %d", r.Number)
	}
	delete(c.trials, r.Number)
	in, _, inputs, done, err := c.use(t.name, r.IDs, []string{"result"})
	if err != nil {
		t.stop()
		c.drop(t)
		return wire.Answer{}, err
	}
	defer done()
	x, err := c.tensorFor("result", in[0])
	c.drop(t)
	if err != nil {
		t.stop()
		return wire.Answer{}, explain(t.name, err, inputs)
	}
	t.back = x.Heads
	return c.step(t, inputs)
}

// endTrials ends the questions whose functions nobody will call.
func (c *conn) endTrials() {
	for _, t := range c.trials {
		t.stop()
	}
	clear(c.trials)
}
