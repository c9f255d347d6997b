package cudaops

// LSE is the natural log of each row's sum of exp(scale * q.k) over the keys that m shows: q [H, S, d], k [KV, T, d], H a
// multiple of KV. The result is [1, H, S], -Inf for a row that sees nothing. No S x T matrix is made.
func (d *Device) LSE(q, k *Buffer, scale float64, m Mask) (*Buffer, error) {
	c, err := d.begin("LSE", operand{"q", q}, operand{"k", k})
	if err != nil {
		return nil, err
	}
	defer c.end()
	if err := c.grouped(scale); err != nil {
		return nil, err
	}
	vq, vk := c.views[0], c.views[1]
	if err := m.plain(vk.S); err != nil {
		return nil, c.bad([]int{0, 1}, "%s", reason(err))
	}
	return c.run1(shape{h: 1, s: vq.H, d: vq.S}, func(o View) error {
		return d.backend.LSE(o, vq, vk, float32(scale), m)
	})
}

// Pooling are the parameters of a pooled view.
type Pooling struct {
	Scale      float64 // multiplies q.k; usually 1/sqrt(d)
	Mask       Mask
	Reduce     Reduce // what a cell of the result is of the visible cells that it stands for
	Rows, Cols int    // of the result: at most S and T
}

// Pool is a picture of attention at any size: the S x T scores scale * q.k of each head, pooled into p.Rows x p.Cols. With
// lse, which [Device.LSE] makes of the same q, k, scale and mask, it is the probabilities exp(score - lse). q is [H, S, d], k
// [KV, T, d], lse [1, H, S] or nil, the result [H, p.Rows, p.Cols]. No S x T matrix is made.
//
// Cell (i, j) reduces the visible cells among the rows from floor(i*S/Rows) up to floor((i+1)*S/Rows), and columns likewise;
// where there is none it is exactly 0, and [Mask.Pooled] tells. Where Rows is S and Cols is T the cells are those of
// [Device.Scores] and [Device.Softmax].
//
// A window is a view: of the rows from r and the columns from c, with q.Rows(r, ...), k.Rows(c, ...), lse.Columns(r, ...) and
// the mask's diagonal moved by r - c. One head likewise.
func (d *Device) Pool(q, k, lse *Buffer, p Pooling) (*Buffer, error) {
	in := []operand{{"q", q}, {"k", k}}
	if lse != nil {
		in = append(in, operand{"lse", lse})
	}
	c, err := d.begin("Pool", in...)
	if err != nil {
		return nil, err
	}
	defer c.end()
	vq, vk := c.views[0], c.views[1]
	var vl View
	if lse != nil {
		vl = c.views[2]
	}
	c.views = c.views[:2] // what q and k must share
	if err := c.grouped(p.Scale); err != nil {
		return nil, err
	}
	switch {
	case p.Reduce > Min:
		return nil, c.bad([]int{0, 1}, "unknown reduction %d", p.Reduce)
	case p.Rows < 1 || p.Rows > vq.S:
		return nil, c.bad([]int{0}, "%d queries do not pool into %d rows", vq.S, p.Rows)
	case p.Cols < 1 || p.Cols > vk.S:
		return nil, c.bad([]int{1}, "%d keys do not pool into %d columns", vk.S, p.Cols)
	case lse != nil && (vl.H != 1 || vl.S != vq.H || vl.D != vq.S):
		return nil, c.bad([]int{0, 2}, "the log of the sums must be [1 %d %d]", vq.H, vq.S)
	}
	if err := p.Mask.plain(vk.S); err != nil {
		return nil, c.bad([]int{0, 1}, "%s", reason(err))
	}
	return c.run1(shape{h: vq.H, s: p.Rows, d: p.Cols}, func(o View) error {
		return d.backend.Pool(o, vq, vk, vl, float32(p.Scale), p.Mask, p.Reduce)
	})
}
