package chain

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/reference"
)

// Roundings is how far each value may be from the real number that was rounded to it.
func Roundings(hs reference.Heads) reference.Heads {
	const u = 0x1p-24
	out := make(reference.Heads, len(hs))
	for i, m := range hs {
		out[i] = dense(m)
		out[i].Apply(func(_, _ int, v float64) float64 { return max(u*math.Abs(v), 0x1p-150) }, m)
	}
	return out
}

// HeadsFrom is packed data as matrices.
func HeadsFrom(data []float32, shape []int) reference.Heads { return partFrom(data, shape, everything) }

// partFrom is a part of packed data as matrices.
func partFrom(data []float32, shape []int, p Part) reference.Heads {
	h, s, d := store.Fold(shape)
	first, rows := 0, s
	if p.s >= 0 {
		first, rows = p.s, 1
	}
	var out reference.Heads
	for i := range h {
		if p.h >= 0 && i != p.h {
			continue
		}
		cells := make([]float64, rows*d)
		for k := range cells {
			cells[k] = float64(data[(i*s+first)*d+k])
		}
		out = append(out, mat.NewDense(rows, d, cells))
	}
	return out
}

// Flat is the inverse of HeadsFrom, in float64.
func Flat(hs reference.Heads) []float64 {
	cells := 0
	for _, m := range hs {
		rows, cols := m.Dims()
		cells += rows * cols
	}
	out := make([]float64, 0, cells)
	for _, m := range hs {
		rows, _ := m.Dims()
		for i := range rows {
			out = append(out, m.RawRowView(i)...)
		}
	}
	return out
}
