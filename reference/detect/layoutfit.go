package detect

import (
	"fmt"
	"math"

	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/mat"
)

// layouter measures arrangements against the parts that were given.
type layouter struct {
	rows     *mat.Dense
	declared Fused
	want     Parts
}

// residual is the relative L2 error of all parts given, over the first rows.
func (l *layouter) residual(a Arrangement) (float64, error) {
	var off, size float64
	add := func(o, s float64) { off, size = off+o, size+s }
	add(l.part('q', a, l.want.Q))
	add(l.part('k', a, l.want.K))
	add(l.part('v', a, l.want.V))
	if l.want.Context != nil || l.want.Merged != nil {
		o, s, err := l.context(a)
		if err != nil {
			return 0, err
		}
		add(o, s)
	}
	return math.Sqrt(off / size), nil
}

// part is the squared error and size of one part.
func (l *layouter) part(name byte, a Arrangement, want reference.Heads) (off, size float64) {
	count, _ := l.rows.Dims()
	dim := l.declared.Dim
	for h, m := range want {
		from := h
		if name != 'q' && len(want) != l.declared.KVHeads {
			from = a.keyHead(h)
		}
		for i := range dim {
			column := a.column(name, from, i, dim)
			for row := range min(count, layoutRowLimit) {
				d := l.rows.At(row, column) - m.At(row, i)
				off, size = off+d*d, size+m.At(row, i)*m.At(row, i)
			}
		}
	}
	return off, size
}

// keyHead is the KV head of query head h.
func (a Arrangement) keyHead(h int) int {
	if a.Tiled {
		return h % a.kvHeads
	}
	return h / (a.heads / a.kvHeads)
}

// context is the squared error and size of the context and the merged context, over their first rows: causal rows depend on those before
// them only.
func (l *layouter) context(a Arrangement) (off, size float64, err error) {
	count, _ := l.rows.Dims()
	rows, dim := min(count, layoutRowLimit), l.declared.Dim
	add := func(got, want float64) { off, size = off+(got-want)*(got-want), size+want*want }
	if l.want.Context != nil || a.Merge != mergeFlat {
		for h := range l.declared.Heads {
			got, err := l.attention(a, h, rows)
			if err != nil {
				return 0, 0, err
			}
			for row := range rows {
				for i := range dim {
					if l.want.Context != nil {
						add(got.At(row, i), l.want.Context[h].At(row, i))
					}
					switch {
					case l.want.Merged == nil || a.Merge == mergeFlat:
					case a.Merge == mergeDimMajor:
						add(got.At(row, i), l.want.Merged.At(row, i*l.declared.Heads+h))
					default:
						add(got.At(row, i), l.want.Merged.At(row, h*dim+i))
					}
				}
			}
		}
	}
	if l.want.Merged == nil || a.Merge != mergeFlat {
		return off, size, nil
	}
	// Read on as [H, S, d], the first merged rows are all rows of the first heads.
	for at, end := 0, rows*l.declared.Heads; at < end; at += count {
		got, err := l.attention(a, at/count, min(count, end-at))
		if err != nil {
			return 0, 0, err
		}
		for row := range min(count, end-at) {
			for i := range dim {
				flat := (at+row)*dim + i
				add(got.At(row, i), l.want.Merged.At(flat/(l.declared.Heads*dim), flat%(l.declared.Heads*dim)))
			}
		}
	}
	return off, size, nil
}

// attention is that of one head in the first rows.
func (l *layouter) attention(a Arrangement, head, rows int) (*mat.Dense, error) {
	q, k, v := l.take('q', a, head, rows), l.take('k', a, a.keyHead(head), rows), l.take('v', a, a.keyHead(head), rows)
	if r := l.want.RoPE; r != nil {
		first := *r
		if r.Positions != nil && len(r.Positions) >= rows {
			first.Positions = r.Positions[:rows]
		}
		var err error
		if q, err = reference.ApplyRoPE(q, first); err != nil {
			return nil, err
		}
		if k, err = reference.ApplyRoPE(k, first); err != nil {
			return nil, err
		}
	}
	scale := l.want.Scale
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(l.declared.Dim))
	}
	got, err := reference.Attention(q, k, v, scale, reference.Causal(0))
	if err != nil {
		return nil, err
	}
	return got[0], nil
}

