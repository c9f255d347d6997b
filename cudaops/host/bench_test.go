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

// One causal head of d 128: the log of the sums, then 512 x 512 means of probabilities, and a view of single cells.
func BenchmarkPool(b *testing.B) {
	const n, dim = 8192, 128
	d := cudaops.NewDevice(host.New(host.Options{}))
	q, k := upload(b, d, 1, n, dim, 1), upload(b, d, 1, n, dim, 2)
	scale, causal := 1/math.Sqrt(dim), cudaops.Mask{Causal: true}
	lse, err := d.LSE(q, k, scale, causal)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("LSE", func(b *testing.B) {
		for b.Loop() {
			l, err := d.LSE(q, k, scale, causal)
			if err != nil {
				b.Fatal(err)
			}
			_ = l.Release()
		}
	})
	for _, c := range []struct {
		name string
		by   cudaops.Reduce
		rows int // of the window, at the end
	}{{"mean", cudaops.Mean, n}, {"max", cudaops.Max, n}, {"window2048", cudaops.Mean, 2048}, {"window512", cudaops.Mean, 512}} {
		b.Run(c.name, func(b *testing.B) {
			rows, err := q.Rows(n-c.rows, n)
			if err != nil {
				b.Fatal(err)
			}
			keys, err := k.Rows(n-c.rows, n)
			if err != nil {
				b.Fatal(err)
			}
			sums, err := lse.Columns(n-c.rows, n)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				p, err := d.Pool(rows, keys, sums, cudaops.Pooling{Scale: scale, Mask: causal, Reduce: c.by, Rows: 512, Cols: 512})
				if err != nil {
					b.Fatal(err)
				}
				_ = p.Release()
			}
		})
	}
}
