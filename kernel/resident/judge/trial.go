package judge

import (
	"context"
	"errors"
	"iter"

	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/resident/trust"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/detect"
)

// trial is a question about a function that only the client can call. The question runs as it would with a function at hand: each
// time that it calls, it waits here until the client has come back with the result.
type trial struct {
	name string
	next func() (call, bool)
	stop func()
	held []int           // the arguments of the call under way
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
func (j *Judge) begin(ask trust.Case, inputs []store.Input) (wire.Answer, error) {
	t := &trial{name: trust.Name(ask.Topic)}
	t.next, t.stop = iter.Pull(func(yield func(call) bool) {
		ask.Call = func(tensors []reference.Heads, numbers []int) (reference.Heads, error) {
			if !yield(call{tensors, numbers}) {
				return nil, errLeft
			}
			return t.back, nil
		}
		ctx := detect.WithProgress(j.Ctx, func(done float64) { store.ProgressOf(j.Ctx).Advance(done) })
		t.out, t.err = trust.Answer(ctx, ask)
	})
	return j.step(t, inputs)
}

// step runs a trial up to its next call, or to its end.
func (j *Judge) step(t *trial, inputs []store.Input) (wire.Answer, error) {
	now, more := t.next()
	if !more {
		t.stop()
		if errors.Is(t.err, context.Canceled) {
			return wire.Answer{}, store.Explain(t.name, t.err, inputs)
		}
		if t.err != nil {
			return wire.Answer{}, refusedAs(t.name, t.err, inputs)
		}
		return j.finish(t.out)
	}
	if len(j.trials) >= maxTrials {
		t.stop()
		return wire.Answer{}, wire.Errorf(wire.Refused, "%s: %d functions are asked at once", t.name, maxTrials)
	}
	var a wire.Answer
	for _, x := range now.tensors {
		data, shape := packedHeads(x)
		one, err := j.Leaf(t.name, store.Origin{Source: t.name}, shape, store.DefaultAxes(3), store.FromSlice(data))
		if err != nil {
			t.stop()
			j.drop(t)
			return wire.Answer{}, err
		}
		a.Tensors = append(a.Tensors, one.Tensors...)
		t.held = append(t.held, one.Tensors[0].ID)
	}
	if j.trials == nil {
		j.trials = map[int]*trial{}
	}
	j.asked++
	j.trials[j.asked] = t
	a.Call = &wire.Call{ID: j.asked, Numbers: now.numbers}
	return a, nil
}

// drop gives back the arguments of the call.
func (j *Judge) drop(t *trial) {
	j.LetGo(t.held)
	t.held = nil
}

// askOn takes the result of a call.
func (j *Judge) askOn(r wire.Request) (wire.Answer, error) {
	t := j.trials[r.Number]
	if t == nil || len(r.IDs) != 1 {
		return wire.Answer{}, wire.Errorf(wire.BadRequest, "no function is asked under number %d", r.Number)
	}
	delete(j.trials, r.Number)
	in, _, inputs, done, err := j.Use(t.name, r.IDs, []string{"result"})
	if err != nil {
		t.stop()
		j.drop(t)
		return wire.Answer{}, err
	}
	defer done()
	x, err := j.tensorFor("result", in[0])
	j.drop(t)
	if err != nil {
		t.stop()
		return wire.Answer{}, store.Explain(t.name, err, inputs)
	}
	t.back = x.Heads
	return j.step(t, inputs)
}

// Asking is what the question is called that waits for the result of a call; empty: none does.
func (j *Judge) Asking(number int) string {
	if t := j.trials[number]; t != nil {
		return t.name
	}
	return ""
}

// Close ends the questions whose functions nobody will call.
func (j *Judge) Close() {
	for _, t := range j.trials {
		t.stop()
	}
	clear(j.trials)
}
