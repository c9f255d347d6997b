package bound_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/bound"
	"gonum.org/v1/gonum/mat"
)

// The bounds of one cell, worked out from their formulas.
func TestPoolFormulas(t *testing.T) {
	const eps = 1e-6
	cell := func(x bound.Heads, err error) float64 {
		t.Helper()
		return must(t)(x, err).Err[0].At(0, 0)
	}
	x := with(3, eps, -5, 2*eps, 4, 10*eps)
	lse := bound.Heads{
		Value: reference.Heads{mat.NewDense(1, 1, []float64{math.Log(math.Exp(2) + math.Exp(3))})},
		Err:   reference.Heads{mat.NewDense(1, 1, []float64{eps})},
	}
	l := lse.Value[0].At(0, 0)
	p := math.Exp(2 - l)
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"largest", cell(bound.Pool(x, nil, reference.Max, 1, 1)), 10 * eps},
		{"largest, another may pass it", cell(bound.Pool(with(4, eps, 4-3*eps, 10*eps), nil, reference.Max, 1, 1)), 7 * eps},
		{"smallest", cell(bound.Pool(x, nil, reference.Min, 1, 1)), 2 * eps},
		{"sum", cell(bound.Pool(x, nil, reference.Sum, 1, 1)), 13*eps + 12*7*u},
		{"mean", cell(bound.Pool(x, nil, reference.Mean, 1, 1)), (13*eps + 12*7*u) / 3},
		{"two of three", cell(bound.Pool(x, reference.Causal(1), reference.Mean, 1, 1)), (3*eps + 8*6*u) / 2},
		{"none", cell(bound.Pool(x, reference.Causal(-1), reference.Mean, 1, 1)), 0},
		{"weight", cell(bound.Weights(with(2, 3*eps, 3, 0), lse, nil)), p * (4*eps + u*(2+l) + 4*u*(l-2) + 4*u)},
	} {
		if !(math.Abs(c.got-c.want) <= 1e-3*c.want) {
			t.Errorf("%s: bound %.6g, want %.6g", c.name, c.got, c.want)
		}
	}
}

// Plain f32 weights and sums lie within the bounds, and use some of them up; the mistakes that one could make do not.
func TestPooledWeightsInF32(t *testing.T) {
	const n = 3000
	r := rand.New(rand.NewPCG(3, 3))
	s := mat.NewDense(1, n, nil)
	scores := make([]float32, n)
	for j := range scores {
		scores[j] = float32(3 * r.NormFloat64())
		s.Set(0, j, float64(scores[j]))
	}
	truth := bound.Leaf(reference.Heads{s})
	lse := must(t)(bound.LSE(truth, nil))
	want := must(t)(bound.Weights(truth, lse, nil))
	exact := lse.Value[0].At(0, 0)
	weights := func(l float32) []float32 {
		w := make([]float32, n)
		for j, x := range scores {
			w[j] = float32(math.Exp(float64(x - l)))
		}
		return w
	}
	right := weights(float32(exact))
	report := compare(t, tensor{{right}}, want)
	if !report.Pass || report.MaxRatio < 1e-3 {
		t.Errorf("right weights: %v", report)
	}
	if report := compare(t, tensor{{weights(float32(exact + 3e-3))}}, want); report.Pass {
		t.Errorf("weights of a sum that is off by 0.3%%: %v", report)
	}
	for _, by := range []reference.Reduction{reference.Sum, reference.Mean} {
		pooled := must(t)(bound.Pool(want, nil, by, 1, 1))
		for name, sum := range map[string]func([]float32) float32{"in order": forward, "backwards": backward, "lanes": lanes} {
			got := sum(right)
			if by == reference.Mean {
				got /= n
			}
			if report := compare(t, tensor{{{got}}}, pooled); !report.Pass {
				t.Errorf("reduction %d, %s: %v", by, name, report)
			}
			if report := compare(t, tensor{{{got * (1 - 10.0/n)}}}, pooled); report.Pass {
				t.Errorf("reduction %d of ten cells less passes: %v", by, report)
			}
		}
	}
}

// Scores that leave a weight undetermined have a bound that is no NaN.
func TestUndeterminedWeight(t *testing.T) {
	x := with(0, 1e4, -2000, 1e4)
	w := must(t)(bound.Weights(x, must(t)(bound.LSE(x, nil)), nil))
	for j := range 2 {
		if e := w.Err[0].At(0, j); !(e > 0) {
			t.Errorf("bound of weight %d is %v", j, e)
		}
	}
}
