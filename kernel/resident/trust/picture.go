package trust

import (
	"context"
	"fmt"
	"math"

	"github.com/attnb/attnb/kernel/resident/figure"
	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/detect"
	"github.com/attnb/attnb/viz"
)

// Pictures of findings: each shows beside what was declared what was found.

// fitsWell is the least bar of a residual.
const fitsWell = -3

// decades is log10 of a ratio, within what a bar shows.
func decades(x, limit float64) float32 {
	d := math.Log10(x / limit)
	if math.IsNaN(d) {
		d = math.Inf(1)
	}
	return float32(max(fitsWell, min(9, d)))
}

// ranked are residuals by how far they are from fitting.
func ranked(title, axis string, labels []string, residuals []float64, floor float64) viz.Drawable {
	bars := make([]float32, len(residuals))
	for i, r := range residuals {
		bars[i] = decades(r, floor)
	}
	return viz.Plot{Title: title, Axis: axis, Labels: labels, Charts: []viz.Chart{{Name: "residual",
		Note: fmt.Sprintf("0: as much as rounding makes, above it does not fit; %d: much less", fitsWell), Quantity: "decades", Low: fitsWell, High: 1,
		Series: []viz.Series{{Style: viz.Bars, Values: bars}}}}}
}

// rotationPicture is the speed of each pair, and where rows are, as declared and as found. Without an explanation there is what was declared.
func rotationPicture(declared reference.RoPE, f detect.RoPEFinding) viz.Drawable {
	speeds := func(name string, frequency func(i int) float64, n, pairs int) viz.Series {
		out := make([]float32, pairs)
		for i := range min(n, pairs) {
			out[i] = float32(math.Log10(max(math.Abs(frequency(i)), 1e-12)))
		}
		return viz.Series{Name: name, Style: viz.Curve, Values: out, Hidden: func(i int) bool { return i >= n }}
	}
	pairs, title := declared.Rotary/2, "FindRoPE: no rotation fits"
	var found detect.Rotation
	if len(f.Fits) > 0 {
		found = f.Fits[0]
		pairs, title = max(pairs, len(found.Frequency)), "FindRoPE: "+found.String()
	}
	speed := viz.Chart{Name: "speed of each pair", Quantity: "log10 rad/position",
		Series: []viz.Series{speeds("declared", declared.Frequency, declared.Rotary/2, max(1, pairs))}}
	sheet := viz.Sheet{Title: title, Across: 1}
	if len(f.Fits) > 0 {
		speed.Series = append(speed.Series, speeds("found", func(i int) float64 { return found.Frequency[i] }, len(found.Frequency), max(1, pairs)))
	}
	sheet.Pictures = append(sheet.Pictures, viz.Plot{Title: "how fast pairs turn", Axis: "pair", Hatched: "turned by one of the two only", Charts: []viz.Chart{speed}})
	if n := min(len(found.Positions), maxShown); n > 0 {
		off := make([]float32, n)
		for row := range off {
			off[row] = float32(found.Positions[row] - declared.Position(row))
		}
		sheet.Pictures = append(sheet.Pictures, viz.Plot{Title: "where rows are", Axis: "row", Charts: []viz.Chart{{Name: "position found less position declared",
			Note: fmt.Sprintf("row 0 is declared at %d, found at %d", declared.Position(0), found.Positions[0]), Quantity: "positions", Low: -1, High: 1,
			Series: []viz.Series{{Style: viz.Bars, Values: off}}}}})
	}
	return sheet
}

// maxShown bounds the positions of a plot.
const maxShown = 4096

// maskPicture shows one head's probabilities beside those of the declaration: the head in which they are furthest apart.
func maskPicture(ctx context.Context, of string, q, k, p reference.Heads, rule detect.Rule) (viz.Drawable, error) {
	var mine, apart []float32
	var want []float64
	most, head := -1.0, 0
	for h := range p {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		expected, err := rule.Head(h).Probabilities(q[h:h+1], k[h*len(k)/len(q):][:1])
		if err != nil {
			return nil, err
		}
		values := make([]float32, 0, len(mine))
		rows, _ := p[h].Dims()
		truth := make([]float64, 0, len(mine))
		for row := range rows {
			for _, x := range p[h].RawRowView(row) {
				values = append(values, float32(x))
			}
			truth = append(truth, expected[0].RawRowView(row)...)
		}
		d := figure.Apart(values, truth)
		off := 0.0
		for _, x := range d {
			if x := math.Abs(float64(x)); !(x <= off) { // NaN, too
				if off = x; math.IsNaN(x) {
					off = math.Inf(1)
				}
			}
		}
		if off > most {
			most, head, mine, want, apart = off, h, values, truth, d
		}
	}
	rows, keys := p[head].Dims()
	panel := func(kind viz.Kind, values []float32) viz.Heatmap {
		return viz.Heatmap{Kind: kind, RowAxis: "query", ColAxis: "key", Matrices: []viz.Matrix{{Name: fmt.Sprintf("head %d", head), Rows: rows, Cols: keys, Values: values}}}
	}
	expected := make([]float32, len(want))
	for i, x := range want {
		expected[i] = float32(x)
	}
	return figure.Compared(of+": the head that is furthest from what was declared", panel(viz.Probabilities, mine), panel(viz.Probabilities, expected), panel(viz.Signed, apart),
		[2]string{"given", "declared"}, nil), nil
}

