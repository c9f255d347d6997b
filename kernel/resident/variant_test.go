package resident

import (
	"bytes"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/attnb/attnb/cudaops/host"
	"github.com/attnb/attnb/kernel/resident/chain"
	"github.com/attnb/attnb/kernel/wire"
)

// variantCase is a variant of attention of 4 heads, 5 queries and 9 keys, with the tensors that it takes.
type variantCase struct {
	name   string
	params wire.Params
	extras []wire.Tensor
}

func variantsOf(c caller) []variantCase {
	hqk := []string{"heads", "query", "key"}
	bias, row := c.random(11, hqk, 4, 5, 9), c.random(12, []string{"query", "key"}, 1, 9)
	sinks := c.random(13, []string{"heads"}, 4)
	a, err := c.Upload(wire.Request{Kind: wire.KindUpload, Shape: []int{5, 9}, Axes: hqk[1:]}, allowedCells())
	if err != nil {
		c.t.Fatal(err)
	}
	allowed := a.Tensors[0]
	extras := func(names ...string) wire.Params { return wire.Params{Extras: names} }
	all := extras(wire.ExtraSinks, wire.ExtraBias, wire.ExtraAllowed)
	all.Softcap, all.ALiBi, all.Window, all.PadLeft = 2, true, 6, 1
	return []variantCase{
		{"window", wire.Params{Window: 3}, nil},
		{"padding", wire.Params{PadLeft: 5, PadRight: 1}, nil},
		{"documents", wire.Params{Documents: []int{2, 3, 4}}, nil},
		{"softcap", wire.Params{Softcap: 1.5}, nil},
		{"ALiBi", wire.Params{ALiBi: true}, nil},
		{"own slopes", wire.Params{ALiBi: true, Slopes: []float64{.1, .2, 3, 0}}, nil},
		{"bias", extras(wire.ExtraBias), []wire.Tensor{bias}},
		{"bias of one row", extras(wire.ExtraBias), []wire.Tensor{row}},
		{"allowed", extras(wire.ExtraAllowed), []wire.Tensor{allowed}},
		{"sinks", extras(wire.ExtraSinks), []wire.Tensor{sinks}},
		{"all of it", all, []wire.Tensor{sinks, bias, allowed}},
	}
}

func allowedCells() []float32 {
	cells := make([]float32, 45)
	for i := range cells {
		cells[i] = float32(i % 3) // row 3 begins with 0
	}
	copy(cells[36:], make([]float32, 9)) // and row 4 sees nothing
	return cells
}

// split are the parameters of the scores, which carry what is a number, and of the softmax, which takes the tensors.
func (v variantCase) split() (scores, softmax wire.Params) {
	scores, softmax = v.params, wire.Params{Extras: v.params.Extras}
	scores.Mask, scores.Extras = wire.MaskCausal, nil
	return scores, softmax
}

// Step by step a variant is what it is as a whole; both agree with their replay.
func TestVariants(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	defer c.Close()
	q, k, v := c.random(1, hsd, 4, 5, 8), c.random(2, hsd, 2, 9, 8), c.random(3, hsd, 2, 9, 8)
	rowsMajor := c.run1(wire.OpSwap, wire.Params{}, q)
	for _, of := range variantsOf(c) {
		t.Run(of.name, func(t *testing.T) {
			c := caller{t, c.Conn}
			scores, softmax := of.split()
			whole := of.params
			whole.Mask = wire.MaskCausal
			s := c.run1(wire.OpScores, scores, q, k)
			probs := c.run1(wire.OpSoftmax, softmax, append([]wire.Tensor{s}, of.extras...)...)
			byStep := c.run1(wire.OpContext, wire.Params{}, probs, v)
			atOnce := c.run1(wire.OpPrefill, whole, append([]wire.Tensor{q, k, v}, of.extras...)...)
			swapped := c.run1(wire.OpPrefill, whole, append([]wire.Tensor{rowsMajor, k, v}, of.extras...)...)
			near(t, "step by step and at once", c.download(byStep), c.download(atOnce), 2e-6)
			if probs.Empty != atOnce.Empty {
				t.Errorf("%d rows of probabilities see nothing, %d of the context", probs.Empty, atOnce.Empty)
			}
			for name, x := range map[string]wire.Tensor{"probabilities": probs, "context": byStep, "prefill": atOnce, "rows-major": swapped} {
				if a := c.check(x); !a.Verdict.Pass || a.Verdict.RelL2 > 1e-6 {
					t.Errorf("%s:\n%s", name, a.Text)
				}
			}
		})
	}
}

