// Package cuda is the backend of [cudaops] on a CUDA GPU, through gorgonia.org/cu. It is compiled with the build tag cuda;
// without the tag [Open] says so and fails.
//
// Nothing of CUDA is needed to build it or to start a program that links it: package shim makes what the linker wants,
// and Open loads the driver's library at run time. The kernels are embedded ([kernels]).
//
// One stream carries all work, in order. An op checks what it can, queues its kernels and returns: an error of the device
// shows at the next Download or Sync (or at any later op), and names the op that was running. Such an error is for good:
// the CUDA context is dead, so is everything on the device, and only a new process can use the GPU again.
package cuda

import "fmt"

// Options configure a backend. Each zero value is a sound default.
type Options struct {
	Memory   int64    // bytes that the arrays may take together; 0: what the GPU has
	Products Products // how prefills are computed
}

// UnavailableError says, in one line, why no GPU can be used.
type UnavailableError struct{ Reason string }

func (e *UnavailableError) Error() string { return "cuda: " + e.Reason }

func unavailable(format string, args ...any) error {
	return &UnavailableError{fmt.Sprintf(format, args...)}
}

// FaultError is an error after which the GPU cannot be used by this process.
type FaultError struct {
	Op  string // the op that was running, as far as known
	Err error  // what the driver said
}

func (e *FaultError) Error() string { return fmt.Sprintf("%s failed on the GPU: %v", e.Op, e.Err) }

// FailedOp is Op.
func (e *FaultError) FailedOp() string { return e.Op }

// Unwrap returns what the driver said.
func (e *FaultError) Unwrap() error { return e.Err }
