package host_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/host"
)

func normal(n int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

func upload(t testing.TB, d *cudaops.Device, h, s, dim int, seed uint64) *cudaops.Buffer {
	t.Helper()
	b, err := d.Upload(normal(h*s*dim, seed), h, s, dim)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func BenchmarkPrefill(b *testing.B) {
	for _, s := range []int{512, 1024} {
		b.Run(fmt.Sprintf("H12/d64/S%d", s), func(b *testing.B) {
			d := cudaops.NewDevice(host.New(host.Options{}))
			q, k, v := upload(b, d, 12, s, 64, 1), upload(b, d, 12, s, 64, 2), upload(b, d, 12, s, 64, 3)
			for b.Loop() {
				r, err := d.Prefill(q, k, v, cudaops.Attention{Scale: 1 / math.Sqrt(64), Mask: cudaops.Mask{Causal: true}})
				if err != nil {
					b.Fatal(err)
				}
				_ = r.Context.Release()
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	d := cudaops.NewDevice(host.New(host.Options{}))
	q, k, v := upload(b, d, 12, 1, 64, 1), upload(b, d, 12, 4096, 64, 2), upload(b, d, 12, 4096, 64, 3)
	for b.Loop() {
		r, err := d.Decode(q, k, v, 1/math.Sqrt(64))
		if err != nil {
			b.Fatal(err)
		}
		_ = r.Release()
	}
}

func BenchmarkSoftmax(b *testing.B) {
	d := cudaops.NewDevice(host.New(host.Options{}))
	x := upload(b, d, 12, 512, 512, 1)
	for b.Loop() {
		r, _, err := d.Softmax(x, cudaops.Mask{})
		if err != nil {
			b.Fatal(err)
		}
		_ = r.Release()
	}
}

func BenchmarkLinear(b *testing.B) {
	d := cudaops.NewDevice(host.New(host.Options{}))
	x, w := upload(b, d, 1, 512, 768, 1), upload(b, d, 1, 768, 768, 2)
	for b.Loop() {
		r, err := d.Linear(x, w, nil)
		if err != nil {
			b.Fatal(err)
		}
		_ = r.Release()
	}
}
