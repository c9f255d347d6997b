package reference_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/mat"
)

// The smallest that is accepted, and what lies just beyond.
func TestLimits(t *testing.T) {
	one := mat.NewDense(1, 3, []float64{1, 2, 3})
	q, k, v, err := reference.Split(one, reference.GPT2, 1, 1, 1)
	if err != nil || q[0].At(0, 0) != 1 || k[0].At(0, 0) != 2 || v[0].At(0, 0) != 3 {
		t.Errorf("Split of one head of dim 1: %v", err)
	}
	if x, err := reference.Unmerge(one, 1); err != nil || !mat.Equal(x[0], one) {
		t.Errorf("Unmerge of one head: %v", err)
	}
	if f, err := reference.InvFreq(2, 1e4); err != nil || !slices.Equal(f, []float64{1}) {
		t.Errorf("one pair: %v, %v", f, err)
	}
	if x, err := reference.Pool(reference.Heads{one}, nil, reference.Sum, 1, 3); err != nil || !mat.Equal(x[0], one) {
		t.Errorf("pools of one cell: %v", err)
	}
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		s    reference.Scaling
		fits bool
	}{
		{reference.DynamicNTK{Factor: 1, Trained: 1, Length: 1}, true},
		{reference.DynamicNTK{Factor: 1.5, Trained: 1, Length: 1}, true},
		{reference.DynamicNTK{Factor: 0.9, Trained: 1, Length: 1}, false},
		{reference.DynamicNTK{Factor: inf, Trained: 1, Length: 1}, false},
		{reference.DynamicNTK{Factor: 2, Trained: 0, Length: 1}, false},
		{reference.DynamicNTK{Factor: 2, Trained: 1, Length: 0}, false},
		{reference.LinearScaling{Factor: inf}, false},
		{reference.LinearScaling{Factor: nan}, false},
		{reference.Llama3{Factor: 8, Low: 1, High: 4, Trained: 1}, true},
		{reference.Llama3{Factor: 8, Low: 1, High: 4}, false},
		{reference.Llama3{Factor: 8, Low: 1, High: inf, Trained: 1}, false},
		{reference.Llama3{Factor: 8, Low: 4, High: 4, Trained: 1}, false},
		{reference.YaRN{Factor: 4, Trained: 1}, true},
		{reference.YaRN{Factor: 4}, false},
		{reference.YaRN{Factor: 4, Trained: 1, Fast: inf}, false},
		{reference.YaRN{Factor: 4, Trained: 1, Fast: 2, Slow: 2}, false},
		{reference.YaRN{Factor: 4, Trained: 1, Attention: inf}, false},
		{reference.YaRN{Factor: 4, Trained: 1, Attention: nan}, false},
		{reference.YaRN{Factor: 4, Trained: 1, Attention: -1}, false},
	} {
		f, _, err := c.s.Frequencies(4, 1e4)
		if (err == nil) != c.fits || (f != nil) != c.fits || err != nil && !errors.Is(err, reference.ErrArgument) {
			t.Errorf("%+v: %v, %v", c.s, f, err)
		}
	}
	for _, c := range []struct {
		r    reference.RoPE
		fits bool
	}{
		{reference.RoPE{Rotary: 2, Base: 0.5}, true},
		{reference.RoPE{Rotary: 2, Base: inf}, false},
		{reference.RoPE{Rotary: 2, Base: 0}, false},
		{reference.RoPE{Rotary: 2, Base: 1e4, Magnitude: inf}, false},
		{reference.RoPE{Rotary: 2, Base: 1e4, Magnitude: -inf}, false},
		{reference.RoPE{Rotary: 2, Base: 1e4, Magnitude: nan}, false},
		{reference.RoPE{Rotary: 2, InvFreq: []float64{inf}}, false},
		{reference.RoPE{Rotary: 2, InvFreq: []float64{-inf}}, false},
		{reference.RoPE{Rotary: 2, InvFreq: []float64{-1}}, true},
	} {
		if _, err := reference.ApplyRoPE(reference.Heads{one}, c.r); (err == nil) != c.fits || err != nil && !errors.Is(err, reference.ErrArgument) {
			t.Errorf("%+v: %v", c.r, err)
		}
	}
}

