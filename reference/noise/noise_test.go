package noise_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/noise"
	"gonum.org/v1/gonum/mat"
)

func normal(r *rand.Rand, heads, rows, dim int, amplitude float64) reference.Heads {
	x := make(reference.Heads, heads)
	for h := range x {
		x[h] = mat.NewDense(rows, dim, nil)
		x[h].Apply(func(_, _ int, _ float64) float64 { return amplitude * r.NormFloat64() }, x[h])
	}
	return x
}

// uneven is a tensor whose elements have errors of different sizes, far above those of roundings.
func uneven(r *rand.Rand, heads, rows, dim int, amplitude float64) noise.Heads {
	x := noise.Heads{Value: normal(r, heads, rows, dim, amplitude), Var: normal(r, heads, rows, dim, 0)}
	for _, m := range x.Var {
		m.Apply(func(_, _ int, _ float64) float64 { return 1e-8 * math.Exp(r.NormFloat64()) }, m)
	}
	return x
}

// drawn is x with errors of its variance.
func drawn(r *rand.Rand, x noise.Heads) reference.Heads {
	out := make(reference.Heads, len(x.Value))
	for h, m := range x.Value {
		out[h] = mat.DenseCopyOf(m)
		out[h].Apply(func(i, j int, v float64) float64 { return v + math.Sqrt(x.Var[h].At(i, j))*r.NormFloat64() }, m)
	}
	return out
}

// The variance of a result is that of many results from inputs with errors drawn at random.
func TestPropagation(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	q, k, v := uneven(r, 4, 3, 6, 2), uneven(r, 2, 9, 6, 1), uneven(r, 2, 9, 5, 1)
	w, b := uneven(r, 1, 7, 6, 1), uneven(r, 1, 1, 7, 1)
	x := uneven(r, 1, 3, 6, 1)
	y, lw, lb := uneven(r, 4, 3, 6, 1), uneven(r, 1, 1, 6, 1), uneven(r, 1, 1, 6, 1)
	s := uneven(r, 4, 3, 9, 1)
	p, err := reference.Softmax(s.Value, nil)
	if err != nil {
		t.Fatal(err)
	}
	weights := noise.Heads{Value: p, Var: s.Var}
	for h := range weights.Var { // a few percent of a weight at most
		weights.Var[h].MulElem(weights.Var[h], p[h])
	}
	s = uneven(r, 4, 3, 9, 1)
	vis := reference.Causal(5)
	rope := reference.RoPE{Rotary: 4, Base: 100, Offset: 2, Magnitude: 1.5, Interleaved: true}
	single := func(m *mat.Dense, err error) (reference.Heads, error) { return reference.Heads{m}, err }
	for _, op := range []struct {
		name      string
		in        []noise.Heads
		do        func(in []reference.Heads) (reference.Heads, error)
		variance  func() (reference.Heads, error)
		low, high float64 // of the ratio
	}{
		{"Add", []noise.Heads{q, q}, func(in []reference.Heads) (reference.Heads, error) { return reference.Add(in[0], in[1]) },
			func() (reference.Heads, error) { return noise.Add(q, q) }, 0.95, 1.05},
		{"RoPE", []noise.Heads{q}, func(in []reference.Heads) (reference.Heads, error) { return reference.ApplyRoPE(in[0], rope) },
			func() (reference.Heads, error) { return noise.RoPE(q, rope) }, 0.95, 1.05},
		{"Linear", []noise.Heads{x, w, b}, func(in []reference.Heads) (reference.Heads, error) {
			return single(reference.Linear(in[0][0], in[1][0], in[2][0]))
		}, func() (reference.Heads, error) { return noise.Linear(x, w, b) }, 0.95, 1.05},
		{"Scores", []noise.Heads{q, k}, func(in []reference.Heads) (reference.Heads, error) { return reference.Scores(in[0], in[1], -0.5) },
			func() (reference.Heads, error) { return noise.Scores(q, k, -0.5) }, 0.95, 1.05},
		{"Context", []noise.Heads{weights, v}, func(in []reference.Heads) (reference.Heads, error) { return reference.Context(in[0], in[1]) },
			func() (reference.Heads, error) { return noise.Context(weights, v) }, 0.95, 1.05},
		// What a weight gains the others lose, which the variance leaves out: it is an upper one.
		{"Softmax", []noise.Heads{s}, func(in []reference.Heads) (reference.Heads, error) { return reference.Softmax(in[0], vis) },
			func() (reference.Heads, error) { return noise.Softmax(s, vis) }, 0.3, 1.02},
		{"Attention", []noise.Heads{q, k, {Value: k.Value, Var: k.Var}}, func(in []reference.Heads) (reference.Heads, error) {
			return reference.Attention(in[0], in[1], in[2], 0.4, vis)
		}, func() (reference.Heads, error) { return noise.Attention(q, k, k, 0.4, vis) }, 0.2, 1.3},
		{"Multiply", []noise.Heads{q, y}, func(in []reference.Heads) (reference.Heads, error) { return reference.Multiply(in[0], in[1]) },
			func() (reference.Heads, error) { return noise.Multiply(q, y) }, 0.95, 1.05},
		{"GELU", []noise.Heads{q}, func(in []reference.Heads) (reference.Heads, error) { return reference.Activate(in[0], reference.GELU) },
			func() (reference.Heads, error) { return noise.Activate(q, reference.GELU) }, 0.95, 1.05},
		{"GELUTanh", []noise.Heads{q}, func(in []reference.Heads) (reference.Heads, error) {
			return reference.Activate(in[0], reference.GELUTanh)
		}, func() (reference.Heads, error) { return noise.Activate(q, reference.GELUTanh) }, 0.95, 1.05},
		{"SiLU", []noise.Heads{q}, func(in []reference.Heads) (reference.Heads, error) { return reference.Activate(in[0], reference.SiLU) },
			func() (reference.Heads, error) { return noise.Activate(q, reference.SiLU) }, 0.95, 1.05},
		{"LayerNorm", []noise.Heads{q, lw, lb}, func(in []reference.Heads) (reference.Heads, error) {
			return reference.LayerNorm(in[0], in[1][0], in[2][0], 0.1)
		}, func() (reference.Heads, error) { return noise.LayerNorm(q, lw, lb, 0.1) }, 0.95, 1.05},
		{"LayerNorm of rows alone", []noise.Heads{q}, func(in []reference.Heads) (reference.Heads, error) {
			return reference.LayerNorm(in[0], nil, nil, 0.1)
		}, func() (reference.Heads, error) { return noise.LayerNorm(q, noise.Heads{}, noise.Heads{}, 0.1) }, 0.95, 1.05},
		{"RMSNorm", []noise.Heads{q, lw}, func(in []reference.Heads) (reference.Heads, error) {
			return reference.RMSNorm(in[0], in[1][0], 0.1)
		}, func() (reference.Heads, error) { return noise.RMSNorm(q, lw, 0.1) }, 0.95, 1.05},
	} {
		variance, err := op.variance()
		if err != nil {
			t.Fatal(err)
		}
		in := make([]reference.Heads, len(op.in))
		for i := range in {
			in[i] = op.in[i].Value
		}
		exact, err := op.do(in)
		if err != nil {
			t.Fatal(err)
		}
		const draws = 2000
		measured, predicted := 0.0, 0.0
		for range draws {
			for i := range in {
				in[i] = drawn(r, op.in[i])
			}
			got, err := op.do(in)
			if err != nil {
				t.Fatal(err)
			}
			for h := range got {
				got[h].Sub(got[h], exact[h])
				measured += math.Pow(mat.Norm(got[h], 2), 2)
			}
		}
		for h := range variance {
			predicted += draws * mat.Sum(variance[h])
		}
		t.Logf("%s: measured %.3g of the prediction", op.name, measured/predicted)
		if ratio := measured / predicted; !(ratio > op.low && ratio < op.high) {
			t.Errorf("%s: measured %.3g of the prediction, want %g to %g", op.name, ratio, op.low, op.high)
		}
	}
}

