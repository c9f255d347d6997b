package host_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/host"
	"github.com/attnb/attnb/cudaops/optest"
)

func sameResults(t *testing.T, what string, got, want map[string][][]float32) {
	t.Helper()
	for name, out := range want {
		for i := range out {
			for j, x := range out[i] {
				if y := got[name][i][j]; math.Float32bits(x) != math.Float32bits(y) {
					t.Fatalf("%s: %s: output %d, element %d is %v, was %v", what, name, i, j, y, x)
				}
			}
		}
	}
}

// TestVectorsAgree compares every case of the suite, bit by bit, over widths of vectors.
func TestVectorsAgree(t *testing.T) {
	var want map[string][][]float32
	for _, k := range host.AllKernels() {
		if k.String() == "plain" {
			continue // has no fused multiply-add
		}
		got, err := optest.Results(cudaops.NewDevice(host.New(host.Options{Kernels: k})))
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
		}
		sameResults(t, k.String(), got, want)
	}
}

// TestRowsAlone compares the rows of a prefill, bit by bit, with the same rows in other company, alone, and as decode steps.
func TestRowsAlone(t *testing.T) {
	bias := func(s, n int, r uint64) []float32 {
		x := normal(s*n, r)
		for i := range x {
			x[i] *= 3
		}
		return x
	}
	allowed := func(s, n int, r uint64) []float32 {
		x := normal(s*n, r)
		for i, v := range x {
			x[i] = 0
			if v > -0.5 {
				x[i] = 1
			}
		}
		return x
	}
	for _, k := range host.AllKernels() {
		d := cudaops.NewDevice(host.New(host.Options{Kernels: k}))
		for _, c := range []struct {
			h, kv, s, t, dim int
			mask             cudaops.Mask
			variant          cudaops.Variant
			bias, allowed    bool
			sinks            bool
			bad              int // values of keys from it on are NaN
		}{
			{h: 2, kv: 1, s: 70, t: 70, dim: 16, mask: cudaops.Mask{Causal: true}},
			{h: 2, kv: 2, s: 33, t: 200, dim: 7, mask: cudaops.Mask{Causal: true, Diagonal: 167}},
			{h: 2, kv: 1, s: 20, t: 1100, dim: 65, mask: cudaops.Mask{}},
			{h: 1, kv: 1, s: 130, t: 130, dim: 9, mask: cudaops.Mask{Causal: true}, bad: 100},
			{h: 1, kv: 1, s: 100, t: 300, dim: 24, mask: cudaops.Mask{Causal: true, Diagonal: 200, Window: 77}},
			{h: 2, kv: 1, s: 66, t: 90, dim: 12, mask: cudaops.Mask{Documents: []int{31, 40, 19}, PadLeft: 3, PadRight: 2}, sinks: true},
			{h: 2, kv: 2, s: 65, t: 150, dim: 8, mask: cudaops.Mask{Causal: true, Diagonal: 85}, bias: true, allowed: true, variant: cudaops.Variant{Softcap: 5}},
			{h: 2, kv: 1, s: 17, t: 120, dim: 8, mask: cudaops.Mask{Causal: true, Diagonal: 103}, allowed: true, sinks: true, bad: 110, variant: cudaops.Variant{Slopes: []float64{0.5, 0.25}}},
		} {
			t.Run(fmt.Sprintf("%v/%+v", k, c), func(t *testing.T) {
				q, keys := upload(t, d, c.h, c.s, c.dim, 1), upload(t, d, c.kv, c.t, c.dim, 2)
				x := normal(c.kv*c.t*c.dim, 3)
				for i := range x {
					if at := i / c.dim % c.t; c.bad > 0 && at >= c.bad {
						x[i] = float32(math.NaN())
					}
				}
				values := must(d.Upload(x, c.kv, c.t, c.dim))(t)
				var b, a *cudaops.Buffer
				if c.bias {
					b = must(d.Upload(bias(c.s, c.t, 4), 1, c.s, c.t))(t)
				}
				if c.allowed {
					a = must(d.Upload(allowed(c.s, c.t, 5), 1, c.s, c.t))(t)
				}
				if c.sinks {
					c.variant.Sinks = must(d.Upload(normal(c.h, 6), 1, 1, c.h))(t)
				}
				prefill := func(from, to int) (context, lse []float32) {
					part := func(x *cudaops.Buffer) *cudaops.Buffer {
						if x == nil {
							return nil
						}
						return must(x.Rows(from, to))(t)
					}
					v, m := c.variant, c.mask
					v.Bias, v.Allowed = part(b), part(a)
					m.Diagonal += from
					r, err := d.Prefill(part(q), keys, values, cudaops.Attention{Scale: 0.4, Mask: m, Variant: v, LSE: true})
					if err != nil {
						t.Fatal(err)
					}
					return must(d.Download(r.Context))(t), must(d.Download(r.LSE))(t)
				}
				context, lse := prefill(0, c.s)
				for _, size := range []int{1, 2, 15, 64} {
					for from := 0; from < c.s; from += size {
						to := min(from+size, c.s)
						n := to - from
						gotContext, gotLSE := prefill(from, to)
						for h := range c.h {
							sameBits(t, fmt.Sprintf("context of rows %d to %d, head %d", from, to, h), gotContext[h*n*c.dim:(h+1)*n*c.dim], context[(h*c.s+from)*c.dim:(h*c.s+to)*c.dim])
							sameBits(t, fmt.Sprintf("LSE of rows %d to %d, head %d", from, to, h), gotLSE[h*n:(h+1)*n], lse[h*c.s+from:h*c.s+to])
						}
					}
				}
			})
		}
	}
}

