package cudaops

// Embedding is the rows of a table, [1, V, D], that tokens name, in their order: [1, len(tokens), D].
func (d *Device) Embedding(table *Buffer, tokens []int) (*Buffer, error) {
	c, err := d.begin("Embedding", operand{"table", table})
	if err != nil {
		return nil, err
	}
	defer c.end()
	v := c.views[0]
	if v.H != 1 {
		return nil, c.bad([]int{0}, "the table must have 1 head")
	}
	if len(tokens) == 0 {
		return nil, c.bad([]int{0}, "no tokens")
	}
	for i, token := range tokens {
		if token < 0 || token >= v.S {
			return nil, c.bad([]int{0}, "token %d is %d, must be 0 to %d", i, token, v.S-1)
		}
	}
	return c.run1(shape{h: 1, s: len(tokens), d: v.D}, func(o View) error { return d.backend.Embedding(o, v, tokens) })
}
