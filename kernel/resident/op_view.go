package resident

import (
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/bound"
)

func dense(m mat.Matrix) *mat.Dense { return mat.DenseCopyOf(m) }

func runAxes(j *job, p wire.Params, in []operand) ([]result, error) {
	x := in[0]
	if err := checkAxes(x.shape, p.Axes); err != nil {
		return nil, j.refuse([]string{"x"}, "%v", err)
	}
	heads, _, _ := x.buf.Shape()
	b, err := x.buf.Heads(0, heads)
	m := x.meta
	m.axes = slices.Clone(p.Axes)
	return one(b, err, m)
}

func replayAxes(_ wire.Params, in []truth) ([]bound.Heads, error) { return one1(in[0].Heads, nil) }

// without is m with axis i gone.
func (m meta) without(i int) meta {
	m.shape = slices.Delete(slices.Clone(m.shape), i, i+1)
	m.axes = slices.Delete(slices.Clone(m.axes), i, i+1)
	return m
}

func runIndex(j *job, p wire.Params, in []operand) ([]result, error) {
	x := in[0]
	at := slices.Index(x.axes, p.Axis)
	switch {
	case at < 0:
		return nil, j.refuse([]string{"x"}, "has no axis %q", p.Axis)
	case p.Index < 0 || p.Index >= x.shape[at]:
		return nil, j.refuse([]string{"x"}, "%s %d is not within 0 to %d", singular(p.Axis), p.Index, x.shape[at]-1)
	case at == 1 && (x.hides() || !x.carry.none()):
		return nil, j.refuse([]string{"x"}, "axis %q cannot be taken apart under a mask: apply Softmax first", p.Axis)
	case len(x.shape) == 3 && at == 1:
		t, err := j.view(x.buf.Transpose())
		if err != nil {
			return nil, err
		}
		b, err := t.Head(p.Index)
		return one(b, err, x.without(1))
	case at != 0 || len(x.shape) < 2:
		return nil, j.refuse([]string{"x"}, "axis %q cannot be taken apart here", p.Axis)
	case len(x.shape) == 2:
		b, err := x.buf.Rows(p.Index, p.Index+1)
		m := x.without(0)
		m.mask, m.allowed = shifted(m.mask, p.Index), m.allowed.from(0, p.Index)
		return one(b, err, m)
	}
	h, _, _ := x.buf.Shape()
	each := h / x.shape[0]
	b, err := x.buf.Heads(p.Index*each, (p.Index+1)*each)
	m := x.without(0)
	if len(x.shape) == 3 {
		m.carry, m.allowed = m.carry.head(p.Index), m.allowed.from(p.Index, 0)
	}
	return one(b, err, m)
}

func replayIndex(p wire.Params, in []truth) ([]bound.Heads, error) {
	x := in[0]
	at := slices.Index(x.axes, p.Axis)
	if len(x.shape) == 3 && at == 1 {
		t, err := bound.Swap(x.Heads)
		if err != nil {
			return nil, err
		}
		return one1(headRange(t, p.Index, p.Index+1), nil)
	}
	if len(x.shape) == 2 {
		return one1(rowRange(x.Heads, p.Index, p.Index+1), nil)
	}
	each := len(x.Value) / x.shape[0]
	return one1(headRange(x.Heads, p.Index*each, (p.Index+1)*each), nil)
}

// rowAxis is the axis that Rows cuts: the one before the last, or the first of [seq, heads, dim].
func (m meta) rowAxis() int {
	if len(m.shape) == 3 && m.swapped() {
		return 0
	}
	return len(m.shape) - 2
}

func runRows(j *job, p wire.Params, in []operand) ([]result, error) {
	x := in[0]
	at := x.rowAxis()
	if at < 0 || len(x.shape) == 2 && x.swapped() {
		return nil, j.refuse([]string{"x"}, "has no rows to take from")
	}
	n := x.shape[at]
	if p.Index < 0 || p.Count < 1 || p.Index > n || p.Count > n-p.Index {
		return nil, j.refuse([]string{"x"}, "%s %d to %d are not within 0 to %d", x.axes[at], p.Index, p.Index+p.Count, n)
	}
	m := x.meta
	m.shape = slices.Clone(m.shape)
	m.shape[at] = p.Count
	m.mask, m.allowed = shifted(m.mask, p.Index), m.allowed.from(0, p.Index)
	if x.swapped() {
		b, err := x.buf.Heads(p.Index, p.Index+p.Count)
		return one(b, err, m)
	}
	b, err := x.buf.Rows(p.Index, p.Index+p.Count)
	return one(b, err, m)
}

func replayRows(p wire.Params, in []truth) ([]bound.Heads, error) {
	if in[0].swapped() {
		return one1(headRange(in[0].Heads, p.Index, p.Index+p.Count), nil)
	}
	return one1(rowRange(in[0].Heads, p.Index, p.Index+p.Count), nil)
}

func headRange(x bound.Heads, from, to int) bound.Heads {
	return bound.Heads{Value: x.Value[from:to], Err: x.Err[from:to]}
}

func rowRange(x bound.Heads, from, to int) bound.Heads {
	cut := func(hs reference.Heads) reference.Heads {
		out := make(reference.Heads, len(hs))
		for i, m := range hs {
			_, cols := m.Dims()
			out[i] = dense(m.Slice(from, to, 0, cols))
		}
		return out
	}
	return bound.Heads{Value: cut(x.Value), Err: cut(x.Err)}
}
