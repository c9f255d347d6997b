package detect

import (
	"fmt"
	"math"
	"slices"
)

// points are the cells of one row that show scores: q.k and the logarithm of the weight, and what goes on top of a score.
type points struct {
	head      int
	dot, log  []float64
	away      []float64 // distance from the row's own column
	bias      []float64 // nil: none declared
	size      float64   // what scores of the row round against, per unit of scale
	most      float64   // the longest distance, and below the largest bias: what is added rounds, too
	mostAdded float64
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
			one := points{head: h}
			for col, v := range m.p[h].RawRowView(row) {
				if v < m.precision.least() {
					continue
				}
				one.dot, one.log = append(one.dot, m.dots[h][row][col]), append(one.log, math.Log(v))
				one.away = append(one.away, m.away(row, col))
				one.most = max(one.most, m.away(row, col))
				if m.declared.Bias != nil {
					b := of(m.declared.Bias, h, row, col)
					one.bias, one.mostAdded = append(one.bias, b), max(one.mostAdded, math.Abs(b))
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

// away is the distance of a column from the row's own.
func (m *masker) away(row, col int) float64 {
	return math.Abs(float64(col - row - m.declared.Diagonal))
}

// noise is what a log-probability may be off by: the score's rounding and the softmax's.
func (m *masker) noise(scale, size float64) float64 {
	return slack * m.precision.Unit() * (4 + math.Abs(scale)*size)
}

// fit is a hypothesis of the scores.
type fit struct {
	scale, cap float64
	slopes     []float64 // nil: none
	bias       bool      // the declared one is added
	worst      float64   // largest misfit over what rounding allows
}

// score is that of q.k, before anything is added.
func (f fit) score(dot float64) float64 {
	if f.cap == 0 {
		return f.scale * dot
	}
	return f.cap * math.Tanh(f.scale*dot/f.cap)
}

// added is what goes on top of the score of point i.
func (f fit) added(r points, i int) float64 {
	sum := 0.0
	if f.bias {
		sum = r.bias[i]
	}
	if f.slopes != nil {
		sum -= f.slopes[r.head] * r.away[i]
	}
	return sum
}

// noiseAdded is what rounding does to what is added.
func (f fit) noiseAdded(r points, p Precision) float64 {
	most := 0.0
	if f.bias {
		most = r.mostAdded
	}
	if f.slopes != nil {
		most += math.Abs(f.slopes[r.head]) * r.most
	}
	return slack * p.Unit() * most
}

// score is that of a cell by the best fit.
func (m *masker) score(h, row, col int) float64 {
	s := m.best.score(m.dots[h][row][col])
	if m.best.bias {
		s += of(m.declared.Bias, h, row, col)
	}
	if m.best.slopes != nil {
		s -= m.best.slopes[h] * m.away(row, col)
	}
	return s
}

// judge fills in how badly a fit misses: in each row the scores are known up to a constant.
func (m *masker) judge(f fit, rows []points) fit {
	f.worst = 0
	for _, r := range rows {
		if m.watch.stopped() {
			break
		}
		mean := 0.0
		for i, dot := range r.dot {
			mean += r.log[i] - f.score(dot) - f.added(r, i)
		}
		mean /= float64(len(r.dot))
		noise := m.noise(f.scale, r.size) + f.noiseAdded(r, m.precision)
		for i, dot := range r.dot {
			miss := math.Abs(r.log[i]-f.score(dot)-f.added(r, i)-mean) / noise
			if !(miss <= f.worst) {
				f.worst = miss
			}
		}
	}
	return f
}

// linear is the least squares scale without a softcap, under what a fit adds.
func linear(f fit, rows []points) (scale float64, ok bool) {
	var xy, xx float64
	for _, r := range rows {
		var mx, my float64
		for i := range r.dot {
			mx, my = mx+r.dot[i]/float64(len(r.dot)), my+(r.log[i]-f.added(r, i))/float64(len(r.dot))
		}
		for i := range r.dot {
			xy, xx = xy+(r.dot[i]-mx)*(r.log[i]-f.added(r, i)-my), xx+(r.dot[i]-mx)*(r.dot[i]-mx)
		}
	}
	return xy / xx, xx > 0
}

// capped refines scale and softcap by Gauss-Newton, from a start.
func (m *masker) capped(start fit, rows []points) fit {
	f := start
	for i := range 12 {
		if !m.watch.at(i, 12) {
			break
		}
		// Normal equations of the misfits, centered in each row, in scale and cap.
		var aa, ab, bb, ar, br float64
		for _, r := range rows {
			n := float64(len(r.dot))
			da, db, res := make([]float64, len(r.dot)), make([]float64, len(r.dot)), make([]float64, len(r.dot))
			var ma, mb, mr float64
			for i, dot := range r.dot {
				x := f.scale * dot / f.cap
				t := math.Tanh(x)
				da[i], db[i], res[i] = dot*(1-t*t), t-x*(1-t*t), r.log[i]-f.cap*t-f.added(r, i)
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
	f.Scale, f.Softcap, f.Slopes, f.best, m.known = best.scale, best.cap, best.slopes, best, true
	m.best = best
}

// bestFit is the declared scores if they fit, else the simplest that do, else the nearest.
func (m *masker) bestFit() (fit, bool) {
	rows := m.points()
	declared := fit{scale: m.declared.Scale, cap: m.declared.Softcap, slopes: m.declared.Slopes, bias: m.declared.Bias != nil}
	if _, ok := linear(declared, rows); !ok {
		return fit{}, false
	}
	best := m.judge(declared, rows)
	keep := func(f fit) bool {
		if f = m.judge(f, rows); f.worst < best.worst || math.IsNaN(best.worst) {
			best = f
		}
		return best.worst <= 1
	}
	if best.worst <= 1 || m.rescaled(declared, rows, keep) || m.readded(declared, rows, keep) || m.recapped(declared, rows, keep) ||
		m.resloped(declared, rows, keep) {
		return best, true
	}
	for _, f := range m.otherwise(declared) {
		if m.rescaled(f, rows, keep) {
			break
		}
	}
	return best, true
}

// rescaled tries other scales, without a softcap.
func (m *masker) rescaled(f fit, rows []points, keep func(fit) bool) bool {
	f.cap = 0
	if keep(f) {
		return true
	}
	scale, _ := linear(f, rows)
	for _, f.scale = range []float64{nice(scale, 1e-5*math.Abs(scale)), scale} {
		if keep(f) {
			return true
		}
	}
	return false
}

// recapped tries softcaps.
func (m *masker) recapped(f fit, rows []points, keep func(fit) bool) bool {
	freedom, largest := 0, 0.0
	for _, r := range rows {
		freedom += len(r.dot) - 1
		lo, hi := extremes(r.dot)
		largest = max(largest, -lo, hi)
	}
	for _, cap := range slices.Compact([]float64{m.declared.Softcap, 50, 30, 20, 15, 10, 5, 100, 2}) {
		if cap == 0 {
			continue
		}
		f.scale, f.cap = m.declared.Scale, cap
		if keep(f) {
			return true
		}
		if freedom < 3 {
			continue // as many unknowns as there are numbers
		}
		refined := m.capped(f, rows)
		if !(refined.scale > 0 && refined.cap > 0 && refined.scale*largest < 32*refined.cap) {
			continue // a step function fits any two levels
		}
		f.cap = nice(refined.cap, 1e-3*refined.cap)
		if keep(f) || keep(refined) {
			return true
		}
	}
	return false
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
	m.judgeAdded(f)
}
