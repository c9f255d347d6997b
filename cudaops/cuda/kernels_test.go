//go:build cuda

package cuda

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/host"
)

// op runs something on a device with given inputs.
type op struct {
	name string
	in   [][3]int // shapes of the inputs
	do   func(d *cudaops.Device, in []*cudaops.Buffer) (*cudaops.Buffer, error)
}

// everyKernel has an op for each side of each choice between kernels.
func everyKernel() []op {
	var all []op
	for _, n := range []int{5, 8, 4096, 4097} {
		all = append(all, op{fmt.Sprintf("add %d", n), [][3]int{{2, 3, n}, {2, 3, n}}, func(d *cudaops.Device, in []*cudaops.Buffer) (*cudaops.Buffer, error) {
			return d.Add(in[0], in[1])
		}}, op{fmt.Sprintf("swap %d", n), [][3]int{{2, 3, n}}, func(d *cudaops.Device, in []*cudaops.Buffer) (*cudaops.Buffer, error) {
			return d.Swap(in[0])
		}})
	}
	all = append(all, modelOps()...)
	for _, rotary := range []int{2, 4, 6, 8, 128, 600, 1100} {
		for _, c := range []cudaops.Convention{cudaops.HalfSplit, cudaops.Interleaved} {
			for _, a := range []cudaops.Angle{cudaops.AngleFloat64, cudaops.AngleFloat32} {
				r := cudaops.RoPE{Rotary: rotary, Base: 1e4, Convention: c, Angle: a, Offset: 131071}
				all = append(all, op{fmt.Sprintf("rope %d %d %d", rotary, c, a), [][3]int{{3, 37, rotary + 4}}, func(d *cudaops.Device, in []*cudaops.Buffer) (*cudaops.Buffer, error) {
					return d.RoPE(in[0], r)
				}})
			}
		}
	}
	for _, s := range append(slices.Clone(softmaxes), softmaxKernel{width: 40000}) {
		for _, cols := range []int{s.width, s.width - 1} {
			for _, m := range []cudaops.Mask{{}, {Causal: true, Diagonal: cols/2 - 3}} {
				all = append(all, op{fmt.Sprintf("softmax %d %v", cols, m), [][3]int{{2, 5, cols}}, func(d *cudaops.Device, in []*cudaops.Buffer) (*cudaops.Buffer, error) {
					y, _, err := d.Softmax(in[0], m)
					return y, err
				}})
			}
		}
	}
	for _, s := range []int{1, 3, 8, 9, 48, 49, 130} {
		for _, k := range []int{37, 64, 1100} {
			all = append(all, op{fmt.Sprintf("scores %d %d", s, k), [][3]int{{4, s, k}, {2, 200, k}}, func(d *cudaops.Device, in []*cudaops.Buffer) (*cudaops.Buffer, error) {
				return d.Scores(in[0], in[1], 0.3)
			}}, op{fmt.Sprintf("linear %d %d", s, k), [][3]int{{1, s, k}, {1, 131, k}, {1, 1, 131}}, func(d *cudaops.Device, in []*cudaops.Buffer) (*cudaops.Buffer, error) {
				return d.Linear(in[0], in[1], in[2])
			}})
		}
	}
	for _, s := range []int{1, 48, 49} {
		for _, dim := range []int{37, 64, 128, 130} {
			all = append(all, op{fmt.Sprintf("context %d %d", s, dim), [][3]int{{4, s, 300}, {2, 300, dim}}, func(d *cudaops.Device, in []*cudaops.Buffer) (*cudaops.Buffer, error) {
				return d.Context(in[0], in[1])
			}})
		}
	}
	for _, dim := range []int{8, 16, 24, 40, 64, 72, 96, 100, 128, 130, 192, 200, 256} {
		scale := 1 / math.Sqrt(float64(dim))
		for _, heads := range []int{2, 4, 6, 10} {
			all = append(all, op{fmt.Sprintf("decode %d heads %d", dim, heads), [][3]int{{heads, 1, dim}, {2, 777, dim}, {2, 777, dim}}, func(d *cudaops.Device, in []*cudaops.Buffer) (*cudaops.Buffer, error) {
				return d.Decode(in[0], in[1], in[2], scale)
			}})
		}
		if dim == 64 || dim == 100 || dim == 200 {
			all = append(all, cellOps(dim, scale)...)
		}
		all = append(all, op{fmt.Sprintf("prefill %d", dim), [][3]int{{4, 150, dim}, {2, 333, dim}, {2, 333, dim}}, func(d *cudaops.Device, in []*cudaops.Buffer) (*cudaops.Buffer, error) {
			r, err := d.Prefill(in[0], in[1], in[2], cudaops.Attention{Scale: scale, Mask: cudaops.Mask{Causal: true, Diagonal: 333 - 150}})
			return r.Context, err
		}}, op{fmt.Sprintf("prefill once %d", dim), [][3]int{{4, 70, dim}, {2, 101, dim}, {2, 101, dim}}, func(d *cudaops.Device, in []*cudaops.Buffer) (*cudaops.Buffer, error) {
			r, err := d.Prefill(in[0], in[1], in[2], cudaops.Attention{Scale: scale, Mask: cudaops.Mask{Causal: true, Diagonal: 30}})
			return r.Context, err
		}})
	}
	return all
}

