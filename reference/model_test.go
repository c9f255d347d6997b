package reference_test

import (
	"errors"
	"math"
	"testing"

	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/mat"
)

func TestEmbedding(t *testing.T) {
	table := matrix([]float64{1, 2}, []float64{3, 4}, []float64{5, 6})
	got, err := reference.Embedding(table, []int{2, 0, 2, 1})
	if err != nil {
		t.Fatal(err)
	}
	agree(t, "rows", reference.Heads{got}, one([]float64{5, 6}, []float64{1, 2}, []float64{5, 6}, []float64{3, 4}), 0)
	got.Set(0, 0, 9)
	if table.At(2, 0) != 5 {
		t.Error("a result shares memory with the table")
	}
}

// Deviations of 3 and 1 each way: mean 5, mean square 5; eps 4 makes 9, whose root is 3.
func TestNorms(t *testing.T) {
	x := reference.Heads{matrix([]float64{2, 4, 6, 8}), matrix([]float64{-8, -4, -6, -2})}
	weight, bias := matrix([]float64{1, 2, -1, 0}), matrix([]float64{0, .5, 1, 7})
	agree(t, "LayerNorm", must(t)(reference.LayerNorm(x, weight, bias, 4)), reference.Heads{
		matrix([]float64{-1, -2./3 + .5, -1./3 + 1, 7}), matrix([]float64{-1, 2./3 + .5, 1./3 + 1, 7})}, 1e-15)
	agree(t, "LayerNorm of rows alone", must(t)(reference.LayerNorm(x[:1], nil, nil, 4)), one([]float64{-1, -1. / 3, 1. / 3, 1}), 1e-15)
	agree(t, "LayerNorm with weights alone", must(t)(reference.LayerNorm(x[:1], weight, nil, 4)), one([]float64{-1, -2. / 3, -1. / 3, 0}), 1e-15)

	// Mean square (1 + 9 + 9 + 1) / 4 = 5.
	x = one([]float64{1, -3, 3, -1})
	agree(t, "RMSNorm", must(t)(reference.RMSNorm(x, weight, 4)), one([]float64{1. / 3, -2, -1, 0}), 1e-15)
	agree(t, "RMSNorm of rows alone", must(t)(reference.RMSNorm(x, nil, 4)), one([]float64{1. / 3, -1, 1, -1. / 3}), 1e-15)
	agree(t, "RMSNorm of a small eps", must(t)(reference.RMSNorm(one([]float64{.5, -.5}), nil, .75)), one([]float64{.5, -.5}), 0) // 1/4 + 3/4
	if x[0].At(0, 1) != -3 {
		t.Error("the input changed")
	}
}

// Values by the definitions: erf(1) is 0.8427..., tanh(sqrt(2/pi) 1.044715) is 0.682384..., 1/(1+1/e) is 0.731058... .
func TestActivations(t *testing.T) {
	for _, c := range []struct {
		a    reference.Activation
		x, y float64
	}{
		{reference.GELU, 0, 0}, {reference.GELU, math.Sqrt2, (1 + 0.8427007929497149) / math.Sqrt2},
		{reference.GELU, -math.Sqrt2, -(1 - 0.8427007929497149) / math.Sqrt2}, {reference.GELU, 1, 0.8413447460685429}, // P(X <= 1)
		{reference.GELU, -10, -7.619853024160526e-23}, {reference.GELU, 40, 40},
		{reference.GELUTanh, 0, 0}, {reference.GELUTanh, 1, 0.8411919906082768}, {reference.GELUTanh, -1, -0.1588080093917232},
		{reference.GELUTanh, 2, 1.954597694087775}, {reference.GELUTanh, 40, 40},
		{reference.SiLU, 0, 0}, {reference.SiLU, 1, 0.7310585786300049}, {reference.SiLU, -1, -0.2689414213699951}, {reference.SiLU, math.Log(3), .75 * math.Log(3)},
	} {
		agree(t, "activation", must(t)(reference.Activate(one([]float64{c.x}), c.a)), one([]float64{c.y}), 1e-15*math.Max(1, math.Abs(c.y)))
		if c.x == -10 && !(math.Abs(c.a.Of(-10)/c.y-1) < 1e-12) {
			t.Errorf("GELU(-10) is %v, want %v", c.a.Of(-10), c.y)
		}
	}
	for a := reference.GELU; a <= reference.SiLU; a++ {
		if y := a.Of(math.Inf(1)); y != math.Inf(1) {
			t.Errorf("%d of +Inf is %v", a, y)
		}
		if y := a.Of(math.Inf(-1)); y == y {
			t.Errorf("%d of -Inf is %v", a, y)
		}
		for x := -12.0; x <= 12; x += 1. / 16 {
			const h = 1e-5
			slope := (a.Of(x+h) - a.Of(x-h)) / (2 * h)
			if !(math.Abs(a.Slope(x)-slope) <= 1e-9) {
				t.Errorf("slope of %d at %v is %v, measured %v", a, x, a.Slope(x), slope)
			}
			if curve := (a.Slope(x+h) - a.Slope(x-h)) / (2 * h); !(math.Abs(a.Slope(x)) <= 1.13 && math.Abs(curve) < 1) {
				t.Errorf("slope of %d at %v is %v and changes by %v", a, x, a.Slope(x), curve)
			}
		}
	}
}

