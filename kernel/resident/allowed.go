package resident

import (
	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/wire"
)

// allowed are the cells that a tensor of allowed cells shows, for pictures of what was made under it. The zero value hides nothing.
type allowed struct {
	cells     *cellBits
	head, row int // of the first matrix, and its first row
}

// cellBits are [h, s, t] cells, where one head or one row may serve all.
type cellBits struct {
	h, s, t int
	bits    []uint64
}

func (a allowed) sees(h, row, col int) bool {
	c := a.cells
	if c == nil {
		return true
	}
	i := (min(a.head+h, c.h-1)*c.s+min(a.row+row, c.s-1))*c.t + col
	return c.bits[i/64]>>(i%64)&1 != 0
}

// from is what remains when the first heads and rows are gone.
func (a allowed) from(heads, rows int) allowed {
	a.head += heads
	a.row += rows
	return a
}

// hides says that some cells may be hidden, and sees which of matrix h are not.
func (m meta) hides() bool { return m.mask.Hides() || m.allowed.cells != nil }

func (m meta) sees(h, row, col int) bool {
	return m.mask.Sees(row, col, last(m.shape)) && m.allowed.sees(h, row, col)
}

// allowedCells reads a tensor of allowed cells. One that looks like a mask to be added is refused: it would hide what it means to show.
func (j *job) allowedCells(b *cudaops.Buffer) (allowed, error) {
	data, err := j.d.Download(b)
	if err != nil {
		return allowed{}, err
	}
	h, s, t := b.Shape()
	c := &cellBits{h: h, s: s, t: t, bits: make([]uint64, (len(data)+63)/64)}
	for i, x := range data {
		if !(x >= 0) {
			return allowed{}, j.refuse([]string{wire.ExtraAllowed}, "holds %v, where a cell is 0 or not: a mask that is added to scores is a Bias", x)
		}
		if x != 0 {
			c.bits[i/64] |= 1 << (i % 64)
		}
	}
	return allowed{cells: c}, nil
}
