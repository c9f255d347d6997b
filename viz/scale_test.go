package viz

import (
	"math"
	"testing"
)

func TestScaleBounds(t *testing.T) {
	for _, c := range []struct {
		name           string
		kind           Kind
		min, max       float64
		wantLo, wantHi float64
	}{
		{"scores below 0 keep their 0", Scores, -20, 0, -20, 20},
		{"scores above 0", Scores, 1, 3, -3, 3},
		{"all zero", Scores, 0, 0, -1, 1},
		{"huge", Signed, -1e38, 3e38, -3e38, 3e38},
		{"denormal", Signed, -1e-45, 1e-44, -1e-44, 1e-44},
		{"probabilities", Probabilities, 0.1, 0.4, 0, 0.4},
		{"no mass", Probabilities, 0, 0, 0, 1},
		{"a wrong probability", Probabilities, -0.5, 1, -0.5, 1},
		{"logarithmic", LogProbabilities, 3e-7, 0.4, 3e-7, 0.4},
		{"logarithmic, of one value", LogProbabilities, 0.25, 0.25, 0.025, 0.25},
		{"logarithmic, of zeros", LogProbabilities, 0, 0, 1e-12, 1},
		{"logarithmic, denormals", LogProbabilities, 1e-45, 1, 1e-12, 1},
		{"errors within the bound", Errors, 0, 0.02, 0, 1},
		{"errors beyond", Errors, 0, 550, 0, 550},
	} {
		s := c.kind.scale(summary{min: c.min, max: c.max})
		if s.lo != c.wantLo || s.hi != c.wantHi {
			t.Errorf("%s: [%g, %g], want [%g, %g]", c.name, s.lo, s.hi, c.wantLo, c.wantHi)
		}
		last := -1.0
		for i := range 101 {
			v := s.lo + (s.hi/100-s.lo/100)*float64(i)
			n := s.norm(v)
			if !(n >= last && n >= 0 && n <= 1) {
				t.Errorf("%s: %g maps to %g after %g", c.name, v, n, last)
			}
			last = n
		}
		for _, v := range s.ticks() {
			if !(v >= s.lo && v <= s.hi) {
				t.Errorf("%s: tick %g outside", c.name, v)
			}
		}
		if n := len(s.ticks()); n < 3 || n > 60 {
			t.Errorf("%s: %d ticks", c.name, n)
		}
	}
}

func TestZeroIsTheCentre(t *testing.T) {
	for _, hi := range []float64{1e-45, 1, 3.4e38} {
		s := Scores.scale(summary{min: -hi / 2, max: hi})
		if n := s.norm(0); n != 0.5 {
			t.Errorf("of ±%g, 0 maps to %g", hi, n)
		}
	}
}

// What is within its bound is blue, what is not is orange, and nothing lies between.
func TestThreshold(t *testing.T) {
	s := Errors.scale(summary{max: 1000})
	one, above := step(s.norm(1), steps), step(s.norm(math.Nextafter(1, 2)), steps)
	if one != steps/2-1 || above != steps/2 {
		t.Errorf("1 has colour %d, the next number %d; the map breaks at %d", one, above, steps/2)
	}
	if got := s.norm(math.Sqrt(1000)); math.Abs(got-0.75) > 1e-9 {
		t.Errorf("above 1 the scale is logarithmic: the middle maps to %g", got)
	}
	within := Errors.scale(summary{max: 0.3})
	if got := step(within.norm(1), steps); got != steps/2-1 {
		t.Errorf("1 has colour %d where nothing passes it", got)
	}
	if got := within.bar(1); got != 1 {
		t.Errorf("where nothing passes 1 it is the bar's end, not %g", got)
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", math.Copysign(0, -1): "-0", 1e-45: "1e-45", 3.4e38: "3.4e38", 0.5: "0.5", -1234.5: "-1.23e3", 1e-7: "1e-7", 120: "120",
	} {
		if got := number(v, 3); got != want {
			t.Errorf("%g: %q, want %q", v, got, want)
		}
	}
	if got := exact(float64(float32(0.1))); got != "0.100000001" {
		t.Errorf("0.1 as f32 is %s", got)
	}
}
