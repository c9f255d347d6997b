package resident

import (
	"fmt"
	"strings"
	"testing"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/host"
	"github.com/attnb/attnb/kernel/wire"
)

// Over many keys the bound of a cell is wide: a decode step that forgets a key is within it. The second criterion finds it,
// by Check and by Compare with the right value, and lets the right step pass.
func TestForgottenKey(t *testing.T) {
	short := &faulty{Backend: host.New(host.Options{}), decode: func(q, k, v cudaops.View) (cudaops.View, cudaops.View, cudaops.View) {
		k.S, v.S = k.S-1, v.S-1
		return q, k, v
	}}
	for _, keys := range []int{8192, 65536} {
		for _, b := range []struct {
			name  string
			right bool
			cudaops.Backend
		}{{"right", true, host.New(host.Options{})}, {"one key short", false, short}} {
			t.Run(fmt.Sprintf("%d keys, %s", keys, b.name), func(t *testing.T) {
				p := start(t, b.Backend)
				c := p.dial()
				defer c.Close()
				q, k, v := c.random(1, hsd, 1, 1, 16), c.random(2, hsd, 1, keys, 16), c.random(3, hsd, 1, keys, 16)
				x := c.run1(wire.OpDecode, wire.Params{}, q, k, v)
				a := c.check(x)
				if a.Verdict.Pass != b.right || a.Verdict.Failed != 0 || !(a.Verdict.MaxRatio < 1) {
					t.Errorf("%+v\n%s", a.Verdict, a.Text)
				}
				if !b.right && !strings.HasPrefix(a.Text, "Check Decode: FAIL, relative L2 ") {
					t.Errorf("%s", a.Text)
				}
				good := c.run1(wire.OpPrefill, wire.Params{Mask: wire.MaskNone}, q, k, v)
				if a := c.compare(x, good, 0); a.Verdict.Pass != b.right || a.Verdict.Failed != 0 {
					t.Errorf("%+v\n%s", a.Verdict, a.Text)
				}
				if a := c.check(good); !a.Verdict.Pass || !(a.Verdict.RelL2 < 0.5*a.Verdict.LimitL2) {
					t.Errorf("%s", a.Text)
				}
			})
		}
	}
}

// A right chain passes both criteria at every step, with scores of amplitude 4 and with parts taken out of it.
func TestSteepChain(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	defer c.Close()
	four := func(x wire.Tensor) wire.Tensor { // 4x
		y := c.run1(wire.OpAdd, wire.Params{}, x, x)
		return c.run1(wire.OpAdd, wire.Params{}, y, y)
	}
	q, k, v := four(c.random(1, hsd, 4, 33, 32)), c.random(2, hsd, 2, 47, 32), c.random(3, hsd, 2, 47, 32)
	r := c.run1(wire.OpRoPE, wire.Params{Rotary: 32, Offset: 14}, q)
	kr := c.run1(wire.OpRoPE, wire.Params{Rotary: 32}, k)
	s := c.run1(wire.OpScores, causal, r, kr)
	probs := c.run1(wire.OpSoftmax, wire.Params{}, s)
	ctx := c.run1(wire.OpContext, wire.Params{}, probs, v)
	out := c.run1(wire.OpPrefill, causal, r, kr, v)
	rows := c.run1(wire.OpMerge, wire.Params{}, out)
	projected := c.run1(wire.OpLinear, wire.Params{}, rows, c.random(4, []string{"out", "in"}, 96, 128), c.random(5, []string{"out"}, 96))
	for _, x := range []wire.Tensor{
		q, r, kr, s, probs, ctx, out, rows, projected, c.run1(wire.OpAdd, wire.Params{}, projected, c.random(6, fused, 33, 96)),
		c.run1(wire.OpIndex, wire.Params{Axis: "heads", Index: 3}, probs),
		c.run1(wire.OpRows, wire.Params{Index: 32, Count: 1}, out),
		c.run1(wire.OpSwap, wire.Params{}, ctx),
		c.run1(wire.OpAppend, wire.Params{}, kr, kr),
	} {
		if a := c.check(x); !a.Verdict.Pass || !(a.Verdict.RelL2 <= 0.5*a.Verdict.LimitL2) || !(a.Verdict.LimitL2 < 2e-5) {
			t.Errorf("%s", a.Text)
		} else {
			t.Logf("%-8s %v: error/bound %.2g, relative L2 %.2g, limit %.2g", x.Made, x.Shape, a.Verdict.MaxRatio, a.Verdict.RelL2, a.Verdict.LimitL2)
		}
	}
	if a := c.compare(ctx, out, 0); !a.Verdict.Pass {
		t.Errorf("%s", a.Text)
	}
}
