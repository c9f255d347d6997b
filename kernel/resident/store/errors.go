package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/wire"
)

// Input is what an error may say about an op's input.
type Input struct {
	Arg  string // what the op calls it
	Name string // what the user calls it; empty for an unnamed tensor
	Meta
}

// String is the input by both names, with its shape: `x: "q" [heads 4, seq 9, dim 16]`.
func (i Input) String() string {
	if i.Name == "" {
		return i.Arg + ": " + ShapeWords(i.Shape, i.Axes)
	}
	return fmt.Sprintf("%s: %q %s", i.Arg, i.Name, ShapeWords(i.Shape, i.Axes))
}

// Explain turns an error of the device into one for the user: the op and its inputs by the names and axes that they go by here.
func Explain(op string, err error, inputs []Input) error {
	var (
		known    *wire.Error
		fault    *DeviceFault
		bad      *cudaops.InputError
		released *cudaops.ReleasedError
		memory   *cudaops.MemoryError
		device   *cudaops.DeviceError

		unsupported *cudaops.UnsupportedError
	)
	switch {
	case errors.As(err, &fault):
		return fault
	case errors.As(err, &known):
		return known
	case errors.As(err, &bad):
		return wire.Errorf(wire.BadInput, "%s: %s%s", op, bad.Reason, About(bad.Args, inputs))
	case errors.As(err, &released):
		return wire.Errorf(wire.Freed, "%s: a tensor was freed while in use", op)
	case errors.As(err, &memory):
		return wire.Errorf(wire.OutOfMemory, "%s: out of memory: %s asked for, %s in use%s", op, BytesWords(memory.Asked), BytesWords(memory.InUse), About(nil, inputs))
	case errors.As(err, &device):
		return &DeviceFault{wire.Errorf(wire.DeviceFault, "%s: device fault: %v", op, device.Err), op, device}
	case errors.Is(err, cudaops.ErrInterrupted), errors.Is(err, context.Canceled):
		return wire.Errorf(wire.Refused, "%s: interrupted", op)
	case errors.Is(err, cudaops.ErrUnsupported):
		for errors.As(err, &unsupported) { // which names the op again
			err = unsupported.Err
		}
		return wire.Errorf(wire.Refused, "%s: %v", op, err)
	}
	return wire.Errorf(wire.Internal, "%s: %v", op, err)
}

// About lists the inputs that an error names, or all of them where it names none.
func About(args []cudaops.Arg, inputs []Input) string {
	var words []string
	for _, in := range inputs {
		named := len(args) == 0
		for _, a := range args {
			named = named || a.Name == in.Arg
		}
		if named {
			words = append(words, in.String())
		}
	}
	if len(words) == 0 {
		return ""
	}
	return " (" + strings.Join(words, ", ") + ")"
}

// BytesWords is "12 bytes", "1.5 KiB", "4.0 GiB".
func BytesWords(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d bytes", n)
	}
	units := []string{"KiB", "MiB", "GiB", "TiB"}
	v, u := float64(n)/1024, 0
	for v >= 1024 && u+1 < len(units) {
		v, u = v/1024, u+1
	}
	return fmt.Sprintf("%.1f %s", v, units[u])
}

// DeviceFault is the error of a request at which a fault of the device showed.
type DeviceFault struct {
	Answer *wire.Error          // what the client is told
	Op     string               // the request's
	Cause  *cudaops.DeviceError // what the device said
}

// Error is what the client is told.
func (e *DeviceFault) Error() string { return e.Answer.Message }

// Unwrap is what the client is told, with its code.
func (e *DeviceFault) Unwrap() error { return e.Answer }
