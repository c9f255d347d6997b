package resident

import (
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/bound"
)

// part is a row of a matrix of a tensor, as it folds to [H, S, D]. -1 stands for all: all matrices, all rows of one.
type part struct{ h, s int }

// everything is the whole of a tensor.
var everything = part{-1, -1}

// of says all where there is only one.
func (p part) of(m meta) part {
	h, s, _ := fold(m.shape)
	if h == 1 {
		p.h = -1
	}
	if s == 1 {
		p.s = -1
	}
	return p
}

// cut is what a part of m is.
func (m meta) cut(p part) meta {
	m.shape = slices.Clone(m.shape)
	if p.h >= 0 {
		for i := range len(m.shape) - 2 {
			m.shape[i] = 1
		}
		m.carry, m.allowed = m.carry.head(p.h), m.allowed.from(p.h, 0)
	}
	if p.s >= 0 && len(m.shape) > 1 {
		m.shape[len(m.shape)-2] = 1
		m.mask, m.allowed = shifted(m.mask, p.s), m.allowed.from(0, p.s)
	}
	return m
}

// turned exchanges head and row where a tensor has its heads where a buffer has its rows; it is its own inverse.
func (p part) turned(m meta) part {
	if m.swapped() {
		return part{p.s, p.h}
	}
	return p
}

// need is what a step takes to make a part of its result.
type need struct {
	in     []part
	params wire.Params
	pick   int // of the matrices that come out, -1 for all
}

// needs says which parts of its inputs, and which parameters, make part p of n. An op on one row is the op on a tensor of one row,
// whose position and whose diagonal are those of that row.
func needs(n *node, p part) need {
	w := need{params: n.params, pick: -1}
	x := n.in[0].meta
	switch n.op {
	case wire.OpAdd:
		w.in = []part{p, p}
	case wire.OpRoPE:
		w.in = []part{p}
		if row := p.turned(x).s; row >= 0 {
			w.params.Offset += row
			if n.params.Positions != nil {
				w.params.Positions = n.params.Positions[row : row+1]
			}
		}
	case wire.OpScores, wire.OpContext:
		w.in = []part{p.turned(x), group(n, p.h, 1)}
	case wire.OpPrefill, wire.OpDecode:
		at := p.turned(n.meta)
		w.in = append([]part{p, group(n, at.h, 1), group(n, at.h, 2)}, partsOf(n, 3, at, &w.params)...)
		w.params = masked(w.params, shifted(maskOf(n.params, x.rows(), n.in[1].rows()), max(at.s, 0)))
	case wire.OpSoftmax:
		w.in = append([]part{p}, partsOf(n, 1, p, &w.params)...)
		w.params = masked(w.params, shifted(softmaxMask(n.params, x), max(p.s, 0)))
	case wire.OpLinear:
		w.in = []part{p, everything, everything}[:len(n.in)]
	case wire.OpSplit, wire.OpHeads:
		w.in, w.pick = []part{{-1, p.s}}, p.h
	case wire.OpMerge:
		w.in = []part{part{-1, p.s}.turned(x)}
	case wire.OpSwap:
		w.in = []part{{p.s, p.h}}
		if len(x.shape) == 2 {
			w.in[0] = everything
		}
	case wire.OpRows:
		w.in = []part{p}
		along := &w.in[0].s
		if x.swapped() {
			along = &w.in[0].h
		}
		if *along >= 0 {
			*along += n.params.Index
			w.params.Index, w.params.Count = 0, 1
		}
	case wire.OpIndex:
		w.in = []part{needIndex(n, p, &w.params)}
	default:
		w.in = []part{p}
	}
	return w
}

// group is the KV head that query head h reads, all rows of it, in input i.
func group(n *node, h, i int) part {
	at := part{h, -1}
	if h >= 0 {
		at.h = h / max(1, headsIn(n.in[0].meta)/max(1, headsIn(n.in[i].meta)))
	}
	return at.turned(n.in[i].meta)
}

// headsIn is how many heads a tensor of up to three dimensions has.
func headsIn(m meta) int {
	h, s, _ := fold(m.shape)
	if m.swapped() {
		return s
	}
	return h
}

func needIndex(n *node, p part, params *wire.Params) part {
	x := n.in[0].meta
	at := slices.Index(x.axes, n.params.Axis)
	switch {
	case len(x.shape) == 3 && at == 1:
		params.Index = 0
		return part{p.s, n.params.Index}
	case len(x.shape) == 2:
		params.Index = 0
		return part{-1, n.params.Index}
	}
	h, _, _ := fold(x.shape)
	if each := h / x.shape[0]; p.h >= 0 || each == 1 {
		params.Index = 0
		return part{n.params.Index*each + max(p.h, 0), p.s}
	}
	return part{-1, p.s}
}

// cutHeads are the matrices and rows of a part.
func cutHeads(hs reference.Heads, p part) reference.Heads {
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
func cutTruth(t truth, p part) truth {
	return truth{bound.Heads{Value: cutHeads(t.Value, p), Err: cutHeads(t.Err, p)}, cutHeads(t.noise, p), t.meta.cut(p)}
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
func headColumns(n *node, h int) ([]int, error) {
	width := last(n.in[0].shape)
	numbers := mat.NewDense(1, width, nil)
	for i := range width {
		numbers.Set(0, i, float64(i))
	}
	row := truth{Heads: bound.Leaf(reference.Heads{numbers}), meta: meta{shape: []int{1, width}, axes: n.in[0].axes}}
	outs, err := ops[n.op].replay(n.params, []truth{row})
	if err != nil {
		return nil, err
	}
	cols := make([]int, last(n.shape))
	for i := range cols {
		cols[i] = int(outs[n.out].Value[h].At(0, i))
	}
	return cols, nil
}
