package detect

import (
	"errors"
	"fmt"

	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/mat"
)

// ErrTooLittle is wrapped by errors about data from which nothing can be told; the message says what would be enough.
// Shapes and arguments that do not fit wrap [reference.ErrShape] and [reference.ErrArgument].
var ErrTooLittle = errors.New("too little data")

// Error is a refused call: what was asked, the kind of refusal and what did not fit.
type Error struct {
	Op     string
	Kind   error
	Detail string
}

func (e *Error) Error() string { return fmt.Sprintf("detect: %s: %v: %s", e.Op, e.Kind, e.Detail) }

// Unwrap lets errors.Is find the kind.
func (e *Error) Unwrap() error { return e.Kind }

func tooLittle(op, format string, args ...any) error {
	return &Error{op, ErrTooLittle, fmt.Sprintf(format, args...)}
}

func badShape(op, format string, args ...any) error {
	return &Error{op, reference.ErrShape, fmt.Sprintf(format, args...)}
}

func badArgument(op, format string, args ...any) error {
	return &Error{op, reference.ErrArgument, fmt.Sprintf(format, args...)}
}

// shape is what a Heads measures.
type shape struct{ heads, rows, dim int }

func (s shape) String() string { return fmt.Sprintf("[%d, %d, %d]", s.heads, s.rows, s.dim) }

// measure returns the shape of x, which must be at least one matrix, none nil or empty, all of one size.
func measure(op, name string, x reference.Heads) (shape, error) {
	if len(x) == 0 {
		return shape{}, badShape(op, "%s has no heads", name)
	}
	s := shape{heads: len(x)}
	for h, m := range x {
		if m == nil || m.IsEmpty() {
			return shape{}, badShape(op, "%s: head %d is empty", name, h)
		}
		rows, dim := m.Dims()
		if h == 0 {
			s.rows, s.dim = rows, dim
		}
		if rows != s.rows || dim != s.dim {
			return shape{}, badShape(op, "%s: head %d is [%d, %d], head 0 is [%d, %d]", name, h, rows, dim, s.rows, s.dim)
		}
	}
	return s, nil
}

// same measures two tensors that must have one shape.
func same(op, nameA string, a reference.Heads, nameB string, b reference.Heads) (shape, error) {
	as, err := measure(op, nameA, a)
	if err != nil {
		return shape{}, err
	}
	bs, err := measure(op, nameB, b)
	if err != nil {
		return shape{}, err
	}
	if as != bs {
		return shape{}, badShape(op, "%s %v and %s %v differ", nameA, as, nameB, bs)
	}
	return as, nil
}

// zeros returns a tensor of zeros.
func zeros(s shape) reference.Heads {
	out := make(reference.Heads, s.heads)
	for h := range out {
		out[h] = mat.NewDense(s.rows, s.dim, nil)
	}
	return out
}
