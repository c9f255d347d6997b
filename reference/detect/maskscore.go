package detect

import (
	"fmt"
	"math"
	"slices"
)

// points are the cells that show scores: per row, q.k and the logarithm of the weight.
type points struct {
	dot, log []float64
	size     float64 // what scores of the row round against, per unit of scale
}

// points are those of rows with at least two weights that are not tiny.
func (m *masker) points() []points {
	var out []points
	for h := range m.heads {
		for row := range m.rows {
			switch m.class[h][row] {
			case nanRow, zeroRow, uniformRow, firstRow:
				continue
			}
			var one points
			for col, v := range m.p[h].RawRowView(row) {
				if v >= m.precision.least() {
					one.dot, one.log = append(one.dot, m.dots[h][row][col]), append(one.log, math.Log(v))
				}
			}
			if len(one.dot) > 1 {
				one.size = m.sizes[h][row]
				out = append(out, one)
			}
		}
	}
	return out
}

// noise is what a log-probability may be off by: the score's rounding and the softmax's.
func (m *masker) noise(scale, size float64) float64 {
	return slack * m.precision.Unit() * (4 + math.Abs(scale)*size)
}

// fit is a hypothesis of the curve from q.k to score.
type fit struct {
	scale, cap float64
	worst      float64 // largest misfit over what rounding allows
}

func (f fit) score(dot float64) float64 {
	if f.cap == 0 {
		return f.scale * dot
	}
	return f.cap * math.Tanh(f.scale*dot/f.cap)
}

// judge fills in how badly a fit misses: in each row the scores are known up to a constant.
func (m *masker) judge(f fit, rows []points) fit {
	f.worst = 0
	for _, r := range rows {
		mean := 0.0
		for i, dot := range r.dot {
			mean += r.log[i] - f.score(dot)
		}
		mean /= float64(len(r.dot))
		for i, dot := range r.dot {
			miss := math.Abs(r.log[i]-f.score(dot)-mean) / m.noise(f.scale, r.size)
			if !(miss <= f.worst) {
				f.worst = miss
			}
		}
	}
	return f
}

// linear is the least squares scale without a softcap.
func linear(rows []points) (scale float64, ok bool) {
	var xy, xx float64
	for _, r := range rows {
		var mx, my float64
		for i := range r.dot {
			mx, my = mx+r.dot[i]/float64(len(r.dot)), my+r.log[i]/float64(len(r.dot))
		}
		for i := range r.dot {
			xy, xx = xy+(r.dot[i]-mx)*(r.log[i]-my), xx+(r.dot[i]-mx)*(r.dot[i]-mx)
		}
	}
	return xy / xx, xx > 0
}

// capped refines scale and softcap by Gauss-Newton, from a start.
func (m *masker) capped(start fit, rows []points) fit {
	f := start
	for range 12 {
		// Normal equations of the misfits, centered in each row, in scale and cap.
		var aa, ab, bb, ar, br float64
		for _, r := range rows {
			n := float64(len(r.dot))
			da, db, res := make([]float64, len(r.dot)), make([]float64, len(r.dot)), make([]float64, len(r.dot))
			var ma, mb, mr float64
			for i, dot := range r.dot {
				x := f.scale * dot / f.cap
				t := math.Tanh(x)
				da[i], db[i], res[i] = dot*(1-t*t), t-x*(1-t*t), r.log[i]-f.cap*t
				ma, mb, mr = ma+da[i]/n, mb+db[i]/n, mr+res[i]/n
			}
			for i := range da {
				a, b, e := da[i]-ma, db[i]-mb, res[i]-mr
				aa, ab, bb, ar, br = aa+a*a, ab+a*b, bb+b*b, ar+a*e, br+b*e
			}
		}
		det := aa*bb - ab*ab
		if !(math.Abs(det) > 1e-14*aa*bb) {
			break
		}
		f.scale += (ar*bb - br*ab) / det
		// A step in cap that would leave its range is cut.
		f.cap = min(max(f.cap+(br*aa-ar*ab)/det, f.cap/3), f.cap*3)
	}
	return m.judge(f, rows)
}

// fitScores finds scale and softcap, and whether KV heads are repeated or tiled.
func (m *masker) fitScores(f *MaskFinding) {
	m.curve = fit{scale: m.declared.Scale, cap: m.declared.Softcap}.score
	best, ok := m.bestFit()
	if kv := len(m.k); ok && best.worst > 1 && kv > 1 && kv < m.heads {
		repeated := m.dots
		m.measureDots(func(h int) int { return h % kv })
		if tiled, _ := m.bestFit(); tiled.worst <= 1 {
			best, f.tiled = tiled, true
		} else {
			m.dots = repeated
		}
	}
	if !ok {
		f.Undecided = append(f.Undecided, "scale and softcap (no row sees two keys of different score)")
		return
	}
	for _, r := range m.points() {
		f.Floor = max(f.Floor, m.noise(best.scale, r.size))
	}
	if best.worst > 1 {
		f.Faults = append(f.Faults, Fault{UnknownScores, fmt.Sprintf("log-probabilities are not a scale or softcap of q.k: off by %.3g times rounding at best (scale %.4g)", best.worst, best.scale),
			"check that these are the q and k that were used: rotated, of the same heads"})
		return
	}
	f.Scale, f.Softcap, m.known = best.scale, best.cap, true
	m.curve = best.score
}