func near(t *testing.T, what string, got, want []float32, within float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range got {
		if off := math.Abs(float64(got[i]) - float64(want[i])); !(off <= within) {
			t.Errorf("%s: value %d is %v, want %v", what, i, got[i], want[i])
			return
		}
	}
}

// Where a chain is too large to compute again, rows of it are: each as in the whole.
func TestVariantsInSamples(t *testing.T) {
	p := tight(t, host.New(host.Options{}), chain.Budget{Cells: 1, Work: 1, Time: time.Minute})
	c := p.dial()
	defer c.Close()
	q, k, v := c.random(1, hsd, 4, 5, 8), c.random(2, hsd, 2, 9, 8), c.random(3, hsd, 2, 9, 8)
	rowsMajor := c.run1(wire.OpSwap, wire.Params{}, q)
	for _, of := range variantsOf(c) {
		t.Run(of.name, func(t *testing.T) {
			c := caller{t, c.Conn}
			scores, softmax := of.split()
			whole := of.params
			whole.Mask = wire.MaskCausal
			s := c.run1(wire.OpScores, scores, q, k)
			for name, x := range map[string]wire.Tensor{
				"probabilities": c.run1(wire.OpSoftmax, softmax, append([]wire.Tensor{s}, of.extras...)...),
				"prefill":       c.run1(wire.OpPrefill, whole, append([]wire.Tensor{q, k, v}, of.extras...)...),
				"rows-major":    c.run1(wire.OpPrefill, whole, append([]wire.Tensor{rowsMajor, k, v}, of.extras...)...),
			} {
				if a := c.check(x); !a.Verdict.Pass || !contains(a.Text, "sample") || a.Verdict.RelL2 > 1e-6 {
					t.Errorf("%s:\n%s", name, a.Text)
				}
			}
		})
	}
}

// A decode step of a variant is the last row of its prefill.
func TestVariantDecode(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	defer c.Close()
	q, k, v := c.random(1, hsd, 4, 5, 8), c.random(2, hsd, 2, 9, 8), c.random(3, hsd, 2, 9, 8)
	last := c.run1(wire.OpRows, wire.Params{Index: 4, Count: 1}, q)
	sinks := c.random(13, []string{"heads"}, 4)
	for _, params := range []wire.Params{
		{Window: 3}, {PadLeft: 5, PadRight: 1}, {PadLeft: 9}, {Documents: []int{2, 3, 4}}, {Softcap: 1.5}, {ALiBi: true},
		{Extras: []string{wire.ExtraSinks}, Window: 1, Softcap: 3},
	} {
		var extras []wire.Tensor
		if params.Extras != nil {
			extras = append(extras, sinks)
		}
		whole := params
		whole.Mask = wire.MaskCausal
		one := c.run1(wire.OpDecode, params, append([]wire.Tensor{last, k, v}, extras...)...)
		all := c.run1(wire.OpPrefill, whole, append([]wire.Tensor{q, k, v}, extras...)...)
		near(t, fmt.Sprintf("%+v", params), c.download(one), c.download(c.run1(wire.OpRows, wire.Params{Index: 4, Count: 1}, all)), 1e-6)
		if a := c.check(one); !a.Verdict.Pass {
			t.Errorf("%+v:\n%s", params, a.Text)
		}
		if want := 4 * (params.PadLeft / 9); one.Empty != want {
			t.Errorf("%+v: %d heads see nothing, want %d", params, one.Empty, want)
		}
	}
}

// What goes with scores goes with a head and with rows of them.
func TestVariantFollowsViews(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	defer c.Close()
	params := wire.Params{Mask: wire.MaskCausal, Window: 3, Softcap: 2, Slopes: []float64{.5, 2, .1}, ALiBi: true}
	s := c.run1(wire.OpScores, params, c.random(1, hsd, 3, 4, 4), c.random(2, hsd, 3, 7, 4))
	whole := c.download(c.run1(wire.OpSoftmax, wire.Params{}, s)) // [3, 4, 7]
	head := c.run1(wire.OpIndex, wire.Params{Axis: "heads", Index: 1}, s)
	near(t, "head 1", c.download(c.run1(wire.OpSoftmax, wire.Params{}, head)), whole[28:56], 0)
	rows := c.run1(wire.OpSoftmax, wire.Params{}, c.run1(wire.OpRows, wire.Params{Index: 2, Count: 2}, head))
	near(t, "rows 2 and 3 of it", c.download(rows), whole[42:56], 0)
	if a := c.check(rows); !a.Verdict.Pass {
		t.Error(a.Text)
	}
	// What Softmax is given stands in place of the same that the scores bring.
	wider := params
	wider.Window = 5
	want := c.download(c.run1(wire.OpSoftmax, wire.Params{}, c.run1(wire.OpScores, wider, c.random(1, hsd, 3, 4, 4), c.random(2, hsd, 3, 7, 4))))
	near(t, "another window", c.download(c.run1(wire.OpSoftmax, wire.Params{Window: 5}, s)), want, 0)
	_, err := c.Do(wire.Request{Kind: wire.KindRun, Op: wire.OpIndex, Params: wire.Params{Axis: "query", Index: 1},
		IDs: ids([]wire.Tensor{c.run1(wire.OpScores, wire.Params{Softcap: 2}, c.random(1, hsd, 3, 4, 4), c.random(2, hsd, 3, 7, 4))})})
	if want := `Index: axis "query" cannot be taken apart under a mask: apply Softmax first (x: [heads 3, query 4, key 7])`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
}

