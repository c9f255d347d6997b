//go:build cuda

package cuda

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/attnb/attnb/cudaops"
)

// BenchmarkModel times what a model has beside its attention, over rows of several widths, against the bytes that each op reads and writes. Inputs
// take turns, so that none is found in a cache.
func BenchmarkModel(b *testing.B) {
	back, err := open(0, Options{})
	if err != nil {
		b.Skip(err)
	}
	defer back.Close()
	const elements, sets = 1 << 25, 4 // 128 MiB each
	r := rand.New(rand.NewPCG(1, 2))
	values := make([]float32, elements)
	for i := range values {
		values[i] = float32(r.NormFloat64())
	}
	var in [sets]cudaops.Memory
	for i := range in {
		if in[i], err = back.Alloc(elements); err == nil {
			err = back.Upload(in[i], 0, values)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	out, err := back.Alloc(elements)
	if err != nil {
		b.Fatal(err)
	}
	for _, dim := range []int{128, 768, 4096, 16384} {
		view := func(m cudaops.Memory, rows int) cudaops.View {
			return cudaops.View{Mem: m, H: 1, S: rows, D: dim, HeadStride: rows * dim, RowStride: dim}
		}
		rows := elements / dim
		w := view(in[0], 1)
		tokens := make([]int, rows)
		for i := range tokens {
			tokens[i] = r.IntN(rows)
		}
		for _, o := range []struct {
			name    string
			streams int64 // arrays that are read and written
			do      func(x, y cudaops.View) error
		}{
			{"add", 3, func(x, y cudaops.View) error { return back.Add(view(out, rows), x, y) }},
			{"multiply", 3, func(x, y cudaops.View) error { return back.Multiply(view(out, rows), x, y) }},
			{"gelu", 2, func(x, _ cudaops.View) error { return back.Activate(view(out, rows), x, cudaops.GELU) }},
			{"gelutanh", 2, func(x, _ cudaops.View) error { return back.Activate(view(out, rows), x, cudaops.GELUTanh) }},
			{"silu", 2, func(x, _ cudaops.View) error { return back.Activate(view(out, rows), x, cudaops.SiLU) }},
			{"layernorm", 2, func(x, _ cudaops.View) error {
				return back.Norm(view(out, rows), x, w, w, cudaops.Norm{Centred: true, Epsilon: 1e-5})
			}},
			{"rmsnorm", 2, func(x, _ cudaops.View) error {
				return back.Norm(view(out, rows), x, w, cudaops.View{}, cudaops.Norm{Epsilon: 1e-5})
			}},
			{"embedding", 2, func(x, _ cudaops.View) error { return back.Embedding(view(out, rows), x, tokens) }},
		} {
			b.Run(fmt.Sprintf("%s/%d", o.name, dim), func(b *testing.B) {
				took, err := back.Elapsed(func() error {
					for i := range b.N {
						if err := o.do(view(in[i%sets], rows), view(in[(i+1)%sets], rows)); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(o.streams*4*elements)*float64(b.N)/took.Seconds()/1e12, "TB/s")
			})
		}
	}
}
