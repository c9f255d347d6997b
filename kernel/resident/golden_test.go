package resident

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/attnb/attnb/kernel/wire"
)

// A GPT-NeoX layer captured from a framework: from the fused rows of the file to its probabilities and context, then the rows
// decoded one by one behind the cache. The framework's own angles and softmax are f32, so it agrees to 1e-6 or so.
func TestGoldenLayer(t *testing.T) {
	const tolerance = 5e-6
	path, err := filepath.Abs("../../cudaops/optest/testdata/golden/neox_a.npz")
	if err != nil {
		t.Fatal(err)
	}
	p := onHost(t)
	c := p.dial()
	defer c.Close()
	load := func(member string) wire.Tensor {
		return c.do(wire.Request{Kind: wire.KindLoad, Path: path, Member: member}).Tensors[0]
	}
	same := func(what string, got, want []float32) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
		}
		worst := 0.0
		for i := range got {
			worst = max(worst, math.Abs(float64(got[i])-float64(want[i])))
		}
		if !(worst <= tolerance) {
			t.Errorf("%s: off by %g", what, worst)
		}
	}
	neox := wire.Params{Layout: wire.LayoutNeoX, Heads: 4}
	rope := func(x wire.Tensor, offset int) wire.Tensor {
		return c.run1(wire.OpRoPE, wire.Params{Rotary: 8, Offset: offset}, x)
	}
	x := c.run(wire.OpSplit, neox, load("qkv"))
	q, k, v := rope(x[0], 0), rope(x[1], 0), x[2]
	same("q", c.download(q), c.download(load("q")))
	same("k", c.download(k), c.download(load("k")))
	probs := c.run1(wire.OpSoftmax, wire.Params{}, c.run1(wire.OpScores, causal, q, k))
	same("probs", c.download(probs), c.download(load("probs")))
	ctx := c.run1(wire.OpSwap, wire.Params{}, c.run1(wire.OpPrefill, causal, q, k, v)) // the file has [seq, heads, dim]
	same("ctx", c.download(ctx), c.download(load("ctx")))
	same("ctx by probabilities", c.download(c.run1(wire.OpSwap, wire.Params{}, c.run1(wire.OpContext, wire.Params{}, probs, v))), c.download(load("ctx")))

	rows, want := load("qkv_decode"), c.download(load("ctx_decode"))
	for i := range rows.Shape[0] {
		x := c.run(wire.OpSplit, neox, c.run1(wire.OpRows, wire.Params{Index: i, Count: 1}, rows))
		at := k.Shape[1]
		k = c.run1(wire.OpAppend, wire.Params{}, k, rope(x[1], at))
		v = c.run1(wire.OpAppend, wire.Params{}, v, x[2])
		out := c.run1(wire.OpDecode, wire.Params{}, rope(x[0], at), k, v)
		n := len(want) / rows.Shape[0]
		same("decode", c.download(out), want[i*n:(i+1)*n])
		if a := c.check(out); !a.Verdict.Pass {
			t.Errorf("row %d:\n%s", i, a.Text)
		}
	}
	same("k_all", c.download(k), c.download(load("k_all")))
	same("v_all", c.download(v), c.download(load("v_all")))
}
