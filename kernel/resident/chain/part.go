package chain

import (
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/bound"
)

// Part is a row of a matrix of a tensor, as it folds to [H, S, D]. -1 stands for all: all matrices, all rows of one.
type Part struct{ h, s int }

// Row is row s of matrix h, or all of them where it is -1.
func Row(h, s int) Part { return Part{h, s} }

// everything is the whole of a tensor.
var everything = Part{-1, -1}

// of says all where there is only one.
func (p Part) of(m store.Meta) Part {
	h, s, _ := store.Fold(m.Shape)
	if h == 1 {
		p.h = -1
	}
	if s == 1 {
		p.s = -1
	}
	return p
}

// cut is what a part of m is.
func (p Part) cut(m store.Meta) store.Meta {
	m.Shape = slices.Clone(m.Shape)
	if p.h >= 0 {
		for i := range len(m.Shape) - 2 {
			m.Shape[i] = 1
		}
		m.Carry, m.Allowed = m.Carry.Head(p.h), m.Allowed.From(p.h, 0)
	}
	if p.s >= 0 && len(m.Shape) > 1 {
		m.Shape[len(m.Shape)-2] = 1
		m.Mask, m.Allowed = Shifted(m.Mask, p.s), m.Allowed.From(0, p.s)
	}
	return m
}

// Turned exchanges head and row where a tensor has its heads where a buffer has its rows; it is its own inverse.
func (p Part) Turned(m store.Meta) Part {
	if m.Swapped() {
		return Part{p.s, p.h}
	}
	return p
}

// need is what a step takes to make a part of its result.
type need struct {
	in     []Part
	params wire.Params
	pick   int // of the matrices that come out, -1 for all
}

// needs says which parts of its inputs, and which parameters, make part p of n. An op on one row is the op on a tensor of one row,
// whose position and whose diagonal are those of that row.
func needs(n *store.Node, p Part) need {
	w := need{params: n.Params, pick: -1}
	x := n.In[0].Meta
	switch n.Op {
	case wire.OpAdd, wire.OpMultiply:
		w.in = []Part{p, p}
	case wire.OpEmbedding:
		w.in = []Part{everything}
		if p.s >= 0 {
			w.in[0].s, w.params.Tokens = n.Params.Tokens[p.s], []int{0}
		}
	case wire.OpLayerNorm, wire.OpRMSNorm:
		w.in = []Part{p, everything, everything}[:len(n.In)]
	case wire.OpRoPE:
		w.in = []Part{p}
		if row := p.Turned(x).s; row >= 0 {
			w.params.Offset += row
			if n.Params.Positions != nil {
				w.params.Positions = n.Params.Positions[row : row+1]
			}
		}
	case wire.OpScores, wire.OpContext:
		w.in = []Part{p.Turned(x), group(n, p.h, 1)}
	case wire.OpPrefill, wire.OpDecode:
		at := p.Turned(n.Meta)
		w.in = append([]Part{p, group(n, at.h, 1), group(n, at.h, 2)}, partsOf(n, 3, at, &w.params)...)
		w.params = masked(w.params, Shifted(MaskOf(n.Params, x.Rows(), n.In[1].Rows()), max(at.s, 0)))
	case wire.OpSoftmax:
		w.in = append([]Part{p}, partsOf(n, 1, p, &w.params)...)
		w.params = masked(w.params, Shifted(SoftmaxMask(n.Params, x), max(p.s, 0)))
	case wire.OpLinear:
		w.in = []Part{p, everything, everything}[:len(n.In)]
	case wire.OpSplit, wire.OpHeads:
		w.in, w.pick = []Part{{-1, p.s}}, p.h
	case wire.OpMerge:
		w.in = []Part{Part{-1, p.s}.Turned(x)}
	case wire.OpSwap:
		w.in = []Part{{p.s, p.h}}
		if len(x.Shape) == 2 {
			w.in[0] = everything
		}
	case wire.OpRows:
		w.in = []Part{p}
		along := &w.in[0].s
		if x.Swapped() {
			along = &w.in[0].h
		}
		if *along >= 0 {
			*along += n.Params.Index
			w.params.Index, w.params.Count = 0, 1
		}
	case wire.OpIndex:
		w.in = []Part{needIndex(n, p, &w.params)}
	default:
		w.in = []Part{p}
	}
	return w
}

