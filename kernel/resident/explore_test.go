package resident

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/attnb/attnb/kernel/resident/show"
	"github.com/attnb/attnb/kernel/wire"
)

// chain makes probabilities of fused rows, queries and keys turned as rq and rk say.
func (c caller) chain(qkv wire.Tensor, layout wire.Layout, rq, rk, scores wire.Params) wire.Tensor {
	c.t.Helper()
	qkvs := c.run(wire.OpSplit, wire.Params{Layout: layout, Heads: 3}, qkv)
	q, k := c.run1(wire.OpRoPE, rq, qkvs[0]), c.run1(wire.OpRoPE, rk, qkvs[1])
	return c.run1(wire.OpSoftmax, wire.Params{}, c.run1(wire.OpScores, scores, q, k))
}

func (c caller) explore(x wire.Tensor, controls ...wire.Control) wire.Display {
	c.t.Helper()
	a := c.do(wire.Request{Kind: wire.KindExplore, IDs: []int{x.ID}, Text: "p", Controls: controls})
	d, err := c.Display(a.DisplayID)
	if err != nil {
		c.t.Fatal(err)
	}
	return d
}

func (c caller) png(x wire.Tensor) []byte {
	c.t.Helper()
	d, err := c.Display(c.do(wire.Request{Kind: wire.KindPicture, IDs: []int{x.ID}, Text: "p"}).DisplayID)
	if err != nil {
		c.t.Fatal(err)
	}
	return d.Parts[0].Data
}

// A run again gives the picture that the same calls give with the other parameter, bit for bit, after the cell is gone.
func TestRerunIsTheChainMadeAnew(t *testing.T) {
	p := onHost(t)
	cell := p.dial()
	rope, masked := wire.Params{Rotary: 4, Offset: 3}, causal
	qkv := cell.random(7, fused, 9, 3*3*6)
	cell.name(qkv, "qkv")
	x := cell.chain(qkv, wire.LayoutNeoX, rope, rope, masked)
	with := func(change func(*wire.Params)) wire.Params {
		r := rope
		change(&r)
		return r
	}
	cases := []struct {
		name   string
		value  float64
		layout wire.Layout
		q, k   wire.Params
		mask   wire.Params
	}{
		{"offset", -5, wire.LayoutNeoX, with(func(p *wire.Params) { p.Offset = -5 }), rope, masked},
		{"query offset", 40, wire.LayoutNeoX, with(func(p *wire.Params) { p.Offset = 40 }), rope, masked},
		{"key offset", 40, wire.LayoutNeoX, rope, with(func(p *wire.Params) { p.Offset = 40 }), masked},
		{"rotary", 6, wire.LayoutNeoX, with(func(p *wire.Params) { p.Rotary = 6 }), with(func(p *wire.Params) { p.Rotary = 6 }), masked},
		{"key base", 500, wire.LayoutNeoX, rope, with(func(p *wire.Params) { p.Base = 500 }), masked},
		{"pairing", 1, wire.LayoutNeoX, with(func(p *wire.Params) { p.Interleaved = true }), with(func(p *wire.Params) { p.Interleaved = true }), masked},
		{"layout", 0, wire.LayoutGPT2, rope, rope, masked},
		{"scale", 0.25, wire.LayoutNeoX, rope, rope, wire.Params{Mask: wire.MaskCausal, Scale: 0.25}},
		{"diagonal", -2, wire.LayoutNeoX, rope, rope, wire.Params{Mask: wire.MaskDiagonal, Diagonal: -2}},
	}
	shown := make([]wire.Display, len(cases))
	for i, c := range cases {
		shown[i] = cell.explore(x, wire.Control{Name: c.name})
	}
	recorded := cell.png(x)
	cell.Close()

	page := p.dial()
	qkv = page.get("qkv")
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := shown[i].Exploration
			if len(e.Controls) != 1 || e.Controls[0].Name != c.name {
				t.Fatalf("controls %+v", e.Controls)
			}
			again, err := page.Rerun(e.ID, []wire.Control{{Name: c.name, Value: c.value}})
			if err != nil {
				t.Fatal(err)
			}
			want := page.png(page.chain(qkv, c.layout, c.q, c.k, c.mask))
			if bytes.Equal(want, recorded) {
				t.Fatal("the parameter changes nothing: this proves nothing")
			}
			if !bytes.Equal(again.Parts[0].Data, want) {
				t.Error("another picture than that of the chain made anew")
			}
			back, err := page.Rerun(e.ID, []wire.Control{{Name: c.name, Value: e.Controls[0].Value}})
			if err != nil || !bytes.Equal(back.Parts[0].Data, recorded) || !bytes.Equal(shown[i].Parts[0].Data, recorded) {
				t.Errorf("the recorded value gives another picture than the tensor, %v", err)
			}
		})
	}
	for _, d := range shown {
		if err := page.Release(d.Exploration.ID); err != nil {
			t.Error(err)
		}
	}
	page.Close()
	p.settle(4 * 9 * 54) // qkv alone
}

