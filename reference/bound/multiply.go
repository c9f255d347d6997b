package bound

import (
	"math"

	"github.com/attnb/attnb/reference"
)

// Multiply is [reference.Multiply]. The product of what came in is rounded once:
//
//	E = (|a| + Ea)(|b| + Eb)(1 + u) - |a||b|
//
// and may be flushed to 0 where it is denormal.
func Multiply(a, b Heads) (Heads, error) {
	as, err := measure("Multiply", "a", a)
	if err != nil {
		return Heads{}, err
	}
	if _, err := measure("Multiply", "b", b); err != nil {
		return Heads{}, err
	}
	product, err := reference.Multiply(a.Value, b.Value)
	if err != nil {
		return Heads{}, err
	}
	out := Heads{product, make(reference.Heads, as.heads)}
	for h := range product {
		e := like(product[h])
		e.Apply(func(i, j int, _ float64) float64 {
			x, y := math.Abs(a.Value[h].At(i, j)), math.Abs(b.Value[h].At(i, j))
			return (x+a.Err[h].At(i, j))*(y+b.Err[h].At(i, j))*(1+u) - x*y + tiny
		}, e)
		out.Err[h] = e
	}
	return out, nil
}