// take is a head of a part in the first rows.
func (l *layouter) take(name byte, a Arrangement, head, rows int) reference.Heads {
	dim := l.declared.Dim
	out := mat.NewDense(rows, dim, nil)
	for i := range dim {
		column := a.column(name, head, i, dim)
		for row := range rows {
			out.Set(row, i, l.rows.At(row, column))
		}
	}
	return reference.Heads{out}
}

// Axes is an order of the axes of an array, slowest first.
type Axes string

// The orders that occur. HeadsSeqDim is also called HND (caches), SeqHeadsDim NHD.
const (
	HeadsSeqDim Axes = "heads seq dim"
	SeqHeadsDim Axes = "seq heads dim"
	HeadsDimSeq Axes = "heads dim seq"
	SeqDimHeads Axes = "seq dim heads"
	DimHeadsSeq Axes = "dim heads seq"
	DimSeqHeads Axes = "dim seq heads"
)

// WrongAxes is the fault of an array in another order than declared.
const WrongAxes Kind = "order of axes"

// AxesFinding is what Order found.
type AxesFinding struct {
	Faults    Faults
	Fits      []Axes           // a tie if several: an axis of length 1, for example
	Residuals map[Axes]float64 // relative L2 error of each
	Floor     float64
}

// Order says in which order of axes flat holds x [H, S, d]: a cache kept by heads or by rows, heads merged with or without
// the transposition.
func Order(x reference.Heads, flat []float64, declared Axes, p Precision) (AxesFinding, error) {
	const op = "Order"
	s, err := measure(op, "x", x)
	if err != nil {
		return AxesFinding{}, err
	}
	if len(flat) != s.heads*s.rows*s.dim {
		return AxesFinding{}, badShape(op, "an array of %d is not %v", len(flat), s)
	}
	f := AxesFinding{Residuals: map[Axes]float64{}, Floor: p.floor()}
	right := false
	for _, axes := range []Axes{HeadsSeqDim, SeqHeadsDim, HeadsDimSeq, SeqDimHeads, DimHeadsSeq, DimSeqHeads} {
		var off, size float64
		for h := range x {
			for row := range s.rows {
				for i := range s.dim {
					d := x[h].At(row, i) - flat[axes.index(s, h, row, i)]
					off, size = off+d*d, size+x[h].At(row, i)*x[h].At(row, i)
				}
			}
		}
		if size == 0 {
			return AxesFinding{}, tooLittle(op, "x is 0 everywhere; needs at least one element that is not")
		}
		f.Residuals[axes] = math.Sqrt(off / size)
		if f.Residuals[axes] <= f.Floor {
			f.Fits = append(f.Fits, axes)
			right = right || axes == declared
		}
	}
	switch {
	case right:
	case len(f.Fits) == 0:
		f.Faults = Faults{{WrongAxes, "no order of axes fits", "compare the values themselves"}}
	default:
		f.Faults = Faults{{WrongAxes, fmt.Sprintf("it is %s, declared %s", f.Fits[0], declared), "transpose before the reshape"}}
	}
	return f, nil
}

func (f AxesFinding) String() string {
	if len(f.Faults) > 0 {
		return f.Faults.String()
	}
	if len(f.Fits) > 1 {
		return fmt.Sprintf("the declared order of axes fits; a tie of %d of 6 that give the same numbers: %v", len(f.Fits), f.Fits)
	}
	return "the declared order of axes fits, and no other"
}

// index is where in the flat array an element lies.
func (a Axes) index(s shape, h, row, i int) int {
	switch a {
	case SeqHeadsDim:
		return (row*s.heads+h)*s.dim + i
	case HeadsDimSeq:
		return (h*s.dim+i)*s.rows + row
	case SeqDimHeads:
		return (row*s.dim+i)*s.heads + h
	case DimHeadsSeq:
		return (i*s.heads+h)*s.rows + row
	case DimSeqHeads:
		return (i*s.rows+row)*s.heads + h
	}
	return (h*s.rows+row)*s.dim + i
}
