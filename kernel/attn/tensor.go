package attn

import (
	"fmt"
	"strings"

	"github.com/attnb/attnb/kernel/wire"
)

// Tensor is a handle of an f32 array of 1 to 4 dimensions in the device process. Its shape and axes are known here; its values are fetched by
// Download. The zero Tensor stands for none: every call on it fails.
type Tensor struct{ t wire.Tensor }

// Name is the tensor's name, or "" where it has none.
func (x Tensor) Name() string { return x.t.Name }

// Shape is the size of each dimension, outermost first.
func (x Tensor) Shape() []int { return append([]int(nil), x.t.Shape...) }

// AxisNames is what each dimension is: "heads", "seq", "dim".
func (x Tensor) AxisNames() []string { return append([]string(nil), x.t.Axes...) }

// EmptyRows is the number of rows that see nothing, of a tensor made under a mask. Their values are 0.
func (x Tensor) EmptyRows() int { return x.t.Empty }

// String is `"q" [heads 4, seq 9, dim 16]`.
func (x Tensor) String() string {
	if x.t.ID == 0 {
		return "no tensor"
	}
	var b strings.Builder
	if x.t.Name != "" {
		fmt.Fprintf(&b, "%q ", x.t.Name)
	}
	b.WriteByte('[')
	for i, n := range x.t.Shape {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %d", x.t.Axes[i], n)
	}
	b.WriteByte(']')
	return b.String()
}

// Named gives the tensor a name, by which it outlives the cell, and returns it. A tensor that had the name before loses it, and ends
// where nothing else holds it.
func (x Tensor) Named(name string) Tensor {
	return one(do(wire.Request{Kind: wire.KindName, IDs: []int{x.t.ID}, Name: name}))
}

// Get returns the tensor of that name. Where there is none the cell stops, with the nearest name or what became of the tensor.
func Get(name string) Tensor { return one(do(wire.Request{Kind: wire.KindGet, Name: name})) }

// Free gives the tensor's memory back now, under all its names. Other tensors that came from it stay, but Check may then
// find that it cannot replay them.
func (x Tensor) Free() { do(wire.Request{Kind: wire.KindFree, IDs: []int{x.t.ID}}) }

// Forget takes a name away. The tensor ends where nothing else holds it: another name, this cell, or the lineage of a
// tensor that came from it.
func Forget(name string) { do(wire.Request{Kind: wire.KindFree, Name: name}) }

// Tensors lists the tensors that have a name and those of this cell, oldest first.
func Tensors() []Tensor { return all(do(wire.Request{Kind: wire.KindList})) }

// Axes says anew what each dimension is, outermost first, a word each: x.Axes("seq heads dim"). The values are the same. Ops and pictures go by
// "batch", "heads", "seq", "dim", "hidden", "query" and "key"; any other word is a name alone.
func (x Tensor) Axes(names string) Tensor {
	return run1(wire.OpAxes, wire.Params{Axes: strings.Fields(names)}, x)
}

// Head is head i, from 0, of a tensor with the axis "heads": of [heads, seq, dim] it is [seq, dim].
func (x Tensor) Head(i int) Tensor {
	return run1(wire.OpIndex, wire.Params{Axis: "heads", Index: i}, x)
}

// Batch is item i, from 0, of a tensor with the axis "batch": of [batch, heads, seq, dim] it is [heads, seq, dim].
func (x Tensor) Batch(i int) Tensor {
	return run1(wire.OpIndex, wire.Params{Axis: "batch", Index: i}, x)
}

// Rows are the rows from up to but without to, at least one, of every head: along the axis "seq" or "query", or else the one before the last.
func (x Tensor) Rows(from, to int) Tensor {
	return run1(wire.OpRows, wire.Params{Index: from, Count: to - from}, x)
}

// Swap exchanges the first two axes: [seq, heads, dim] becomes [heads, seq, dim], a matrix is transposed.
func (x Tensor) Swap() Tensor { return run1(wire.OpSwap, wire.Params{}, x) }