func sameBits(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

func must[T any](x T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
}

// TestDecodeIsPrefill compares decode steps, bit by bit, with the last row of a prefill.
func TestDecodeIsPrefill(t *testing.T) {
	for _, k := range host.AllKernels() {
		for _, workers := range []int{1, 3} {
			d := cudaops.NewDevice(host.New(host.Options{Kernels: k, Workers: workers}))
			for _, n := range []int{2, 63, 64, 65, 129, 511, 513, 1537} {
				for _, dim := range []int{1, 3, 8, 17, 64, 80, 130} {
					q, keys, values := upload(t, d, 4, 2, dim, 1), upload(t, d, 2, n, dim, 2), upload(t, d, 2, n, dim, 3)
					r, err := d.Prefill(q, keys, values, cudaops.Attention{Scale: 0.3, Mask: cudaops.Mask{Causal: true, Diagonal: n - 2}})
					if err != nil {
						t.Fatal(err)
					}
					want := must(d.Download(must(r.Context.Rows(1, 2))(t)))(t)
					got := must(d.Download(must(d.Decode(must(q.Rows(1, 2))(t), keys, values, 0.3))(t)))(t)
					sameBits(t, fmt.Sprintf("%v, %d workers, %d keys, dim %d", k, workers, n, dim), got, want)
				}
			}
		}
	}
}

// TestLinearRowsAlone does the same for a linear layer.
func TestLinearRowsAlone(t *testing.T) {
	for _, k := range host.AllKernels() {
		d := cudaops.NewDevice(host.New(host.Options{Kernels: k}))
		for _, in := range []int{1, 7, 64, 255, 257, 700} {
			const rows, out = 67, 300
			x, w, b := upload(t, d, 1, rows, in, 1), upload(t, d, 1, out, in, 2), upload(t, d, 1, 1, out, 3)
			want := must(d.Download(must(d.Linear(x, w, b))(t)))(t)
			for _, size := range []int{1, 3, 4, 66} {
				for from := 0; from < rows; from += size {
					to := min(from+size, rows)
					got := must(d.Download(must(d.Linear(must(x.Rows(from, to))(t), w, b))(t)))(t)
					sameBits(t, fmt.Sprintf("%v, %d inputs, rows %d to %d", k, in, from, to), got, want[from*out:to*out])
				}
			}
		}
	}
}
