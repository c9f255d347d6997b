package chain

import (
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/bound"
)

// DefaultBase is the base of RoPE where none is given.
const DefaultBase = 10000

func runRoPE(j *Job, p wire.Params, in []store.Operand) ([]store.Operand, error) {
	h, err := j.Heads("x", in[0])
	if err != nil {
		return nil, err
	}
	by, err := RoPEOf(p)
	if err != nil {
		return nil, j.refuse([]string{"x"}, "%v", err)
	}
	r := cudaops.RoPE{Rotary: by.Rotary, Base: by.Base, Offset: by.Offset, Positions: by.Positions, InvFreq: by.InvFreq, Magnitude: by.Magnitude}
	if p.Interleaved {
		r.Convention = cudaops.Interleaved
	}
	if p.Float32Angles {
		r.Angle = cudaops.AngleFloat32
	}
	b, err := j.D.RoPE(h, r)
	b, err = j.back(b, err, in[0])
	return one(b, err, store.Meta{Shape: in[0].Shape, Axes: in[0].Axes})
}

func replayRoPE(p wire.Params, in []Truth) ([]bound.Heads, error) {
	h, err := ByHead(in[0])
	if err != nil {
		return nil, err
	}
	out, err := bound.ApplyRoPE(h, ReferenceRoPE(p))
	return backTo(out, err, in[0])
}

func runAdd(j *Job, _ wire.Params, in []store.Operand) ([]store.Operand, error) {
	return j.pairwise(in, j.D.Add)
}

// pairwise runs an op on each element of two tensors of one shape.
func (j *Job) pairwise(in []store.Operand, do func(a, b *cudaops.Buffer) (*cudaops.Buffer, error)) ([]store.Operand, error) {
	a, b := in[0], in[1]
	if slices.Equal(a.Shape, b.Shape) && !slices.Equal(a.Axes, b.Axes) {
		return nil, j.refuse([]string{"a", "b"}, "axes differ")
	}
	if !slices.Equal(a.Shape, b.Shape) {
		return nil, j.refuse([]string{"a", "b"}, "shapes differ")
	}
	y, err := do(a.Buf, b.Buf)
	return one(y, err, same(a))
}

func replayAdd(_ wire.Params, in []Truth) ([]bound.Heads, error) {
	return one1(bound.Add(in[0].Heads, in[1].Heads))
}

func runLinear(j *Job, _ wire.Params, in []store.Operand) ([]store.Operand, error) {
	x, w := in[0], in[1]
	if len(x.Shape) != 2 || len(w.Shape) != 2 {
		return nil, j.refuse([]string{"x", "w"}, "rows and weights have 2 dimensions each: [seq, in] and [out, in]")
	}
	var bias *cudaops.Buffer
	if len(in) > 2 {
		if len(in[2].Shape) != 1 {
			return nil, j.refuse([]string{"b"}, "a bias has 1 dimension")
		}
		bias = in[2].Buf
	}
	b, err := j.D.Linear(x.Buf, w.Buf, bias)
	return one(b, err, store.Meta{Shape: []int{x.Shape[0], w.Shape[0]}, Axes: []string{"seq", "hidden"}})
}

func replayLinear(_ wire.Params, in []Truth) ([]bound.Heads, error) {
	var b bound.Heads
	if len(in) > 2 {
		b = in[2].Heads
	}
	return one1(bound.Linear(in[0].Heads, in[1].Heads, b))
}

func runAppend(j *Job, _ wire.Params, in []store.Operand) ([]store.Operand, error) {
	if len(in[0].Shape) != len(in[1].Shape) || !slices.Equal(in[0].Axes, in[1].Axes) {
		return nil, j.refuse([]string{"cache", "rows"}, "axes differ")
	}
	if in[0].RowAxis() < 0 || len(in[0].Shape) == 2 && in[0].Swapped() {
		return nil, j.refuse([]string{"cache"}, "has no rows to append to")
	}
	cache, err := j.Heads("cache", in[0])
	if err != nil {
		return nil, err
	}
	rows, err := j.Heads("rows", in[1])
	if err != nil {
		return nil, err
	}
	h, t, d := cache.Shape()
	_, more, _ := rows.Shape()
	b, err := j.D.AppendKV(cache, rows)
	b, err = j.back(b, err, in[0])
	return one(b, err, alike(in[0], h, t+more, d))
}

// replayAppend takes a cache and any number of rows: a replay hands over a whole run of appends at once, so that
// n appends do not cost n copies of the cache.
func replayAppend(_ wire.Params, in []Truth) ([]bound.Heads, error) {
	parts := make([]bound.Heads, len(in))
	total := 0
	for i, x := range in {
		h, err := ByHead(x)
		if err != nil {
			return nil, err
		}
		parts[i] = h
		n, _ := h.Value[0].Dims()
		total += n
	}
	join := func(of func(bound.Heads) reference.Heads) reference.Heads {
		out := make(reference.Heads, len(of(parts[0])))
		for h := range out {
			_, dim := of(parts[0])[h].Dims()
			out[h] = mat.NewDense(total, dim, nil)
			at := 0
			for _, part := range parts {
				n, _ := of(part)[h].Dims()
				out[h].Slice(at, at+n, 0, dim).(*mat.Dense).Copy(of(part)[h])
				at += n
			}
		}
		return out
	}
	return backTo(bound.Heads{
		Value: join(func(b bound.Heads) reference.Heads { return b.Value }),
		Err:   join(func(b bound.Heads) reference.Heads { return b.Err }),
	}, nil, in[0])
}
