package resident

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/viz"
)

// Budget is what Check, Compare and Audit may take to compute a chain again in float64 before they look at a sample of its rows.
type Budget struct {
	Cells int           // of the tensor and of everything on the way, each held as value, bound and noise; 0: 2^26
	Work  float64       // multiply-adds; 0: 2^32, some five seconds on two cores
	Time  time.Duration // for a sample; 0: 5 s
}

func (b Budget) whole() Budget {
	if b.Cells == 0 {
		b.Cells = maxReplayCells
	}
	if b.Work == 0 {
		b.Work = 1 << 32
	}
	if b.Time == 0 {
		b.Time = 5 * time.Second
	}
	return b
}

// Rows of a sample.
const (
	maxSampled  = 512
	sampledSeed = 1
	maxDrawn    = 64 // of which the picture shows the first
)

// heavy says that computing all of it goes beyond the budget.
func (r *replay) heavy(b Budget) bool {
	cells := 0
	for n := range r.step {
		cells += cellsOf(n)
	}
	for n := range r.start {
		cells += cellsOf(n)
	}
	return cells > b.Cells || r.ahead > b.Work
}

// sampleOf are the rows of values, d cells each, that a sample looks at, the telling ones first: the first, the last, those with the
// largest and the smallest value and with one that is not finite, then random ones.
func sampleOf(values []float32, d int) []int {
	n := len(values) / d
	low, high, odd := 0, 0, -1
	for i, v := range values {
		switch {
		case v-v != 0:
			if odd < 0 {
				odd = i
			}
		case v > values[high] || values[high]-values[high] != 0:
			high = i
		}
		if v-v == 0 && (v < values[low] || values[low]-values[low] != 0) {
			low = i
		}
	}
	rows := []int{0}
	add := func(row int) {
		if !slices.Contains(rows, row) {
			rows = append(rows, row)
		}
	}
	add(n - 1)
	add(high / d)
	add(low / d)
	if odd >= 0 {
		add(odd / d)
	}
	rng := rand.New(rand.NewPCG(sampledSeed, 0))
	for tries := 0; len(rows) < min(n, maxSampled) && tries < 4*maxSampled; tries++ {
		add(rng.IntN(n))
	}
	return rows
}

// rowsOf evaluates rows of root, numbered heads first as in a report, until the time is over, but at least the first.
func (r *replay) rowsOf(ctx context.Context, d *cudaops.Device, root *node, rows []int, until time.Time) (done []truth, err error) {
	_, per, _ := fold(arrange(root.meta).shape)
	for i, row := range rows {
		if i > 0 && time.Now().After(until) {
			break
		}
		t, err := r.evalPart(ctx, d, root, part{row / per, row % per}.turned(root.meta))
		var limit *wire.Error
		if i > 0 && errors.As(err, &limit) && limit.Code == wire.Refused && ctx.Err() == nil {
			break // what there was room for
		}
		if err != nil {
			return nil, err
		}
		if done = append(done, t); r.quiet {
			continue
		}
		taskOf(ctx).advance(float64(i+1) / float64(len(rows)))
	}
	return done, nil
}

// gather are the cells of rows, one row after the other.
func gather[T any](values []T, rows []int, d int) []T {
	out := make([]T, 0, len(rows)*d)
	for _, row := range rows {
		out = append(out, values[row*d:(row+1)*d]...)
	}
	return out
}

// share says what was looked at.
func (a arranged) share() string {
	all := a.h * a.s
	return fmt.Sprintf("a sample: %d of %d rows (%.2g%%): the first, the last, those of the extreme values, then random ones (seed %d)",
		len(a.rows), all, 100*float64(len(a.rows))/float64(all), sampledSeed)
}

// drawSample shows the values of the rows looked at, each under its name.
func (a arranged) drawSample(title string, kind viz.Kind, values []float32) viz.Heatmap {
	n := min(len(a.rows), maxDrawn)
	hm := viz.Heatmap{Title: title, Kind: kind, RowAxis: "row of the sample", ColAxis: a.colAxisName(),
		Matrices: []viz.Matrix{{Rows: n, Cols: a.d, Values: values[:n*a.d]}}}
	for _, row := range a.rows[:n] {
		name := fmt.Sprintf("%s %d", a.rowAxisName(), row%a.s)
		if lead := a.panel(row / a.s); lead != "" {
			name = lead + ", " + name
		}
		hm.RowLabels = append(hm.RowLabels, name)
	}
	return hm
}

// mark outlines a compared cell in a picture of what was compared, where it is in it.
func (a arranged) mark(i int, label string) []viz.Mark {
	if a.rows == nil {
		m, row, col := a.place(i)
		return []viz.Mark{{Matrix: m, Row: row, Col: col, Label: label}}
	}
	if i/a.d >= maxDrawn {
		return nil
	}
	return []viz.Mark{{Row: i / a.d, Col: i % a.d, Label: label}}
}

// largestStage is the work from which on a step's own values stand in for it, in a sample.
func (b Budget) largestStage() float64 { return math.Max(1, b.Work/16) }

// rowsFor are the rows of a stage to look at; nil: all.
func (r *replay) rowsFor(values []float32, n *node) []int {
	if !r.sampled() {
		return nil
	}
	return sampleOf(values, last(n.shape))
}

// roundingOf is the truth of the rows, as many as there is time for, or of everything where rows is nil.
func (c *conn) roundingOf(r *replay, n *node, rows []int, until time.Time) (rounding, []int, error) {
	if rows == nil {
		all, err := r.rounding(c.ctx, c.d, n)
		return all, nil, err
	}
	return r.sampleRounding(c, n, rows, until)
}

// pickRows are the cells of the rows, or all where rows is nil.
func pickRows(values []float32, rows []int, n *node) []float32 {
	if rows == nil {
		return values
	}
	return gather(values, rows, last(n.shape))
}

// headsFirst puts values of n into the order in which they are reported.
func headsFirst(values []float32, n *node) ([]float32, error) {
	if len(n.shape) == 3 && n.swapped() {
		return permute(values, n.shape, []int{1, 0, 2}), nil
	}
	return values, nil
}