// bestFit is the declared curve if it fits, else the simplest that does, else the nearest.
func (m *masker) bestFit() (fit, bool) {
	rows := m.points()
	scale, ok := linear(rows)
	if !ok {
		return fit{}, false
	}
	best := m.judge(fit{scale: m.declared.Scale, cap: m.declared.Softcap}, rows)
	if best.worst <= 1 {
		return best, true
	}
	keep := func(f fit) bool {
		if f.worst < best.worst || math.IsNaN(best.worst) {
			best = f
		}
		return best.worst <= 1
	}
	freedom := 0
	largest := 0.0
	for _, r := range rows {
		freedom += len(r.dot) - 1
		lo, hi := extremes(r.dot)
		largest = max(largest, -lo, hi)
	}
	round := nice(scale, 1e-5*math.Abs(scale))
	if keep(m.judge(fit{scale: m.declared.Scale}, rows)) || keep(m.judge(fit{scale: round}, rows)) || keep(m.judge(fit{scale: scale}, rows)) {
		return best, true
	}
	for _, cap := range slices.Compact([]float64{m.declared.Softcap, 50, 30, 20, 15, 10, 5, 100, 2}) {
		if cap == 0 {
			continue
		}
		if keep(m.judge(fit{scale: m.declared.Scale, cap: cap}, rows)) {
			break
		}
		if freedom < 3 {
			continue // as many unknowns as there are numbers
		}
		refined := m.capped(fit{scale: m.declared.Scale, cap: cap}, rows)
		if !(refined.scale > 0 && refined.cap > 0 && refined.scale*largest < 32*refined.cap) {
			continue // a step function fits any two levels
		}
		if keep(m.judge(fit{scale: m.declared.Scale, cap: nice(refined.cap, 1e-3*refined.cap)}, rows)) || keep(refined) {
			break
		}
	}
	return best, true
}

// judgeScores compares what was found with what was declared.
func (m *masker) judgeScores(f *MaskFinding) {
	if f.tiled {
		f.Faults = append(f.Faults, Fault{TiledKV, fmt.Sprintf("query head h uses KV head h mod %d", len(m.k)), "repeat, do not tile"})
	}
	if !m.known {
		return
	}
	if f.Scale != m.declared.Scale {
		detail := fmt.Sprintf("%.6g, declared %.6g", f.Scale, m.declared.Scale)
		if ratio := f.Scale / m.declared.Scale; math.Abs(ratio*float64(m.dim)-math.Sqrt(float64(m.dim))) < 1e-4 {
			detail += " (applied twice)"
		} else if math.Abs(f.Scale-1) < 1e-4 {
			detail += " (not applied)"
		}
		f.Faults = append(f.Faults, Fault{WrongScale, detail, "multiply q.k by the scale once"})
	}
	switch {
	case f.Softcap == m.declared.Softcap:
	case f.Softcap == 0:
		f.Faults = append(f.Faults, Fault{WrongSoftcap, fmt.Sprintf("none, declared %.6g", m.declared.Softcap), "apply c tanh(s/c) after the scale, before the mask"})
	case m.declared.Softcap == 0:
		f.Faults = append(f.Faults, Fault{WrongSoftcap, fmt.Sprintf("%.6g, none declared", f.Softcap), "declare it, or take it out"})
	default:
		f.Faults = append(f.Faults, Fault{WrongSoftcap, fmt.Sprintf("%.6g, declared %.6g", f.Softcap, m.declared.Softcap), "take the cap of the model's configuration"})
	}
}

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
					weight = logAdd(weight, m.curve(m.dots[h][row][col]))
				}
			}
			rest, off := 1-sum, float64(m.keys+8)*slack*unit
			if rest < -off {
				f.Faults = append(f.Faults, Fault{WrongSum, fmt.Sprintf("row %d of head %d sums to %.6g", row, h, sum), "divide by the sum of all weights"})
				return
			}
			if rest > off {
				all = append(all, estimate{math.Log(rest/sum) + weight, off/rest + off + m.noise(f.scaleOr(m.declared.Scale), m.sizes[h][row])})
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

func (f *MaskFinding) scaleOr(declared float64) float64 {
	if math.IsNaN(f.Scale) {
		return declared
	}
	return f.Scale
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
				weight = logAdd(weight, m.curve(m.dots[h][row][col]))
			}
		}
		if !math.IsInf(weight, -1) && 1/(1+math.Exp(weight-sink)) > 2*float64(m.keys+8)*slack*m.precision.Unit() {
			return true
		}
	}
	return false
}
