package bound_test

import (
	"math"
	"testing"

	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/bound"
	"gonum.org/v1/gonum/mat"
)

const (
	u    = 0x1p-24
	tiny = 0x1p-126
)

func gamma(n float64) float64 { return n * u / (1 - n*u) }

// with is a 1 x n tensor of values, each off by up to the error beside it.
func with(pairs ...float64) bound.Heads {
	n := len(pairs) / 2
	value, err := mat.NewDense(1, n, nil), mat.NewDense(1, n, nil)
	for i := range n {
		value.Set(0, i, pairs[2*i])
		err.Set(0, i, pairs[2*i+1])
	}
	return bound.Heads{Value: reference.Heads{value}, Err: reference.Heads{err}}
}

// The bound of one cell of each op, worked out from its formula: wider would hide faults, narrower would raise false alarms.
func TestFormulas(t *testing.T) {
	const eps = 1e-6
	cell := func(x bound.Heads, err error) float64 {
		t.Helper()
		return must(t)(x, err).Err[0].At(0, 0)
	}
	rope := reference.RoPE{Rotary: 2, Base: 1e4, Offset: 1 << 20, Magnitude: 2}
	cos, sin := 2*math.Abs(math.Cos(1<<20)), 2*math.Abs(math.Sin(1<<20))
	turned := func(off float64) float64 {
		return (3+eps)*(cos*(1+7*u)+off)*(1+gamma(2)) - 3*cos + 5*(sin*(1+7*u)+off)*(1+gamma(2)) - 5*sin + 2*tiny
	}
	f32 := rope
	f32.Float32Angles = true               // an exact angle here
	weight := eps + 2*u + 4*u + 4*u + 10*u // score, base, argument, function, online
	other := 3*u + 4*u + 10*u
	total := 1 + math.Exp(1)
	grown := (weight+weight*weight)/total + (other+other*other)*math.Exp(1)/total
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"add", cell(bound.Add(with(3, eps), with(-5, 2*eps))), 3*eps + u*(2+3*eps)},
		{"scores", cell(bound.Scores(with(3, eps, 2, 0), with(5, 0, -1, 0), -0.25)), .25*((1+gamma(6))*(5*(3+eps)+2)-17) + tiny*(1.25*3+6)},
		{"linear", cell(bound.Linear(with(3, eps, 2, 0), with(5, 0, -1, 0), with(7, eps))), (1+gamma(3))*(5*(3+eps)+2+7+eps) - 24 + 2*tiny},
		{"linear without bias", cell(bound.Linear(with(3, eps), with(5, 0), bound.Heads{})), (1+gamma(2))*5*(3+eps) - 15 + tiny},
		{"context", cell(bound.Context(with(.5, eps, 0, 0, .25, 0), bound.Heads{
			Value: reference.Heads{mat.NewDense(3, 1, []float64{4, 9, -2})}, Err: reference.Heads{mat.NewDense(3, 1, []float64{0, 1, eps})}})),
			(1+gamma(6))*((.5+eps)*4+.25*(2+eps)) - 2.5 + 2*tiny},
		{"rope", cell(bound.ApplyRoPE(with(3, eps, 5, 0), rope)), turned(2 * (1 << 20) * 0x1p-49)},
		{"rope, f32 angles", cell(bound.ApplyRoPE(with(3, eps, 5, 0), f32)), turned(0)},
		{"softmax of one", cell(bound.Softmax(with(2, eps), nil)), 2*(eps+(2+4+10)*u) + 9*u},
		{"softmax", cell(bound.Softmax(with(2, eps, 3, 0), nil)), ((1+weight)*(1+grown)*(1+gamma(10)) - 1) / total},
		{"lse", cell(bound.LSE(with(2, eps, 3, 0), nil)), grown + 2*u + 8*u*math.Log1p(math.Exp(-1)) + 12*u + u},
		{"rounded leaf", bound.Leaf(reference.Heads{mat.NewDense(1, 1, []float64{1 + u/2})}).Err[0].At(0, 0), u / 2},
	} {
		if !(math.Abs(c.got-c.want) <= 1e-3*c.want) {
			t.Errorf("%s: bound %.6g, want %.6g", c.name, c.got, c.want)
		}
	}
}

// Behind the rotary elements errors are copied like the values.
func TestRoPECopiesErrors(t *testing.T) {
	x := must(t)(bound.ApplyRoPE(with(3, 1, 5, 2, 7, 3, 9, 0), reference.RoPE{Rotary: 2, Base: 1e4, Offset: 1}))
	if got := x.Err[0].RawRowView(0)[2:]; got[0] != 3 || got[1] != 0 {
		t.Errorf("errors %v, want 3 and 0", got)
	}
}

// Score errors that leave a probability undetermined give a bound of 1, never NaN or more.
func TestUndeterminedSoftmax(t *testing.T) {
	for _, e := range []float64{50, 1e4, math.Inf(1)} {
		p := must(t)(bound.Softmax(with(0, e, -2000, e), nil))
		for j := range 2 {
			if got := p.Err[0].At(0, j); !(got <= 1+gamma(10)) || !(got > 0) || j == 0 && got < 1 {
				t.Errorf("score error %v: bound of p[%d] is %v", e, j, got)
			}
		}
	}
}
