package detect

import (
	"fmt"
	"math"
	"slices"

	"github.com/attnb/attnb/reference"
)

// What goes on top of scores: a bias, and ALiBi.

// otherwise are the usual departures in what is added: nothing where something was declared, the usual slopes where they were not.
func (m *masker) otherwise(declared fit) []fit {
	var out []fit
	with := func(slopes []float64, bias bool) {
		f := declared
		f.slopes, f.bias = slopes, bias
		out = append(out, f)
	}
	usual, err := reference.ALiBiSlopes(m.heads)
	if declared.slopes != nil {
		with(nil, declared.bias)
	}
	if err == nil && !slices.Equal(declared.slopes, usual) {
		with(usual, declared.bias)
	}
	if declared.bias {
		with(declared.slopes, false)
		if declared.slopes != nil {
			with(nil, false)
		}
	}
	return out
}

// readded tries those.
func (m *masker) readded(declared fit, rows []points, keep func(fit) bool) bool {
	return slices.ContainsFunc(m.otherwise(declared), keep)
}

// resloped tries slopes that are fitted, one a head: at the declared scale, and together with a scale.
func (m *masker) resloped(f fit, rows []points, keep func(fit) bool) bool {
	f.slopes = nil
	found := func() bool {
		f := f
		slopes := m.slopes(f, rows)
		if slopes == nil {
			return false
		}
		round := slices.Clone(slopes)
		for h, x := range round {
			round[h] = nice(x, 1e-5*math.Abs(x))
		}
		for _, f.slopes = range [][]float64{round, slopes} {
			if keep(f) {
				return true
			}
		}
		return false
	}
	if found() {
		return true
	}
	scale := m.scaleBeside(f, rows)
	f.cap = 0
	for _, f.scale = range []float64{nice(scale, 1e-5*math.Abs(scale)), scale} {
		if !math.IsNaN(scale) && found() {
			return true
		}
	}
	return false
}

// sums are those that a least squares fit of scale and slope takes, of points centered in their rows: x is q.k, d minus the distance, y the
// logarithm less what else is added.
type sums struct {
	xx, xd, dd, xy, dy float64
	freedom            int
}

// headSums are the sums of each head.
func (m *masker) headSums(f fit, rows []points, y func(r points, i int) float64) []sums {
	out := make([]sums, m.heads)
	for _, r := range rows {
		n := float64(len(r.dot))
		var mx, md, my float64
		for i := range r.dot {
			mx, md, my = mx+r.dot[i]/n, md-r.away[i]/n, my+y(r, i)/n
		}
		s := &out[r.head]
		for i := range r.dot {
			x, d, e := r.dot[i]-mx, -r.away[i]-md, y(r, i)-my
			s.xx, s.xd, s.dd, s.xy, s.dy = s.xx+x*x, s.xd+x*d, s.dd+d*d, s.xy+x*e, s.dy+d*e
		}
		s.freedom += len(r.dot) - 1
	}
	return out
}

// slopes are those of each head at a scale and a softcap, the declared one where a head cannot tell; nil where none can.
func (m *masker) slopes(f fit, rows []points) []float64 {
	out, any := make([]float64, m.heads), false
	for h, s := range m.headSums(f, rows, func(r points, i int) float64 { return r.log[i] - f.score(r.dot[i]) - f.added(r, i) }) {
		if m.declared.Slopes != nil {
			out[h] = m.declared.Slopes[h]
		}
		if s.freedom >= 3 && s.dd > 0 {
			out[h], any = s.dy/s.dd, true
		}
	}
	if !any {
		return nil
	}
	return out
}

// scaleBeside is the scale that fits best beside slopes of their own for each head, without a softcap; NaN where nothing tells.
func (m *masker) scaleBeside(f fit, rows []points) float64 {
	var xy, xx float64
	for _, s := range m.headSums(f, rows, func(r points, i int) float64 { return r.log[i] - f.added(r, i) }) {
		if s.freedom >= 4 && s.dd > 0 {
			xy, xx = xy+s.xy-s.xd*s.dy/s.dd, xx+s.xx-s.xd*s.xd/s.dd
		}
	}
	return xy / xx
}

// judgeAdded compares bias and slopes with what was declared.
func (m *masker) judgeAdded(f *MaskFinding) {
	if m.declared.Bias != nil && !m.best.bias {
		f.Faults = append(f.Faults, Fault{WrongBias, "left out", "add it to the scores, after scale and softcap, before the softmax"})
	}
	found, want := m.best.slopes, m.declared.Slopes
	if !slices.Equal(found, want) {
		f.Faults = append(f.Faults, Fault{WrongSlopes, slopeWords(found, want, f.Scale), "take slope times distance off each score after the scale: 2^(-8 i/heads), i from 1"})
		return
	}
	if found != nil || m.best.bias {
		f.Undecided = append(f.Undecided, m.unseenAdded()...)
	}
}

// slopeWords says how slopes depart.
func slopeWords(found, want []float64, scale float64) string {
	switch {
	case found == nil:
		return fmt.Sprintf("none, declared slopes %.4g", want)
	case want == nil:
		return fmt.Sprintf("slopes %.4g, none declared", found)
	}
	like := func(change func(h int) float64) bool {
		for h, x := range found {
			if !(math.Abs(x-change(h)) <= 1e-3*math.Abs(want[h])) {
				return false
			}
		}
		return true
	}
	words := fmt.Sprintf("slopes %.4g, declared %.4g", found, want)
	n := len(want)
	switch {
	case like(func(h int) float64 { return -want[h] }):
		words += " (the other sign)"
	case like(func(h int) float64 { return want[h] * scale }):
		words += " (multiplied by the scale: added before it)"
	case like(func(h int) float64 { return want[h] * math.Exp2(8/float64(n)) }):
		words += " (i from 0)"
	case n > 1 && like(func(h int) float64 { return want[n-1-h] }):
		words += " (of the heads in the other order)"
	case n > 1 && like(func(int) float64 { return want[0] }):
		words += " (head 0's for all)"
	}
	return words
}

// unseenAdded are the declared bias and slopes that these rows could do without.
func (m *masker) unseenAdded() (out []string) {
	rows := m.points()
	without := m.best
	if without.slopes = nil; m.best.slopes != nil && m.judge(without, rows).worst <= 1 {
		out = append(out, "whether ALiBi was applied (no row sees keys at two distances)")
	}
	without = m.best
	if without.bias = false; m.best.bias && m.judge(without, rows).worst <= 1 {
		out = append(out, "whether the bias was added (it does not tell the keys of a row apart)")
	}
	return out
}
