package resident

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/attnb/attnb/kernel/wire"
)

// What a page gets of a map: a viewer that names its supply, what is finer of each head, and the Go line that makes it.
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
		`attn.Map(attn.Get(\"queries\"), k, attn.Causal, attn.PoolMean"`} {
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
	html = string(d.Parts[0].Data)
	for form, least := range map[string]int{`"form":"picture"`: 2, `"form":"codes"`: 1, `"form":"f32"`: 2} { // noise fills an output by the first head's codes
		if n := strings.Count(html, form); n < least {
			t.Errorf("%s %d times, want %d", form, n, least)
		}
	}
	if n := len(d.Parts[0].Data) + len(d.Parts[1].Data)*4/3; n > 1_000_000 {
		t.Errorf("%d bytes", n)
	}
}

// A single cell of a picture is what a cell that computes the scores and probabilities downloads, to the bit: of whole windows and of
// one place, whatever else is computed with it.
func TestSingleCellsAreWhatIsDownloaded(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	const heads, s, keys = 4, 300, 577
	for _, dim := range []int{16, 37, 128} {
		q, k := c.random(1, hsd, heads, s, dim), c.random(2, hsd, 2, keys, dim)
		scores := c.run1(wire.OpScores, causal, q, k)
		values := map[wire.Quantity][]float32{wire.QuantityScores: c.download(scores), wire.QuantityProbabilities: c.download(c.run1(wire.OpSoftmax, wire.Params{}, scores))}
		m := c.live(causal, q, k)
		for quantity, want := range values {
			for _, w := range [][4]int{{0, 256, 256, 512}, {256, 300, 512, 577}, {0, 1, 277, 278}, {299, 300, 576, 577}, {123, 124, 5, 6}, {17, 40, 270, 330}} {
				tile, err := c.Tile(m.ID, wire.Map{Quantity: quantity, Heads: []int{3}, Queries: w[:2], Keys: w[2:], Rows: w[1] - w[0], Cols: w[3] - w[2]})
				if err != nil {
					t.Fatal(err)
				}
				hides := make([]bool, len(tile.Values))
				for i := 0; i < len(tile.Hidden); i += 2 {
					for k := tile.Hidden[i]; k < tile.Hidden[i+1]; k++ {
						hides[k] = true
					}
				}
				for i, x := range tile.Values {
					row, col, hidden := i/tile.Cols, i%tile.Cols, hides[i]
					full := want[(3*s+w[0]+row)*keys+w[2]+col]
					if masked := w[2]+col > w[0]+row+keys-s; hidden != masked || hidden && x != 0 || !hidden && math.Float32bits(x) != math.Float32bits(full) {
						t.Fatalf("dim %d, %v %v, query %d, key %d: %g (hidden %v), downloaded %g", dim, quantity, w, w[0]+row, w[2]+col, x, hidden, full)
					}
				}
			}
		}
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
