package resident

import (
	"math"
	"strings"
	"testing"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/host"
	"github.com/attnb/attnb/kernel/wire"
)

// tight serves with so small a budget that nearly everything is looked at in a sample.
func tight(t *testing.T, b cudaops.Backend, budget Budget) *process {
	t.Helper()
	return startWith(t, b, func(o *Options) { o.Budget = budget })
}

// nodeOf is a tensor's lineage.
func (p *process) nodeOf(x wire.Tensor) *node {
	p.s.store.mu.Lock()
	defer p.s.store.mu.Unlock()
	return p.s.store.tensors[x.ID].node
}

// replayed is a fresh replay of a tensor.
func (p *process) replayed(n *node) (rep *replay, done func()) {
	st := p.s.store
	st.mu.Lock()
	defer st.unlock()
	rep, err := newReplay(n)
	if err != nil {
		p.t.Fatal(err)
	}
	return rep, func() {
		st.mu.Lock()
		defer st.unlock()
		rep.release(st)
	}
}

// Every part of every step of a chain is what it is of the whole.
func TestParts(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	defer c.Close()
	rope := func(x wire.Tensor, p wire.Params) wire.Tensor { return c.run1(wire.OpRoPE, p, x) }
	for name, chain := range map[string]func() wire.Tensor{
		"fused to projected": func() wire.Tensor {
			x := c.run1(wire.OpLinear, wire.Params{}, c.random(1, fused, 7, 9), c.random(2, []string{"out", "in"}, 40, 9), c.random(3, []string{"out"}, 40))
			s := c.run(wire.OpSplit, wire.Params{Layout: wire.LayoutGrouped, Heads: 6, KVHeads: 2}, x)
			r := wire.Params{Rotary: 4, Offset: 3}
			o := c.run1(wire.OpPrefill, causal, rope(s[0], r), rope(s[1], r), s[2])
			return c.run1(wire.OpAdd, wire.Params{}, c.run1(wire.OpLinear, wire.Params{}, c.run1(wire.OpMerge, wire.Params{}, o), c.random(5, []string{"out", "in"}, 9, 24)), c.random(6, fused, 7, 9))
		},
		"steps, rows major": func() wire.Tensor {
			r := wire.Params{Rotary: 8, Positions: []int{4, 0, 9, 2, 7}}
			q, k, v := rope(c.random(1, shd, 5, 4, 8), r), c.random(2, shd, 5, 2, 8), c.random(3, shd, 5, 2, 8)
			s := c.run1(wire.OpScores, wire.Params{Mask: wire.MaskDiagonal, Diagonal: -1}, q, k)
			o := c.run1(wire.OpContext, wire.Params{}, c.run1(wire.OpSoftmax, wire.Params{}, s), v)
			return c.run1(wire.OpSwap, wire.Params{}, c.run1(wire.OpRows, wire.Params{Index: 1, Count: 3}, o))
		},
		"rows-major prefill": func() wire.Tensor {
			q, k, v := c.random(1, shd, 5, 4, 8), c.random(2, shd, 6, 2, 8), c.random(3, shd, 6, 2, 8)
			return c.run1(wire.OpRows, wire.Params{Index: 2, Count: 2}, c.run1(wire.OpPrefill, causal, rope(q, wire.Params{Rotary: 2}), k, v))
		},
		"cache": func() wire.Tensor {
			k := c.random(1, hsd, 2, 3, 4)
			for i := range 3 {
				k = c.run1(wire.OpAppend, wire.Params{}, k, rope(c.random(uint64(10+i), hsd, 2, 1+i, 4), wire.Params{Rotary: 4, Offset: 5 + i}))
			}
			return c.run1(wire.OpDecode, wire.Params{}, c.random(3, hsd, 4, 1, 4), k, c.run1(wire.OpRows, wire.Params{Count: 9}, c.run1(wire.OpAppend, wire.Params{}, k, k)))
		},
		"rows-major cache": func() wire.Tensor {
			k := c.run1(wire.OpAppend, wire.Params{}, c.random(1, shd, 5, 2, 8), c.random(2, shd, 2, 2, 8))
			return rope(k, wire.Params{Rotary: 4})
		},
		"one row of heads": func() wire.Tensor {
			k := c.random(1, shd, 5, 2, 8)
			return c.run1(wire.OpDecode, wire.Params{}, c.random(3, []string{"heads", "dim"}, 4, 8), k, k)
		},
		"batch, head, turned": func() wire.Tensor {
			b := c.run1(wire.OpSoftmax, wire.Params{Mask: wire.MaskCausal}, c.random(1, []string{"batch", "heads", "seq", "dim"}, 2, 3, 4, 6))
			x := c.run1(wire.OpIndex, wire.Params{Axis: "batch", Index: 1}, b)
			x = c.run1(wire.OpIndex, wire.Params{Axis: "heads", Index: 2}, c.run1(wire.OpSwap, wire.Params{}, x))
			return c.run1(wire.OpHeads, wire.Params{Heads: 2}, c.run1(wire.OpSwap, wire.Params{}, x))
		},
		"one head of scores": func() wire.Tensor {
			s := c.run1(wire.OpScores, causal, c.random(1, hsd, 3, 6, 4), c.random(2, hsd, 3, 7, 4))
			head := c.run1(wire.OpIndex, wire.Params{Axis: "heads", Index: 1}, s)
			return c.run1(wire.OpSoftmax, wire.Params{}, c.run1(wire.OpRows, wire.Params{Index: 1, Count: 4}, head))
		},
		"relabelled": func() wire.Tensor {
			return rope(c.run1(wire.OpAxes, wire.Params{Axes: shd}, c.random(1, hsd, 5, 2, 4)), wire.Params{Rotary: 4, Offset: 1})
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := chain()
			root := p.nodeOf(x)
			whole, done := p.replayed(root)
			defer done()
			all, err := whole.eval(t.Context(), p.d, root)
			if err != nil {
				t.Fatal(err)
			}
			h, s, _ := fold(root.shape)
			for i := -1; i < h; i++ {
				for j := -1; j < s; j++ {
					rep, done := p.replayed(root)
					got, err := rep.evalPart(t.Context(), p.d, root, part{i, j})
					done()
					if err != nil {
						t.Fatalf("part %d %d: %v", i, j, err)
					}
					want := cutTruth(all, part{i, j})
					for k, pair := range [][2][]float64{{flat(got.Value), flat(want.Value)}, {flat(got.Err), flat(want.Err)}, {flat(got.noise), flat(want.noise)}} {
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

// A tensor beyond the budget is looked at in rows, the report says which share, and a fault that reaches them is found.
func TestSampledCheck(t *testing.T) {
	for _, f := range []struct {
		name  string
		right bool
		cudaops.Backend
	}{
		{"right", true, host.New(host.Options{})},
		{"offset", false, &faulty{Backend: host.New(host.Options{}), rope: func(r cudaops.RoPE) cudaops.RoPE { r.Offset++; return r }}},
	} {
		t.Run(f.name, func(t *testing.T) {
			p := tight(t, f.Backend, Budget{Cells: 1 << 12})
			c := p.dial()
			defer c.Close()
			s := c.run(wire.OpSplit, wire.Params{Layout: wire.LayoutNeoX, Heads: 4}, c.random(1, fused, 150, 4*3*8))
			r := wire.Params{Rotary: 8}
			q := c.run1(wire.OpRoPE, r, s[0])
			out := c.run1(wire.OpPrefill, causal, q, s[1], s[2])
			a := c.check(out)
			if a.Verdict.Pass != f.right || a.Verdict.Cells != 512*8 || !strings.Contains(a.Text, "  a sample: 512 of 600 rows (85%): the first, the last, ") {
				t.Errorf("%+v\n%s", a.Verdict, a.Text)
			}
			d, err := c.Display(a.DisplayID)
			if err != nil || len(d.Parts) != 2 {
				t.Errorf("%v, %d parts", err, len(d.Parts))
			}
			again := c.run1(wire.OpPrefill, causal, c.run1(wire.OpRoPE, r, s[0]), s[1], s[2])
			if a := c.compare(out, again, 0); !a.Verdict.Pass || !strings.Contains(a.Text, "note: a sample: 512 of 600 rows") {
				t.Errorf("%s", a.Text)
			}
			brought := c.download(out)
			brought[599*8+3] += 1 // in the last row, which is looked at
			x := c.run1(wire.OpSwap, wire.Params{}, c.upload(hsd, []int{4, 150, 8}, brought))
			if a := c.compare(out, x, 0); a.Verdict.Pass || !strings.Contains(a.Text, "worst cell: head 3, seq 149, dim 3:") {
				t.Errorf("%s", a.Text)
			}
			if a := c.compare(x, out, 0); a.Verdict.Pass || !strings.Contains(a.Text, "worst cell: seq 149, head 3, dim 3:") && !strings.Contains(a.Text, "worst cell: head 3, seq 149, dim 3:") {
				t.Errorf("%s", a.Text)
			}
		})
	}
}

// What takes too long to compute again stands for itself in a sample, and the report says so.
func TestSampleStartsLate(t *testing.T) {
	p := tight(t, host.New(host.Options{}), Budget{Work: 1 << 19})
	c := p.dial()
	defer c.Close()
	x := c.random(1, fused, 200, 24)
	h := c.run1(wire.OpHeads, wire.Params{Heads: 3}, x)
	out := c.run1(wire.OpPrefill, causal, h, h, h)
	c.name(out, "first")
	next := c.run1(wire.OpPrefill, causal, out, out, out)
	a := c.check(next)
	if !a.Verdict.Pass || !strings.Contains(a.Text, `note: checked only from "first" [heads 3, seq 200, dim 8] on, which takes too long to compute again`) {
		t.Errorf("%+v\n%s", a.Verdict, a.Text)
	}
}

func TestSampleRows(t *testing.T) {
	values := make([]float32, 4000)
	values[1000], values[2002], values[3001] = 7, -9, float32(math.NaN())
	rows := sampleOf(values, 4)
	if len(rows) != maxSampled || rows[0] != 0 || rows[1] != 999 || rows[2] != 250 || rows[3] != 500 || rows[4] != 750 {
		t.Errorf("%d rows, %v", len(rows), rows[:8])
	}
	if rows := sampleOf(values[:4], 4); len(rows) != 1 {
		t.Errorf("of one row: %v", rows)
	}
	values[0] = float32(math.NaN()) // does not keep the extremes from being found
	if rows := sampleOf(values, 4); rows[2] != 250 || rows[3] != 500 {
		t.Errorf("%v", rows[:8])
	}
}
