package resident

import (
	"fmt"
	"go/parser"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attnb/attnb/kernel/wire"
)

// turned is a layer whose queries were rotated with an offset, from a named row of fused values; its probabilities.
func (c caller) turned(offset int) (rows, p wire.Tensor) {
	rows = c.random(5, fused, 7, 2*3*8)
	c.name(rows, "qkv")
	qkv := c.run(wire.OpSplit, wire.Params{Layout: wire.LayoutNeoX, Heads: 2, KVHeads: 2}, rows)
	rope := wire.Params{Rotary: 8}
	k := c.run1(wire.OpRoPE, rope, qkv[1])
	rope.Offset = offset
	q := c.run1(wire.OpRoPE, rope, qkv[0])
	return rows, c.run1(wire.OpSoftmax, wire.Params{}, c.run1(wire.OpScores, causal, q, k))
}

// Turning the dial to the offset that the expected tensor was made with turns the error picture white, and nothing else does.
func TestExpected(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	defer c.Close()
	_, expected := c.turned(3)
	c.name(expected, "theirs")
	_, mine := c.turned(0)
	a := c.do(wire.Request{Kind: wire.KindExplore, IDs: []int{mine.ID}, Expected: expected.ID})
	d, err := c.Display(a.DisplayID)
	if err != nil {
		t.Fatal(err)
	}
	c.keep(d)
	wants(t, plainText(t, d), `error against "theirs": relative L2 error 0.`, "they differ", "each of 7 query x 7 key (|error| / (1e-4 of the largest))")
	for _, x := range []struct {
		set  []wire.Control
		want string
	}{
		{[]wire.Control{{Name: "offset", Value: 2}}, "they differ"},
		{[]wire.Control{{Name: "offset", Value: 3}}, "relative L2 error 0, they agree"},
		{[]wire.Control{{Name: "offset", Value: -61}, {Name: "shift", Value: 64}}, "relative L2 error 0, they agree"},
		{[]wire.Control{{Name: "offset", Value: 3}, {Name: "mask", Value: 0}}, "they differ"},
		{[]wire.Control{{Name: "offset", Value: 3}, {Name: "head", Value: 2}}, "relative L2 error 0, they agree"},
		{[]wire.Control{{Name: "offset", Value: 3}, {Name: "layout", Value: 0}}, "they differ"},
	} {
		got, err := c.Rerun(d.Exploration.ID, x.set)
		if err != nil {
			t.Fatal(err)
		}
		wants(t, plainText(t, got), x.want)
	}
	// axes of the same names in another order
	swapped := c.run1(wire.OpAxes, wire.Params{Axes: []string{"query", "heads", "key"}}, c.random(1, shd, 7, 2, 7))
	c.do(wire.Request{Kind: wire.KindExplore, IDs: []int{mine.ID}, Expected: swapped.ID})
	for want, id := range map[string]int{
		"Explore: shapes differ (x: [heads 2, query 7, key 7], expected: [heads 2, seq 3, dim 8])": c.random(2, hsd, 2, 3, 8).ID,
		"Explore: not a tensor: it was declared but never made":                                    1 << 30,
	} {
		if _, err := c.Do(wire.Request{Kind: wire.KindExplore, IDs: []int{mine.ID}, Expected: id}); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// The Go of a setting is one line that Go can read, from names on.
func TestGoLine(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	defer c.Close()
	_, mine := c.turned(0)
	a := c.do(wire.Request{Kind: wire.KindExplore, IDs: []int{mine.ID}})
	d, err := c.Display(a.DisplayID)
	if err != nil {
		t.Fatal(err)
	}
	const split = `q, k, _ := attn.Get("qkv").SplitHeads(attn.NeoX(2)); `
	for _, x := range []struct {
		set  []wire.Control
		want string
	}{
		{nil, split + "turned := q.RoPE(attn.HalfSplit(8)); turned2 := k.RoPE(attn.HalfSplit(8)); s := attn.Scores(turned, turned2, attn.Causal); p := s.Softmax(); p.Heatmap()"},
		{[]wire.Control{{Name: "offset", Value: 3}, {Name: "base", Value: 500}, {Name: "pairing", Value: 1}, {Name: "mask", Value: 0}}, split +
			"turned := q.RoPE(attn.Interleaved(8).Base(500).Offset(3)); turned2 := k.RoPE(attn.Interleaved(8).Base(500)); s := attn.Scores(turned, turned2, attn.Unmasked); p := s.Softmax(); p.Heatmap()"},
		{[]wire.Control{{Name: "layout", Value: 0}, {Name: "diagonal", Value: -1}}, strings.Replace(split, "NeoX", "GPT2", 1) +
			"turned := q.RoPE(attn.HalfSplit(8)); turned2 := k.RoPE(attn.HalfSplit(8)); s := attn.Scores(turned, turned2, attn.CausalAt(-1)); p := s.Softmax(); p.Heatmap()"},
	} {
		got, err := c.Rerun(d.Exploration.ID, x.set)
		if err != nil {
			t.Fatal(err)
		}
		if got.Code != x.want {
			t.Errorf("%v: %s\nwant %s", x.set, got.Code, x.want)
		}
		if _, err := parser.ParseExpr("func() { " + got.Code + " }"); err != nil {
			t.Error(err)
		}
	}
	// everything else that a chain may hold, and a leaf without a name
	x := c.random(1, fused, 5, 12)
	heads := c.run1(wire.OpHeads, wire.Params{Heads: 3}, x)
	rope := wire.Params{Rotary: 4, Positions: []int{4, 3, 2, 1, 0}, InvFreq: []float64{1, 0.5}, Float32Angles: true, Magnitude: 1.5}
	rotated := c.run1(wire.OpRoPE, rope, c.run1(wire.OpRows, wire.Params{Count: 5}, heads))
	out := c.run1(wire.OpPrefill, wire.Params{Mask: wire.MaskCausal, Window: 2, Softcap: 9, Scale: 0.25}, rotated, c.run1(wire.OpAppend, wire.Params{}, rotated, rotated), c.run1(wire.OpAppend, wire.Params{}, heads, heads))
	merged := c.run1(wire.OpAdd, wire.Params{}, c.run1(wire.OpMerge, wire.Params{}, out), x)
	a = c.do(wire.Request{Kind: wire.KindExplore, IDs: []int{merged.ID}})
	if d, err = c.Display(a.DisplayID); err != nil {
		t.Fatal(err)
	}
	want := `heads := x.Heads(3); part := heads.Rows(0, 5); turned := part.RoPE(attn.HalfSplit(4).Positions(4, 3, 2, 1, 0).InvFreq(1, 0.5).Float32Angles().Magnitude(1.5)); ` +
		`cache := attn.AppendKV(turned, turned); cache2 := attn.AppendKV(heads, heads); out := attn.Prefill(turned, cache, cache2, attn.Scale(0.25), attn.Window(2), attn.Softcap(9)); ` +
		`rows := out.Merge(); sum := attn.Add(rows, x); sum.Heatmap() // x is FromSlice [seq 5, hidden 12]`
	if d.Code != want {
		t.Errorf("%s\nwant %s", d.Code, want)
	}
}

// The Go of a picture made from a file says which.
func TestTheGoLineLoadsTheFile(t *testing.T) {
	c := onHost(t).dial()
	file, err := filepath.Abs("../../notebooks/data/neox_layer.npz")
	if err != nil {
		t.Fatal(err)
	}
	x := c.do(wire.Request{Kind: wire.KindLoad, Path: file, Member: "qkv"}).Tensors[0]
	q := c.do(wire.Request{Kind: wire.KindRun, Op: wire.OpSplit, IDs: []int{x.ID}, Params: wire.Params{Layout: wire.LayoutNeoX, Heads: 4}}).Tensors
	s := c.run1(wire.OpScores, wire.Params{Mask: wire.MaskCausal}, q[0], q[1])
	d, err := c.Display(c.do(wire.Request{Kind: wire.KindExplore, IDs: []int{s.ID}}).DisplayID)
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf(`x := attn.Load(%q, "qkv"); q, k, _ := x.SplitHeads(attn.NeoX(4)); s := attn.Scores(q, k, attn.Causal); s.Heatmap()`, file); d.Code != want {
		t.Errorf("%s\nwant %s", d.Code, want)
	}
}