func TestExploreHeads(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	x := c.chain(c.random(7, fused, 5, 3*3*4), wire.LayoutNeoX, wire.Params{Rotary: 4}, wire.Params{Rotary: 4}, causal)
	usual := c.explore(x)
	var names []string
	for _, k := range usual.Exploration.Controls {
		names = append(names, k.Label)
	}
	if want := []string{"query offset", "query shift", "rotary", "base", "scaling", "pairing", "layout", "scale", "mask", "diagonal", "head"}; !slices.Equal(names, want) {
		t.Errorf("usual controls %q, want %q", names, want)
	}
	second, err := c.Rerun(usual.Exploration.ID, []wire.Control{{Name: "head", Value: 2}})
	if err != nil {
		t.Fatal(err)
	}
	dial, err := c.Rerun(c.explore(x, wire.Control{Name: "head", From: 0, To: 2}).Exploration.ID, []wire.Control{{Name: "head", Value: 1}})
	if err != nil || !bytes.Equal(dial.Parts[0].Data, second.Parts[0].Data) || bytes.Equal(dial.Parts[0].Data, c.png(x)) {
		t.Errorf("head 1 differs between list and slider, or is all heads; %v", err)
	}
	if text := string(dial.Parts[1].Data); !strings.Contains(text, "5 query x 5 key") {
		t.Errorf("text %q", text)
	}
}

// What the cell let go of before is made again, once, and held.
func TestExploreAfterItsStepsAreGone(t *testing.T) {
	p := onHost(t)
	first := p.dial()
	rope := wire.Params{Rotary: 4}
	qkv := first.random(7, fused, 5, 3*3*4)
	first.name(qkv, "qkv")
	first.name(first.chain(qkv, wire.LayoutNeoX, rope, rope, causal), "p")
	first.Close()

	c := p.dial()
	e := c.explore(c.get("p"), wire.Control{Name: "key offset"}).Exploration
	c.do(wire.Request{Kind: wire.KindFree, Name: "p"})
	got, err := c.Rerun(e.ID, []wire.Control{{Name: "key offset", Value: 9}})
	if err != nil {
		t.Fatal(err)
	}
	want := c.png(c.chain(c.get("qkv"), wire.LayoutNeoX, rope, wire.Params{Rotary: 4, Offset: 9}, causal))
	if !bytes.Equal(got.Parts[0].Data, want) {
		t.Error("another picture than that of the chain made anew")
	}
	// The turned queries and the keys before their turn, both [3, 5, 4], are what the control does not touch.
	c.Close()
	p.settle(4*5*36 + 2*4*3*5*4)
}

