package resident

import (
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/bound"
)

const defaultBase = 10000

func runRoPE(j *job, p wire.Params, in []operand) ([]result, error) {
	h, err := j.heads("x", in[0])
	if err != nil {
		return nil, err
	}
	by, err := ropeOf(p)
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
	b, err := j.d.RoPE(h, r)
	b, err = j.back(b, err, in[0])
	return one(b, err, meta{shape: in[0].shape, axes: in[0].axes})
}

func replayRoPE(p wire.Params, in []truth) ([]bound.Heads, error) {
	h, err := headsOf(in[0])
	if err != nil {
		return nil, err
	}
	out, err := bound.ApplyRoPE(h, referenceRoPE(p))
	return backTo(out, err, in[0])
}

func runAdd(j *job, _ wire.Params, in []operand) ([]result, error) {
	a, b := in[0], in[1]
	if slices.Equal(a.shape, b.shape) && !slices.Equal(a.axes, b.axes) {
		return nil, j.refuse([]string{"a", "b"}, "axes differ")
	}
	if !slices.Equal(a.shape, b.shape) {
		return nil, j.refuse([]string{"a", "b"}, "shapes differ")
	}
	sum, err := j.d.Add(a.buf, b.buf)
	return one(sum, err, meta{shape: a.shape, axes: a.axes})
}

func replayAdd(_ wire.Params, in []truth) ([]bound.Heads, error) {
	return one1(bound.Add(in[0].Heads, in[1].Heads))
}

func runLinear(j *job, _ wire.Params, in []operand) ([]result, error) {
	x, w := in[0], in[1]
	if len(x.shape) != 2 || len(w.shape) != 2 {
		return nil, j.refuse([]string{"x", "w"}, "rows and weights have 2 dimensions each: [seq, in] and [out, in]")
	}
	var bias *cudaops.Buffer
	if len(in) > 2 {
		if len(in[2].shape) != 1 {
			return nil, j.refuse([]string{"b"}, "a bias has 1 dimension")
		}
		bias = in[2].buf
	}
	b, err := j.d.Linear(x.buf, w.buf, bias)
	return one(b, err, meta{shape: []int{x.shape[0], w.shape[0]}, axes: []string{"seq", "hidden"}})
}

func replayLinear(_ wire.Params, in []truth) ([]bound.Heads, error) {
	var b bound.Heads
	if len(in) > 2 {
		b = in[2].Heads
	}
	return one1(bound.Linear(in[0].Heads, in[1].Heads, b))
}

func runAppend(j *job, _ wire.Params, in []operand) ([]result, error) {
	if len(in[0].shape) != len(in[1].shape) || !slices.Equal(in[0].axes, in[1].axes) {
		return nil, j.refuse([]string{"cache", "rows"}, "axes differ")
	}
	if in[0].rowAxis() < 0 || len(in[0].shape) == 2 && in[0].swapped() {
		return nil, j.refuse([]string{"cache"}, "has no rows to append to")
	}
	cache, err := j.heads("cache", in[0])
	if err != nil {
		return nil, err
	}
	rows, err := j.heads("rows", in[1])
	if err != nil {
		return nil, err
	}
	h, t, d := cache.Shape()
	_, more, _ := rows.Shape()
	b, err := j.d.AppendKV(cache, rows)
	b, err = j.back(b, err, in[0])
	return one(b, err, alike(in[0], h, t+more, d))
}

// replayAppend takes a cache and any number of rows: a replay hands over a whole run of appends at once, so that
// n appends do not cost n copies of the cache.
func replayAppend(_ wire.Params, in []truth) ([]bound.Heads, error) {
	parts := make([]bound.Heads, len(in))
	total := 0
	for i, x := range in {
		h, err := headsOf(x)
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
