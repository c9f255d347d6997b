package chain

import (
	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/plan"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/bound"
)

// SplitSizes are heads, KV heads and head dim of fused rows of the given width; dim is 0 where they do not divide it.
func SplitSizes(p wire.Params, width int) (heads, kv, dim int) {
	heads, kv = p.Heads, p.KVHeads
	if kv == 0 {
		kv = heads
	}
	if heads < 1 || kv < 1 || heads > width || kv > width || width%(heads+2*kv) != 0 {
		return heads, kv, 0
	}
	return heads, kv, width / (heads + 2*kv)
}

func runSplit(j *Job, p wire.Params, in []store.Operand) ([]store.Operand, error) {
	x := in[0]
	if len(x.Shape) != 2 {
		return nil, j.refuse([]string{"x"}, "fused rows have 2 dimensions, not %d", len(x.Shape))
	}
	seq, width := x.Shape[0], x.Shape[1]
	heads, kv, dim := SplitSizes(p, width)
	if heads < 1 || kv < 1 {
		return nil, j.refuse([]string{"x"}, "%d heads and %d KV heads: both must be at least 1", heads, kv)
	}
	if dim == 0 {
		return nil, j.refuse([]string{"x"}, "%s %d does not divide by %d heads + 2 * %d KV heads", x.Axes[1], width, heads, kv)
	}
	q, k, v, err := j.D.SplitHeads(x.Buf, plan.Layout(p.Layout), heads, kv, dim)
	if err != nil {
		return nil, err
	}
	of := func(b *cudaops.Buffer, h int) store.Operand {
		return store.Operand{Buf: b, Meta: store.Meta{Shape: []int{h, seq, dim}, Axes: []string{"heads", "seq", "dim"}}}
	}
	return []store.Operand{of(q, heads), of(k, kv), of(v, kv)}, nil
}

func replaySplit(p wire.Params, in []Truth) ([]bound.Heads, error) {
	heads, kv, dim := SplitSizes(p, in[0].Shape[1])
	q, k, v, err := bound.Split(in[0].Heads, reference.Layout(p.Layout), heads, kv, dim)
	return []bound.Heads{q, k, v}, err
}

func runHeads(j *Job, p wire.Params, in []store.Operand) ([]store.Operand, error) {
	x := in[0]
	if len(x.Shape) != 2 || x.Swapped() {
		return nil, j.refuse([]string{"x"}, "rows of heads have 2 dimensions, seq and hidden")
	}
	b, err := x.Buf.AsHeads(p.Heads)
	if err != nil {
		return nil, err
	}
	return one(b, nil, store.Meta{Shape: []int{p.Heads, x.Shape[0], x.Shape[1] / p.Heads}, Axes: []string{"heads", "seq", "dim"}})
}

func replayHeads(p wire.Params, in []Truth) ([]bound.Heads, error) {
	return one1(bound.Unmerge(in[0].Heads, p.Heads))
}

func runMerge(j *Job, _ wire.Params, in []store.Operand) ([]store.Operand, error) {
	x := in[0]
	if len(x.Shape) < 2 {
		return nil, j.refuse([]string{"x"}, "has no heads to merge")
	}
	h, err := j.Heads("x", x)
	if err != nil {
		return nil, err
	}
	heads, seq, dim := h.Shape()
	b, err := j.D.MergeHeads(h)
	return one(b, err, store.Meta{Shape: []int{seq, heads * dim}, Axes: []string{"seq", "hidden"}})
}

func replayMerge(_ wire.Params, in []Truth) ([]bound.Heads, error) {
	h, err := ByHead(in[0])
	if err != nil {
		return nil, err
	}
	return one1(bound.Merge(h))
}

// runSwap exchanges the first two axes. Of three that is another view; of two it moves the elements, since those of a
// row must touch.
func runSwap(j *Job, _ wire.Params, in []store.Operand) ([]store.Operand, error) {
	x := in[0]
	switch len(x.Shape) {
	case 3:
		b, err := x.Buf.Transpose()
		return one(b, err, store.Meta{Shape: []int{x.Shape[1], x.Shape[0], x.Shape[2]},
			Axes: []string{x.Axes[1], x.Axes[0], x.Axes[2]}, Quantity: x.Quantity})
	case 2:
		b, err := j.transposed(x.Buf, x.Shape[0], x.Shape[1])
		return one(b, err, store.Meta{Shape: []int{x.Shape[1], x.Shape[0]}, Axes: []string{x.Axes[1], x.Axes[0]}, Quantity: x.Quantity})
	}
	return nil, j.refuse([]string{"x"}, "swapping the first two axes needs 2 or 3 dimensions, not %d", len(x.Shape))
}

// transposed copies a matrix [1, a, b] to [1, b, a].
func (j *Job) transposed(x *cudaops.Buffer, a, b int) (*cudaops.Buffer, error) {
	x, err := j.packed(x)
	if err != nil {
		return nil, err
	}
	cells, err := j.Keep(x.Reshape(a, b, 1))
	if err != nil {
		return nil, err
	}
	moved, err := j.Keep(j.D.Swap(cells))
	if err != nil {
		return nil, err
	}
	return moved.Reshape(1, b, a)
}

// packed returns x, or a copy of it whose rows touch.
func (j *Job) packed(x *cudaops.Buffer) (*cudaops.Buffer, error) {
	if x.Packed() {
		return x, nil
	}
	return j.Keep(j.D.Clone(x))
}

func replaySwap(_ wire.Params, in []Truth) ([]bound.Heads, error) {
	if len(in[0].Shape) == 3 {
		return one1(bound.Swap(in[0].Heads))
	}
	return one1(transpose(in[0].Heads), nil)
}

// transpose turns each matrix of x.
func transpose(x bound.Heads) bound.Heads {
	turn := func(hs reference.Heads) reference.Heads {
		out := make(reference.Heads, len(hs))
		for i, m := range hs {
			out[i] = dense(m.T())
		}
		return out
	}
	return bound.Heads{Value: turn(x.Value), Err: turn(x.Err)}
}
