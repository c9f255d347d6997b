package noise

import (
	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/mat"
)

// Multiply is the variance of [reference.Multiply]: b^2 Va + a^2 Vb + Va Vb, and a rounding of the product.
func Multiply(a, b Heads) (reference.Heads, error) {
	product, err := reference.Multiply(a.Value, b.Value)
	if err != nil {
		return nil, err
	}
	return elementwise(product, func(h, i, j int, y float64) float64 {
		x, vx, z, vz := a.Value[h].At(i, j), a.Var[h].At(i, j), b.Value[h].At(i, j), b.Var[h].At(i, j)
		return z*z*vx + x*x*vz + vx*vz + u*u*y*y + tiny*tiny
	}), nil
}

// Activate is the variance of [reference.Activate]: f'^2 V, and of the roundings
//
//	u^2 (5 x^2 + 4 f^2)   GELU, GELUTanh: erf or tanh, 4u, times x/2; and of products
//	34 u^2 f^2            SiLU: exponential and division, 4u each, and the sum
func Activate(x Heads, a reference.Activation) (reference.Heads, error) {
	value, err := reference.Activate(x.Value, a)
	if err != nil {
		return nil, err
	}
	return elementwise(value, func(h, i, j int, f float64) float64 {
		v := x.Value[h].At(i, j)
		slope := a.Slope(v)
		carried := slope*slope*x.Var[h].At(i, j) + tiny*tiny
		if a == reference.SiLU {
			return carried + 34*u*u*f*f
		}
		return carried + u*u*(5*v*v+4*f*f)
	}), nil
}

// elementwise makes the variances of value; beside what is not finite they are 0.
func elementwise(value reference.Heads, f func(h, i, j int, y float64) float64) reference.Heads {
	return eachHead(len(value), func(h int) *mat.Dense {
		out := new(mat.Dense)
		out.Apply(func(i, j int, y float64) float64 {
			v := f(h, i, j, y)
			if v-v != 0 {
				return 0
			}
			return v
		}, value[h])
		return out
	})
}
