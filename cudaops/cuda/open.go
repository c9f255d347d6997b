//go:build cuda

package cuda

import (
	"fmt"
	"os"
	"runtime"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/kernels"
	"gorgonia.org/cu"
)

// Built reports whether this program holds the backend.
const Built = true

const (
	minVersion    = 12000 // CUDA 12.0, driver 525: the oldest that loads cubins of a 12.x compiler
	minCapability = 75
)

// Driver results that [probe] tells apart.
const (
	noDevice         = 100
	systemMismatch   = 803 // the library and the kernel's driver are of different versions
	poolsSupported   = cu.DeviceAttribute(115)
	sharedOptin      = cu.DeviceAttribute(97) // shared memory that a block may ask for
	sharedPerSM      = cu.DeviceAttribute(81) // and that all blocks of a multiprocessor share
	multiprocessors  = cu.DeviceAttribute(16)
	capabilityMajor  = cu.DeviceAttribute(75)
	capabilityMinor  = cu.DeviceAttribute(76)
	nonBlocking      = cu.StreamFlags(1)
	eventTimingOff   = cu.EventFlags(2)
	hiddenByVariable = "CUDA_VISIBLE_DEVICES"
)

// gpu is what is known of a GPU before it is opened.
type gpu struct {
	device       cu.Device
	name         string
	major, minor int
	sms          int
	shared       int // bytes of shared memory a block may ask for
	sharedSM     int // bytes of shared memory of a multiprocessor
	total        int64
	driver       int // CUDA version of the driver, 1000*major + 10*minor
}

// probe finds the GPU of the given number, or says why it cannot be used.
func probe(ordinal int) (gpu, error) {
	var g gpu
	status, why := openDriver()
	visible, limited := os.LookupEnv(hiddenByVariable)
	switch {
	case status == -1:
		return g, unavailable("no NVIDIA driver on this machine: %s", why)
	case status == noDevice && limited:
		return g, unavailable("no GPU is visible: %s is %q", hiddenByVariable, visible)
	case status == noDevice:
		return g, unavailable("an NVIDIA driver, but no GPU on this machine")
	case status == systemMismatch:
		return g, unavailable("the NVIDIA driver was updated while it was loaded: restart the machine (%s)", explain(status))
	case status != 0:
		return g, unavailable("the NVIDIA driver does not start: %s", explain(status))
	}
	if g.driver = cu.Version(); g.driver < minVersion {
		return g, unavailable("the NVIDIA driver is for CUDA %s; CUDA 12.0 (driver 525) or later is needed", version(g.driver))
	}
	count, err := cu.NumDevices()
	if err != nil {
		return g, unavailable("the NVIDIA driver does not count its GPUs: %s", explain(code(err)))
	}
	switch {
	case count == 0 && limited:
		return g, unavailable("no GPU is visible: %s is %q", hiddenByVariable, visible)
	case count == 0:
		return g, unavailable("an NVIDIA driver, but no GPU on this machine")
	case ordinal < 0 || ordinal >= count:
		return g, unavailable("no GPU %d: this machine shows %d, numbered from 0", ordinal, count)
	}
	if err := g.describe(ordinal); err != nil {
		return g, unavailable("GPU %d does not describe itself: %s", ordinal, explain(code(err)))
	}
	if 10*g.major+g.minor < minCapability {
		return g, unavailable("GPU %d, %s, has compute capability %d.%d; 7.5 or later is needed", ordinal, g.name, g.major, g.minor)
	}
	return g, nil
}

func version(v int) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }

func (g *gpu) describe(ordinal int) (err error) {
	if g.device, err = cu.GetDevice(ordinal); err != nil {
		return err
	}
	if g.name, err = g.device.Name(); err != nil {
		return err
	}
	if g.total, err = g.device.TotalMem(); err != nil {
		return err
	}
	for _, a := range []struct {
		to        *int
		attribute cu.DeviceAttribute
	}{{&g.major, capabilityMajor}, {&g.minor, capabilityMinor}, {&g.sms, multiprocessors}, {&g.shared, sharedOptin}, {&g.sharedSM, sharedPerSM}} {
		if *a.to, err = g.device.Attribute(a.attribute); err != nil {
			return err
		}
	}
	g.shared -= fixedShared
	return nil
}

const (
	blockShared = 1 << 10 // what a block takes besides what it asks for
	fixedShared = 1 << 10 // for a kernel's own arrays, beside what it asks for
	threadsSM   = 1024    // that run on a multiprocessor where each takes 64 registers
)

// startsEarly reports whether a kernel's blocks may come before the kernel before has ended: Hopper and later.
func (g gpu) startsEarly() bool { return g.major >= 9 }

// resident is how many blocks run on a multiprocessor at a time.
func (g gpu) resident(threads, shared int) int {
	return max(1, min(threadsSM/threads, g.sharedSM/(shared+blockShared)))
}

// Open opens the GPU of the given number. An [*UnavailableError] says why it cannot.
func Open(ordinal int, o Options) (cudaops.Backend, error) {
	b, err := open(ordinal, o)
	if err != nil {
		return nil, err
	}
	return b, nil
}

func open(ordinal int, o Options) (*Backend, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	g, err := probe(ordinal)
	if err != nil {
		return nil, err
	}
	if ok, err := g.device.Attribute(poolsSupported); err != nil || ok == 0 {
		return nil, unavailable("GPU %d, %s, has no stream-ordered memory", ordinal, g.name)
	}
	b := &Backend{gpu: g, quota: o.Memory, products: o.Products, blocks: map[pointer]int64{}, cellScratch: cellScratch}
	if err := b.start(); err != nil {
		_ = b.Close()
		return nil, unavailable("GPU %d, %s, cannot be opened: %s", ordinal, g.name, describe(err))
	}
	return b, nil
}

// start makes everything that the backend keeps. Where it fails, Close gives back what was made.
func (b *Backend) start() (err error) {
	if b.ctx, err = b.gpu.device.RetainPrimaryCtx(); err != nil {
		return err
	}
	b.retained = true
	if err := cu.SetCurrentContext(b.ctx); err != nil {
		return err
	}
	if b.pool, err = devicePool(b.gpu.device); err != nil {
		return err
	}
	if b.stream, err = cu.MakeStream(nonBlocking); err != nil {
		return err
	}
	b.streaming = true
	if err := b.stage.open(); err != nil {
		return err
	}
	if err := b.progress.open(); err != nil {
		return err
	}
	name := kernels.Name(b.gpu.major, b.gpu.minor)
	image, err := kernels.Image(name)
	if err != nil {
		return err
	}
	if b.module, err = cu.LoadData(string(image)); err != nil {
		return fmt.Errorf("kernels %s: %w", name, err)
	}
	if err := b.load(); err != nil {
		return err
	}
	return b.makeDecodeScratch()
}

// describe gives an error of the driver in the driver's words.
func describe(err error) string {
	if c := code(err); c >= 0 {
		return explain(c)
	}
	return err.Error()
}