// raceOps is one small op for each kernel whose threads or blocks pass something to each other in a way of their own: racecheck takes a hundred
// times as long as other tools.
func raceOps() (all []op) {
	for _, dim := range []int{64, 128} {
		scale := 1 / math.Sqrt(float64(dim))
		for _, heads := range []int{1, 4} {
			all = append(all, op{fmt.Sprintf("decode %d heads %d", dim, heads), [][3]int{{heads, 1, dim}, {1, 150, dim}, {1, 150, dim}}, func(d *cudaops.Device, in []*cudaops.Buffer) (*cudaops.Buffer, error) {
				return d.Decode(in[0], in[1], in[2], scale)
			}})
		}
		all = append(all, op{fmt.Sprintf("prefill once %d", dim), [][3]int{{1, 70, dim}, {1, 70, dim}, {1, 70, dim}}, func(d *cudaops.Device, in []*cudaops.Buffer) (*cudaops.Buffer, error) {
			r, err := d.Prefill(in[0], in[1], in[2], cudaops.Attention{Scale: scale, Mask: cudaops.Mask{Causal: true}})
			return r.Context, err
		}})
	}
	for _, rows := range []int{1, 3} {
		all = append(all, op{fmt.Sprintf("linear %d", rows), [][3]int{{1, rows, 512}, {1, 70, 512}}, func(d *cudaops.Device, in []*cudaops.Buffer) (*cudaops.Buffer, error) {
			return d.Linear(in[0], in[1], nil)
		}})
	}
	for _, n := range []int{128, 5000} {
		all = append(all, op{fmt.Sprintf("layernorm %d", n), [][3]int{{1, 3, n}, {1, 1, n}, {1, 1, n}}, func(d *cudaops.Device, in []*cudaops.Buffer) (*cudaops.Buffer, error) {
			return d.LayerNorm(in[0], in[1], in[2], 1e-5)
		}}, op{fmt.Sprintf("softmax %d", n), [][3]int{{1, 3, n}}, func(d *cudaops.Device, in []*cudaops.Buffer) (*cudaops.Buffer, error) {
			y, _, err := d.Softmax(in[0], cudaops.Mask{})
			return y, err
		}})
	}
	return all
}

// Racecheck sees these alone (bench/gpu.sh).
func TestRaces(t *testing.T) {
	d := openDevice(t, openBackend(t, Options{}))
	h := cudaops.NewDevice(host.New(host.Options{}))
	for _, o := range raceOps() {
		want, err := o.result(h)
		if err != nil {
			t.Fatal(o.name, err)
		}
		got, err := o.result(d)
		if err != nil {
			t.Fatal(o.name, err)
		}
		if e := distance(got, want); !(e <= 1e-6) {
			t.Errorf("%s: relative L2 distance from the host backend is %g", o.name, e)
		}
	}
}

