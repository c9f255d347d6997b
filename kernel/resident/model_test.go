package resident

import (
	"math"
	"strings"
	"testing"

	"github.com/attnb/attnb/kernel/wire"
)

// What a model has beside its attention passes its own check, says what it did, and is audited step by step.
func TestModelOps(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	defer c.Close()
	table := c.random(1, []string{"token", "hidden"}, 50, 96)
	c.name(table, "table")
	x := c.run1(wire.OpEmbedding, wire.Params{Tokens: []int{7, 0, 49, 7, 3}}, table)
	if got, rows := c.download(x), c.download(table); got[0] != rows[7*96] || got[96] != rows[0] || got[2*96+5] != rows[49*96+5] || strings.Join(x.Axes, " ") != "seq hidden" {
		t.Errorf("%v is not the rows of its table", x)
	}
	n := c.run1(wire.OpLayerNorm, wire.Params{Eps: 1e-5}, x, c.random(2, []string{"hidden"}, 96), c.random(3, []string{"hidden"}, 96))
	r := c.run1(wire.OpRMSNorm, wire.Params{Eps: 1e-6}, n)
	y := c.run1(wire.OpLinear, wire.Params{}, r, c.random(4, []string{"out", "in"}, 80, 96))
	g, h, s := c.run1(wire.OpGELU, wire.Params{}, y), c.run1(wire.OpGELUTanh, wire.Params{}, y), c.run1(wire.OpSiLU, wire.Params{}, y)
	out := c.run1(wire.OpMultiply, wire.Params{}, c.run1(wire.OpMultiply, wire.Params{}, g, h), s)
	for _, x := range []wire.Tensor{x, n, r, y, g, h, s, out} {
		if a := c.check(x); !a.Verdict.Pass || !(a.Verdict.RelL2 <= 0.5*a.Verdict.LimitL2) || !(a.Verdict.LimitL2 < 2e-5) {
			t.Errorf("%s", a.Text)
		}
	}
	for _, line := range []string{"Embedding(", ": 5 tokens -> [seq 5, hidden 96]", "LayerNorm(", "): eps 1e-05 -> ", "GELUTanh: 5u |x| and 3u |f|", "SiLU: 12u |f|", "Multiply: u |a b|, one rounding"} {
		if a := c.check(out); !strings.Contains(a.Text, line) {
			t.Errorf("no %q in\n%s", line, a.Text)
		}
	}
	audit := c.do(wire.Request{Kind: wire.KindAsk, IDs: []int{out.ID}, Question: &wire.Question{Topic: "audit", Roles: []string{"out"}}})
	if audit.Finding == nil || !audit.Finding.Pass || !strings.Contains(audit.Text, "RMSNorm") {
		t.Errorf("%s", audit.Text)
	}
	// One value that is off is found.
	data := c.download(out)
	data[17] += float32(1e-3 * (1 + math.Abs(float64(data[17]))))
	theirs, err := c.Upload(wire.Request{Kind: wire.KindUpload, Shape: out.Shape, Axes: out.Axes}, data)
	if err != nil {
		t.Fatal(err)
	}
	if a := c.compare(out, theirs.Tensors[0], 0); a.Verdict.Pass {
		t.Errorf("passes with a value that is off: %s", a.Text)
	}
}
