package store

import (
	"slices"

	"github.com/attnb/attnb/cudaops"
)

// Quantity is what the values of a tensor are, for pictures.
type Quantity uint8

// What values may be.
const (
	Values        Quantity = iota // any
	Scores                        // scale * q.k, before mask and softmax
	Probabilities                 // after softmax
)

// Meta is what a tensor is besides its values.
type Meta struct {
	Shape    []int        // at least one dimension
	Axes     []string     // the name of each
	Mask     cudaops.Mask // of scores: not applied yet; of probabilities: applied
	Allowed  Allowed      // of probabilities: applied
	Carry    Carried      // of scores: not applied yet
	Quantity Quantity     // what the values are
	Empty    int          // rows that saw nothing
}

// Carried is what goes with scores beside their mask.
type Carried struct {
	Softcap float64   // 0: none
	Slopes  []float64 // one a head
}

// None says that nothing goes with the scores.
func (c Carried) None() bool { return c.Softcap == 0 && c.Slopes == nil }

// Head is what goes with head i.
func (c Carried) Head(i int) Carried {
	if c.Slopes != nil {
		c.Slopes = c.Slopes[i : i+1]
	}
	return c
}

// Fold is how a shape lies in the [H, S, D] of a buffer: the last dimension is D, the one before S, the rest H.
func Fold(shape []int) (h, s, d int) {
	h, s, d = 1, 1, shape[len(shape)-1]
	if len(shape) > 1 {
		s = shape[len(shape)-2]
	}
	for _, n := range shape[:max(0, len(shape)-2)] {
		h *= n
	}
	return h, s, d
}

// Swapped says that the tensor has its heads where a buffer has its rows: [seq, heads, dim], or one row of it, [heads, dim].
func (m Meta) Swapped() bool {
	switch len(m.Shape) {
	case 2:
		return m.Axes[0] == "heads"
	case 3:
		return m.Axes[1] == "heads"
	}
	return false
}

// Rows is the number of rows of each head.
func (m Meta) Rows() int {
	switch {
	case len(m.Shape) == 1 || len(m.Shape) == 2 && m.Swapped():
		return 1
	case m.Swapped():
		return m.Shape[0]
	}
	return m.Shape[len(m.Shape)-2]
}

// Without is m with axis i gone.
func (m Meta) Without(i int) Meta {
	m.Shape = slices.Delete(slices.Clone(m.Shape), i, i+1)
	m.Axes = slices.Delete(slices.Clone(m.Axes), i, i+1)
	return m
}

// RowAxis is the axis that Rows cuts: the one before the last, or the first of [seq, heads, dim].
func (m Meta) RowAxis() int {
	if len(m.Shape) == 3 && m.Swapped() {
		return 0
	}
	return len(m.Shape) - 2
}

// Last is the size of the last dimension.
func Last(shape []int) int { return shape[len(shape)-1] }

// Operand is an input or an output of an op that runs.
type Operand struct {
	Buf *cudaops.Buffer // valid until the job is done
	Meta
}