func TestVariantRefusals(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	defer c.Close()
	q, k := c.random(1, hsd, 4, 5, 8), c.random(2, hsd, 2, 9, 8)
	s := c.run1(wire.OpScores, wire.Params{}, q, k)
	windowed := c.run1(wire.OpSoftmax, wire.Params{Window: 3}, s)
	batch := c.random(3, []string{"batch", "heads", "seq", "dim"}, 2, 2, 3, 4)
	before := p.d.InUse()
	for _, r := range []struct {
		op     wire.Op
		params wire.Params
		in     []wire.Tensor
		want   string
	}{
		{wire.OpScores, wire.Params{Extras: []string{wire.ExtraBias}}, []wire.Tensor{q, k, s},
			"Scores: bias is an option of Softmax, Prefill and Decode: scores stay scale * q.k, and softmax changes them"},
		{wire.OpScores, wire.Params{Window: -3}, []wire.Tensor{q, k}, "Scores: window -3 is not within 1 to 4294967295; 0 is none (q: [heads 4, seq 5, dim 8], k: [heads 2, seq 9, dim 8])"},
		{wire.OpScores, wire.Params{Documents: []int{3, 3}}, []wire.Tensor{q, k}, "Scores: 2 documents leave 3 of 9 columns (q: [heads 4, seq 5, dim 8], k: [heads 2, seq 9, dim 8])"},
		{wire.OpScores, wire.Params{ALiBi: true, Slopes: []float64{1}}, []wire.Tensor{q, k}, "Scores: 1 ALiBi slopes for 4 heads (q: [heads 4, seq 5, dim 8], k: [heads 2, seq 9, dim 8])"},
		{wire.OpScores, wire.Params{Softcap: math.NaN()}, []wire.Tensor{q, k},
			"Scores: softcap is NaN, must be positive and finite in f32; leave it out for none (q: [heads 4, seq 5, dim 8], k: [heads 2, seq 9, dim 8])"},
		{wire.OpSoftmax, wire.Params{Extras: []string{"mask"}}, []wire.Tensor{s, s}, `Softmax: unknown tensor "mask"`},
		{wire.OpSoftmax, wire.Params{Extras: []string{wire.ExtraBias, wire.ExtraBias}}, []wire.Tensor{s, s, s}, "Softmax: bias is given twice"},
		{wire.OpSoftmax, wire.Params{Extras: []string{wire.ExtraSinks}}, []wire.Tensor{s, k}, "Softmax: must be [1 1 4], one a head (sinks: [heads 2, seq 9, dim 8])"},
		{wire.OpSoftmax, wire.Params{Extras: []string{wire.ExtraAllowed}}, []wire.Tensor{s, k},
			"Softmax: must fit scores [4 5 9]: as many columns, and as many rows and heads or 1 (allowed: [heads 2, seq 9, dim 8])"},
		{wire.OpSoftmax, wire.Params{Window: 2}, []wire.Tensor{batch}, "Softmax: 4 dimensions are too many: pick one with Batch(i) (x: [batch 2, heads 2, seq 3, dim 4])"},
		{wire.OpRoPE, wire.Params{Rotary: 2, Scaling: &wire.Scaling{Kind: wire.ScalingDynamicNTK, Factor: 2, Trained: 4, Length: 9}}, []wire.Tensor{q},
			"RoPE: dynamic NTK scaling: rotary 2 has one pair, whose frequency is 1 for every base (x: [heads 4, seq 5, dim 8])"},
		{wire.OpRoPE, wire.Params{Rotary: 4, InvFreq: []float64{1, 2}, Scaling: &wire.Scaling{Kind: wire.ScalingLinear, Factor: 2}}, []wire.Tensor{q},
			"RoPE: frequencies are given one by one: there is nothing to scale (x: [heads 4, seq 5, dim 8])"},
		{wire.OpRoPE, wire.Params{Rotary: 4, Scaling: &wire.Scaling{Kind: 9}}, []wire.Tensor{q}, "RoPE: unknown scaling 9 (x: [heads 4, seq 5, dim 8])"},
	} {
		_, err := c.Do(wire.Request{Kind: wire.KindRun, Op: r.op, Params: r.params, IDs: ids(r.in)})
		if err == nil || err.Error() != r.want {
			t.Errorf("got  %v\nwant %s", err, r.want)
		}
	}
	sinks := wire.Request{Kind: wire.KindMap, IDs: []int{q.ID, k.ID, s.ID}, Params: wire.Params{Extras: []string{wire.ExtraSinks}}, Map: new(wire.Map)}
	if _, err := c.Do(sinks); err == nil || err.Error() != "Map: must be [1 1 4], one a head (sinks: [heads 4, query 5, key 9])" {
		t.Error(err)
	}
	for _, r := range []wire.Request{{IDs: []int{windowed.ID}}, {IDs: []int{q.ID, k.ID}, Params: wire.Params{Softcap: 3}}} {
		r.Kind, r.Map = wire.KindMap, new(wire.Map)
		if _, err := c.Do(r); err != nil {
			t.Error(err)
		}
	}
	if now := p.d.InUse(); now != before {
		t.Errorf("%d bytes in use, %d before", now, before)
	}
}

