//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/optest"
)

func openDevice(t *testing.T, b *Backend) *cudaops.Device {
	d := cudaops.NewDevice(b)
	t.Cleanup(func() {
		if n := d.InUse(); n != 0 {
			t.Errorf("%d bytes are still in use", n)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func TestConformance(t *testing.T) {
	openBackend(t, Options{}).Close() // skips here, once, where there is no GPU
	optest.Run(t, func(t *testing.T) *cudaops.Device { return openDevice(t, openBackend(t, Options{})) })
}

// The suite again with each way to compute products forced.
func TestConformanceProducts(t *testing.T) {
	openBackend(t, Options{}).Close()
	for _, p := range []Products{ProductsFFMA, ProductsWarp, ProductsWarpgroup} {
		if emulated && p != ProductsWarp {
			continue // the suite's sizes are such that ProductsAuto is hardly anything but FFMA, and the emulator knows no warpgroups
		}
		t.Run(p.String(), func(t *testing.T) {
			optest.Run(t, func(t *testing.T) *cudaops.Device { return openDevice(t, openBackend(t, Options{Products: p})) })
		})
	}
}

// The suite again with each prefill kernel that the head dim allows.
func TestConformancePrefillRows(t *testing.T) {
	if emulated {
		t.Skip("the emulator runs every prefill kernel in TestEveryKernel, and this takes it a while")
	}
	openBackend(t, Options{}).Close()
	for _, p := range []Products{ProductsFFMA, ProductsWarp} {
		for _, rows := range []int{8, 4, 2} {
			t.Run(fmt.Sprint(p, rows), func(t *testing.T) {
				optest.Run(t, func(t *testing.T) *cudaops.Device {
					b := openBackend(t, Options{Products: p})
					b.prefillRows = rows
					return openDevice(t, b)
				})
			})
		}
	}
}

func TestInfo(t *testing.T) {
	b := openBackend(t, Options{})
	defer b.Close()
	info := b.Info()
	t.Logf("%+v", info)
	if info.Backend != "cuda" || !strings.Contains(info.Device, "compute capability") || info.MemoryTotal < 1<<30 {
		t.Errorf("%+v", info)
	}
}

func TestOpenOutOfRange(t *testing.T) {
	openBackend(t, Options{}).Close()
	for _, ordinal := range []int{-1, 64} {
		_, err := Open(ordinal, Options{})
		var none *UnavailableError
		if !errors.As(err, &none) || !strings.Contains(err.Error(), fmt.Sprintf("no GPU %d", ordinal)) {
			t.Errorf("Open(%d): %v", ordinal, err)
		}
	}
}

// Transfers around the size of a staging slot, at odd offsets.
func TestTransfers(t *testing.T) {
	b := openBackend(t, Options{})
	defer b.Close()
	const slot = slotBytes / 4
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1, 2, 3, 1000, slot - 1, slot, slot + 1, slots * slot, slots*slot + 1, 3*slots*slot + 77} {
		want := make([]float32, n)
		for i := range want {
			want[i] = r.Float32()
		}
		m, err := b.Alloc(n + 5)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Upload(m, 3, want); err != nil {
			t.Fatal(err)
		}
		got := make([]float32, n)
		if err := b.Download(got, m, 3); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d elements came back otherwise", n)
		}
		b.Free(m)
	}
}

// An allocation past the quota, or past the GPU, is refused, leaves what is resident intact, and frees make room again.
func TestOutOfMemory(t *testing.T) {
	b := openBackend(t, Options{Memory: 1 << 20})
	d := openDevice(t, b)
	data := []float32{1, 2, 3, 4}
	x, err := d.Upload(data, 1, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Upload(make([]float32, 1<<18), 1, 1<<9, 1<<9)
	var full *cudaops.MemoryError
	if !errors.As(err, &full) || full.Asked != 1<<20 || full.InUse != 16 {
		t.Errorf("got %v", err)
	}
	b.quota = 0
	const tooMuch = 1 << 42 // elements
	if _, err := b.Alloc(tooMuch); !errors.Is(err, cudaops.ErrOutOfMemory) {
		t.Errorf("Alloc(1<<42): %v", err)
	}
	if got, err := d.Download(x); err != nil || !slices.Equal(got, data) {
		t.Errorf("%v, %v", got, err)
	}
	if err := x.Release(); err != nil {
		t.Error(err)
	}
}

// What is held stays what it is when the rest is given back, also while work is queued; and there is room again.
func TestTrim(t *testing.T) {
	b := openBackend(t, Options{})
	d := openDevice(t, b)
	const n = 1 << 20
	data := make([]float32, n)
	for i := range data {
		data[i] = float32(i)
	}
	x, err := d.Upload(data, 1, 1<<10, 1<<10)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		sum, err := d.Add(x, x)
		if err != nil {
			t.Fatal(err)
		}
		again, err := d.Add(sum, x)
		if err != nil {
			t.Fatal(err)
		}
		if err := sum.Release(); err != nil { // in the order of the stream: the work that reads it may not have begun
			t.Fatal(err)
		}
		if err := b.Trim(); err != nil {
			t.Fatal(err)
		}
		got, err := d.Download(again)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range got {
			if v != 3*data[i] {
				t.Fatalf("element %d is %v, want %v", i, v, 3*data[i])
			}
		}
		if err := again.Release(); err != nil {
			t.Fatal(err)
		}
	}
	if n := b.InUse(); n != 4<<20 {
		t.Errorf("%d bytes in use", n)
	}
	if err := x.Release(); err != nil {
		t.Fatal(err)
	}
}

// The scratch of an op counts too: where it does not fit, the op fails whole.
func TestScratchOutOfMemory(t *testing.T) {
	b := openBackend(t, Options{})
	d := openDevice(t, b)
	q, err := d.Upload(make([]float32, 4*64), 4, 1, 64)
	if err != nil {
		t.Fatal(err)
	}
	before := d.InUse()
	b.quota = before + 4*4*64 // the result fits, the positions do not
	if _, err := d.RoPE(q, cudaops.RoPE{Rotary: 64, Base: 1e4, Positions: []int{5}}); !errors.Is(err, cudaops.ErrOutOfMemory) {
		t.Errorf("RoPE: %v", err)
	}
	if now := d.InUse(); now != before {
		t.Errorf("%d bytes in use, %d before", now, before)
	}
	b.quota = 0
	if err := q.Release(); err != nil {
		t.Error(err)
	}
}