// A sum in order has the error that is predicted from its partial sums: many terms of one sign, of both, and a drift that cancels.
func TestSums(t *testing.T) {
	const n, sums = 4000, 300
	r := rand.New(rand.NewPCG(2, 2))
	for name, term := range map[string]func(k int) float64{
		"one sign":   func(int) float64 { return r.Float64() },
		"both signs": func(int) float64 { return r.NormFloat64() },
		"drift":      func(k int) float64 { return float64(k)/n - 0.5 + 0.1*r.NormFloat64() },
	} {
		off, predicted := 0.0, 0.0
		ones := mat.NewDense(1, n, nil)
		ones.Apply(func(_, _ int, _ float64) float64 { return 1 }, ones)
		for range sums {
			x := mat.NewDense(1, n, nil)
			var f32 float32
			f64 := 0.0
			for k := range n {
				v := float32(term(k))
				x.Set(0, k, float64(v))
				f32, f64 = f32+v, f64+float64(v)
			}
			variance, err := noise.Scores(noise.Exact(reference.Heads{x}), noise.Exact(reference.Heads{ones}), 1)
			if err != nil {
				t.Fatal(err)
			}
			off, predicted = off+math.Pow(float64(f32)-f64, 2), predicted+variance[0].At(0, 0)
		}
		ratio := math.Sqrt(off / predicted)
		t.Logf("%s: %.3g of the prediction", name, ratio)
		if !(ratio > 0.1 && ratio < 0.8) {
			t.Errorf("%s: error %.3g of the prediction", name, ratio)
		}
	}
}

