package parity

import (
	"fmt"
	"math"
	"strings"
)

// Class says how a cell agrees with the truth, or that it does not.
type Class uint8

const (
	Equal      Class       = iota // the truth rounded to f32, not 0
	Rounding                      // off, within the bound
	Zero                          // 0 on both sides, of either sign: masked cells are such
	NonFinite                     // not finite on both sides, and alike
	Mismatched                    // off by more than the bound, or not finite on one side only
	Classes    = int(iota)        // how many classes there are
)

func (c Class) String() string {
	if int(c) >= Classes {
		return "unknown class"
	}
	return [Classes]string{"equal", "rounding", "zero", "non-finite", "mismatched"}[c]
}

// counts prints the classes that occur.
type counts [Classes]int

func (n counts) String() string {
	var parts []string
	for c, cells := range n {
		if cells > 0 {
			parts = append(parts, fmt.Sprintf("%d %v", cells, Class(c)))
		}
	}
	return strings.Join(parts, ", ")
}

// compare fills a cell but for its index.
func compare(got float32, want, bound float64) Cell {
	c := Cell{Got: got, Want: want, Bound: bound, ULP: math.NaN(), Class: Mismatched, Ratio: math.Inf(1)}
	if !finite(float64(got)) || !finite(want) {
		if alike(float64(got), want, bound) {
			c.Class, c.Ratio = NonFinite, 0
		}
		return c
	}
	c.ULP = ULP(got, float32(want))
	off := math.Abs(float64(got) - want)
	if off > 0 && bound > 0 && finite(bound) {
		c.Ratio = off / bound
	}
	if !(off <= bound) || math.IsInf(bound, 1) { // an infinite bound proves nothing
		return c
	}
	switch {
	case off > 0 && got != float32(want):
		c.Class = Rounding
	case want == 0:
		c.Class = Zero
	default:
		c.Class = Equal
	}
	if off == 0 {
		c.Ratio = 0
	}
	return c
}

// alike says whether two values, one of them not finite, are of one class. A truth that may lie beyond f32 agrees with an
// overflow of its sign.
func alike(got, want, bound float64) bool {
	switch {
	case math.IsNaN(got) || math.IsNaN(want):
		return math.IsNaN(got) && math.IsNaN(want)
	case finite(want) && finite(bound):
		most := want + math.Copysign(bound, got)
		return got == float64(float32(most)) // got is infinite, so only an overflow of its sign equals it
	}
	return got == want
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// ULP is how many f32 steps lie between two finite values; 0 and -0 are one value.
func ULP(a, b float32) float64 {
	return math.Abs(float64(ordinal(a) - ordinal(b)))
}

// ordinal numbers the f32 values in order: 0 and -0 are 0, the smallest denormals 1 and -1.
func ordinal(x float32) int64 {
	bits := int64(math.Float32bits(x))
	if sign := int64(1) << 31; bits >= sign {
		return sign - bits
	}
	return bits
}
