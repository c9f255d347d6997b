package store

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
