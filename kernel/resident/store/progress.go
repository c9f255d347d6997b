package store

import (
	"context"
	"math"
	"sync/atomic"
)

// Progress is how far a request is that may take long. A nil progress takes no word.
type Progress struct {
	done  atomic.Uint64 // bits of a fraction
	share atomic.Uint64 // bits of the fraction that the op which runs on the device will add
}

// Step says that the device now does what takes the task from one fraction to another.
func (p *Progress) Step(from, to float64) {
	if p != nil {
		p.share.Store(math.Float64bits(to - from))
		p.Advance(from)
	}
}

// Advance says how much of the task is done.
func (p *Progress) Advance(fraction float64) {
	if p != nil && fraction >= 0 { // not NaN
		p.done.Store(math.Float64bits(min(fraction, 1)))
	}
}

// Fraction is how much is done, of which ofOp is how far the device is with its op.
func (p *Progress) Fraction(ofOp float64) float64 {
	return min(math.Float64frombits(p.done.Load())+ofOp*math.Float64frombits(p.share.Load()), 1)
}

// progressKey is the context key of a client's current progress.
type progressKey struct{}

// WithProgress makes a context whose progress is what current holds at the time of asking.
func WithProgress(ctx context.Context, current *atomic.Pointer[Progress]) context.Context {
	return context.WithValue(ctx, progressKey{}, current)
}

// ProgressOf is that of what is done under ctx, or nil.
func ProgressOf(ctx context.Context) *Progress {
	if current, ok := ctx.Value(progressKey{}).(*atomic.Pointer[Progress]); ok {
		return current.Load()
	}
	return nil
}
