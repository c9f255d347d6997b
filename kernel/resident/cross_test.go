package resident

import (
	"math"
	"testing"

	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference"
)

// Cross attention: queries of one sequence to the keys of another, more of them or fewer, some of them padding. By every way it is the reference's,
// it can be checked, shown and explained, and positions do not come into it.
func TestCrossAttention(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	defer c.Close()
	for _, n := range [][2]int{{9, 5}, {3, 14}, {1, 6}} {
		rows, keys := n[0], n[1]
		q, k, v := normals(41, 4, rows, 8), normals(42, 2, keys, 8), normals(43, 2, keys, 8)
		up := func(x reference.Heads) wire.Tensor {
			data, shape := packed(x)
			return c.upload(hsd, shape, data)
		}
		padded := wire.Params{Mask: wire.MaskNone, PadRight: 2}
		want := must(reference.Attention(q, k, v, 1/math.Sqrt(8), reference.Padded(0, 2, keys)))
		qt, kt, vt := up(q), up(k), up(v)
		scored := c.run1(wire.OpScores, padded, qt, kt)
		soft := c.run1(wire.OpSoftmax, wire.Params{}, scored)
		for what, out := range map[string]wire.Tensor{"whole": c.run1(wire.OpPrefill, padded, qt, kt, vt), "steps": c.run1(wire.OpContext, wire.Params{}, soft, vt)} {
			for i, got := range c.download(out) {
				h, row, col := i/(rows*8), i/8%rows, i%8
				if !(math.Abs(float64(got)-want[h].At(row, col)) <= 1e-6) {
					t.Fatalf("%v, %s: element %d is %v, want %v", n, what, i, got, want[h].At(row, col))
				}
			}
			if a := c.check(out); !a.Verdict.Pass {
				t.Errorf("%v, %s: %s", n, what, a.Text)
			}
		}
		if a := c.ask("mask", padded, nil, []string{"q", "k", "p"}, qt, kt, soft); !silent(a) {
			t.Errorf("%v: %s", n, a.Text)
		}
		if a := c.ask("mask", wire.Params{}, nil, []string{"q", "k", "p"}, qt, kt, soft); rows > 1 && !named(a, "hidden keys") {
			t.Errorf("%v: %s", n, a.Text)
		}
		if _, err := c.mapOf(padded, wire.Map{}, qt, kt); err != nil {
			t.Error(err)
		}
		c.do(wire.Request{Kind: wire.KindPicture, IDs: []int{soft.ID}})
	}
}
