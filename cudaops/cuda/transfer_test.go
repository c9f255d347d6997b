//go:build cuda

package cuda

import (
	"slices"
	"testing"
	"time"
	"unsafe"

	"gorgonia.org/cu"
)

// BenchmarkTransfer times 64 MiB from Go's memory to the GPU and back, and, in turns with it, as much between pinned memory and the GPU, in the
// same pieces: what the bus allows.
func BenchmarkTransfer(b *testing.B) {
	back, err := open(0, Options{})
	if err != nil {
		b.Skip(err)
	}
	defer back.Close()
	const elements = 1 << 24
	m, err := back.Alloc(elements)
	if err != nil {
		b.Fatal(err)
	}
	values := make([]float32, elements)
	for i := range values {
		values[i] = float32(i)
	}
	pinned := func(up bool) func() error {
		return func() error {
			return back.do("Transfer", func() error {
				for at := 0; at < 4*elements; at += slotBytes {
					host, device := unsafe.Pointer(unsafe.SliceData(back.stage.memory[at%(slots*slotBytes):])), cu.DevicePtr(address(m, at/4))
					var err error
					if up {
						err = cu.MemcpyHtoDAsync(device, host, slotBytes, back.stream)
					} else {
						err = cu.MemcpyDtoHAsync(host, device, slotBytes, back.stream)
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	ways := []struct {
		name string
		do   func() error
		took []time.Duration
	}{
		{"upload", func() error { return back.Upload(m, 0, values) }, nil},
		{"pinned-upload", pinned(true), nil},
		{"download", func() error { return back.Download(values, m, 0) }, nil},
		{"pinned-download", pinned(false), nil},
	}
	for b.Loop() {
		for i := range ways {
			w := &ways[i]
			began := time.Now()
			if err := w.do(); err != nil {
				b.Fatal(err)
			}
			if err := back.Sync(); err != nil {
				b.Fatal(err)
			}
			w.took = append(w.took, time.Since(began))
		}
	}
	for _, w := range ways {
		slices.Sort(w.took)
		b.ReportMetric(4*elements/w.took[len(w.took)/2].Seconds()/1e9, "GB/s-"+w.name)
	}
}