// cachePicture is which row each slot holds, and to which position that is rotated, less what it should be.
func cachePicture(f detect.CacheFinding, position func(row int) int) viz.Drawable {
	n := min(len(f.Slots), maxShown)
	rows, turns := make([]float32, n), make([]float32, n)
	for i, s := range f.Slots[:n] {
		if rows[i] = float32(s.Row - i); s.Row >= 0 && position != nil {
			turns[i] = float32(s.Position - position(s.Row))
		}
	}
	none := func(i int) bool { return f.Slots[i].Row < 0 }
	plot := viz.Plot{Title: "CheckCache: what slots hold", Axis: "slot", Charts: []viz.Chart{{Name: "row less slot", Note: "0: its own row; masked: none of the rows", Quantity: "rows",
		Low: -1, High: 1, Series: []viz.Series{{Style: viz.Bars, Values: rows, Hidden: none}}}}}
	if n < len(f.Slots) {
		plot.Title += fmt.Sprintf(" (the first %d of %d)", n, len(f.Slots))
	}
	if position != nil {
		plot.Charts = append(plot.Charts, viz.Chart{Name: "position less that of the row", Quantity: "positions", Low: -1, High: 1,
			Series: []viz.Series{{Style: viz.Bars, Values: turns, Hidden: none}}})
	}
	return plot
}

// maxDrawn bounds slots times writes of a timeline that is drawn without being asked for.
const maxDrawn = 1 << 20

// writesPicture is the timeline of the writes; nil where there are too many.
func writesPicture(writes []detect.Write, slots int) viz.Drawable {
	if slots == 0 || slots > maxDrawn/len(writes) {
		return nil
	}
	t := viz.Timeline{Title: "CheckWrites: which slot was written when"}
	known := true
	for _, w := range writes {
		known = known && (w.Trim || w.Position >= 0)
	}
	for _, w := range writes {
		if w.Trim {
			t.Steps = append(t.Steps, viz.Write{Trim: true, Length: w.At})
			continue
		}
		var step viz.Write
		for i := range w.Rows {
			if step.Slots = append(step.Slots, w.At+i); known {
				step.Positions = append(step.Positions, w.Position+i)
			}
		}
		t.Steps = append(t.Steps, step)
	}
	return t
}

// lawPicture is, for each head and row, how much of what rounding explains the departure is.
func lawPicture(of string, l detect.Check) viz.Drawable {
	m := viz.Matrix{Rows: len(l.Ratios), Cols: len(l.Ratios[0])}
	for _, row := range l.Ratios {
		for _, x := range row {
			m.Values = append(m.Values, float32(x))
		}
	}
	return viz.Heatmap{Title: of + ": " + l.Name, Kind: viz.Errors, Quantity: "departure / rounding", RowAxis: "head", ColAxis: "row", Matrices: []viz.Matrix{m}}
}

// LadderPicture is how many digits of a cell each format gets right, beside those of an error.
func LadderPicture(rungs detect.Rungs, off float64) viz.Drawable {
	const exact = 17
	digits := func(off float64) float32 {
		return float32(min(exact, max(0, -math.Log10(off/max(math.Abs(rungs[0].Value), math.SmallestNonzeroFloat64)))))
	}
	var labels []string
	var bars, line []float32
	for _, r := range rungs {
		labels, bars, line = append(labels, r.Name), append(bars, digits(r.Error)), append(line, digits(off))
	}
	return viz.Plot{Title: "Ladder: one cell in each format", Axis: "format", Labels: labels, Charts: []viz.Chart{{Name: "digits that are right", Quantity: "decimal digits",
		High: exact, Series: []viz.Series{{Name: "the format", Style: viz.Bars, Values: bars}, {Name: "the error asked about", Style: viz.Curve, Values: line}}}}}
}
