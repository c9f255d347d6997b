package chain

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/host"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
)

// bench is a client of a store that nobody serves.
type bench struct {
	*store.Client
	t *testing.T
}

// onBench begins with an empty store on the host. When the test ends nothing may be left on the device.
func onBench(t *testing.T) bench {
	t.Helper()
	d, s := cudaops.NewDevice(host.New(host.Options{Workers: 2})), store.New()
	t.Cleanup(func() {
		s.Clear()
		if n := d.InUse(); n != 0 {
			t.Errorf("%d bytes in use at the end", n)
		}
		d.Close()
	})
	return bench{store.NewClient(t.Context(), d, s), t}
}

// random are seeded values.
func (b bench) random(seed uint64, axes []string, shape ...int) wire.Tensor {
	b.t.Helper()
	n := 1
	for _, s := range shape {
		n *= s
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	values := make([]float32, n)
	for i := range values {
		values[i] = float32(rng.NormFloat64())
	}
	a, err := b.Leaf("FromSlice", store.Origin{Source: "FromSlice"}, shape, axes, store.FromSlice(values))
	if err != nil {
		b.t.Fatal(err)
	}
	return a.Tensors[0]
}

func (b bench) run(op wire.Op, p wire.Params, in ...wire.Tensor) []wire.Tensor {
	b.t.Helper()
	r := wire.Request{Kind: wire.KindRun, Op: op, Params: p}
	for _, x := range in {
		r.IDs = append(r.IDs, x.ID)
	}
	a, err := Run(b.Client, r)
	if err != nil {
		b.t.Fatal(err)
	}
	return a.Tensors
}

func (b bench) run1(op wire.Op, p wire.Params, in ...wire.Tensor) wire.Tensor {
	b.t.Helper()
	return b.run(op, p, in...)[0]
}

// nodeOf is a tensor's lineage.
func (b bench) nodeOf(x wire.Tensor) *store.Node {
	b.t.Helper()
	b.Store.Lock()
	defer b.Store.Unlock()
	found, err := b.Store.Get("test", x.ID)
	if err != nil {
		b.t.Fatal(err)
	}
	return found.Node
}

// replayed is a fresh replay of a tensor.
func (b bench) replayed(n *store.Node) (rep *Replay, done func()) {
	b.t.Helper()
	b.Store.Lock()
	defer b.Store.Unlock()
	rep, err := NewReplay("Check").Of(n)
	if err != nil {
		b.t.Fatal(err)
	}
	return rep, func() { rep.Close(b.Store) }
}

var (
	chainHSD    = []string{"heads", "seq", "dim"}
	chainSHD    = []string{"seq", "heads", "dim"}
	chainFused  = []string{"seq", "hidden"}
	chainCausal = wire.Params{Mask: wire.MaskCausal}
)

// Every part of every step of a chain is what it is of the whole.
func TestParts(t *testing.T) {
	c := onBench(t)
	rope := func(x wire.Tensor, p wire.Params) wire.Tensor { return c.run1(wire.OpRoPE, p, x) }
	for name, chain := range map[string]func() wire.Tensor{
		"fused to projected": func() wire.Tensor {
			x := c.run1(wire.OpLinear, wire.Params{}, c.random(1, chainFused, 7, 9), c.random(2, []string{"out", "in"}, 40, 9), c.random(3, []string{"out"}, 40))
			s := c.run(wire.OpSplit, wire.Params{Layout: wire.LayoutGrouped, Heads: 6, KVHeads: 2}, x)
			r := wire.Params{Rotary: 4, Offset: 3}
			o := c.run1(wire.OpPrefill, chainCausal, rope(s[0], r), rope(s[1], r), s[2])
			return c.run1(wire.OpAdd, wire.Params{}, c.run1(wire.OpLinear, wire.Params{}, c.run1(wire.OpMerge, wire.Params{}, o), c.random(5, []string{"out", "in"}, 9, 24)), c.random(6, chainFused, 7, 9))
		},
		"steps, rows major": func() wire.Tensor {
			r := wire.Params{Rotary: 8, Positions: []int{4, 0, 9, 2, 7}}
			q, k, v := rope(c.random(1, chainSHD, 5, 4, 8), r), c.random(2, chainSHD, 5, 2, 8), c.random(3, chainSHD, 5, 2, 8)
			s := c.run1(wire.OpScores, wire.Params{Mask: wire.MaskDiagonal, Diagonal: -1}, q, k)
			o := c.run1(wire.OpContext, wire.Params{}, c.run1(wire.OpSoftmax, wire.Params{}, s), v)
			return c.run1(wire.OpSwap, wire.Params{}, c.run1(wire.OpRows, wire.Params{Index: 1, Count: 3}, o))
		},
		"rows-major prefill": func() wire.Tensor {
			q, k, v := c.random(1, chainSHD, 5, 4, 8), c.random(2, chainSHD, 6, 2, 8), c.random(3, chainSHD, 6, 2, 8)
			return c.run1(wire.OpRows, wire.Params{Index: 2, Count: 2}, c.run1(wire.OpPrefill, chainCausal, rope(q, wire.Params{Rotary: 2}), k, v))
		},
		"cache": func() wire.Tensor {
			k := c.random(1, chainHSD, 2, 3, 4)
			for i := range 3 {
				k = c.run1(wire.OpAppend, wire.Params{}, k, rope(c.random(uint64(10+i), chainHSD, 2, 1+i, 4), wire.Params{Rotary: 4, Offset: 5 + i}))
			}
			return c.run1(wire.OpDecode, wire.Params{}, c.random(3, chainHSD, 4, 1, 4), k, c.run1(wire.OpRows, wire.Params{Count: 9}, c.run1(wire.OpAppend, wire.Params{}, k, k)))
		},
		"rows-major cache": func() wire.Tensor {
			k := c.run1(wire.OpAppend, wire.Params{}, c.random(1, chainSHD, 5, 2, 8), c.random(2, chainSHD, 2, 2, 8))
			return rope(k, wire.Params{Rotary: 4})
		},
		"one row of heads": func() wire.Tensor {
			k := c.random(1, chainSHD, 5, 2, 8)
			return c.run1(wire.OpDecode, wire.Params{}, c.random(3, []string{"heads", "dim"}, 4, 8), k, k)
		},
		"batch, head, turned": func() wire.Tensor {
			b := c.run1(wire.OpSoftmax, wire.Params{Mask: wire.MaskCausal}, c.random(1, []string{"batch", "heads", "seq", "dim"}, 2, 3, 4, 6))
			x := c.run1(wire.OpIndex, wire.Params{Axis: "batch", Index: 1}, b)
			x = c.run1(wire.OpIndex, wire.Params{Axis: "heads", Index: 2}, c.run1(wire.OpSwap, wire.Params{}, x))
			return c.run1(wire.OpHeads, wire.Params{Heads: 2}, c.run1(wire.OpSwap, wire.Params{}, x))
		},
		"one head of scores": func() wire.Tensor {
			s := c.run1(wire.OpScores, chainCausal, c.random(1, chainHSD, 3, 6, 4), c.random(2, chainHSD, 3, 7, 4))
			head := c.run1(wire.OpIndex, wire.Params{Axis: "heads", Index: 1}, s)
			return c.run1(wire.OpSoftmax, wire.Params{}, c.run1(wire.OpRows, wire.Params{Index: 1, Count: 4}, head))
		},
		"embedding to gated MLP": func() wire.Tensor {
			x := c.run1(wire.OpEmbedding, wire.Params{Tokens: []int{4, 0, 4, 2}}, c.random(1, chainFused, 5, 6))
			x = c.run1(wire.OpAdd, wire.Params{}, x, c.run1(wire.OpEmbedding, wire.Params{Tokens: []int{0, 1, 2, 3}}, c.run1(wire.OpSwap, wire.Params{}, c.random(2, chainFused, 6, 4))))
			n := c.run1(wire.OpRMSNorm, wire.Params{Eps: 1e-5}, x, c.random(3, []string{"dim"}, 6))
			up, gate := c.random(4, []string{"out", "in"}, 9, 6), c.random(5, []string{"out", "in"}, 9, 6)
			g := c.run1(wire.OpSiLU, wire.Params{}, c.run1(wire.OpLinear, wire.Params{}, n, gate))
			return c.run1(wire.OpMultiply, wire.Params{}, g, c.run1(wire.OpGELUTanh, wire.Params{}, c.run1(wire.OpLinear, wire.Params{}, n, up)))
		},
		"norms of heads": func() wire.Tensor {
			q := c.run1(wire.OpLayerNorm, wire.Params{Eps: 1e-5}, c.random(1, chainSHD, 5, 2, 8), c.random(2, []string{"dim"}, 8), c.random(3, []string{"dim"}, 8))
			q = c.run1(wire.OpSwap, wire.Params{}, c.run1(wire.OpLayerNorm, wire.Params{Eps: 1}, q))
			return c.run1(wire.OpGELU, wire.Params{}, c.run1(wire.OpRMSNorm, wire.Params{Eps: 0.1}, rope(q, wire.Params{Rotary: 4})))
		},
		"relabelled": func() wire.Tensor {
			return rope(c.run1(wire.OpAxes, wire.Params{Axes: chainSHD}, c.random(1, chainHSD, 5, 2, 4)), wire.Params{Rotary: 4, Offset: 1})
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := chain()
			root := c.nodeOf(x)
			whole, done := c.replayed(root)
			defer done()
			all, err := whole.Eval(t.Context(), c.Device, root)
			if err != nil {
				t.Fatal(err)
			}
			h, s, _ := store.Fold(root.Shape)
			for i := -1; i < h; i++ {
				for j := -1; j < s; j++ {
					rep, done := c.replayed(root)
					got, err := rep.EvalPart(t.Context(), c.Device, root, Row(i, j))
					done()
					if err != nil {
						t.Fatalf("part %d %d: %v", i, j, err)
					}
					want := cutTruth(all, Row(i, j))
					for k, pair := range [][2][]float64{{Flat(got.Value), Flat(want.Value)}, {Flat(got.Err), Flat(want.Err)}, {Flat(got.noise), Flat(want.noise)}} {
						if len(pair[0]) != len(pair[1]) {
							t.Fatalf("part %d %d: %d cells of %d", i, j, len(pair[0]), len(pair[1]))
						}
						for c := range pair[0] {
							if d := math.Abs(pair[0][c] - pair[1][c]); !(d <= 1e-12*math.Abs(pair[1][c])) {
								t.Fatalf("part %d %d, %d, cell %d: %v, of the whole %v", i, j, k, c, pair[0][c], pair[1][c])
							}
						}
					}
				}
			}
		})
	}
}
