package reference

import (
	"errors"
	"fmt"
)

// The two kinds of refusal. Every error of this package wraps one of them.
var (
	ErrShape    = errors.New("shapes do not fit")
	ErrArgument = errors.New("bad argument")
)

// Error is a refused call: the op, the kind of refusal (ErrShape or ErrArgument) and what did not fit.
type Error struct {
	Op     string
	Kind   error
	Detail string
}

func (e *Error) Error() string { return fmt.Sprintf("reference: %s: %v: %s", e.Op, e.Kind, e.Detail) }

// Unwrap lets errors.Is find the kind.
func (e *Error) Unwrap() error { return e.Kind }

func badShape(op, format string, args ...any) error {
	return &Error{Op: op, Kind: ErrShape, Detail: fmt.Sprintf(format, args...)}
}

func badArgument(op, format string, args ...any) error {
	return &Error{Op: op, Kind: ErrArgument, Detail: fmt.Sprintf(format, args...)}
}
