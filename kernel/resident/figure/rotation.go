package figure

import (
	"errors"
	"fmt"
	"math"

	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/viz"
)

// Limits of a picture of rotations.
const (
	maxRotationRows = 1 << 16
	maxRotationDims = 1 << 12
)

// Rotations shows by which angle each pair of dims turns in each row, as phasors, and under it q.k over the distance of the rows, for
// one setting of RoPE or several. Where the settings pair the dims in different ways there is a line for each dim, else one for each pair.
//
// The curve is q.k of a query in row i with a key at position 0 where both are all ones, as a share of its largest value: the mean of
// cos(p f) over the pairs. The envelope is what it may reach when q and k are turned against each other by one angle in all
// pairs: the length of the mean phasor (the sum that arXiv:2104.09864, section 3.4.3, bounds).
func Rotations(title string, settings []reference.RoPE, names []string, rows int) (viz.Sheet, error) {
	if rows < 1 || rows > maxRotationRows {
		return viz.Sheet{}, fmt.Errorf("%d rows, must be 1 to %d", rows, maxRotationRows)
	}
	dims, mixed := 0, false
	for _, r := range settings {
		if r.Rotary < 2 || r.Rotary%2 != 0 || r.Rotary > maxRotationDims {
			return viz.Sheet{}, fmt.Errorf("rotary dims %d: must be even, 2 to %d", r.Rotary, maxRotationDims)
		}
		var bad *reference.Error
		if err := r.Validate(rows, r.Rotary); errors.As(err, &bad) {
			return viz.Sheet{}, errors.New(bad.Detail)
		} else if err != nil {
			return viz.Sheet{}, err
		}
		dims = max(dims, r.Rotary)
		mixed = mixed || r.Interleaved != settings[0].Interleaved
	}
	phasors := viz.Heatmap{Title: title, Kind: viz.Angles, Quantity: "angle (rad)", RowAxis: "pair", ColAxis: "row", Columns: 1}
	lines := dims / 2
	if mixed {
		lines, phasors.RowAxis = dims, "dim"
	} else if settings[0].Rotary == dims {
		for i := range lines {
			a, b := settings[0].Pair(i)
			phasors.RowLabels = append(phasors.RowLabels, fmt.Sprintf("%d: dims %d, %d", i, a, b))
		}
	}
	plot := viz.Plot{Title: "q·k of a query in each row with a key at position 0", Axis: "row"}
	for i, r := range settings {
		phasors.Matrices = append(phasors.Matrices, turns(names[i], r, rows, lines, mixed))
		plot.Charts = append(plot.Charts, similarity(names[i], r, rows))
	}
	return viz.Sheet{Across: 1, Pictures: []viz.Drawable{phasors, plot}}, nil
}

// turns is the angle of each pair, or dim, in each row. Dims that do not turn are absent.
func turns(name string, r reference.RoPE, rows, lines int, byDim bool) viz.Matrix {
	m := viz.Matrix{Name: name, Rows: lines, Cols: rows, Values: make([]float32, lines*rows)}
	of := make([]int, lines) // the pair of a line, -1: none
	for i := range of {
		of[i] = -1
	}
	for pair := range r.Rotary / 2 {
		a, b := r.Pair(pair)
		if !byDim {
			a, b = pair, pair
		}
		of[a], of[b] = pair, pair
	}
	for i, pair := range of {
		for row := range rows {
			if pair >= 0 {
				cos, sin := r.Turn(row, pair)
				m.Values[i*rows+row] = float32(math.Atan2(sin, cos))
			}
		}
	}
	m.Absent = func(line, _ int) bool { return of[line] < 0 }
	return m
}

// similarity is q.k of rows with a key at position 0, and its envelope.
func similarity(name string, r reference.RoPE, rows int) viz.Chart {
	value, reach := make([]float32, rows), make([]float32, rows)
	pairs := r.Rotary / 2
	for row := range rows {
		re, im := 0.0, 0.0
		for pair := range pairs {
			cos, sin := r.Turn(row, pair)
			re, im = re+cos, im+sin
		}
		value[row], reach[row] = float32(re/float64(pairs)), float32(math.Hypot(re, im)/float64(pairs))
	}
	return viz.Chart{Name: name, Quantity: "q·k / its most", Low: -1, High: 1, Series: []viz.Series{
		{Name: "q and k all ones", Style: viz.Curve, Values: value}, {Name: "envelope: q and k at any angle", Style: viz.Within, Values: reach}}}
}
