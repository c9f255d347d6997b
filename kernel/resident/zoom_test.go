package resident

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/viz"
)

// A picture that is pooled from the cells of a finer one is what pooling from the matrix makes.
func TestCoarserIsThePool(t *testing.T) {
	for _, mask := range []cudaops.Mask{{}, {Causal: true, Diagonal: -3}, {Causal: true, Diagonal: 40}} {
		for _, size := range [][2]int{{90, 130}, {33, 64}, {64, 33}, {7, 200}} {
			n, k := size[0], size[1]
			x := make([]float32, n*k)
			for i := range x {
				x[i] = float32(math.Sin(float64(i * i % 101)))
			}
			for reduce := cudaops.Max; reduce <= magnitude; reduce++ {
				v := mapView{reduce: reduce, rows: viz.Span{To: n}, cols: viz.Span{To: k}, mask: mask, h: min(16, n), w: min(20, k)}
				fine := pooled(v.finer(), x)
				got, want := v.coarser(fine), pooled(v, x)
				for i := range got.Values {
					if d := math.Abs(float64(got.Values[i] - want.Values[i])); !(d <= 1e-6) {
						t.Fatalf("%v, %v, reduction %d: cell %d is %g, want %g", size, mask, reduce, i, got.Values[i], want.Values[i])
					}
				}
				if fmt.Sprint(got.Seen) != fmt.Sprint(want.Seen) {
					t.Fatalf("%v, %v: sees %v, want %v", size, mask, got.Seen, want.Seen)
				}
			}
		}
	}
}

// pooled reduces the cells of a matrix by definition.
func pooled(v mapView, x []float32) wire.Tile {
	n, k := v.rows.To, v.cols.To
	t := wire.Tile{Rows: v.h, Cols: v.w, Values: make([]float32, v.h*v.w), Seen: make([]int, v.h)}
	for i := range v.h {
		for j := range v.w {
			sum, count, best := 0.0, 0, math.NaN()
			for row := i * n / v.h; row < (i+1)*n/v.h; row++ {
				for col := j * k / v.w; col < (j+1)*k/v.w; col++ {
					if col >= v.mask.Visible(row, k) {
						continue
					}
					f := float64(x[row*k+col])
					sum += f
					count++
					better := map[cudaops.Reduce]bool{cudaops.Max: f > best, cudaops.Min: f < best, magnitude: math.Abs(f) > math.Abs(best)}[v.reduce]
					if better || math.IsNaN(best) {
						best = f
					}
				}
			}
			if count == 0 {
				continue
			}
			t.Seen[i] = j + 1
			switch v.reduce {
			case cudaops.Mean:
				best = sum / float64(count)
			case cudaops.Sum:
				best = sum
			}
			t.Values[i*v.w+j] = float32(best)
		}
	}
	return t
}

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
	for _, want := range []string{`"id":"` + supplyID(d.Map.ID) + `"`, `"form":"picture"`, `"form":"codes"`, `"form":"f32"`, `"size":[1500,1500]`, `"index":1`,
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
