package bound

import (
	"math"

	"github.com/attnb/attnb/reference"
)

// Add is [reference.Add]. The sum of what came in is rounded once:
//
//	E = Ea + Eb + u (|a + b| + Ea + Eb)
//
// Sums of f32 are exact near 0, so nothing is added for denormals.
func Add(a, b Heads) (Heads, error) {
	as, err := measure("Add", "a", a)
	if err != nil {
		return Heads{}, err
	}
	if _, err := measure("Add", "b", b); err != nil {
		return Heads{}, err
	}
	sum, err := reference.Add(a.Value, b.Value)
	if err != nil {
		return Heads{}, err
	}
	out := Heads{sum, make(reference.Heads, as.heads)}
	for h := range sum {
		e := like(sum[h])
		e.Add(a.Err[h], b.Err[h])
		e.Apply(func(i, j int, in float64) float64 {
			return in + u*(math.Abs(sum[h].At(i, j))+in)
		}, e)
		out.Err[h] = e
	}
	return out, nil
}
