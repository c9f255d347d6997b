package resident

import (
	"context"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
)

func TestTasks(t *testing.T) {
	var ts tasks
	var s wire.Status
	if ts.describe(&s, 0); s != (wire.Status{}) {
		t.Errorf("nothing runs: %+v", s)
	}
	a, b := ts.begin("Check"), ts.begin("RoPE")
	a.began = a.began.Add(-3 * time.Second)
	var current atomic.Pointer[store.Progress]
	current.Store(&a.progress)
	ctx, stop := context.WithCancel(store.WithProgress(t.Context(), &current))
	defer stop()
	store.ProgressOf(ctx).Advance(0.25)
	store.ProgressOf(ctx).Advance(math.NaN())
	if ts.describe(&s, 0); s.Running != "Check" || s.RunningFor < 3000 || s.RunningFor > 60_000 || s.Done != 0.25 || s.Waiting != 1 {
		t.Errorf("two run: %+v", s)
	}
	store.ProgressOf(ctx).Advance(1 + 1e-9)
	if ts.describe(&s, 0); s.Done != 1 {
		t.Errorf("done: %+v", s)
	}
	ts.end(a)
	s = wire.Status{}
	if ts.describe(&s, 0); s.Running != "RoPE" || s.Done != 0 || s.Waiting != 0 {
		t.Errorf("one runs: %+v", s)
	}
	b.progress.Step(0.5, 0.9)
	if ts.describe(&s, 0.25); s.Done != 0.6 {
		t.Errorf("a quarter of the step from 0.5 to 0.9: %+v", s)
	}
	ts.end(b)
	current.Store(nil)
	store.ProgressOf(ctx).Advance(1)
	store.ProgressOf(t.Context()).Advance(1)
}

// Another client sees a check run, and how much of it is done.
func TestStatusSaysWhatRuns(t *testing.T) {
	p := onHost(t)
	a, b := p.dial(), p.dial()
	defer a.Close()
	defer b.Close()
	q, k, v := a.random(1, hsd, 2, 150, 64), a.random(2, hsd, 2, 150, 64), a.random(3, hsd, 2, 150, 64)
	out := a.run1(wire.OpPrefill, causal, a.run1(wire.OpRoPE, wire.Params{Rotary: 32}, q), k, v)
	for range 3 {
		out = a.run1(wire.OpPrefill, causal, out, k, v)
	}
	over := make(chan error, 1)
	go func() {
		_, err := a.Do(wire.Request{Kind: wire.KindCheck, IDs: []int{out.ID}})
		over <- err
	}()
	seen, partly := false, false
	for done := false; !done; {
		s, err := b.Status()
		if err != nil {
			t.Fatal(err)
		}
		seen = seen || s.Running == "Check"
		partly = partly || s.Done > 0 && s.Done < 1
		select {
		case err := <-over:
			if err != nil {
				t.Fatal(err)
			}
			done = true
		case <-time.After(2 * time.Millisecond):
		}
	}
	if !seen || !partly {
		t.Errorf("seen: %v, with a part of it done: %v", seen, partly)
	}
	if s, err := b.Status(); err != nil || s.Running != "" || s.Waiting != 0 {
		t.Errorf("after it: %+v %v", s, err)
	}
}
