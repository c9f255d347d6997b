package resident

import (
	"strings"
	"testing"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/host"
	"github.com/attnb/attnb/kernel/resident/chain"
	"github.com/attnb/attnb/kernel/wire"
)

// tight serves with so small a budget that nearly everything is looked at in a sample.
func tight(t *testing.T, b cudaops.Backend, budget chain.Budget) *process {
	t.Helper()
	return startWith(t, b, func(o *Options) { o.Budget = budget })
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
			p := tight(t, f.Backend, chain.Budget{Cells: 1 << 12})
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
	p := tight(t, host.New(host.Options{}), chain.Budget{Work: 1 << 19})
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
