package detect

import (
	"context"
	"fmt"
)

// progressKey is the context key of what is told of progress.
type progressKey struct{}

// WithProgress makes a context under which a detective tells how much of its work is done, from 0 to 1. The function is called by the
// goroutine that asked, some thousand times at most.
func WithProgress(ctx context.Context, report func(done float64)) context.Context {
	return context.WithValue(ctx, progressKey{}, report)
}

// watch is what a detective looks at on its way: whether anybody still waits, and who is to be told how far it is. Where nobody waits its
// parts end early, with results that mean nothing, and finish gives the error in their place.
type watch struct {
	ctx      context.Context
	report   func(done float64)
	from, to float64 // the share of the work that is under way
	told     float64
}

func newWatch(ctx context.Context) *watch {
	w := &watch{ctx: ctx, to: 1}
	w.report, _ = ctx.Value(progressKey{}).(func(float64))
	return w
}

// stage says that the next part of the work takes it from one share to another.
func (w *watch) stage(from, to float64) {
	w.from, w.to = from, to
	w.at(0, 1)
}

// at says that i of n steps of this stage are done, and whether to go on.
func (w *watch) at(i, n int) bool {
	if done := w.from + (w.to-w.from)*float64(i)/float64(max(1, n)); w.report != nil && done > w.told {
		if done-w.told >= 0.001 || done >= 1 {
			w.told = done
			w.report(done)
		}
	}
	return w.ctx.Err() == nil
}

// stopped says that nobody waits any more.
func (w *watch) stopped() bool { return w.ctx.Err() != nil }

// finish is the error of a detective that nobody waited for.
func (w *watch) finish(op string) error {
	if err := w.ctx.Err(); err != nil {
		return fmt.Errorf("detect: %s: %w", op, err)
	}
	return nil
}
