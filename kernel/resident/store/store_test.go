package store

import (
	"slices"
	"testing"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/host"
	"github.com/attnb/attnb/kernel/wire"
)

// newDevice is one on which nothing may be left when the test ends.
func newDevice(t *testing.T, s *Store) *cudaops.Device {
	d := cudaops.NewDevice(host.New(host.Options{Workers: 1}))
	t.Cleanup(func() {
		s.Clear()
		if n := d.InUse(); n != 0 {
			t.Errorf("%d bytes in use at the end", n)
		}
		d.Close()
	})
	return d
}

// A step holds the leaves that it came from, and not what lies between; what a job uses stays until the job is done.
func TestWhoHoldsWhat(t *testing.T) {
	s := New()
	d := newDevice(t, s)
	c := NewClient(t.Context(), d, s)
	made, err := c.Leaf("FromSlice", Origin{Source: "FromSlice"}, []int{2, 3}, []string{"seq", "hidden"}, FromSlice([]float32{1, 2, 3, 4, 5, 6}))
	if err != nil {
		t.Fatal(err)
	}
	x := made.Tensors[0].ID
	step := func(from int) int {
		in, nodes, _, done, err := c.Use("Add", []int{from}, []string{"a"})
		if err != nil {
			t.Fatal(err)
		}
		defer done()
		sum, err := d.Add(in[0].Buf, in[0].Buf)
		if err != nil {
			t.Fatal(err)
		}
		s.Lock()
		defer s.Unlock()
		a := NewArray(sum)
		return c.Hand(s.Add(a, NewStep(in[0].Meta, wire.OpAdd, wire.Params{}, slices.Clone(nodes), 0, a))).Tensors[0].ID
	}
	y := step(x)
	z := step(y)
	for _, stage := range []struct {
		gone []int
		want int64 // bytes
	}{{nil, 3 * 24}, {[]int{y}, 2 * 24}, {[]int{x}, 2 * 24}, {[]int{z}, 0}} {
		c.LetGo(stage.gone)
		if n := d.InUse(); n != stage.want {
			t.Errorf("without %v: %d bytes in use, want %d", stage.gone, n, stage.want)
		}
	}

	if made, err = c.Leaf("FromSlice", Origin{Source: "FromSlice"}, []int{4}, []string{"dim"}, FromSlice([]float32{1, 2, 3, 4})); err != nil {
		t.Fatal(err)
	}
	_, _, _, done, err := c.Use("Download", []int{made.Tensors[0].ID}, []string{"x"})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if n := d.InUse(); n != 16 {
		t.Errorf("%d bytes in use under a job, want 16", n)
	}
	done()
	if n := d.InUse(); n != 0 {
		t.Errorf("%d bytes in use after it", n)
	}
}

func TestAlign(t *testing.T) {
	mine := Meta{Shape: []int{4, 9, 8}, Axes: []string{"heads", "seq", "dim"}}
	for _, of := range []struct {
		shape []int
		axes  []string
		want  []string // nil: refused
		note  bool
	}{
		{[]int{4, 9, 8}, []string{"heads", "seq", "dim"}, []string{"heads", "seq", "dim"}, false},
		{[]int{9, 4, 8}, []string{"seq", "heads", "dim"}, []string{"seq", "heads", "dim"}, true},
		{[]int{4, 9, 8}, []string{"a", "b", "c"}, []string{"heads", "seq", "dim"}, true},
		{[]int{9, 4, 8}, []string{"a", "b", "c"}, nil, false},
		{[]int{4, 9, 8}, []string{"seq", "heads", "dim"}, nil, false},
		{[]int{9, 8}, []string{"seq", "dim"}, nil, false},
	} {
		axes, note, err := Align(mine, Meta{Shape: of.shape, Axes: of.axes})
		if (err == nil) != (of.want != nil) || !slices.Equal(axes, of.want) || (note != "") != of.note {
			t.Errorf("%v %v: %v, %q, %v; want %v, a note: %v", of.shape, of.axes, axes, note, err, of.want, of.note)
		}
	}
}

func TestPermute(t *testing.T) {
	if got, want := Permute([]int{0, 1, 2, 3, 4, 5}, []int{2, 3}, OrderOf([]string{"a", "b"}, []string{"b", "a"})), []int{0, 3, 1, 4, 2, 5}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if OrderOf([]string{"a", "b"}, []string{"a"}) != nil || OrderOf([]string{"a"}, []string{"b"}) != nil {
		t.Error("axes of other names have an order")
	}
}
