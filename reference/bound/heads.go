package bound

import (
	"fmt"
	"math"

	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/mat"
)

// Heads is a float64 tensor and, of the same shape, a bound on the error of each element of its f32 counterpart. Where a value
// is not finite its bound means nothing.
type Heads struct{ Value, Err reference.Heads }

// Leaf takes x as the start of a chain. Its error is what rounding x to f32 costs: 0 where x came from f32. It keeps x.
func Leaf(x reference.Heads) Heads {
	err := make(reference.Heads, len(x))
	for h, m := range x {
		if m == nil || m.IsEmpty() {
			continue // the op that reads it refuses it
		}
		err[h] = like(m)
		err[h].Apply(func(_, _ int, v float64) float64 { return math.Abs(v - float64(float32(v))) }, m)
	}
	return Heads{x, err}
}

// head is head h alone.
func (x Heads) head(h int) Heads {
	return Heads{x.Value[h : h+1], x.Err[h : h+1]}
}

// shape is what a Heads measures.
type shape struct{ heads, rows, dim int }

func (s shape) String() string { return fmt.Sprintf("[%d, %d, %d]", s.heads, s.rows, s.dim) }

// measure returns the shape of x, whose values and errors must all be matrices of one size.
func measure(op, name string, x Heads) (shape, error) {
	refuse := func(format string, args ...any) (shape, error) {
		return shape{}, &reference.Error{Op: op, Kind: reference.ErrShape, Detail: name + " " + fmt.Sprintf(format, args...)}
	}
	if len(x.Value) == 0 {
		return refuse("has no heads")
	}
	if len(x.Err) != len(x.Value) {
		return refuse("has %d heads of values and %d of errors", len(x.Value), len(x.Err))
	}
	s := shape{heads: len(x.Value)}
	for h := range x.Value {
		for _, m := range []*mat.Dense{x.Value[h], x.Err[h]} {
			if m == nil || m.IsEmpty() {
				return refuse("has an empty head %d", h)
			}
			rows, dim := m.Dims()
			if s.rows == 0 {
				s.rows, s.dim = rows, dim
			}
			if rows != s.rows || dim != s.dim {
				return refuse("has [%d, %d] in head %d, [%d, %d] before", rows, dim, h, s.rows, s.dim)
			}
		}
	}
	return s, nil
}

// group returns how many query heads share one KV head.
func group(op string, q, kv shape) (int, error) {
	if q.heads%kv.heads != 0 {
		return 0, &reference.Error{Op: op, Kind: reference.ErrShape,
			Detail: fmt.Sprintf("%d heads are no multiple of %d KV heads", q.heads, kv.heads)}
	}
	return q.heads / kv.heads, nil
}

// like is a matrix of zeros of the size of m.
func like(m *mat.Dense) *mat.Dense {
	rows, dim := m.Dims()
	return mat.NewDense(rows, dim, nil)
}
