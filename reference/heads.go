package reference

import (
	"fmt"

	"gonum.org/v1/gonum/mat"
)

// Heads is a tensor [H, rows, dim]: one rows x dim matrix a head. A plain matrix is a list of one.
type Heads []*mat.Dense

// shape is what a Heads measures.
type shape struct{ heads, rows, dim int }

func (s shape) String() string { return fmt.Sprintf("[%d, %d, %d]", s.heads, s.rows, s.dim) }

// measure returns the shape of x, which must be at least one matrix, none nil or empty, all of one size. op and name
// say in the error whose argument it was.
func measure(op, name string, x Heads) (shape, error) {
	if len(x) == 0 {
		return shape{}, badShape(op, "%s has no heads", name)
	}
	var s shape
	for h, m := range x {
		if m == nil || m.IsEmpty() {
			return shape{}, badShape(op, "%s: head %d is empty", name, h)
		}
		rows, dim := m.Dims()
		if h == 0 {
			s = shape{len(x), rows, dim}
		}
		if rows != s.rows || dim != s.dim {
			return shape{}, badShape(op, "%s: head %d is [%d, %d], head 0 is [%d, %d]", name, h, rows, dim, s.rows, s.dim)
		}
	}
	return s, nil
}

// zeros returns a tensor of zeros.
func zeros(s shape) Heads {
	out := make(Heads, s.heads)
	for h := range out {
		out[h] = mat.NewDense(s.rows, s.dim, nil)
	}
	return out
}

// group returns how many query heads share one KV head.
func group(op string, q, kv shape, queryName, kvName string) (int, error) {
	if q.heads%kv.heads != 0 {
		return 0, badShape(op, "%s %v has %d heads, no multiple of the %d of %s %v",
			queryName, q, q.heads, kv.heads, kvName, kv)
	}
	return q.heads / kv.heads, nil
}
