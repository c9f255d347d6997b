//go:build cuda

package cuda

import (
	"fmt"
	"time"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/kernels"
	"gorgonia.org/cu"
)

// Elapsed runs f and returns how long the device was busy, or waiting, between the first work that f queued and the last.
func (b *Backend) Elapsed(f func() error) (took time.Duration, err error) {
	err = b.do("Elapsed", func() error {
		var events [2]cu.Event
		for i := range events {
			if events[i], err = cu.MakeEvent(cu.DefaultEvent); err != nil {
				return err
			}
			defer cu.DestroyEvent(&events[i])
		}
		if err := events[0].Record(b.stream); err != nil {
			return err
		}
		if err := f(); err != nil {
			return fmt.Errorf("measured: %w", err)
		}
		if err := events[1].Record(b.stream); err != nil {
			return err
		}
		if err := events[1].Synchronize(); err != nil {
			return err
		}
		ms, err := events[0].Elapsed(events[1])
		took = time.Duration(ms * float64(time.Millisecond))
		return err
	})
	return took, err
}

// CopyDevice copies all of src to dst by the driver's own copy, as the yardstick for the kernels.
func (b *Backend) CopyDevice(dst, src cudaops.Memory) error {
	return b.queue("CopyDevice", func() error {
		n := min(dst.Len(), src.Len())
		return cu.MemcpyDtoDAsync(cu.DevicePtr(address(dst, 0)), cu.DevicePtr(address(src, 0)), 4*int64(n), b.stream)
	})
}

// LastKernel is the name of the kernel that was launched last: which of several ways the last op took.
func (b *Backend) LastKernel() string { return b.last }

// LargestAllocation is the bytes of the largest single allocation since the last call.
func (b *Backend) LargestAllocation() int64 {
	n := b.largest
	b.largest = 0
	return n
}

// Facts are what a measurement must name.
type Facts struct {
	GPU, Driver string
	Kernels     string  // SHA-256 of the kernel image in use
	FFMA        float64 // FLOP/s of plain f32 arithmetic, from the number of units and the highest clock
	L2          int64   // bytes
}

// Facts describes the GPU and the kernels in use.
func (b *Backend) Facts() (f Facts, err error) {
	err = b.do("Facts", func() error {
		const clockRate, l2Size = cu.DeviceAttribute(13), cu.DeviceAttribute(38)
		khz, err := b.gpu.device.Attribute(clockRate)
		if err != nil {
			return err
		}
		l2, err := b.gpu.device.Attribute(l2Size)
		if err != nil {
			return err
		}
		m, err := kernels.ReadManifest()
		if err != nil {
			return err
		}
		perSM := 128.0
		if b.gpu.major == 7 || b.gpu.major == 8 && b.gpu.minor == 0 {
			perSM = 64
		}
		f = Facts{
			GPU: b.gpu.name, Driver: "CUDA " + version(b.gpu.driver), Kernels: m.Images[kernels.Name(b.gpu.major, b.gpu.minor)],
			FFMA: 2 * perSM * float64(b.gpu.sms) * float64(khz) * 1e3, L2: int64(l2),
		}
		return nil
	})
	return f, err
}
