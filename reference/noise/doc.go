// Package noise says how far a correct f32 result is from the truth as a whole, where package bound says how far a cell may be.
//
// The bounds take every rounding at its worst, all in one direction. They grow with the number n of terms of a sum, where its
// error grows with the root of n: over thousands of keys a result may be plainly wrong within them. Here the roundings are independent,
// with mean 0 and a standard deviation of u = 2^-24 relative to their result, which is twice what rounding to nearest has
// (Higham and Mary, "A new approach to probabilistic rounding error analysis", SIAM J. Sci. Comput. 41(5), 2019). So variances
// add up, and an op makes the variance of each element of its result from those of its inputs, to first order.
//
// The relative L2 error of a correct result is then near the root of the sum of the variances over the sum of the squared
// values, and [Limit] is a few times that. It is an estimate, not a bound: it takes the errors of different elements for independent, and
// the order of a sum for one that does not matter much.
//
// Inputs and results are as in package reference, with the values beside the variances. A value that is not finite has no error;
// what it reaches is not finite either.
package noise

import (
	"fmt"
	"math"

	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/mat"
)

const (
	u    = 0x1p-24  // standard deviation of a rounding, relative to its result
	tiny = 0x1p-126 // of a product that may be flushed to 0, absolutely
)

// Factor is how many times the expected error [Limit] allows. A result of few cells, and errors that are not quite
// independent, stay below it.
const Factor = 3

// Heads is a tensor and the variance of the error of each element.
type Heads struct{ Value, Var reference.Heads }

// Exact is a tensor without error: an f32 input.
func Exact(x reference.Heads) Heads {
	none := make(reference.Heads, len(x))
	for h, m := range x {
		rows, dim := m.Dims()
		none[h] = mat.NewDense(rows, dim, nil)
	}
	return Heads{x, none}
}

// Rounded is a tensor that was rounded to f32 once.
func Rounded(x reference.Heads) Heads {
	return Heads{x, each(x, func(v float64) float64 {
		if v-v != 0 {
			return 0
		}
		return u * u * v * v
	})}
}

func each(x reference.Heads, f func(v float64) float64) reference.Heads {
	out := make(reference.Heads, len(x))
	for h, m := range x {
		out[h] = new(mat.Dense)
		out[h].Apply(func(_, _ int, v float64) float64 { return f(v) }, m)
	}
	return out
}

// Limit is what the relative L2 error of got may be: Factor * sqrt(sum of variances / sum of want^2), over the elements where both
// sides are finite. It is 0 where nothing was rounded.
func Limit(got []float32, want, variance []float64) float64 {
	var off, size float64
	for i, w := range want {
		if g := float64(got[i]); g-g == 0 && w-w == 0 {
			off, size = off+variance[i], size+w*w
		}
	}
	if off == 0 {
		return 0
	}
	return Factor * math.Sqrt(off/size)
}

// cells is one head.
type cells struct{ value, variance *mat.Dense }

func (x Heads) head(h int) cells { return cells{x.Value[h], x.Var[h]} }

// shape measures a tensor and refuses one that is empty or whose matrices differ in size.
func (x Heads) shape(op, name string) (heads, rows, dim int, err error) {
	bad := &reference.Error{Op: op, Kind: reference.ErrShape, Detail: name + " is empty, or its matrices differ in size"}
	if len(x.Value) == 0 || len(x.Var) != len(x.Value) {
		return 0, 0, 0, bad
	}
	for h := range x.Value {
		for _, m := range []*mat.Dense{x.Value[h], x.Var[h]} {
			if m == nil || m.IsEmpty() {
				return 0, 0, 0, bad
			}
			r, d := m.Dims()
			if rows == 0 {
				rows, dim = r, d
			}
			if r != rows || d != dim {
				return 0, 0, 0, bad
			}
		}
	}
	return len(x.Value), rows, dim, nil
}

// unfit refuses shapes that do not go together.
func unfit(op string, shapes ...[3]int) error {
	return &reference.Error{Op: op, Kind: reference.ErrShape, Detail: fmt.Sprintf("shapes %v do not fit", shapes)}
}
