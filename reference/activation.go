package reference

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// Activation is what an MLP does to each element between its projections.
type Activation uint8

const (
	// GELU is x P(X <= x) of a normal X, x/2 (1 + erf(x/sqrt 2)) (Hendrycks and Gimpel, arXiv:1606.08415): GPT-NeoX, "gelu".
	GELU Activation = iota
	// GELUTanh is GELU with tanh(sqrt(2/pi) (x + 0.044715 x^3)) for erf(x/sqrt 2), by the same paper: GPT-2, "gelu_new".
	GELUTanh
	// SiLU is x / (1 + e^-x): Llama, "silu", "swish".
	SiLU
	activations
)

// Of is the value at x. An infinite x follows the formula: +Inf is kept, -Inf is NaN.
func (a Activation) Of(x float64) float64 {
	switch a {
	case GELUTanh:
		return x / 2 * (1 + math.Tanh(gelu*(x+cubic*x*x*x)))
	case SiLU:
		return x / (1 + math.Exp(-x))
	}
	return x / 2 * math.Erfc(-x/math.Sqrt2) // 1 + erf(z) without its cancellation
}

// Slope is the derivative at x. |Slope| is at most 1.13, and changes by less than 1 a unit of x.
func (a Activation) Slope(x float64) float64 {
	switch a {
	case GELUTanh:
		t := math.Tanh(gelu * (x + cubic*x*x*x))
		return (1+t)/2 + x/2*(1-t*t)*gelu*(1+3*cubic*x*x)
	case SiLU:
		s := 1 / (1 + math.Exp(-x))
		return s + x*s*(1-s)
	}
	return math.Erfc(-x/math.Sqrt2)/2 + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
}

var gelu = math.Sqrt(2 / math.Pi)

const cubic = 0.044715

// Activate is a of each element.
func Activate(x Heads, a Activation) (Heads, error) {
	in, err := measure("Activate", "x", x)
	if err != nil {
		return nil, err
	}
	if a >= activations {
		return nil, badArgument("Activate", "unknown activation %d", a)
	}
	out := make(Heads, in.heads)
	for h, m := range x {
		out[h] = new(mat.Dense)
		out[h].Apply(func(_, _ int, v float64) float64 { return a.Of(v) }, m)
	}
	return out, nil
}
