package detect

import (
	"fmt"
	"math"
	"slices"
)

// fitSinks finds the logit that takes the rest of each row's weight.
func (m *masker) fitSinks(f *MaskFinding) {
	unit := m.precision.Unit()
	if !m.known && m.declared.Sinks == nil && !m.lacking() {
		return
	}
	sinks, any := make([]float64, m.heads), false
	for h := range m.heads {
		sinks[h] = math.Inf(-1)
		type estimate struct{ value, off float64 }
		var all []estimate
		for row := range m.rows {
			if c := m.class[h][row]; c == nanRow || c == zeroRow {
				continue
			}
			sum, weight := 0.0, math.Inf(-1)
			for col, v := range m.p[h].RawRowView(row) {
				sum += v
				if v > 0 {
					weight = logAdd(weight, m.score(h, row, col))
				}
			}
			rest, off := 1-sum, float64(m.keys+8)*slack*unit
			if rest < -off {
				f.Faults = append(f.Faults, Fault{WrongSum, fmt.Sprintf("row %d of head %d sums to %.6g", row, h, sum), "divide by the sum of all weights"})
				return
			}
			if rest > off {
				all = append(all, estimate{math.Log(rest/sum) + weight, off/rest + off + m.noiseOf(h, row)})
			}
		}
		if len(all) == 0 {
			continue
		}
		best := slices.MinFunc(all, func(a, b estimate) int {
			if a.off < b.off {
				return -1
			}
			return 1
		})
		for _, e := range all {
			if math.Abs(e.value-best.value) > 2*(e.off+best.off) {
				f.Faults = append(f.Faults, Fault{WrongSum, fmt.Sprintf("rows of head %d lack weight that no one sink explains", h), "divide by the sum of the visible weights"})
				return
			}
		}
		sinks[h], any = nice(best.value, best.off), true
		if m.declared.Sinks != nil && math.Abs(m.declared.Sinks[h]-best.value) <= 2*best.off {
			sinks[h] = m.declared.Sinks[h]
		}
	}
	if any {
		f.Sinks = sinks
	}
}

// noiseOf is what the scores of a row may be off by.
func (m *masker) noiseOf(h, row int) float64 {
	noise := m.noise(m.best.scale, m.sizes[h][row])
	for _, end := range []int{0, m.keys - 1} {
		if m.best.slopes != nil {
			noise = max(noise, m.noise(m.best.scale, m.sizes[h][row])+slack*m.precision.Unit()*math.Abs(m.best.slopes[h])*m.away(row, end))
		}
	}
	return noise
}

// lacking says whether a row sums to less than 1.
func (m *masker) lacking() bool {
	for h := range m.heads {
		for row := range m.rows {
			sum := 0.0
			for _, v := range m.p[h].RawRowView(row) {
				sum += v
			}
			if m.class[h][row] != zeroRow && math.Abs(1-sum) > float64(m.keys+8)*slack*m.precision.Unit() {
				return true
			}
		}
	}
	return false
}

func logAdd(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(b, -1) {
		return a
	}
	return a + math.Log1p(math.Exp(b-a))
}

// judgeSinks compares sinks. One too weak to lack in any row cannot be told from none.
func (m *masker) judgeSinks(f *MaskFinding) {
	if f.Faults.Has(WrongSum) {
		return
	}
	for h := range m.heads {
		found, want := math.Inf(-1), math.Inf(-1)
		if f.Sinks != nil {
			found = f.Sinks[h]
		}
		if m.declared.Sinks != nil {
			want = m.declared.Sinks[h]
		}
		if found == want || math.IsInf(found, -1) && !m.shows(h, want, f) {
			continue
		}
		detail := fmt.Sprintf("head %d: %.6g, declared %.6g", h, found, want)
		switch {
		case math.IsInf(found, -1):
			detail = fmt.Sprintf("head %d: none, declared %.6g", h, want)
		case math.IsInf(want, -1):
			detail = fmt.Sprintf("head %d: %.6g, none declared", h, found)
		}
		f.Faults = append(f.Faults, Fault{WrongSink, detail, "add exp(sink) to the denominator of every row, unscaled"})
		return
	}
}

// shows says whether a sink would be seen in head h: whether it takes more than rounding from some row.
func (m *masker) shows(h int, sink float64, f *MaskFinding) bool {
	for row := range m.rows {
		weight := math.Inf(-1)
		for col, v := range m.p[h].RawRowView(row) {
			if v > 0 {
				weight = logAdd(weight, m.score(h, row, col))
			}
		}
		if !math.IsInf(weight, -1) && 1/(1+math.Exp(weight-sink)) > 2*float64(m.keys+8)*slack*m.precision.Unit() {
			return true
		}
	}
	return false
}
