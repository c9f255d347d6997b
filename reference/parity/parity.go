// Package parity compares an f32 result with its float64 truth, cell by cell, each against a bound of its own.
//
// A cell passes by |got - want| <= bound and by nothing else, so that NaN fails. Non-finite cells compare by class: NaN with
// NaN, +Inf with +Inf, -Inf with -Inf; an f32 overflow agrees with a truth that f32 cannot hold. The headline is error/bound:
// at most 1 passes, and how far below or above says how clearly. Absolute, relative and ULP errors are shown for
// information: correct attention is off by many ULP near zero.
package parity

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrShape is wrapped by an error about lengths that differ or are 0.
var ErrShape = errors.New("lengths do not fit")

// Report is what a comparison found. MaxAbs, MaxRel, MaxULP and RelL2 are taken over the cells where both sides are finite.
type Report struct {
	N      int  // cells compared
	Failed int  // cells of class Mismatched
	Pass   bool // no cell failed

	MaxAbs   float64 // largest |got - want|
	MaxRel   float64 // largest |got - want| / |want|, where want is not 0
	MaxULP   float64 // largest distance from want rounded to f32, in f32 steps
	MaxRatio float64 // largest |got - want| / bound; +Inf where a non-finite cell disagrees or an exact one is off
	RelL2    float64 // root of the sum of |got - want|^2 over that of want^2; +Inf where want is 0 and got is not
	Worst    int     // flat index of the first cell with the largest ratio

	Counts    [Classes]int // cells of each Class
	Cells     []Cell       // the cells with the largest ratios, largest first; at most WorstCells, none with ratio 0
	Histogram []Bin        // how the ratios spread, by decade
}

// WorstCells is how many cells a report lists.
const WorstCells = 10

// Cell is one compared cell.
type Cell struct {
	Index int // flat index
	Got   float32
	Want  float64
	Bound float64
	Ratio float64 // |got - want| / bound
	ULP   float64 // NaN where a side is not finite
	Class Class
}

// Compare compares got with want, where want[i] may be off by bound[i]. A nil bound asks for exact cells.
func Compare(got []float32, want, bound []float64) (Report, error) {
	if bound == nil {
		bound = make([]float64, len(want))
	}
	if len(got) == 0 || len(want) != len(got) || len(bound) != len(got) {
		return Report{}, fmt.Errorf("parity: Compare: %w: got %d cells, want %d, bound %d", ErrShape, len(got), len(want), len(bound))
	}
	r := Report{N: len(got), Histogram: bins()}
	var off, size float64
	for i := range got {
		c := compare(got[i], want[i], bound[i])
		c.Index = i
		r.add(c)
		if !math.IsNaN(c.ULP) {
			off, size = math.Hypot(off, float64(got[i])-want[i]), math.Hypot(size, want[i])
		}
	}
	if off > 0 {
		r.RelL2 = off / size
	}
	r.Failed = r.Counts[Mismatched]
	r.Pass = r.Failed == 0
	return r, nil
}

// Ratio is |got - want| / bound of each cell, as in a Report; nil where the lengths differ. A nil bound asks for exact cells.
func Ratio(got []float32, want, bound []float64) []float64 {
	if len(want) != len(got) || bound != nil && len(bound) != len(got) {
		return nil
	}
	out := make([]float64, len(got))
	for i := range got {
		allowed := 0.0
		if bound != nil {
			allowed = bound[i]
		}
		out[i] = compare(got[i], want[i], allowed).Ratio
	}
	return out
}

func (r *Report) add(c Cell) {
	r.Counts[c.Class]++
	if c.Ratio > r.MaxRatio {
		r.MaxRatio, r.Worst = c.Ratio, c.Index
	}
	if !math.IsNaN(c.ULP) {
		abs := math.Abs(float64(c.Got) - c.Want)
		r.MaxAbs = max(r.MaxAbs, abs)
		r.MaxULP = max(r.MaxULP, c.ULP)
		if c.Want != 0 {
			r.MaxRel = max(r.MaxRel, abs/math.Abs(c.Want))
		}
	}
	count(r.Histogram, c.Ratio)
	r.list(c)
}

// list keeps the cells with the largest ratios in order; of equal ones the first.
func (r *Report) list(c Cell) {
	full := len(r.Cells) == WorstCells
	if c.Ratio == 0 || full && c.Ratio <= r.Cells[WorstCells-1].Ratio {
		return
	}
	at, _ := slices.BinarySearchFunc(r.Cells, c.Ratio, func(have Cell, ratio float64) int {
		if have.Ratio == ratio {
			return -1
		}
		return cmp.Compare(ratio, have.Ratio)
	})
	if full {
		r.Cells = r.Cells[:WorstCells-1]
	}
	r.Cells = slices.Insert(r.Cells, at, c)
}

// String is the report in one line.
func (r Report) String() string {
	verdict := "pass"
	if !r.Pass {
		verdict = fmt.Sprintf("FAIL (%d cells)", r.Failed)
	}
	return fmt.Sprintf("%s: %d cells, max error/bound %.3g at %d; abs %.3g, rel %.3g, ULP %.0f, rel. L2 %.2g; %v",
		verdict, r.N, r.MaxRatio, r.Worst, r.MaxAbs, r.MaxRel, r.MaxULP, r.RelL2, counts(r.Counts))
}
