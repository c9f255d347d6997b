package host_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/host"
	"github.com/attnb/attnb/cudaops/optest"
)

// TestConformance runs the whole suite on all kernels that the processor has, in memory that holds NaN.
func TestConformance(t *testing.T) {
	t.Cleanup(host.PoisonFreed())
	for _, kernels := range host.AllKernels() {
		t.Run(kernels.String(), func(t *testing.T) {
			optest.Run(t, func(t *testing.T) *cudaops.Device {
				d := cudaops.NewDevice(host.New(host.Options{Kernels: kernels}))
				t.Cleanup(func() {
					if err := d.Close(); err != nil {
						t.Error(err)
					}
				})
				return d
			})
		})
	}
}

// TestWorkersDoNotMatter compares every case of the suite, bit by bit, over worker counts.
func TestWorkersDoNotMatter(t *testing.T) {
	var want map[string][][]float32
	for _, workers := range []int{1, 2, 5} {
		got, err := optest.Results(cudaops.NewDevice(host.New(host.Options{Workers: workers})))
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
		}
		sameResults(t, fmt.Sprintf("%d workers", workers), got, want)
	}
}

// TestInterrupt stops long ops from another goroutine, once they told that they have begun.
func TestInterrupt(t *testing.T) {
	d := cudaops.NewDevice(host.New(host.Options{}))
	q, k := upload(t, d, 8, 4096, 64, 1), upload(t, d, 8, 4096, 64, 2) // seconds of work
	before := d.InUse()
	d.Interrupt() // no op runs: must not stop the next
	sum, err := d.Add(q, k)
	if err != nil {
		t.Fatal(err)
	}
	if err := sum.Release(); err != nil {
		t.Fatal(err)
	}
	if p := d.Progress(); p != 0 {
		t.Errorf("progress %v while nothing runs", p)
	}
	for name, op := range map[string]func() error{
		"Prefill": func() error {
			_, err := d.Prefill(q, k, k, cudaops.Attention{Scale: 0.125})
			return err
		},
		"LSE": func() error {
			_, err := d.LSE(q, k, 0.125, cudaops.Mask{})
			return err
		},
		"Pool": func() error {
			_, err := d.Pool(q, k, nil, cudaops.Pooling{Scale: 0.125, Rows: 3, Cols: 64})
			return err
		},
	} {
		done := make(chan error)
		go func() { done <- op() }()
		for ended := false; !ended; {
			select {
			case err := <-done:
				if !errors.Is(err, cudaops.ErrInterrupted) {
					t.Errorf("%s: %v, want interrupted", name, err)
				}
				if now := d.InUse(); now != before {
					t.Errorf("%s: %d bytes in use, %d before", name, now, before)
				}
				ended = true
			case <-time.After(time.Millisecond):
				if p := d.Progress(); p < 0 || p > 1 {
					t.Errorf("%s: progress %v", name, p)
				} else if p > 0 {
					d.Interrupt()
				}
			}
		}
	}
}

func TestBudget(t *testing.T) {
	b := host.New(host.Options{Memory: 100})
	m, err := b.Alloc(20)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Alloc(6); !errors.Is(err, cudaops.ErrOutOfMemory) {
		t.Errorf("80 and 24 bytes in 100: %v", err)
	}
	if _, err := b.Alloc(math.MaxInt / 4); !errors.Is(err, cudaops.ErrOutOfMemory) {
		t.Errorf("all of the address space: %v", err)
	}
	b.Free(m)
	if _, err := b.Alloc(25); err != nil {
		t.Errorf("an exact fit: %v", err)
	}
	if b.InUse() != 100 {
		t.Errorf("%d bytes in use, want 100", b.InUse())
	}
}

func TestInfo(t *testing.T) {
	info := host.New(host.Options{Memory: 1 << 30}).Info()
	if info.Backend != "host" || info.Device == "" || info.MemoryTotal != 1<<30 {
		t.Errorf("%+v", info)
	}
}
