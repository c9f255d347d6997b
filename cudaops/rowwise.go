package cudaops

// Softmax takes the softmax of each row of x, [H, S, T], over the columns that m shows; the others become exactly 0.
// A row that sees nothing becomes 0 everywhere; empty is the number of such rows, over all heads. The result lies in
// memory in the order of x.
func (d *Device) Softmax(x *Buffer, m Mask) (y *Buffer, empty int, err error) {
	if !m.Plain() {
		return d.SoftmaxVariant(x, m, Variant{})
	}
	c, err := d.begin("Softmax", operand{"x", x})
	if err != nil {
		return nil, 0, err
	}
	defer c.end()
	v := c.views[0]
	if err := m.check(v.D); err != nil {
		return nil, 0, c.bad([]int{0}, "%s", reason(err))
	}
	y, err = c.run1(like(v), func(o View) error { return d.backend.Softmax(o, v, m) })
	if err != nil {
		return nil, 0, err
	}
	return y, v.H * m.Empty(v.S, v.D), nil
}

// Linear is x w^T + b for each row: x [1, S, in], w [1, out, in], b [1, 1, out] or nil. The result is [1, S, out].
func (d *Device) Linear(x, w, b *Buffer) (*Buffer, error) {
	in := []operand{{"x", x}, {"w", w}}
	if b != nil {
		in = append(in, operand{"b", b})
	}
	c, err := d.begin("Linear", in...)
	if err != nil {
		return nil, err
	}
	defer c.end()
	vx, vw := c.views[0], c.views[1]
	var vb View
	switch {
	case vx.H != 1 || vw.H != 1:
		return nil, c.bad([]int{0, 1}, "x and w must have 1 head")
	case vx.D != vw.D:
		return nil, c.bad([]int{0, 1}, "rows of %d elements, weights for %d", vx.D, vw.D)
	}
	if b != nil {
		vb = c.views[2]
		if vb.H != 1 || vb.S != 1 || vb.D != vw.S {
			return nil, c.bad([]int{1, 2}, "the bias must be [1 1 %d]", vw.S)
		}
	}
	return c.run1(shape{h: 1, s: vx.S, d: vw.S}, func(o View) error { return d.backend.Linear(o, vx, vw, vb) })
}