// modelOps has what a model has beside its attention.
func modelOps() (all []op) {
	for _, n := range []int{5, 8, 250, 512, 1024, 1027, 4097, 8192, 8200, 20001} {
		shapes := [][3]int{{2, 3, n}, {1, 1, n}, {1, 1, n}}
		all = append(all, op{fmt.Sprintf("multiply %d", n), [][3]int{{2, 3, n}, {2, 3, n}}, func(d *cudaops.Device, in []*cudaops.Buffer) (*cudaops.Buffer, error) {
			return d.Multiply(in[0], in[1])
		}}, op{fmt.Sprintf("embedding %d", n), [][3]int{{1, 7, n}}, func(d *cudaops.Device, in []*cudaops.Buffer) (*cudaops.Buffer, error) {
			return d.Embedding(in[0], []int{6, 0, 3, 3, 1})
		}}, op{fmt.Sprintf("layernorm %d", n), shapes, func(d *cudaops.Device, in []*cudaops.Buffer) (*cudaops.Buffer, error) {
			return d.LayerNorm(in[0], in[1], in[2], 1e-5)
		}}, op{fmt.Sprintf("rmsnorm %d", n), shapes, func(d *cudaops.Device, in []*cudaops.Buffer) (*cudaops.Buffer, error) {
			return d.RMSNorm(in[0], in[1], 1e-5)
		}})
		for a := cudaops.GELU; a <= cudaops.SiLU; a++ {
			all = append(all, op{fmt.Sprintf("activate %d %d", a, n), shapes[:1], func(d *cudaops.Device, in []*cudaops.Buffer) (*cudaops.Buffer, error) {
				return d.Activate(in[0], a)
			}})
		}
	}
	return all
}

// cellOps has LSE, and Pool of scores and probabilities with pools of many and of few rows and keys.
func cellOps(dim int, scale float64) (all []op) {
	queries, keys, results := 300, 1100, [][2]int{{2, 3}, {7, 30}, {150, 200}, {1, 1}, {300, 2}}
	if testing.Short() {
		queries, keys, results = 70, 150, [][2]int{{2, 3}, {7, 30}}
	}
	mask := cudaops.Mask{Causal: true, Diagonal: keys - queries - 30} // the last keys are hidden
	shapes := [][3]int{{4, queries, dim}, {2, keys, dim}}
	all = append(all, op{fmt.Sprintf("lse %d", dim), shapes, func(d *cudaops.Device, in []*cudaops.Buffer) (*cudaops.Buffer, error) {
		return d.LSE(in[0], in[1], scale, mask)
	}})
	for _, to := range results {
		for _, by := range []cudaops.Reduce{cudaops.Max, cudaops.Mean, cudaops.Min} {
			for _, probabilities := range []bool{false, true} {
				if by != cudaops.Mean && probabilities != (by == cudaops.Max) {
					continue
				}
				all = append(all, op{fmt.Sprintf("pool %d %v %d %v", dim, to, by, probabilities), shapes, func(d *cudaops.Device, in []*cudaops.Buffer) (*cudaops.Buffer, error) {
					var lse *cudaops.Buffer
					if probabilities {
						var err error
						if lse, err = d.LSE(in[0], in[1], scale, mask); err != nil {
							return nil, err
						}
						defer lse.Release()
					}
					return d.Pool(in[0], in[1], lse, cudaops.Pooling{Scale: scale, Mask: mask, Reduce: by, Rows: to[0], Cols: to[1]})
				}})
			}
		}
	}
	return append(all, variantOps()...)
}

func (o op) result(d *cudaops.Device) ([]float32, error) {
	r := rand.New(rand.NewPCG(7, 8))
	var in []*cudaops.Buffer
	for _, s := range o.in {
		x := make([]float32, s[0]*s[1]*s[2])
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		b, err := d.Upload(x, s[0], s[1], s[2])
		if err != nil {
			return nil, err
		}
		defer b.Release()
		in = append(in, b)
	}
	out, err := o.do(d, in)
	if err != nil {
		return nil, err
	}
	defer out.Release()
	return d.Download(out)
}