// Rotations of captured layers, scaled by what their models say: the device process makes the frequencies that the framework had.
func TestScaledRotations(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	defer c.Close()
	for file, scaling := range map[string]*wire.Scaling{
		"llama_a":         nil,
		"llama_linear_a":  {Kind: wire.ScalingLinear, Factor: 4},
		"llama_dynamic_a": {Kind: wire.ScalingDynamicNTK, Factor: 3, Trained: 7, Length: 9},
		"llama_llama3_a":  {Kind: wire.ScalingLlama3, Factor: 8, Low: 1, High: 4, Trained: 8192},
		"llama_yarn_a":    {Kind: wire.ScalingYaRN, Factor: 4, Trained: 4096},
	} {
		path, err := filepath.Abs("../../cudaops/optest/testdata/golden/" + file + ".npz")
		if err != nil {
			t.Fatal(err)
		}
		load := func(member string) wire.Tensor {
			return c.do(wire.Request{Kind: wire.KindLoad, Path: path, Member: member}).Tensors[0]
		}
		for _, side := range []string{"q", "k"} {
			want := load(side)
			rows := c.run1(wire.OpHeads, wire.Params{Heads: want.Shape[0]}, load(side+"_proj"))
			turned := c.run1(wire.OpRoPE, wire.Params{Rotary: 64, Base: 5e5, Scaling: scaling, Float32Angles: true}, rows)
			near(t, file+" "+side, c.download(turned), c.download(want), 1e-5)
			if a := c.check(turned); !a.Verdict.Pass {
				t.Error(a.Text)
			}
			if scaling != nil {
				plain := c.run1(wire.OpRoPE, wire.Params{Rotary: 64, Base: 5e5, Float32Angles: true}, rows)
				if off := distance32(c.download(plain), c.download(want)); off < 1e-3 {
					t.Errorf("%s: without its scaling %s is off by %g: this proves nothing", file, side, off)
				}
			}
		}
	}
}

func distance32(a, b []float32) (worst float64) {
	for i := range a {
		worst = max(worst, math.Abs(float64(a[i])-float64(b[i])))
	}
	return worst
}

