package judge

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/attnb/attnb/kernel/resident/chain"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/viz"
)

// Rows of a sample.
const (
	maxSampled  = 512
	sampledSeed = 1
	maxDrawn    = 64 // of which the picture shows the first
)

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

// gather are the cells of rows, one row after the other.
func gather[T any](values []T, rows []int, d int) []T {
	out := make([]T, 0, len(rows)*d)
	for _, row := range rows {
		out = append(out, values[row*d:(row+1)*d]...)
	}
	return out
}

// share says what was looked at.
func sampleWords(a store.View) string {
	all := a.H * a.S
	return fmt.Sprintf("a sample: %d of %d rows (%.2g%%): the first, the last, those of the extreme values, then random ones (seed %d)",
		len(a.Sampled), all, 100*float64(len(a.Sampled))/float64(all), sampledSeed)
}

// drawSample shows the values of the rows looked at, each under its name.
func drawSample(a store.View, title string, kind viz.Kind, values []float32) viz.Heatmap {
	n := min(len(a.Sampled), maxDrawn)
	hm := viz.Heatmap{Title: title, Kind: kind, RowAxis: "row of the sample", ColAxis: a.ColAxisName(),
		Matrices: []viz.Matrix{{Rows: n, Cols: a.D, Values: values[:n*a.D]}}}
	for _, row := range a.Sampled[:n] {
		name := fmt.Sprintf("%s %d", a.RowAxisName(), row%a.S)
		if lead := a.Panel(row / a.S); lead != "" {
			name = lead + ", " + name
		}
		hm.RowLabels = append(hm.RowLabels, name)
	}
	return hm
}

// mark outlines a compared cell in a picture of what was compared, where it is in it.
func markOf(a store.View, i int, label string) []viz.Mark {
	if a.Sampled == nil {
		m, row, col := a.Place(i)
		return []viz.Mark{{Matrix: m, Row: row, Col: col, Label: label}}
	}
	if i/a.D >= maxDrawn {
		return nil
	}
	return []viz.Mark{{Row: i / a.D, Col: i % a.D, Label: label}}
}

// rowsFor are the rows of a stage to look at; nil: all.
func rowsFor(r *chain.Replay, values []float32, n *store.Node) []int {
	if !r.Sampled() {
		return nil
	}
	return sampleOf(values, store.Last(n.Shape))
}

// pickRows are the cells of the rows, or all where rows is nil.
func pickRows(values []float32, rows []int, n *store.Node) []float32 {
	if rows == nil {
		return values
	}
	return gather(values, rows, store.Last(n.Shape))
}

// headsFirst puts values of n into the order in which they are reported.
func headsFirst(values []float32, n *store.Node) ([]float32, error) {
	if len(n.Shape) == 3 && n.Swapped() {
		return store.Permute(values, n.Shape, []int{1, 0, 2}), nil
	}
	return values, nil
}
