package cudaops

import "github.com/attnb/attnb/cudaops/plan"

// Upload copies data, [heads, rows, dim] in this order, to the device. data may be reused at once.
func (d *Device) Upload(data []float32, heads, rows, dim int) (*Buffer, error) {
	c, err := d.begin("Upload")
	if err != nil {
		return nil, err
	}
	defer c.end()
	out := shape{h: heads, s: rows, d: dim}
	about := args(Arg{"data", []int{heads, rows, dim}})
	n, err := out.check()
	if err != nil {
		return nil, c.refuse(about, "%s", reason(err))
	}
	if n != len(data) {
		return nil, c.refuse(about, "%d values given, the shape has %d", len(data), n)
	}
	return c.run1(out, func(o View) error { return d.backend.Upload(o.Mem, 0, data) })
}

// Download waits for the queued work and returns the elements of b, packed, in the order [H, S, D].
func (d *Device) Download(b *Buffer) ([]float32, error) {
	c, err := d.begin("Download", operand{"x", b})
	if err != nil {
		return nil, err
	}
	defer c.end()
	v := c.views[0]
	if !v.packed() {
		m, err := c.alloc(v.H * v.S * v.D)
		if err != nil {
			return nil, err
		}
		defer d.backend.Free(m)
		packed := shape{h: v.H, s: v.S, d: v.D}.view(m)
		if err := d.backend.Gather([]View{packed}, []View{v}); err != nil {
			return nil, backendError(c.op, err, 0, d.backend.InUse())
		}
		v = packed
	}
	data := make([]float32, v.H*v.S*v.D)
	if err := d.backend.Download(data, v.Mem, v.Offset); err != nil {
		return nil, backendError(c.op, err, 0, d.backend.InUse())
	}
	return data, nil
}

// Clone copies b to an array of its own, packed as [H, S, D].
func (d *Device) Clone(b *Buffer) (*Buffer, error) {
	c, err := d.begin("Clone", operand{"x", b})
	if err != nil {
		return nil, err
	}
	defer c.end()
	v := c.views[0]
	return c.run1(shape{h: v.H, s: v.S, d: v.D}, func(o View) error {
		return d.backend.Gather([]View{o}, []View{v})
	})
}

// PitchedCopy returns dst with a block of src copied over it. Both are read as flat, packed arrays; cp must pass
// [plan.PitchedCopy.Validate] for their lengths. dst itself keeps its values.
func (d *Device) PitchedCopy(dst, src *Buffer, cp plan.PitchedCopy) (*Buffer, error) {
	c, err := d.begin("PitchedCopy", operand{"dst", dst}, operand{"src", src})
	if err != nil {
		return nil, err
	}
	defer c.end()
	for i, v := range c.views {
		if !v.packed() {
			return nil, c.bad([]int{i}, "its rows do not touch: copy it first")
		}
	}
	to, from := c.views[0], c.views[1]
	if err := cp.Validate(from.H*from.S*from.D, to.H*to.S*to.D); err != nil {
		return nil, c.bad([]int{0, 1}, "%s", reason(err))
	}
	cp.SrcOffset += from.Offset
	return c.run1(shape{h: to.H, s: to.S, d: to.D}, func(o View) error {
		if err := d.backend.Gather([]View{o}, []View{to}); err != nil {
			return err
		}
		return d.backend.Copy(o.Mem, from.Mem, []plan.PitchedCopy{cp})
	})
}
