package bound

import (
	"math"

	"github.com/attnb/attnb/reference"
)

const (
	steepest = 1.13 // of every activation
	curving  = 0.5  // half of the most that a slope changes a unit
)

// Activate is [reference.Activate]. An error of x comes through by the slope f' there, or at most by the steepest:
//
//	E = min(|f'(x)| Ex + Ex^2/2, 1.13 Ex) + 2^-121  +
//	    5u (|x| + Ex) + 3u |f|    GELU, GELUTanh: x/2 times an error of 1 + erf, and products
//	    12u |f|                   SiLU: exponential, sum, division
//
// 1 + erf(z) takes 2 ULP of erf, its slope times the roundings of z and one of the sum: 1.5u + 4u + 2u. tanh likewise, with 8
// roundings of its argument z: 8u z (1 - tanh^2 z), at most 3.6u. For x far below 0 that is an absolute error, since 1 + erf cancels
// there: so frameworks compute it. The e^-x of SiLU overflows where x / e^-x is not yet denormal, from 88.7 on: 2^-121.
func Activate(x Heads, a reference.Activation) (Heads, error) {
	s, err := measure("Activate", "x", x)
	if err != nil {
		return Heads{}, err
	}
	value, err := reference.Activate(x.Value, a)
	if err != nil {
		return Heads{}, err
	}
	out := Heads{value, make(reference.Heads, s.heads)}
	for h := range value {
		e := like(value[h])
		e.Apply(func(i, j int, _ float64) float64 {
			v, in, f := x.Value[h].At(i, j), x.Err[h].At(i, j), math.Abs(value[h].At(i, j))
			carried := min(math.Abs(a.Slope(v))*in+curving*in*in, steepest*in)
			f += carried
			if a == reference.SiLU {
				return carried + 12*u*f + 32*tiny
			}
			return carried + 5*u*(math.Abs(v)+in) + 3*u*f + 32*tiny
		}, e)
		out.Err[h] = e
	}
	return out, nil
}
