package store

import "fmt"

// Allowed are the cells that a tensor of allowed cells shows, for pictures of what was made under it. The zero value hides nothing.
type Allowed struct {
	cells     *cellBits
	head, row int // of the first matrix, and its first row
}

// cellBits are [h, s, t] cells, where one head or one row may serve all.
type cellBits struct {
	h, s, t int
	bits    []uint64
}

// AllowedOf are the cells [h, s, t] that are not 0.
func AllowedOf(h, s, t int, cells []float32) Allowed {
	c := &cellBits{h: h, s: s, t: t, bits: make([]uint64, (len(cells)+63)/64)}
	for i, x := range cells {
		if x != 0 {
			c.bits[i/64] |= 1 << (i % 64)
		}
	}
	return Allowed{cells: c}
}

// None says that nothing is hidden.
func (a Allowed) None() bool { return a.cells == nil }

// Sees says that a cell of matrix h is allowed.
func (a Allowed) Sees(h, row, col int) bool {
	c := a.cells
	if c == nil {
		return true
	}
	i := (min(a.head+h, c.h-1)*c.s+min(a.row+row, c.s-1))*c.t + col
	return c.bits[i/64]>>(i%64)&1 != 0
}

// From is what remains when the first heads and rows are gone.
func (a Allowed) From(heads, rows int) Allowed {
	a.head += heads
	a.row += rows
	return a
}

// Hides says that some cells may be hidden.
func (m Meta) Hides() bool { return m.Mask.Hides() || !m.Allowed.None() }

// Sees says that a cell of matrix h is neither masked nor hidden.
func (m Meta) Sees(h, row, col int) bool {
	return m.Mask.Sees(row, col, Last(m.Shape)) && m.Allowed.Sees(h, row, col)
}

// Kept is an Allowed as it is written to a file.
type Kept struct {
	Heads     int      `json:"heads"` // of the cells; one head or one row may serve all
	Rows      int      `json:"rows"`
	Cols      int      `json:"cols"`
	FirstHead int      `json:"first_head,omitempty"` // those of the first matrix
	FirstRow  int      `json:"first_row,omitempty"`
	Bits      []uint64 `json:"bits"` // cell i is bit i%64 of element i/64
}

// Keep is a in that form; nil where nothing is hidden.
func (a Allowed) Keep() *Kept {
	if a.None() {
		return nil
	}
	return &Kept{a.cells.h, a.cells.s, a.cells.t, a.head, a.row, a.cells.bits}
}

// Allowed is the inverse of Keep, for matrices of so many columns.
func (k *Kept) Allowed(cols int) (Allowed, error) {
	if k == nil {
		return Allowed{}, nil
	}
	const most = 1 << 31
	switch {
	case k.Heads < 1 || k.Rows < 1 || k.Heads > most || k.Rows > most || k.Cols != cols || k.Heads > most/k.Rows:
		return Allowed{}, fmt.Errorf("allowed cells of [%d, %d, %d] do not fit %d columns", k.Heads, k.Rows, k.Cols, cols)
	case k.FirstHead < 0 || k.FirstRow < 0 || k.FirstHead > most || k.FirstRow > most:
		return Allowed{}, fmt.Errorf("allowed cells from head %d and row %d on", k.FirstHead, k.FirstRow)
	case cols > 64*len(k.Bits) || k.Heads*k.Rows > 64*len(k.Bits)/cols || len(k.Bits) != (k.Heads*k.Rows*cols+63)/64:
		return Allowed{}, fmt.Errorf("allowed cells of [%d, %d, %d] in %d words of 64 bits", k.Heads, k.Rows, k.Cols, len(k.Bits))
	}
	return Allowed{&cellBits{k.Heads, k.Rows, k.Cols, k.Bits}, k.FirstHead, k.FirstRow}, nil
}
