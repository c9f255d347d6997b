//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/attnb/attnb/cudaops"
	"gorgonia.org/cu"
)

// Backend implements [cudaops.Backend].
type Backend struct {
	gpu       gpu
	ctx       cu.CUContext
	stream    cu.Stream
	module    cu.Module
	functions map[string]cu.Function
	pool      pool
	stage     staging
	progress  progress
	blocks    map[pointer]int64 // bytes of each allocation
	inUse     int64
	largest   int64 // bytes of the largest allocation since [Backend.LargestAllocation]
	quota     int64
	products  Products
	last      string // kernel launched last
	decodeScratch
	fault error // set for good by an error that kills the context

	retained, streaming bool

	launched    func(kernel string) // told of every launch, by tests
	cellScratch int64               // bytes that LSE and Pool take for a launch; tests make it small
	prefillRows int                 // forces a kernel of so many rows a thread; 0: the best
}

// Info describes the GPU.
func (b *Backend) Info() cudaops.Info {
	return cudaops.Info{
		Backend:     "cuda",
		Device:      fmt.Sprintf("%s, compute capability %d.%d, driver for CUDA %s", b.gpu.name, b.gpu.major, b.gpu.minor, version(b.gpu.driver)),
		MemoryTotal: b.gpu.total,
	}
}

// do runs f on a thread that has the context. The goroutine keeps the thread until f returns: a thread of its own for the
// context would cost a switch of threads, twice, for every op.
func (b *Backend) do(op string, f func() error) error {
	if b.fault != nil {
		return b.fault
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cu.SetCurrentContext(b.ctx); err != nil {
		return b.failed(op, err)
	}
	if err := f(); err != nil {
		return b.failed(op, err)
	}
	return nil
}

// inject may put a faulty op before the one that is queued, in programs that are built to test faults.
var inject func(*Backend)

// queue is do for an op whose work the device does later.
func (b *Backend) queue(op string, f func() error) error {
	if inject != nil {
		inject(b)
	}
	b.progress.next(op)
	return b.do(op, f)
}

// failed gives an error of the driver its meaning.
func (b *Backend) failed(op string, err error) error {
	var typed *cudaops.UnsupportedError
	if errors.Is(err, cudaops.ErrOutOfMemory) || errors.Is(err, cudaops.ErrUnsupported) || errors.As(err, &typed) {
		return err
	}
	c := code(err)
	switch {
	case c == int(cu.OutOfMemory):
		return fmt.Errorf("%w: %s", cudaops.ErrOutOfMemory, explain(c))
	case c < 0:
		return err
	case sticky(c):
		b.fault = &FaultError{Op: b.progress.running(op), Err: driverError(c)}
		return b.fault
	}
	return fmt.Errorf("%s: %w", op, driverError(c))
}

// sticky reports whether the context is dead after a result (CUDA driver API, CUresult: "the process must be terminated
// and relaunched").
func sticky(code int) bool {
	switch code {
	case int(cu.EccUncorrectable), int(cu.NvlinkUncorrectable), int(cu.IllegalAddress), int(cu.LaunchTimeout),
		int(cu.ContextIsDestroyed), int(cu.Assert), int(cu.HardwareStackError), int(cu.IllegalInstruction),
		int(cu.MisalignedAddress), int(cu.InvalidAddressSpace), int(cu.InvalidPc), int(cu.LaunchFailed):
		return true
	}
	return false
}

// Sync waits for the queued work.
func (b *Backend) Sync() error {
	return b.do("Sync", b.stream.Synchronize)
}

// Close gives everything back. Memory still allocated goes with the context.
func (b *Backend) Close() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var errs []error
	try := func(err error) {
		if err != nil && b.fault == nil { // after a fault every call fails
			errs = append(errs, driverError(code(err)))
		}
	}
	if b.streaming {
		try(cu.SetCurrentContext(b.ctx))
		try(b.stream.Synchronize())
		for p := range b.blocks {
			try(memFree(p, b.stream))
		}
		b.blocks, b.inUse = nil, 0
		try(b.stream.Synchronize())
		try(b.pool.trim())
		b.progress.close(try)
		b.stage.close(try)
		try(b.stream.Destroy())
	}
	if b.functions != nil {
		try(b.module.Unload())
	}
	if b.retained {
		try(b.gpu.device.ReleasePrimaryCtx())
	}
	b.retained, b.streaming, b.functions = false, false, nil
	if b.fault == nil {
		b.fault = fmt.Errorf("cuda: %w", cudaops.ErrClosed)
	}
	return errors.Join(errs...)
}
