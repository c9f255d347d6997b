package resident

import (
	"bytes"
	"encoding/json"
	"image/png"
	"strings"
	"testing"

	"github.com/attnb/attnb/kernel/wire"
)

// A picture says what it shows, and asks to be shown at its natural size: its PNG has twice the pixels.
func TestTitles(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	defer c.Close()
	qkv := c.random(1, fused, 9, 96)
	c.name(qkv, "qkv")
	parts := c.run(wire.OpSplit, wire.Params{Layout: wire.LayoutNeoX, Heads: 4}, qkv)
	k := c.run1(wire.OpRoPE, wire.Params{Rotary: 8}, parts[1])
	q := c.run1(wire.OpRoPE, wire.Params{Rotary: 8}, parts[0])
	c.name(q, "q")
	s := c.run1(wire.OpScores, causal, q, k)
	probs := c.run1(wire.OpSoftmax, wire.Params{}, s)
	out := c.run1(wire.OpPrefill, causal, q, k, parts[2])
	long := q
	for range 40 {
		long = c.run1(wire.OpAdd, wire.Params{}, long, long)
	}
	for want, x := range map[string]wire.Tensor{
		"qkv [seq 9, hidden 96]":                              qkv,
		"v of qkv [heads 4, seq 9, dim 8]":                    parts[2],
		"q [heads 4, seq 9, dim 8]":                           q,
		"rotated k of qkv [heads 4, seq 9, dim 8]":            k,
		"scores, causal":                                      s,
		"head 2 of scores, causal":                            c.run1(wire.OpIndex, wire.Params{Axis: "heads", Index: 2}, s),
		"seq 3 to 4 of q [heads 4, seq 2, dim 8]":             c.run1(wire.OpRows, wire.Params{Index: 3, Count: 2}, q),
		"query 8 of probabilities":                            c.run1(wire.OpRows, wire.Params{Index: 8, Count: 1}, probs),
		"scores":                                              c.run1(wire.OpScores, wire.Params{}, q, k),
		"probabilities":                                       probs,
		"context, merged [seq 9, hidden 32]":                  c.run1(wire.OpMerge, wire.Params{}, out),
		"context, swapped [seq 9, heads 4, dim 8]":            c.run1(wire.OpSwap, wire.Params{}, out),
		"q + context [heads 4, seq 9, dim 8]":                 c.run1(wire.OpAdd, wire.Params{}, q, out),
		"rotated k of qkv, appended [heads 4, seq 18, dim 8]": c.run1(wire.OpAppend, wire.Params{}, k, k),
		"Add [heads 4, seq 9, dim 8]":                         long,
	} {
		d, err := c.Display(c.do(wire.Request{Kind: wire.KindPicture, IDs: []int{x.ID}}).DisplayID)
		if err != nil {
			t.Fatal(err)
		}
		if alt := string(d.Parts[1].Data); !strings.HasPrefix(alt, want+". ") {
			t.Errorf("%s\nwant it to begin with %q", alt, want)
		}
		var meta map[string]struct{ Width, Height int }
		if err := json.Unmarshal(d.Metadata, &meta); err != nil {
			t.Fatal(err)
		}
		size, err := png.DecodeConfig(bytes.NewReader(d.Parts[0].Data))
		if err != nil {
			t.Fatal(err)
		}
		if css := meta["image/png"]; css.Width == 0 || size.Width/2 != css.Width || size.Height/2 != css.Height {
			t.Errorf("%s: %d x %d pixels, shown at %d x %d", want, size.Width, size.Height, css.Width, css.Height)
		}
	}
}