// way is one of several that an op can take.
type way struct {
	rows     int // of a thread
	products Products
}

// Each kernel is launched, and agrees with the host backend, which the conformance suite holds to the truth at smaller
// shapes. A GPU of few multiprocessors is pretended too: then each block has more to do, in turns. Run under
// compute-sanitizer, this test has it see every kernel.
func TestEveryKernel(t *testing.T) {
	b := openBackend(t, Options{})
	d := openDevice(t, b)
	h := cudaops.NewDevice(host.New(host.Options{}))
	missing := map[string]bool{}
	for name := range b.functions {
		missing[name] = true
	}
	b.launched = func(name string) { delete(missing, name) }
	sms := b.gpu.sms
	for i, o := range everyKernel() {
		if testing.Short() && i%7 != 0 { // a sample, for racecheck
			continue
		}
		want, err := o.result(h)
		if err != nil {
			t.Fatal(o.name, err)
		}
		ways, counts, scratches := []way{{0, ProductsAuto}}, []int{sms, 1}, []int64{cellScratch}
		limit := 1e-6
		if cells(o.name) {
			limit = 3e-6 // a few probabilities, each of which is as far off, relatively, as a score and a log are in all
			ways = []way{{0, ProductsFFMA}, {0, ProductsWarpgroup}}
			counts, scratches = []int{sms}, []int64{cellScratch, 1}
			if emulated {
				ways, scratches = ways[:1], []int64{200 << 10}
			}
		}
		if strings.HasPrefix(o.name, "scores") || strings.HasPrefix(o.name, "linear") {
			ways = append(ways, way{0, ProductsWarpgroup})
		}
		if strings.HasPrefix(o.name, "prefill") {
			counts = []int{sms}
			ways = []way{{8, ProductsFFMA}, {4, ProductsFFMA}, {2, ProductsFFMA}, {8, ProductsWarp}, {4, ProductsWarp}, {2, ProductsWarp}, {0, ProductsWarp}, {0, ProductsWarpgroup}}
		}
		for _, b.gpu.sms = range counts {
			for _, b.cellScratch = range scratches {
				for _, way := range ways {
					b.prefillRows, b.products = way.rows, way.products
					got, err := o.result(d)
					if err != nil {
						t.Fatal(o.name, err)
					}
					if e := distance(got, want); !(e <= limit) {
						t.Errorf("%s, %+v, multiprocessors %d, scratch %d: relative L2 distance from the host backend is %g", o.name, way, b.gpu.sms, b.cellScratch, e)
					}
				}
			}
		}
	}
	if !b.gpu.hasWarpgroups() {
		delete(missing, "halves_rows") // which only they use
	}
	for name := range missing {
		if testing.Short() {
			break
		}
		t.Errorf("kernel %s was not launched", name)
	}
}

// cells reports whether an op is one of [cellOps].
func cells(name string) bool {
	return strings.HasPrefix(name, "pool") || strings.HasPrefix(name, "lse")
}

// distance is ||got - want|| / ||want||.
func distance(got, want []float32) float64 {
	var diff, norm float64
	for i, w := range want {
		diff += (float64(got[i]) - float64(w)) * (float64(got[i]) - float64(w))
		norm += float64(w) * float64(w)
	}
	return math.Sqrt(diff / norm)
}

// A decode's blocks take every key once, and leave no more parts than there is room for.
func TestSplitKeys(t *testing.T) {
	for _, sms := range []int{1, 30, 132} {
		for resident := 1; resident <= decodePerSM; resident++ {
			slots := resident * sms
			for _, heads := range []int{1, 2, 3, 8, 32, 100, 131, 132, 133, 600, 5000} {
				for _, keys := range []int{1, 15, 16, 17, 127, 128, 129, 777, 1024, 8192, 65536, 1 << 20} {
					splits, each := splitKeys(keys, heads, slots)
					if splits*each < keys || (splits-1)*each >= keys || splits > 1 && splits*heads > decodePerSM*sms {
						t.Errorf("%d keys, %d heads, %d slots: %d splits of %d", keys, heads, slots, splits, each)
					}
				}
			}
		}
	}
}
