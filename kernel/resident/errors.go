package resident

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/wire"
)

// input is what an error may say about an op's input.
type input struct {
	arg  string // what the op calls it
	name string // what the user calls it; empty for an unnamed tensor
	meta
}

func (i input) String() string {
	if i.name == "" {
		return i.arg + ": " + shapeWords(i.shape, i.axes)
	}
	return fmt.Sprintf("%s: %q %s", i.arg, i.name, shapeWords(i.shape, i.axes))
}

// explain turns an error of the device into one for the user: the op and its inputs by the names and axes that they go by here.
func explain(op string, err error, inputs []input) error {
	var (
		known    *wire.Error
		fault    *faultAnswer
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
		return wire.Errorf(wire.BadInput, "%s: %s%s", op, bad.Reason, about(bad.Args, inputs))
	case errors.As(err, &released):
		return wire.Errorf(wire.Freed, "%s: a tensor was freed while in use", op)
	case errors.As(err, &memory):
		return wire.Errorf(wire.OutOfMemory, "%s: out of memory: %s asked for, %s in use%s", op, bytesWords(memory.Asked), bytesWords(memory.InUse), about(nil, inputs))
	case errors.As(err, &device):
		return &faultAnswer{wire.Errorf(wire.DeviceFault, "%s: device fault: %v", op, device.Err), op, device}
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

// about lists the inputs that an error names, or all of them where it names none.
func about(args []cudaops.Arg, inputs []input) string {
	var words []string
	for _, in := range inputs {
		named := len(args) == 0
		for _, a := range args {
			named = named || a.Name == in.arg
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

// bytesWords is "12 bytes", "1.5 KiB", "4.0 GiB".
func bytesWords(n int64) string {
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