func TestMultiply(t *testing.T) {
	a, b := matrix([]float64{1, -2, 3}), matrix([]float64{4, 5, .5})
	want := matrix([]float64{4, -10, 1.5})
	agree(t, "product", must(t)(reference.Multiply(reference.Heads{a, b}, reference.Heads{b, a})), reference.Heads{want, want}, 0)
	if a.At(0, 0) != 1 {
		t.Error("the input changed")
	}
}

func TestModelRefusals(t *testing.T) {
	x := func(h, s, d int) reference.Heads {
		out := make(reference.Heads, h)
		for i := range out {
			out[i] = mat.NewDense(s, d, nil)
		}
		return out
	}
	m := func(s, d int) *mat.Dense { return mat.NewDense(s, d, nil) }
	for _, c := range []refusal{
		refused(reference.ErrShape, "Embedding: shapes do not fit: no tokens")(orNil(reference.Embedding(m(2, 3), nil))),
		refused(reference.ErrShape, "Embedding: shapes do not fit: table: head 0 is empty")(orNil(reference.Embedding(nil, []int{1}))),
		refused(reference.ErrArgument, "Embedding: bad argument: token 1 is 2, the table has 2 rows")(orNil(reference.Embedding(m(2, 3), []int{1, 2}))),
		refused(reference.ErrArgument, "Embedding: bad argument: token 0 is -1, the table has 2 rows")(orNil(reference.Embedding(m(2, 3), []int{-1}))),
		refused(reference.ErrShape, "LayerNorm: shapes do not fit: x has no heads")(orNil(reference.LayerNorm(nil, nil, nil, 1))),
		refused(reference.ErrShape, "LayerNorm: shapes do not fit: weight is [1, 2], want [1, 3]")(orNil(reference.LayerNorm(x(2, 2, 3), m(1, 2), nil, 1))),
		refused(reference.ErrShape, "LayerNorm: shapes do not fit: bias is [2, 3], want [1, 3]")(orNil(reference.LayerNorm(x(2, 2, 3), nil, m(2, 3), 1))),
		refused(reference.ErrShape, "LayerNorm: shapes do not fit: bias: head 0 is empty")(orNil(reference.LayerNorm(x(2, 2, 3), nil, new(mat.Dense), 1))),
		refused(reference.ErrShape, "RMSNorm: shapes do not fit: weight is [1, 4], want [1, 3]")(orNil(reference.RMSNorm(x(2, 2, 3), m(1, 4), 1))),
		refused(reference.ErrArgument, "RMSNorm: bad argument: eps 0 is not a positive number")(orNil(reference.RMSNorm(x(2, 2, 3), nil, 0))),
		refused(reference.ErrArgument, "LayerNorm: bad argument: eps NaN is not a positive number")(orNil(reference.LayerNorm(x(2, 2, 3), nil, nil, math.NaN()))),
		refused(reference.ErrArgument, "LayerNorm: bad argument: eps +Inf is not a positive number")(orNil(reference.LayerNorm(x(2, 2, 3), nil, nil, math.Inf(1)))),
		refused(reference.ErrShape, "Activate: shapes do not fit: x has no heads")(orNil(reference.Activate(nil, reference.GELU))),
		refused(reference.ErrArgument, "Activate: bad argument: unknown activation 3")(orNil(reference.Activate(x(1, 1, 1), 3))),
		refused(reference.ErrShape, "Multiply: shapes do not fit: a [1, 2, 3] and b [1, 3, 2] differ")(orNil(reference.Multiply(x(1, 2, 3), x(1, 3, 2)))),
		refused(reference.ErrShape, "Multiply: shapes do not fit: a has no heads")(orNil(reference.Multiply(nil, x(1, 3, 2)))),
		refused(reference.ErrShape, "Multiply: shapes do not fit: b has no heads")(orNil(reference.Multiply(x(1, 3, 2), nil))),
	} {
		if c.err == nil || c.err.Error() != "reference: "+c.want || !errors.Is(c.err, c.kind) || c.got != nil {
			t.Errorf("got  %v, %v\nwant %s", c.got, c.err, c.want)
		}
	}
}

// refusal is what a refused call returned, and what it should have said.
type refusal struct {
	got       any
	err, kind error
	want      string
}

func refused(kind error, want string) func(got any, err error) refusal {
	return func(got any, err error) refusal { return refusal{got, err, kind, want} }
}
