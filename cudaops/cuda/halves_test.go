//go:build cuda

package cuda

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/bound"
	"github.com/attnb/attnb/reference/parity"
	"gonum.org/v1/gonum/mat"
)

// hard are inputs that pairs of fp16 hold badly, or not at all: change is given q, k and v, [rows][dim] of normal values.
var hard = []struct {
	name   string
	plain  bool // the GPU must find out and compute in FFMA
	change func(q, k, v [][]float32)
}{
	{"normal", false, func(q, k, v [][]float32) {}},
	{"identity values, peaked scores", false, func(q, k, v [][]float32) {
		each(q, func(_, _ int, x *float32) { *x *= 12 })
		each(v, func(j, i int, x *float32) { *x = float32(flag(i == j%len(v[0]))) })
	}},
	{"heavy key of value 0", false, func(q, k, v [][]float32) {
		for i := range k[5] {
			k[5][i], v[5][i] = 0, 0
			for r := range q {
				q[r][i] = float32(math.Abs(float64(q[r][i])))
			}
			k[5][i] = 6
		}
	}},
	{"spread of 2^20 in keys and values", false, func(q, k, v [][]float32) {
		spread := func(j, i int, x *float32) { *x = float32(math.Ldexp(float64(*x), -(j*7+i)%21)) }
		each(k, spread)
		each(v, spread)
	}},
	{"spread of 2^60 in values", true, func(q, k, v [][]float32) {
		each(v, func(j, i int, x *float32) { *x = float32(math.Ldexp(float64(*x), -(j*7+i)%61)) })
	}},
	{"denormal values", true, func(q, k, v [][]float32) {
		each(v, func(_, _ int, x *float32) { *x *= 1e-39 })
	}},
	{"tiny keys and queries", false, func(q, k, v [][]float32) {
		each(k, func(_, _ int, x *float32) { *x *= 1e-38 })
		each(q, func(_, _ int, x *float32) { *x *= 1e-3 })
	}},
	{"great scores", true, func(q, k, v [][]float32) {
		each(k, func(_, _ int, x *float32) { *x *= 1e9 })
	}},
	{"a hidden NaN", true, func(q, k, v [][]float32) { k[len(k)-1][3], v[len(v)-1][7] = float32(math.NaN()), float32(math.Inf(1)) }},
}

func each(m [][]float32, f func(row, col int, x *float32)) {
	for r := range m {
		for c := range m[r] {
			f(r, c, &m[r][c])
		}
	}
}

// Every path stays within the bound of every cell on hard inputs, and takes the tensor cores where it may, and only there: the
// results are not those of FFMA where it does, and the same bits where it does not.
func TestHardInputs(t *testing.T) {
	b := openBackend(t, Options{})
	d := openDevice(t, b)
	if !b.gpu.hasTensorCores() {
		t.Skip("no tensor cores")
	}
	const queries, keys, dim = 40, 100, 64
	for _, c := range hard {
		t.Run(c.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(5, 6))
			q, k, v := random(r, queries, dim), random(r, keys, dim), random(r, keys, dim)
			c.change(q, k, v)
			mask := cudaops.Mask{Causal: true, Diagonal: keys - queries - 1} // the last key is hidden
			bq, bk, bv := leaf(q), leaf(k), leaf(v)
			want, err := bound.Attention(bq, bk, bv, 0.125, reference.Causal(mask.Diagonal))
			if err != nil {
				t.Fatal(err)
			}
			run := func(p Products, rows int) []float32 {
				b.products, b.prefillRows = p, rows
				var in []*cudaops.Buffer
				for _, x := range [][][]float32{q, k, v} {
					buf, err := d.Upload(slices.Concat(x...), 1, len(x), dim)
					if err != nil {
						t.Fatal(err)
					}
					defer buf.Release()
					in = append(in, buf)
				}
				res, err := d.Prefill(in[0], in[1], in[2], cudaops.Attention{Scale: 0.125, Mask: mask})
				if err != nil {
					t.Fatal(err)
				}
				defer res.Context.Release()
				out, err := d.Download(res.Context)
				if err != nil {
					t.Fatal(err)
				}
				report, err := parity.Compare(out, want.Value[0].RawMatrix().Data, want.Err[0].RawMatrix().Data)
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%s: %.3g of the bound", b.LastKernel(), report.MaxRatio)
				if !report.Pass {
					t.Errorf("%s: %+v", b.LastKernel(), report)
				}
				return out
			}
			plain := run(ProductsFFMA, 8)
			check := func(got []float32) {
				if same := equalBits(got, plain); same != c.plain {
					t.Errorf("%s: the bits of FFMA: %v, want %v", b.LastKernel(), same, c.plain)
				}
			}
			check(run(ProductsWarp, 8))
			if b.gpu.hasWarpgroups() {
				check(run(ProductsWarpgroup, 0))
			}
			run(ProductsWarp, 0) // prefill_once, which has limits, and a sum in FFMA, of its own
		})
	}
	b.products, b.prefillRows = ProductsAuto, 0
}

func random(r *rand.Rand, rows, cols int) [][]float32 {
	m := make([][]float32, rows)
	for i := range m {
		m[i] = make([]float32, cols)
	}
	each(m, func(_, _ int, x *float32) { *x = float32(r.NormFloat64()) })
	return m
}

func leaf(m [][]float32) bound.Heads {
	x := mat.NewDense(len(m), len(m[0]), nil)
	each(m, func(r, c int, v *float32) { x.Set(r, c, float64(*v)) })
	return bound.Leaf(reference.Heads{x})
}

func equalBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// What a kernel asks of shared memory is there on every generation with tensor cores, and the forced rows are had.
func TestChooseHalves(t *testing.T) {
	for _, shared := range []int{99 << 10, 163 << 10, 227 << 10} {
		g := gpu{major: 8, shared: shared - fixedShared, sms: 100}
		for _, dim := range []int{8, 64, 72, 128} {
			for _, rows := range []int{1, 64, 1000, 100000} {
				k, stages := chooseHalves(dim, rows, 8, g, 0)
				if stages == 0 || k.dim < dim || k.shared(stages) > g.shared {
					t.Errorf("%d KiB, dim %d: %+v with %d steps takes %d bytes", shared>>10, dim, k, stages, k.shared(stages))
				}
			}
		}
	}
	g := gpu{major: 9, shared: 226 << 10, sms: 132}
	for forced, rows := range map[int]int{8: 128, 4: 64, 2: 32} {
		if k, _ := chooseHalves(128, 1000, 1, g, forced); k.rows() != rows {
			t.Errorf("forced %d: %d rows", forced, k.rows())
		}
	}
	for _, dim := range halvesDims {
		if n := warpgroupKernel(dim).shared(); n > g.shared {
			t.Errorf("warpgroup kernel of dim %d takes %d bytes", dim, n)
		}
	}
}