func TestExploreRefusals(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	rope := wire.Params{Rotary: 4, Offset: 2}
	qkv := c.random(7, fused, 5, 3*3*4)
	x := c.chain(qkv, wire.LayoutNeoX, rope, rope, wire.Params{})
	given := rope
	given.InvFreq = []float64{1, 0.5}
	freqs := c.chain(qkv, wire.LayoutNeoX, given, given, wire.Params{})
	lost := c.random(9, fused, 5, 3*3*4)
	rootless := c.chain(lost, wire.LayoutNeoX, rope, rope, wire.Params{})
	for _, c := range []struct {
		name    string
		of      wire.Tensor
		control wire.Control
		want    string
	}{
		{"misspelt", x, wire.Control{Name: "ofset"}, `Explore: no parameter is called "ofset": did you mean "offset"?`},
		{"no such side", x, wire.Control{Name: "left offset"}, `Explore: no parameter is called "left offset": there are`},
		{"side of a head", x, wire.Control{Name: "query head"}, `no parameter is called "query head"`},
		{"no mask", x, wire.Control{Name: "diagonal"}, `Explore: "diagonal" turns nothing: no masked step made this`},
		{"leaf", qkv, wire.Control{Name: "offset"}, `Explore: "offset" turns nothing: no RoPE step made this (x: [seq 5, hidden 36])`},
		{"leaf, nothing asked", qkv, wire.Control{}, `Explore: there is nothing to turn`},
		{"the recorded value is outside", x, wire.Control{Name: "offset", From: 3, To: 9}, `"offset" from 3 to 9: it was 2 when this was made`},
		{"upside down", x, wire.Control{Name: "offset", From: 9, To: 3}, `the first must be less than the second`},
		{"fraction", x, wire.Control{Name: "offset", From: 0.5, To: 9}, `whole numbers only`},
		{"base of 0", x, wire.Control{Name: "base", From: 0, To: 9}, `must be above 0`},
		{"more dims than there are", x, wire.Control{Name: "rotary", From: 2, To: 6}, `it goes from 2 to 4`},
		{"pairing is a list", x, wire.Control{Name: "pairing", From: 0, To: 1}, `"pairing" is one of half-split, interleaved: use Choice`},
		{"head out of range", x, wire.Control{Name: "head", From: 0, To: 3}, `it goes from 0 to 2`},
		{"given frequencies", freqs, wire.Control{Name: "base"}, `the frequencies were given one by one`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := wire.Request{Kind: wire.KindExplore, IDs: []int{c.of.ID}, Controls: []wire.Control{c.control}}
			if c.control.Name == "" {
				r.Controls = nil
			}
			client := p.dial()
			defer client.Close()
			_, err := client.Do(r)
			if e := new(wire.Error); !errors.As(err, &e) || !strings.Contains(e.Message, c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	before := p.d.InUse()
	_, err := c.Do(wire.Request{Kind: wire.KindExplore, IDs: []int{x.ID}, Controls: []wire.Control{{Name: "offset"}, {Name: "query offset"}}})
	if err == nil || !strings.Contains(err.Error(), `"query offset" is there twice`) {
		t.Errorf("twice the same: %v", err)
	}
	if _, err := c.Do(wire.Request{Kind: wire.KindExplore, IDs: []int{x.ID}, Labels: []string{"a"}}); err == nil || !strings.Contains(err.Error(), "Explore: 1 tokens fit none") {
		t.Errorf("labels: %v", err)
	}
	if after := p.d.InUse(); after != before {
		t.Errorf("refusals leave %d bytes", after-before)
	}

	// A run that fails names what failed, and the next one works.
	e := c.explore(x, wire.Control{Name: "offset", From: -1 << 30, To: 64}, wire.Control{Name: "rotary"}).Exploration
	for _, bad := range []struct {
		name  string
		value float64
		want  string
	}{
		{"offset", -1 << 28, "RoPE: offset -268435456 with 5 rows"},
		{"offset", 65, "query offset 65 is not within -1.073741824e+09 to 64"},
		{"offset", 1.5, "query offset 1.5 is not a whole number"},
		{"rotary", 3, "RoPE: rotary dims 3 is odd"},
	} {
		if _, err := c.Rerun(e.ID, []wire.Control{{Name: bad.name, Value: bad.value}}); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%s %g: %v, want %q", bad.name, bad.value, err, bad.want)
		}
	}
	if _, err := c.Rerun(e.ID, nil); err != nil {
		t.Error(err)
	}
	if _, err := c.Rerun(e.ID+1, nil); err == nil || !strings.Contains(err.Error(), "no longer live") {
		t.Errorf("an unknown one: %v", err)
	}

	// A leaf that was freed, with nothing in its stead.
	c.do(wire.Request{Kind: wire.KindName, IDs: []int{rootless.ID}, Name: "rootless"})
	c.do(wire.Request{Kind: wire.KindFree, IDs: []int{lost.ID}})
	c.Close()
	d := p.dial()
	for deadline := 0; ; deadline++ { // the closed connection is noticed a moment later
		_, err := d.Do(wire.Request{Kind: wire.KindExplore, IDs: []int{d.get("rootless").ID}})
		if err != nil && strings.Contains(err.Error(), `Explore: "rootless" cannot be run again: its leaf`) {
			break
		}
		if deadline > 10000 {
			t.Fatalf("a freed leaf: %v", err)
		}
	}
}

// The oldest ends when there are too many, and gives back what it held.
func TestExplorationsAreBounded(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	var first wire.Exploration
	for i := range show.MaxLive + 1 {
		x := c.random(uint64(i), hsd, 2, 3, 4)
		y := c.run1(wire.OpRoPE, wire.Params{Rotary: 4}, x)
		e := c.explore(y, wire.Control{Name: "offset"}).Exploration
		if i == 0 {
			first = *e
		}
	}
	c.Close()
	p.settle(show.MaxLive * 4 * 2 * 3 * 4)
	d := p.dial()
	if _, err := d.Rerun(first.ID, nil); err == nil || !strings.Contains(err.Error(), "run its cell again") {
		t.Errorf("the oldest: %v", err)
	}
}