// The kind of a rotation's scaling and its factor are turned: the picture is that of the chain made so, and so is the Go line.
func TestScalingDials(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	defer c.Close()
	const rows = 24
	x := c.random(1, hsd, 2, rows, 8)
	rotated := func(s *wire.Scaling) wire.Tensor {
		return c.run1(wire.OpRoPE, wire.Params{Rotary: 8, Offset: 3, Scaling: s}, x)
	}
	plain, llama := rotated(nil), rotated(&wire.Scaling{Kind: wire.ScalingLlama3, Factor: 8, Low: 1, High: 4, Trained: 16})
	for _, dial := range []struct {
		of   wire.Tensor
		name string
		to   float64
		want wire.Tensor
		line string
	}{
		{plain, "scaling", float64(wire.ScalingLinear), rotated(&wire.Scaling{Kind: wire.ScalingLinear, Factor: 4}), ".Linear(4)"},
		{plain, "scaling", float64(wire.ScalingDynamicNTK), rotated(&wire.Scaling{Kind: wire.ScalingDynamicNTK, Factor: 4, Trained: 6, Length: 27}), ".DynamicNTK(4, 6, 27)"},
		{plain, "scaling", float64(wire.ScalingLlama3), rotated(&wire.Scaling{Kind: wire.ScalingLlama3, Factor: 4, Low: 1, High: 4, Trained: 6}), ".Llama3(4, 1, 4, 6)"},
		{plain, "scaling", float64(wire.ScalingYaRN), rotated(&wire.Scaling{Kind: wire.ScalingYaRN, Factor: 4, Trained: 6}), ".YaRN(4, 6)"},
		{llama, "scaling", float64(wire.ScalingNone), plain, "attn.HalfSplit(8).Offset(3))"},
		{llama, "scaling", float64(wire.ScalingYaRN), rotated(&wire.Scaling{Kind: wire.ScalingYaRN, Factor: 8, Trained: 16}), ".YaRN(8, 16)"},
		{llama, "factor", 2.5, rotated(&wire.Scaling{Kind: wire.ScalingLlama3, Factor: 2.5, Low: 1, High: 4, Trained: 16}), ".Llama3(2.5, 1, 4, 16)"},
	} {
		e := c.explore(dial.of, wire.Control{Name: dial.name}).Exploration
		again, err := c.Rerun(e.ID, []wire.Control{{Name: dial.name, Value: dial.to}})
		if err != nil {
			t.Fatal(err)
		}
		want := c.png(dial.want)
		if bytes.Equal(want, c.png(dial.of)) || !bytes.Equal(again.Parts[0].Data, want) {
			t.Errorf("%s at %g: not the picture of the chain made anew", dial.name, dial.to)
		}
		if !strings.Contains(again.Code, dial.line) {
			t.Errorf("%s at %g: %q has no %s", dial.name, dial.to, again.Code, dial.line)
		}
	}
	if _, err := c.Do(wire.Request{Kind: wire.KindExplore, IDs: []int{plain.ID}, Controls: []wire.Control{{Name: "factor"}}}); err == nil || !strings.Contains(err.Error(), `"factor" turns nothing: no scaled RoPE step made this`) {
		t.Error(err)
	}
}

// A window and a softcap are turned where the scores have one: the picture is that of the chain made with the other number.
func TestVariantDials(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	defer c.Close()
	q, k := c.random(1, hsd, 3, 7, 4), c.random(2, hsd, 3, 7, 4)
	chain := func(window int, softcap float64) wire.Tensor {
		s := c.run1(wire.OpScores, wire.Params{Mask: wire.MaskCausal, Window: window, Softcap: softcap}, q, k)
		return c.run1(wire.OpSoftmax, wire.Params{}, s)
	}
	x := chain(3, 2)
	recorded := c.png(x)
	for _, dial := range []struct {
		control wire.Control
		to      float64
		want    wire.Tensor
	}{
		{wire.Control{Name: "window"}, 5, chain(5, 2)}, {wire.Control{Name: "window", From: 1, To: 7}, 1, chain(1, 2)},
		{wire.Control{Name: "softcap"}, .25, chain(3, .25)},
	} {
		e := c.explore(x, dial.control).Exploration
		again, err := c.Rerun(e.ID, []wire.Control{{Name: dial.control.Name, Value: dial.to}})
		if err != nil {
			t.Fatal(err)
		}
		want := c.png(dial.want)
		if bytes.Equal(want, recorded) || !bytes.Equal(again.Parts[0].Data, want) {
			t.Errorf("%+v at %g: not the picture of the chain made anew", dial.control, dial.to)
		}
	}
	for want, control := range map[string]wire.Control{
		`Explore: "window" from 0 to 3: it goes from 1 to 7 (x: [heads 3, query 7, key 7])`:                                                                                                                    {Name: "window", To: 3},
		`Explore: no parameter is called "query window": there are offset, shift, rotary, base, scaling, factor, pairing, layout, scale, mask, diagonal, window, softcap, head (x: [heads 3, query 7, key 7])`: {Name: "query window"},
	} {
		_, err := c.Do(wire.Request{Kind: wire.KindExplore, IDs: []int{x.ID}, Controls: []wire.Control{control}})
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}