// The ramp of YaRN lies within the dims, and is a step where it has no length. Rotary 8 and base 10: a pair is 8 / (2 ln 10) of
// the logarithm of how often it turns within the trained positions.
func TestYaRNRampEnds(t *testing.T) {
	for _, c := range []struct {
		trained int
		weights []float64 // of the divided frequency
	}{
		{396, []float64{0, 0, 1. / 6, 2. / 6}},     // from pair 1.18 to 7.2: 1 to 8, cut to 7
		{60, []float64{0, 1. / 4, 2. / 4, 3. / 4}}, // from -2.1 to 3.92: -3, cut to 0, to 4
		{6, []float64{0, 1, 1, 1}},                 // from -6.1 to -0.08: both ends are 0
	} {
		f, magnitude, err := reference.YaRN{Factor: 4, Trained: c.trained}.Frequencies(8, 10)
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range c.weights {
			plain := math.Pow(10, -float64(i)/4)
			if want := plain/4*m + plain*(1-m); math.Abs(f[i]-want) > 1e-15 {
				t.Errorf("trained for %d, pair %d: %v, want %v", c.trained, i, f[i], want)
			}
		}
		if want := 0.1*math.Log(4) + 1; magnitude != want {
			t.Errorf("magnitude %v, want %v", magnitude, want)
		}
	}
	if _, magnitude, err := (reference.YaRN{Factor: 1.5, Trained: 9}).Frequencies(8, 1.5); err != nil || magnitude != 0.1*math.Log(1.5)+1 {
		t.Errorf("factor and base 1.5: magnitude %v, %v", magnitude, err)
	}
	short, _, err := reference.YaRN{Factor: 4, Trained: 396, Fractional: true}.Frequencies(8, 10)
	if err != nil {
		t.Fatal(err)
	}
	long, _, err := reference.YaRN{Factor: 4, Trained: 396, Fractional: true, Fast: 32, Slow: 1}.Frequencies(8, 10)
	if err != nil || !slices.Equal(short, long) {
		t.Errorf("by default %v, of 32 turns to 1 %v, %v", short, long, err)
	}
}

// A hidden value of any kind never reaches a context.
func TestHiddenValues(t *testing.T) {
	p := reference.Heads{mat.NewDense(1, 2, []float64{1, 0})}
	for _, hidden := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e308} {
		x, err := reference.Context(p, reference.Heads{mat.NewDense(2, 1, []float64{2, hidden})})
		if err != nil || x[0].At(0, 0) != 2 {
			t.Errorf("%v beside weight 0: %v, %v", hidden, x, err)
		}
	}
}

// A visible value that is not finite shows, also under a weight that underflowed to 0.
func TestVisibleValues(t *testing.T) {
	q, k := reference.Heads{mat.NewDense(1, 1, []float64{1})}, reference.Heads{mat.NewDense(2, 1, []float64{0, -2000})}
	for _, seen := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		x, err := reference.Attention(q, k, reference.Heads{mat.NewDense(2, 1, []float64{2, seen})}, 1, nil)
		if err != nil || !math.IsNaN(x[0].At(0, 0)) {
			t.Errorf("%v under weight 0: %v, %v", seen, x, err)
		}
	}
}

// Documents: a row sees its own, from the first row on, and none where it stands outside of all.
func TestDocumentsEnds(t *testing.T) {
	sees := reference.Documents(-1, []int{2, 1})
	for row, want := range [][]int{{}, {0, 1}, {0, 1}, {2}, {}} {
		var got []int
		for col := range 4 {
			if sees(row, col) {
				got = append(got, col)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("row %d sees %v, want %v", row, got, want)
		}
	}
}

// One head or one row of a bias or of allowed cells serves all; other sizes do not fit.
func TestBroadcasts(t *testing.T) {
	ones := func(heads, rows, cols int) reference.Heads {
		out := make(reference.Heads, heads)
		for h := range out {
			out[h] = mat.NewDense(rows, cols, nil)
			out[h].Apply(func(int, int, float64) float64 { return 1 }, out[h])
		}
		return out
	}
	s := ones(2, 3, 4)
	for _, c := range []struct {
		heads, rows, cols int
		fits              bool
	}{
		{1, 1, 4, true}, {2, 1, 4, true}, {1, 3, 4, true}, {2, 3, 4, true},
		{2, 2, 4, false}, {3, 3, 4, false}, {3, 1, 4, false}, {1, 2, 4, false}, {2, 3, 3, false}, {2, 3, 1, false},
	} {
		by := ones(c.heads, c.rows, c.cols)
		sum, err := reference.AddBias(s, by)
		if (err == nil) != c.fits || c.fits && sum[1].At(2, 3) != 2 {
			t.Errorf("bias %+v: %v", c, err)
		}
		p, err := reference.Variant{Allowed: by}.Softmax(s, nil)
		if (err == nil) != c.fits || c.fits && p[1].At(2, 3) != 0.25 {
			t.Errorf("allowed %+v: %v", c, err)
		}
	}
}