// What is hidden adds nothing, also where it is not finite.
func TestHidden(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	q, k, v := normal(r, 1, 4, 6, 1), normal(r, 1, 7, 6, 1), normal(r, 1, 7, 6, 1)
	vis := reference.Causal(2) // the last key is hidden from all
	clean, err := noise.Attention(noise.Rounded(q), noise.Rounded(k), noise.Rounded(v), 0.4, vis)
	if err != nil {
		t.Fatal(err)
	}
	v[0].Set(6, 1, math.NaN())
	v[0].Set(6, 2, math.Inf(1))
	k[0].Set(6, 3, math.Inf(-1))
	got, err := noise.Attention(noise.Rounded(q), noise.Rounded(k), noise.Rounded(v), 0.4, vis)
	if err != nil || !mat.EqualApprox(got[0], clean[0], 1e-30) {
		t.Errorf("%v, error %v, want %v", mat.Formatted(got[0]), err, mat.Formatted(clean[0]))
	}
	p, err := noise.Softmax(noise.Rounded(normal(r, 1, 3, 3, 1)), reference.Causal(-1))
	if err != nil || p[0].At(0, 0) != 0 || p[0].At(1, 1) != 0 || !(p[0].At(2, 1) > 0) {
		t.Errorf("%v, error %v", p, err)
	}
}

// Where the scores say nothing, neither does the limit.
func TestUncertainScores(t *testing.T) {
	s := noise.Heads{Value: reference.Heads{mat.NewDense(1, 2, []float64{5, -5})}, Var: reference.Heads{mat.NewDense(1, 2, []float64{4, 4})}}
	v, err := noise.Softmax(s, nil)
	if err != nil || v[0].At(0, 0) != 1 || v[0].At(0, 1) != 1 {
		t.Errorf("%v, error %v, want 1 everywhere", v, err)
	}
}

func TestLimit(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		got            []float32
		want, variance []float64
		limit          float64
	}{
		{[]float32{3, 4}, []float64{3, 4}, []float64{0, 0}, 0},
		{[]float32{3, 4}, []float64{3, 4}, []float64{9, 16}, noise.Factor},
		{[]float32{3, 4, float32(nan)}, []float64{3, 4, 1}, []float64{9, 16, nan}, noise.Factor},
		{[]float32{3, 4, 1}, []float64{3, 4, inf}, []float64{9, 16, inf}, noise.Factor},
		{[]float32{0, 0}, []float64{0, 0}, []float64{0, 0}, 0},
		{[]float32{0}, []float64{0}, []float64{1}, inf},
	} {
		if got := noise.Limit(c.got, c.want, c.variance); got != c.limit {
			t.Errorf("%v: limit %g, want %g", c, got, c.limit)
		}
	}
}

func TestRefusals(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	x := func(heads, rows, dim int) noise.Heads { return noise.Exact(normal(r, heads, rows, dim, 1)) }
	second := func(_ reference.Heads, err error) error { return err }
	for name, err := range map[string]error{
		"add":            second(noise.Add(x(1, 2, 3), x(1, 3, 2))),
		"rope":           second(noise.RoPE(x(1, 2, 3), reference.RoPE{Rotary: 4, Base: 10})),
		"linear":         second(noise.Linear(x(1, 2, 3), x(1, 2, 4), noise.Heads{})),
		"linear bias":    second(noise.Linear(x(1, 2, 3), x(1, 2, 3), x(1, 1, 3))),
		"linear heads":   second(noise.Linear(x(2, 2, 3), x(1, 2, 3), noise.Heads{})),
		"scores":         second(noise.Scores(x(1, 2, 3), x(1, 2, 4), 1)),
		"scores heads":   second(noise.Scores(x(3, 2, 3), x(2, 2, 3), 1)),
		"softmax":        second(noise.Softmax(noise.Heads{}, nil)),
		"context":        second(noise.Context(x(1, 2, 3), x(1, 2, 3))),
		"attention":      second(noise.Attention(x(2, 2, 3), x(1, 4, 3), x(1, 5, 3), 1, nil)),
		"multiply":       second(noise.Multiply(x(1, 2, 3), x(1, 3, 2))),
		"activate":       second(noise.Activate(noise.Heads{}, reference.GELU)),
		"layernorm":      second(noise.LayerNorm(noise.Heads{}, noise.Heads{}, noise.Heads{}, 1)),
		"rmsnorm":        second(noise.RMSNorm(x(1, 2, 3), x(1, 1, 4), 1)),
		"norm bias":      second(noise.LayerNorm(x(1, 2, 3), noise.Heads{}, x(1, 2, 3), 1)),
		"norm weight":    second(noise.RMSNorm(x(1, 2, 3), noise.Heads{Value: x(1, 1, 3).Value}, 1)),
		"attention keys": second(noise.Attention(x(2, 2, 3), x(1, 4, 2), x(1, 4, 2), 1, nil)),
	} {
		if !errors.Is(err, reference.ErrShape) && !errors.Is(err, reference.ErrArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
