package resident

import (
	"strconv"
	"strings"
	"testing"

	"github.com/attnb/attnb/kernel/wire"
)

// What a page gets of a map: a viewer that names its supply, two finer levels, and the Go line that makes it.
func TestZoomingMap(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	q := c.random(1, []string{"heads", "seq", "dim"}, 2, 1500, 4)
	c.name(q, "queries")
	k := c.random(2, []string{"heads", "seq", "dim"}, 1, 1500, 4)
	d, err := c.mapOf(wire.Params{Mask: wire.MaskCausal}, wire.Map{Live: true, Heads: []int{1}, Reduce: wire.ReduceMean}, q, k)
	if err != nil || d.Map == nil || len(d.Parts) != 3 || d.Parts[0].MIME != "text/html" {
		t.Fatal(d.Map, len(d.Parts), err)
	}
	html := string(d.Parts[0].Data)
	for _, want := range []string{`"id":"` + strconv.FormatUint(uint64(d.Map.ID), 16) + `"`, `"form":"picture"`, `"form":"codes"`, `"form":"f32"`, `"size":[1500,1500]`, `"index":1`,
		`attn.Map(queries, k, attn.Causal, attn.PoolMean"`} {
		if !strings.Contains(html, want) {
			t.Errorf("the viewer has no %s", want)
		}
	}
	if n := len(d.Parts[0].Data) + len(d.Parts[1].Data)*4/3; n > 1_000_000 {
		t.Errorf("%d bytes", n)
	}
	// A map that is not live has no supply.
	if d, err = c.mapOf(wire.Params{}, wire.Map{}, q, k); err != nil || d.Map != nil || !strings.Contains(string(d.Parts[0].Data), `"id":""`) {
		t.Error(d.Map, err)
	}
}

// Noise in many heads has no room in an output: it is pooled until it has, and says so.
func TestLargePictureIsPooled(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	x := c.random(4, []string{"heads", "query", "key"}, 12, 700, 700)
	d, err := c.mapOf(wire.Params{}, wire.Map{Live: true}, x)
	if err != nil || d.Map == nil {
		t.Fatal(d.Map, err)
	}
	n := 0
	for _, part := range d.Parts {
		n += len(part.Data)
		if part.MIME == "image/png" {
			n += len(part.Data) / 3
		}
	}
	if len(d.Parts) != 3 || n > 1_000_000 {
		t.Errorf("%d parts, %d bytes", len(d.Parts), n)
	}
	if alt := string(d.Parts[2].Data); !strings.Contains(alt, "pooled: each cell is the largest of") {
		t.Error(alt)
	}
}

// A matrix beyond what a chart holds is a zooming picture by magnitude, or of probabilities by the largest.
func TestInteractiveZooms(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	x := c.random(3, []string{"query", "key"}, 70, 80)
	a, err := c.Do(wire.Request{Kind: wire.KindPicture, Style: wire.StyleHTML, IDs: ids([]wire.Tensor{x})})
	if err != nil {
		t.Fatal(err)
	}
	d, err := c.Display(a.DisplayID)
	if err != nil || d.Map == nil || d.Map.Shown.Reduce != wire.ReduceMagnitude || !strings.Contains(string(d.Parts[0].Data), `"before":"x.Map("`) {
		t.Fatal(d.Map, err)
	}
	tile, err := c.Tile(d.Map.ID, wire.Map{Reduce: wire.ReduceMagnitude, Queries: []int{69, 70}, Keys: []int{79, 80}, Rows: 1, Cols: 1})
	if err != nil || tile.Values[0] != c.download(x)[70*80-1] {
		t.Error(tile, err)
	}
}
