// Package plan computes which elements an op copies where, without touching a device.
//
// A plan is a list of [PitchedCopy]. Every function here is pure: it checks its numbers, refuses what does not fit
// and returns a plan whose copies lie inside the arrays that it was made for. All offsets, pitches and widths count
// elements, not bytes.
package plan

import (
	"fmt"
	"math"
)

// MaxDim bounds a single dimension, and the number of rows of an array: kernels number both in 32 unsigned bits.
// Offsets and strides are not bound by it.
const MaxDim = math.MaxUint32

// maxElements keeps the size in bytes of an f32 array within an int.
const maxElements = math.MaxInt / 4

// Error refuses a plan: the numbers do not describe copies that can be made.
type Error struct {
	What   string // the plan or copy, such as "gather"
	Reason string // what is wrong with it, in one line
}

func (e *Error) Error() string { return e.What + ": " + e.Reason }

func refuse(what, format string, args ...any) error {
	return &Error{What: what, Reason: fmt.Sprintf(format, args...)}
}

// Dim is a named dimension, so that an error can say which one is wrong.
type Dim struct {
	Name string
	N    int
}

// Elements is the product of dims: the number of elements of an array of that shape. It refuses a dimension that is
// not positive or over [MaxDim], and a product whose size in bytes overflows.
func Elements(what string, dims ...Dim) (int, error) {
	n := 1
	for _, d := range dims {
		if d.N <= 0 {
			return 0, refuse(what, "%s is %d, must be at least 1", d.Name, d.N)
		}
		if uint64(d.N) > MaxDim {
			return 0, refuse(what, "%s is %d, more than %d", d.Name, d.N, uint64(MaxDim))
		}
		if n > maxElements/d.N {
			return 0, refuse(what, "%s overflows", product(dims))
		}
		n *= d.N
	}
	return n, nil
}

// product spells the dimensions of an overflowing size, as "heads 3 * rows 4".
func product(dims []Dim) string {
	s := ""
	for i, d := range dims {
		if i > 0 {
			s += " * "
		}
		s += fmt.Sprintf("%s %d", d.Name, d.N)
	}
	return s
}

// mulAdd is a*b + c for values that are not negative; ok is false where it overflows.
func mulAdd(a, b, c int) (sum int, ok bool) {
	if a != 0 && b > (math.MaxInt-c)/a {
		return 0, false
	}
	return a*b + c, true
}
