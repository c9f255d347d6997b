package resident

import (
	"math"
	"testing"

	"github.com/attnb/attnb/kernel/wire"
)

// The ladder knows all that a variant does to scores: its float64 rung is the value that a check computes by other ways, step by step.
func TestLadderOfVariants(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	defer c.Close()
	const heads, kv, rows, keys, dim = 4, 2, 5, 9, 8
	rope := wire.Params{Rotary: 8}
	q, k := c.run1(wire.OpRoPE, wire.Params{Rotary: 8, Offset: keys - rows}, c.random(1, hsd, heads, rows, dim)), c.run1(wire.OpRoPE, rope, c.random(2, hsd, kv, keys, dim))
	v := c.random(3, hsd, kv, keys, dim)
	hqk := []string{"heads", "query", "key"}
	bias, sinks := c.random(4, hqk, heads, 1, keys), c.random(5, []string{"heads"}, heads)
	cells := make([]float32, rows*keys)
	for i := range cells {
		if i%7 != 3 {
			cells[i] = 1
		}
	}
	allowed := c.upload(hqk, []int{1, rows, keys}, cells)
	window := wire.Params{Mask: wire.MaskCausal, Window: 4, PadLeft: 1, Softcap: 3, ALiBi: true}
	packed := wire.Params{Mask: wire.MaskCausal, Documents: []int{4, 5}, Slopes: []float64{1, 0.5, 0.25, 2}}
	with := func(p wire.Params, extras ...string) wire.Params {
		p.Extras = extras
		return p
	}
	scored := c.run1(wire.OpScores, packed, q, k)
	weighed := c.run1(wire.OpSoftmax, with(wire.Params{Softcap: 2}, "sinks", "bias"), scored, sinks, bias)
	last := c.run1(wire.OpRows, wire.Params{Index: rows - 1, Count: 1}, q)
	for name, x := range map[string]wire.Tensor{
		"prefill":        c.run1(wire.OpPrefill, with(window, "bias", "allowed", "sinks"), q, k, v, bias, allowed, sinks),
		"step by step":   c.run1(wire.OpContext, wire.Params{}, weighed, v),
		"scores":         scored,
		"decode":         c.run1(wire.OpDecode, with(wire.Params{Softcap: 4, ALiBi: true, Window: 3}, "sinks"), last, k, v, sinks),
		"to both sides":  c.run1(wire.OpPrefill, wire.Params{Mask: wire.MaskNone, Window: 3, ALiBi: true}, q, k, v),
		"only documents": c.run1(wire.OpPrefill, wire.Params{Mask: wire.MaskCausal, Documents: []int{6, 3}}, q, k, v),
	} {
		values, n := c.download(x), x.Shape
		for i, got := range values {
			if i%3 != 1 {
				continue
			}
			at := []float64{float64(i / (n[1] * n[2])), float64(i / n[2] % n[1]), float64(i % n[2])}
			a := c.ask("ladder", wire.Params{}, []wire.Fact{{Name: "cell", Numbers: at}}, []string{"x"}, x)
			var truth, off float64
			for _, f := range a.Finding.Facts {
				switch {
				case f.Name == "rung" && f.Words[0] == "float64":
					truth = f.Numbers[0]
				case f.Name == "error":
					off = f.Numbers[0]
				}
			}
			if !a.Finding.Pass || math.Abs(math.Abs(float64(got)-truth)-off) > 1e-12 {
				t.Fatalf("%s, cell %v: %v by the ladder, %v on the device, which is off by %v: %s", name, at, truth, got, off, a.Text)
			}
		}
	}
}
