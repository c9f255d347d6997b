package viz

import (
	"math"
	"strconv"
	"strings"
)

// scale maps the finite values of all matrices to [0, 1]: one for every panel, so that colours compare.
//
// Sequential and diverging scales are linear from lo to hi, that of LogProbabilities is logarithmic. An error scale is linear from lo to 1 in its lower half and,
// where hi > 1, logarithmic from 1 to hi in its upper half; where no value passes 1 the lower half is all of it.
type scale struct {
	kind   Kind
	lo, hi float64
	open   bool // values below lo look like lo
}

func (k Kind) scale(s summary) scale {
	switch k {
	case Angles:
		return scale{kind: k, lo: -math.Pi, hi: math.Pi}
	case Steps:
		hi := max(math.Abs(s.min), math.Abs(s.max), 1)
		return scale{kind: k, lo: -hi, hi: hi}
	case Probabilities, Amounts, slots:
		hi := s.max
		if hi <= 0 {
			hi = 1
		}
		return scale{kind: k, lo: min(s.min, 0), hi: hi}
	case LogProbabilities:
		hi := s.max
		if hi <= 0 {
			hi = 1
		}
		lo := max(s.min, hi*leastShare)
		if lo == hi { // one value: the top of a decade
			lo = hi / 10
		}
		return scale{kind: k, lo: lo, hi: hi, open: s.count[finite] > 0 && s.min < lo}
	case Errors:
		return scale{kind: k, lo: min(s.min, 0), hi: max(s.max, 1)}
	}
	hi := max(math.Abs(s.min), math.Abs(s.max))
	if hi == 0 {
		hi = 1
	}
	return scale{kind: k, lo: -hi, hi: hi}
}

// leastShare of the largest probability is the low end of a logarithmic scale, at least.
const leastShare = 1e-12

// exceeds reports whether an error scale has an upper half.
func (s scale) exceeds() bool { return s.kind == Errors && s.hi > 1 }

// norm is the place of v in the colour map, which for errors is blue in its lower half and orange in its upper half.
func (s scale) norm(v float64) float64 {
	if s.kind == LogProbabilities {
		return clamp((math.Log(v) - math.Log(s.lo)) / (math.Log(s.hi) - math.Log(s.lo)))
	}
	if s.kind == Steps {
		return clamp(0.5 + math.Asinh(v)/math.Asinh(s.hi)/2)
	}
	if s.kind != Errors {
		return clamp((v/2 - s.lo/2) / (s.hi/2 - s.lo/2)) // halves: hi - lo may pass the largest f64 only in theory, f32 never
	}
	if v <= 1 {
		return clamp((v-s.lo)/(1-s.lo)) / 2 * belowOne
	}
	if !s.exceeds() {
		return 1
	}
	return 0.5 + clamp(math.Log(v)/math.Log(s.hi))/2
}

// belowOne keeps a ratio of exactly 1, which passes, below the break of the colour map at one half.
const belowOne = 1 - 1.0/512

// bar is the place of v along the colour bar, from 0 (bottom) to 1 (top).
func (s scale) bar(v float64) float64 {
	if s.kind == Errors && !s.exceeds() {
		return clamp((v - s.lo) / (1 - s.lo))
	}
	return s.norm(v)
}

// barColour is the inverse for the picture of the bar: the place in the colour map of height t of the bar.
func (s scale) barColour(t float64) float64 {
	if s.kind == Errors && !s.exceeds() {
		return t / 2 * belowOne
	}
	return t
}

func clamp(t float64) float64 { return min(max(t, 0), 1) }

// ticks are the values written beside the colour bar: both ends exactly, round numbers between.
func (s scale) ticks() []float64 {
	t := []float64{s.lo}
	if s.kind == LogProbabilities {
		for p := math.Floor(math.Log10(s.lo)) + 1; math.Pow(10, p) < s.hi; p++ {
			t = append(t, math.Pow(10, p))
		}
	} else if s.kind == Angles {
		t = append(t, -math.Pi/2, 0, math.Pi/2)
	} else if s.kind == slots { // whole numbers
		for _, v := range roundSteps(s.lo, s.hi, 5) {
			if v == math.Trunc(v) {
				t = append(t, v)
			}
		}
	} else if s.kind == Steps {
		top := math.Ceil(math.Log10(s.hi)) - 1
		for p := top; p >= 0; p-- {
			t = append(t, -math.Pow(10, p))
		}
		t = append(t, 0)
		for p := 0.0; p <= top; p++ {
			t = append(t, math.Pow(10, p))
		}
	} else if s.exceeds() {
		t = append(t, roundSteps(s.lo, 1, 2)...)
		t = append(t, 1)
		for p := math.Ceil(math.Log10(s.hi)) - 1; p > 0; p-- {
			t = append(t, math.Pow(10, p))
		}
	} else {
		t = append(t, roundSteps(s.lo, s.hi, 5)...)
	}
	return append(t, s.hi)
}

// roundSteps are the multiples of a round step (1, 2 or 5 times a power of ten) strictly between lo and hi, about n.
func roundSteps(lo, hi float64, n int) []float64 {
	step := roundUp((hi - lo) / float64(n))
	if !(step > 0) {
		return nil
	}
	var t []float64
	for i := math.Floor(lo/step) + 1; i*step < hi && len(t) < 2*n; i++ {
		t = append(t, i*step)
	}
	return t
}

func roundUp(x float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(x)))
	for _, m := range []float64{1, 2, 5} {
		if m*p >= x*0.999 {
			return m * p
		}
	}
	return 10 * p
}

// number is a value for reading: digits significant digits, "1e-45" rather than "1e-045".
func number(v float64, digits int) string {
	return tidy(strconv.FormatFloat(v, 'g', digits, 64))
}

func tidy(s string) string {
	mantissa, exp, found := strings.Cut(s, "e")
	if !found {
		return s
	}
	sign := ""
	if exp[0] == '-' {
		sign = "-"
	}
	return mantissa + "e" + sign + strings.TrimLeft(exp[1:], "0")
}

// text is a value as it stands beside the colour bar.
func (s scale) text(v float64) string {
	if s.open && v == s.lo {
		return "≤ " + number(v, 3)
	}
	if s.kind == Angles {
		switch v {
		case -math.Pi:
			return "-π"
		case math.Pi:
			return "π"
		case -math.Pi / 2:
			return "-π/2"
		case math.Pi / 2:
			return "π/2"
		}
	}
	return number(v, 3)
}

// barTick is a value written beside the colour bar, at a height of the picture.
type barTick struct {
	value  float64
	y      int
	strong bool // the threshold of errors
}

// barTicks are those of a scale's ticks that there is room for: the threshold first, then the ends, then the rest.
func (l layout) barTicks(s scale) []barTick {
	all := s.ticks()
	order := append([]float64{all[len(all)-1], all[0]}, all...)
	switch s.kind {
	case Errors:
		order = append([]float64{1}, order...)
	case Steps, Angles:
		order = append([]float64{0}, order...)
	}
	var out []barTick
	for i, v := range order {
		y := l.bar.Max.Y - 1 - int(math.Round(s.bar(v)*float64(l.bar.Dy()-1)))
		free := true
		for _, t := range out {
			free = free && (y-t.y >= tickSize+4 || t.y-y >= tickSize+4)
		}
		if free {
			out = append(out, barTick{v, y, s.kind == Errors && i == 0})
		}
	}
	return out
}
