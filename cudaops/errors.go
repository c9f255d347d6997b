package cudaops

import (
	"errors"
	"fmt"
	"strings"

	"github.com/attnb/attnb/cudaops/plan"
)

// What went wrong, for errors.Is. The typed errors below carry the details. Bad input is an [InputError].
var (
	ErrReleased    = errors.New("released")           // a buffer is used after its release, or released twice
	ErrClosed      = errors.New("device closed")      // the device is closed
	ErrOutOfMemory = errors.New("out of memory")      // the arrays of an op do not fit
	ErrUnsupported = errors.New("not supported here") // this backend cannot do it; the input is sound
	ErrInterrupted = errors.New("interrupted")        // stopped by Interrupt
	ErrDevice      = errors.New("device fault")       // the device failed; what it holds may be lost
)

// Arg is an argument of an op: its name and, for a buffer, its shape [H, S, D]. A caller that knows the argument by
// another name or shape may replace both before it shows the error.
type Arg struct {
	Name  string
	Shape []int
}

func (a Arg) String() string {
	if a.Shape == nil {
		return a.Name
	}
	return fmt.Sprintf("%s %v", a.Name, a.Shape)
}

// prefix is "Op: x [4 9 16], y [2 9 16]: ".
func prefix(op string, args []Arg) string {
	if len(args) == 0 {
		return op + ": "
	}
	names := make([]string, len(args))
	for i, a := range args {
		names[i] = a.String()
	}
	return op + ": " + strings.Join(names, ", ") + ": "
}

// InputError refuses the input of an op. Nothing was allocated, and the same call would fail on every backend.
type InputError struct {
	Op     string
	Args   []Arg  // the buffers that the reason is about
	Reason string // one line, which names no buffer
}

func (e *InputError) Error() string { return prefix(e.Op, e.Args) + e.Reason }

// ReleasedError reports a buffer that was used, or released again, after its last release. It is [ErrReleased].
type ReleasedError struct {
	Op   string
	Args []Arg // the one buffer
}

func (e *ReleasedError) Error() string { return prefix(e.Op, e.Args) + "used after its release" }

// Unwrap makes the error an ErrReleased.
func (e *ReleasedError) Unwrap() error { return ErrReleased }

// MemoryError reports an array that did not fit. Everything resident is intact. It is [ErrOutOfMemory].
type MemoryError struct {
	Op    string
	Asked int64 // bytes of the array that did not fit
	InUse int64 // bytes in use when it was asked for
	Err   error // what the backend said
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("%s: out of memory: %d bytes asked for, %d in use", e.Op, e.Asked, e.InUse)
}

// Unwrap makes the error an ErrOutOfMemory, and whatever else the backend said.
func (e *MemoryError) Unwrap() []error { return []error{ErrOutOfMemory, e.Err} }

// UnsupportedError reports sound input that this backend cannot serve. It is [ErrUnsupported].
type UnsupportedError struct {
	Op  string
	Err error // what the backend said
}

func (e *UnsupportedError) Error() string { return e.Op + ": " + e.Err.Error() }

// Unwrap makes the error an ErrUnsupported.
func (e *UnsupportedError) Unwrap() error { return e.Err }

// DeviceError reports a fault of the device. It is [ErrDevice]. Op is the op at which it showed: work is
// queued, so Err may name an earlier one.
type DeviceError struct {
	Op  string
	Err error
}

func (e *DeviceError) Error() string { return e.Op + ": device fault: " + e.Err.Error() }

// FailedOp is the op that the device failed in, as far as known: that of an error in the chain which has such a method, else Op.
func (e *DeviceError) FailedOp() string {
	var known interface{ FailedOp() string }
	if errors.As(e.Err, &known) {
		return known.FailedOp()
	}
	return e.Op
}

// Unwrap makes the error an ErrDevice, and whatever else the backend said.
func (e *DeviceError) Unwrap() []error { return []error{ErrDevice, e.Err} }

// reason is what a plan refuses, without the name of the plan: the op's own name stands before it.
func reason(err error) string {
	var p *plan.Error
	if errors.As(err, &p) {
		return p.Reason
	}
	return err.Error()
}

// backendError gives an error of the backend its type.
func backendError(op string, err error, asked, inUse int64) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrOutOfMemory):
		return &MemoryError{Op: op, Asked: asked, InUse: inUse, Err: err}
	case errors.Is(err, ErrUnsupported):
		return &UnsupportedError{Op: op, Err: err}
	case errors.Is(err, ErrInterrupted):
		return fmt.Errorf("%s: %w", op, err)
	}
	return &DeviceError{Op: op, Err: err}
}