// group is the KV head that query head h reads, all rows of it, in input i.
func group(n *store.Node, h, i int) Part {
	at := Part{h, -1}
	if h >= 0 {
		at.h = h / max(1, HeadsIn(n.In[0].Meta)/max(1, HeadsIn(n.In[i].Meta)))
	}
	return at.Turned(n.In[i].Meta)
}

// HeadsIn is how many heads a tensor of up to three dimensions has.
func HeadsIn(m store.Meta) int {
	h, s, _ := store.Fold(m.Shape)
	if m.Swapped() {
		return s
	}
	return h
}

func needIndex(n *store.Node, p Part, params *wire.Params) Part {
	x := n.In[0].Meta
	at := slices.Index(x.Axes, n.Params.Axis)
	switch {
	case len(x.Shape) == 3 && at == 1:
		params.Index = 0
		return Part{p.s, n.Params.Index}
	case len(x.Shape) == 2:
		params.Index = 0
		return Part{-1, n.Params.Index}
	}
	h, _, _ := store.Fold(x.Shape)
	if each := h / x.Shape[0]; p.h >= 0 || each == 1 {
		params.Index = 0
		return Part{n.Params.Index*each + max(p.h, 0), p.s}
	}
	return Part{-1, p.s}
}

// cutHeads are the matrices and rows of a part.
func cutHeads(hs reference.Heads, p Part) reference.Heads {
	if p.h >= 0 {
		hs = hs[p.h : p.h+1]
	}
	if p.s < 0 {
		return hs
	}
	out := make(reference.Heads, len(hs))
	for i, m := range hs {
		_, cols := m.Dims()
		out[i] = dense(m.Slice(p.s, p.s+1, 0, cols))
	}
	return out
}

// cutTruth is a part of a value.
func cutTruth(t Truth, p Part) Truth {
	return Truth{bound.Heads{Value: cutHeads(t.Value, p), Err: cutHeads(t.Err, p)}, cutHeads(t.noise, p), p.cut(t.Meta)}
}

// columnsOf are the given columns of one matrix.
func columnsOf(hs reference.Heads, cols []int) reference.Heads {
	rows, _ := hs[0].Dims()
	out := mat.NewDense(rows, len(cols), nil)
	for i := range rows {
		for j, c := range cols {
			out.Set(i, j, hs[0].At(i, c))
		}
	}
	return reference.Heads{out}
}

// rowsOf are the given rows of one matrix.
func rowsOf(hs reference.Heads, rows []int) reference.Heads {
	_, cols := hs[0].Dims()
	out := mat.NewDense(len(rows), cols, nil)
	for i, row := range rows {
		out.SetRow(i, hs[0].RawRowView(row))
	}
	return reference.Heads{out}
}

// headColumns are the columns of input rows that head h of a split tensor came from.
func headColumns(n *store.Node, h int) ([]int, error) {
	width := store.Last(n.In[0].Shape)
	numbers := mat.NewDense(1, width, nil)
	for i := range width {
		numbers.Set(0, i, float64(i))
	}
	row := Truth{Heads: bound.Leaf(reference.Heads{numbers}), Meta: store.Meta{Shape: []int{1, width}, Axes: n.In[0].Axes}}
	outs, err := ops[n.Op].replay(n.Params, []Truth{row})
	if err != nil {
		return nil, err
	}
	cols := make([]int, store.Last(n.Shape))
	for i := range cols {
		cols[i] = int(outs[n.Out].Value[h].At(0, i))
	}
	return cols, nil
}
