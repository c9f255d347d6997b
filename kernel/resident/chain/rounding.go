package chain

import (
	"context"
	"errors"
	"time"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference/bound"
)

// Rounding is the truth of cells, heads first, with what an f32 result may be off by.
type Rounding struct {
	Value []float64 // in float64
	Bound []float64 // how far an f32 result may be off
	Noise []float64 // the variance of its error
}

// Rounding is the truth as numbers, in the order in which they lie.
func (t Truth) Rounding() Rounding { return Rounding{Flat(t.Value), Flat(t.Err), Flat(t.noise)} }

// Rounding is that of the whole tensor.
func (r *Replay) Rounding(ctx context.Context, d *cudaops.Device, n *store.Node) (Rounding, error) {
	t, err := r.Eval(ctx, d, n)
	if err != nil {
		return Rounding{}, err
	}
	if len(n.Shape) == 3 && n.Swapped() {
		spread, err := bound.Swap(t.asNoise().Heads)
		if err != nil {
			return Rounding{}, err
		}
		if t.Heads, err = bound.Swap(t.Heads); err != nil {
			return Rounding{}, err
		}
		t.noise = spread.Value
	}
	return t.Rounding(), nil
}

// SampleRounding is that of as many rows as there is time for, and which they are.
func (r *Replay) SampleRounding(c *store.Client, n *store.Node, rows []int, until time.Time) (Rounding, []int, error) {
	done, err := r.rowsOf(c.Ctx, c.Device, n, rows, until)
	var all Rounding
	for _, t := range done {
		one := t.Rounding()
		all = Rounding{append(all.Value, one.Value...), append(all.Bound, one.Bound...), append(all.Noise, one.Noise...)}
	}
	return all, rows[:len(done)], err
}

// rowsOf evaluates rows of root, numbered heads first as in a report, until the time is over, but at least the first.
func (r *Replay) rowsOf(ctx context.Context, d *cudaops.Device, root *store.Node, rows []int, until time.Time) (done []Truth, err error) {
	_, per, _ := store.Fold(store.ViewOf(root.Meta).Shape)
	for i, row := range rows {
		if i > 0 && time.Now().After(until) {
			break
		}
		t, err := r.EvalPart(ctx, d, root, Part{row / per, row % per}.Turned(root.Meta))
		var limit *wire.Error
		if i > 0 && errors.As(err, &limit) && limit.Code == wire.Refused && ctx.Err() == nil {
			break // what there was room for
		}
		if err != nil {
			return nil, err
		}
		if done = append(done, t); r.Quiet {
			continue
		}
		store.ProgressOf(ctx).Advance(float64(i+1) / float64(len(rows)))
	}
	return done, nil
}

// RoundingOf is the truth of the rows, as many as there is time for, or of everything where rows is nil.
func (r *Replay) RoundingOf(c *store.Client, n *store.Node, rows []int, until time.Time) (Rounding, []int, error) {
	if rows == nil {
		all, err := r.Rounding(c.Ctx, c.Device, n)
		return all, nil, err
	}
	return r.SampleRounding(c, n, rows, until)
}
