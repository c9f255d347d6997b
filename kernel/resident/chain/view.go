package chain

import (
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/bound"
)

func dense(m mat.Matrix) *mat.Dense { return mat.DenseCopyOf(m) }

func runAxes(j *Job, p wire.Params, in []store.Operand) ([]store.Operand, error) {
	x := in[0]
	if err := store.CheckAxes(x.Shape, p.Axes); err != nil {
		return nil, j.refuse([]string{"x"}, "%v", err)
	}
	heads, _, _ := x.Buf.Shape()
	b, err := x.Buf.Heads(0, heads)
	m := x.Meta
	m.Axes = slices.Clone(p.Axes)
	return one(b, err, m)
}

func replayAxes(_ wire.Params, in []Truth) ([]bound.Heads, error) { return one1(in[0].Heads, nil) }

func runIndex(j *Job, p wire.Params, in []store.Operand) ([]store.Operand, error) {
	x := in[0]
	at := slices.Index(x.Axes, p.Axis)
	switch {
	case at < 0:
		return nil, j.refuse([]string{"x"}, "has no axis %q", p.Axis)
	case p.Index < 0 || p.Index >= x.Shape[at]:
		return nil, j.refuse([]string{"x"}, "%s %d is not within 0 to %d", store.Singular(p.Axis), p.Index, x.Shape[at]-1)
	case at == 1 && (x.Hides() || !x.Carry.None()):
		return nil, j.refuse([]string{"x"}, "axis %q cannot be taken apart under a mask: apply Softmax first", p.Axis)
	case len(x.Shape) == 3 && at == 1:
		t, err := j.Keep(x.Buf.Transpose())
		if err != nil {
			return nil, err
		}
		b, err := t.Head(p.Index)
		return one(b, err, x.Without(1))
	case at != 0 || len(x.Shape) < 2:
		return nil, j.refuse([]string{"x"}, "axis %q cannot be taken apart here", p.Axis)
	case len(x.Shape) == 2:
		b, err := x.Buf.Rows(p.Index, p.Index+1)
		m := x.Without(0)
		m.Mask, m.Allowed = Shifted(m.Mask, p.Index), m.Allowed.From(0, p.Index)
		return one(b, err, m)
	}
	h, _, _ := x.Buf.Shape()
	each := h / x.Shape[0]
	b, err := x.Buf.Heads(p.Index*each, (p.Index+1)*each)
	m := x.Without(0)
	if len(x.Shape) == 3 {
		m.Carry, m.Allowed = m.Carry.Head(p.Index), m.Allowed.From(p.Index, 0)
	}
	return one(b, err, m)
}

func replayIndex(p wire.Params, in []Truth) ([]bound.Heads, error) {
	x := in[0]
	at := slices.Index(x.Axes, p.Axis)
	if len(x.Shape) == 3 && at == 1 {
		t, err := bound.Swap(x.Heads)
		if err != nil {
			return nil, err
		}
		return one1(headRange(t, p.Index, p.Index+1), nil)
	}
	if len(x.Shape) == 2 {
		return one1(rowRange(x.Heads, p.Index, p.Index+1), nil)
	}
	each := len(x.Value) / x.Shape[0]
	return one1(headRange(x.Heads, p.Index*each, (p.Index+1)*each), nil)
}

func runRows(j *Job, p wire.Params, in []store.Operand) ([]store.Operand, error) {
	x := in[0]
	at := x.RowAxis()
	if at < 0 || len(x.Shape) == 2 && x.Swapped() {
		return nil, j.refuse([]string{"x"}, "has no rows to take from")
	}
	n := x.Shape[at]
	if p.Index < 0 || p.Count < 1 || p.Index > n || p.Count > n-p.Index {
		return nil, j.refuse([]string{"x"}, "%s %d to %d are not within 0 to %d", x.Axes[at], p.Index, p.Index+p.Count, n)
	}
	m := x.Meta
	m.Shape = slices.Clone(m.Shape)
	m.Shape[at] = p.Count
	m.Mask, m.Allowed = Shifted(m.Mask, p.Index), m.Allowed.From(0, p.Index)
	if x.Swapped() {
		b, err := x.Buf.Heads(p.Index, p.Index+p.Count)
		return one(b, err, m)
	}
	b, err := x.Buf.Rows(p.Index, p.Index+p.Count)
	return one(b, err, m)
}

func replayRows(p wire.Params, in []Truth) ([]bound.Heads, error) {
	if in[0].Swapped() {
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
