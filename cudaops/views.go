package cudaops

import "fmt"

// part makes another buffer on the storage of b. It copies nothing. where checks the bounds and moves the view, or returns
// a reason why it cannot.
func (b *Buffer) part(op string, where func(v View) (View, error)) (*Buffer, error) {
	if !b.valid() {
		return nil, noBuffer(op, "x")
	}
	c, err := b.store.d.begin(op, operand{"x", b})
	if err != nil {
		return nil, err
	}
	defer c.end()
	v, err := where(c.views[0])
	if err != nil {
		return nil, c.bad([]int{0}, "%s", reason(err))
	}
	return newBuffer(b.store, v), nil
}

// span refuses a range that is empty or outside 0..n.
func span(what string, from, to, n int) error {
	if from < 0 || to > n || from >= to {
		return fmt.Errorf("%s %d to %d are not within 0 to %d", what, from, to, n)
	}
	return nil
}

// Head is a view of one head, [1, S, D].
func (b *Buffer) Head(h int) (*Buffer, error) {
	return b.part("Head", func(v View) (View, error) {
		if h < 0 || h >= v.H {
			return v, fmt.Errorf("head %d is not within 0 to %d", h, v.H-1)
		}
		v.Offset += h * v.HeadStride
		v.H = 1
		return v, nil
	})
}

// Heads is a view of the heads from up to but without to.
func (b *Buffer) Heads(from, to int) (*Buffer, error) {
	return b.part("Heads", func(v View) (View, error) {
		if err := span("heads", from, to, v.H); err != nil {
			return v, err
		}
		v.Offset += from * v.HeadStride
		v.H = to - from
		return v, nil
	})
}

// Rows is a view of the rows from up to but without to, of every head.
func (b *Buffer) Rows(from, to int) (*Buffer, error) {
	return b.part("Rows", func(v View) (View, error) {
		if err := span("rows", from, to, v.S); err != nil {
			return v, err
		}
		v.Offset += from * v.RowStride
		v.S = to - from
		return v, nil
	})
}

// Columns is a view of the elements from up to but without to, of every row.
func (b *Buffer) Columns(from, to int) (*Buffer, error) {
	return b.part("Columns", func(v View) (View, error) {
		if err := span("columns", from, to, v.D); err != nil {
			return v, err
		}
		v.Offset += from
		v.D = to - from
		return v, nil
	})
}

// Transpose is a view with heads and rows exchanged: [H, S, D] as [S, H, D].
func (b *Buffer) Transpose() (*Buffer, error) {
	return b.part("Transpose", func(v View) (View, error) {
		v.H, v.S = v.S, v.H
		v.HeadStride, v.RowStride = v.RowStride, v.HeadStride
		return v, nil
	})
}

// AsHeads is a view of rows [1, S, heads*d] as heads [heads, S, d]: head h is the columns from h*d.
func (b *Buffer) AsHeads(heads int) (*Buffer, error) {
	return b.part("AsHeads", func(v View) (View, error) {
		switch {
		case v.H != 1:
			return v, fmt.Errorf("already has %d heads", v.H)
		case heads < 1:
			return v, fmt.Errorf("heads is %d, must be at least 1", heads)
		case v.D%heads != 0:
			return v, fmt.Errorf("%d elements a row are not a multiple of %d heads", v.D, heads)
		}
		d := v.D / heads
		return View{v.Mem, heads, v.S, d, v.Offset, d, v.RowStride}, nil
	})
}

// Reshape is a view of the same elements, in the same order, as [heads, rows, dim]. The buffer must be packed.
func (b *Buffer) Reshape(heads, rows, dim int) (*Buffer, error) {
	return b.part("Reshape", func(v View) (View, error) {
		n, err := shape{h: heads, s: rows, d: dim}.check()
		switch {
		case err != nil:
			return v, err
		case n != v.H*v.S*v.D:
			return v, fmt.Errorf("%d elements do not make [%d %d %d]", v.H*v.S*v.D, heads, rows, dim)
		case !v.packed():
			return v, fmt.Errorf("its rows do not touch: copy it first")
		}
		return View{v.Mem, heads, rows, dim, v.Offset, rows * dim, dim}, nil
	})
}
