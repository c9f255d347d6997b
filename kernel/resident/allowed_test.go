package resident

import (
	"fmt"
	"math"
	"testing"

	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
)

// Cells that are not allowed are masked in a picture, and not merely 0: in the whole, in a head, and in rows of it.
func TestAllowedCellsInPictures(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	defer c.Close()
	x := c.random(1, []string{"heads", "query", "key"}, 2, 3, 5)
	cells := []float32{1, 0, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 0, 0}
	mask, err := c.Upload(wire.Request{Kind: wire.KindUpload, Shape: []int{3, 5}, Axes: []string{"query", "key"}}, cells)
	if err != nil {
		t.Fatal(err)
	}
	probs := c.run1(wire.OpSoftmax, wire.Params{Extras: []string{wire.ExtraAllowed}}, x, mask.Tensors[0])
	head := c.run1(wire.OpIndex, wire.Params{Axis: "heads", Index: 1}, probs)
	rows := c.run1(wire.OpRows, wire.Params{Index: 1, Count: 2}, head)
	row := c.run1(wire.OpIndex, wire.Params{Axis: "query", Index: 1}, rows)
	for _, of := range []struct {
		x      wire.Tensor
		first  int // row of the mask
		heads  int
		hidden int
	}{{probs, 0, 2, 8}, {head, 0, 1, 4}, {rows, 1, 1, 3}, {row, 2, 1, 2}} {
		hidden := 0
		values := c.download(of.x)
		m := metaOf(p, of.x)
		a := store.ViewOf(m)
		for i, v := range values {
			h, row, col := a.Place(i)
			sees := a.Sees(h, row, col)
			if want := cells[(of.first+row)*5+col] != 0; sees != want || sees != (v != 0) {
				t.Errorf("%v: head %d, row %d, column %d: seen %v, want %v; value %v", of.x.Shape, h, row, col, sees, want, v)
			}
			if !sees {
				hidden++
			}
		}
		if report := c.check(of.x).Text; hidden != of.hidden || !contains(report, fmt.Sprintf("(masked: %d)", of.hidden)) || a.H != of.heads {
			t.Errorf("%v: %d cells hidden, want %d\n%s", of.x.Shape, hidden, of.hidden, report)
		}
		c.do(wire.Request{Kind: wire.KindPicture, IDs: []int{of.x.ID}})
	}

	// A mask of 0 and -Inf means the opposite.
	for i := range cells {
		cells[i] = float32(math.Inf(-1)) * cells[i]
		if cells[i] != cells[i] {
			cells[i] = 0
		}
	}
	added, err := c.Upload(wire.Request{Kind: wire.KindUpload, Shape: []int{3, 5}, Axes: []string{"query", "key"}}, cells)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Do(wire.Request{Kind: wire.KindRun, Op: wire.OpSoftmax, Params: wire.Params{Extras: []string{wire.ExtraAllowed}}, IDs: ids([]wire.Tensor{x, added.Tensors[0]})})
	want := "Softmax: holds -Inf, where a cell is 0 or not: a mask that is added to scores is a Bias (allowed: [query 3, key 5])"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	d, err := c.mapOf(wire.Params{}, wire.Map{Heads: []int{1}}, probs)
	if err != nil || !contains(string(d.Parts[2].Data), "4 of 15 cells masked") {
		t.Errorf("a map of it: %v, %s", err, d.Parts[2].Data)
	}
}

// metaOf is what a tensor is, by the store.
func metaOf(p *process, x wire.Tensor) store.Meta {
	p.s.store.Lock()
	defer p.s.store.Unlock()
	found, err := p.s.store.Get("test", x.ID)
	if err != nil {
		p.t.Fatal(err)
	}
	return found.Node.Meta
}
