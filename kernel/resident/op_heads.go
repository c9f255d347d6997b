package resident

import (
	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/plan"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/bound"
)

// splitSizes are heads, KV heads and head dim of fused rows of the given width; dim is 0 where they do not divide it.
func splitSizes(p wire.Params, width int) (heads, kv, dim int) {
	heads, kv = p.Heads, p.KVHeads
	if kv == 0 {
		kv = heads
	}
	if heads < 1 || kv < 1 || heads > width || kv > width || width%(heads+2*kv) != 0 {
		return heads, kv, 0
	}
	return heads, kv, width / (heads + 2*kv)
}

func runSplit(j *job, p wire.Params, in []operand) ([]result, error) {
	x := in[0]
	if len(x.shape) != 2 {
		return nil, j.refuse([]string{"x"}, "fused rows have 2 dimensions, not %d", len(x.shape))
	}
	seq, width := x.shape[0], x.shape[1]
	heads, kv, dim := splitSizes(p, width)
	if heads < 1 || kv < 1 {
		return nil, j.refuse([]string{"x"}, "%d heads and %d KV heads: both must be at least 1", heads, kv)
	}
	if dim == 0 {
		return nil, j.refuse([]string{"x"}, "%s %d does not divide by %d heads + 2 * %d KV heads", x.axes[1], width, heads, kv)
	}
	q, k, v, err := j.d.SplitHeads(x.buf, plan.Layout(p.Layout), heads, kv, dim)
	if err != nil {
		return nil, err
	}
	of := func(b *cudaops.Buffer, h int) result {
		return result{b, meta{shape: []int{h, seq, dim}, axes: []string{"heads", "seq", "dim"}}}
	}
	return []result{of(q, heads), of(k, kv), of(v, kv)}, nil
}

func replaySplit(p wire.Params, in []truth) ([]bound.Heads, error) {
	heads, kv, dim := splitSizes(p, in[0].shape[1])
	q, k, v, err := bound.Split(in[0].Heads, reference.Layout(p.Layout), heads, kv, dim)
	return []bound.Heads{q, k, v}, err
}

func runHeads(j *job, p wire.Params, in []operand) ([]result, error) {
	x := in[0]
	if len(x.shape) != 2 || x.swapped() {
		return nil, j.refuse([]string{"x"}, "rows of heads have 2 dimensions, seq and hidden")
	}
	b, err := x.buf.AsHeads(p.Heads)
	if err != nil {
		return nil, err
	}
	return one(b, nil, meta{shape: []int{p.Heads, x.shape[0], x.shape[1] / p.Heads}, axes: []string{"heads", "seq", "dim"}})
}

func replayHeads(p wire.Params, in []truth) ([]bound.Heads, error) {
	return one1(bound.Unmerge(in[0].Heads, p.Heads))
}

func runMerge(j *job, _ wire.Params, in []operand) ([]result, error) {
	x := in[0]
	if len(x.shape) < 2 {
		return nil, j.refuse([]string{"x"}, "has no heads to merge")
	}
	h, err := j.heads("x", x)
	if err != nil {
		return nil, err
	}
	heads, seq, dim := h.Shape()
	b, err := j.d.MergeHeads(h)
	return one(b, err, meta{shape: []int{seq, heads * dim}, axes: []string{"seq", "hidden"}})
}

func replayMerge(_ wire.Params, in []truth) ([]bound.Heads, error) {
	h, err := headsOf(in[0])
	if err != nil {
		return nil, err
	}
	return one1(bound.Merge(h))
}

// runSwap exchanges the first two axes. Of three that is another view; of two it moves the elements, since those of a
// row must touch.
func runSwap(j *job, _ wire.Params, in []operand) ([]result, error) {
	x := in[0]
	switch len(x.shape) {
	case 3:
		b, err := x.buf.Transpose()
		return one(b, err, meta{shape: []int{x.shape[1], x.shape[0], x.shape[2]},
			axes: []string{x.axes[1], x.axes[0], x.axes[2]}, quantity: x.quantity})
	case 2:
		b, err := j.transposed(x.buf, x.shape[0], x.shape[1])
		return one(b, err, meta{shape: []int{x.shape[1], x.shape[0]}, axes: []string{x.axes[1], x.axes[0]}, quantity: x.quantity})
	}
	return nil, j.refuse([]string{"x"}, "swapping the first two axes needs 2 or 3 dimensions, not %d", len(x.shape))
}

// transposed copies a matrix [1, a, b] to [1, b, a].
func (j *job) transposed(x *cudaops.Buffer, a, b int) (*cudaops.Buffer, error) {
	x, err := j.packed(x)
	if err != nil {
		return nil, err
	}
	cells, err := j.view(x.Reshape(a, b, 1))
	if err != nil {
		return nil, err
	}
	moved, err := j.view(j.d.Swap(cells))
	if err != nil {
		return nil, err
	}
	return moved.Reshape(1, b, a)
}

// packed returns x, or a copy of it whose rows touch.
func (j *job) packed(x *cudaops.Buffer) (*cudaops.Buffer, error) {
	if x.Packed() {
		return x, nil
	}
	return j.view(j.d.Clone(x))
}

func replaySwap(_ wire.Params, in []truth) ([]bound.Heads, error) {
	if len(in[0].shape) == 3 {
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
