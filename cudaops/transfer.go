package cudaops

import (
	"sync/atomic"

	"github.com/attnb/attnb/cudaops/plan"
)

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

// part is how many elements of a transfer in parts are on their way at a time: 4 MiB, which caches hold.
const part = 1 << 20

// UploadFrom is [Device.Upload] of data that come in parts, in their order: fill writes each, one call after the other, without the device's lock, and is not called
// any more when UploadFrom returns. The array is there once the first part is; a failure gives it back. An error of fill is returned as it is.
func (d *Device) UploadFrom(heads, rows, dim int, fill func(part []float32) error) (*Buffer, error) {
	n, err := shape{h: heads, s: rows, d: dim}.check()
	if err != nil || n <= part {
		all := make([]float32, n) // none, of a shape that Upload refuses
		if err == nil {
			if err := fill(all); err != nil {
				return nil, err
			}
		}
		return d.Upload(all, heads, rows, dim)
	}
	first := make([]float32, part)
	if err := fill(first); err != nil {
		return nil, err
	}
	b, err := d.begun(first, shape{h: heads, s: rows, d: dim})
	if err != nil {
		return nil, err
	}
	if direct, ok := d.backend.(Addressable); ok {
		err = fill(direct.Elements(b.view.Mem)[part:n])
	} else {
		err = d.rest(b, n, first, fill)
	}
	if err != nil {
		_ = b.Release()
		return nil, err
	}
	return b, nil
}

// rest uploads what comes behind the first part of n elements: a part is filled while the one before is on its way. It may use first.
func (d *Device) rest(b *Buffer, n int, first []float32, fill func(part []float32) error) (err error) {
	type filled struct {
		x   []float32
		err error
	}
	rooms, ahead := make(chan []float32, 2), make(chan filled, 1)
	rooms <- first
	rooms <- make([]float32, part)
	go func() {
		defer close(ahead)
		for at := part; at < n; at += part {
			room, ok := <-rooms
			if !ok {
				return
			}
			x := room[:min(part, n-at)]
			err := fill(x)
			ahead <- filled{x, err}
			if err != nil {
				return
			}
		}
	}()
	defer func() {
		close(rooms)
		for range ahead { // until nobody fills
		}
	}()
	at := part
	for f := range ahead {
		if f.err != nil {
			return f.err
		}
		if err := d.put(b, at, f.x); err != nil {
			return err
		}
		at += len(f.x)
		rooms <- f.x[:cap(f.x)]
	}
	return nil
}

// begun is a new array of which the first elements are written.
func (d *Device) begun(first []float32, out shape) (*Buffer, error) {
	c, err := d.begin("Upload")
	if err != nil {
		return nil, err
	}
	defer c.end()
	return c.run1(out, func(o View) error { return d.backend.Upload(o.Mem, 0, first) })
}

// put writes elements of a packed array that nobody else knows.
func (d *Device) put(b *Buffer, at int, x []float32) error {
	c, err := d.begin("Upload", operand{"data", b})
	if err != nil {
		return err
	}
	defer c.end()
	return backendError(c.op, d.backend.Upload(b.view.Mem, at, x), 0, d.backend.InUse())
}

// DownloadTo is [Device.Download] in parts: take is given each, in their order, to read until it returns, one call after the other, without the device's lock.
// An error of take ends it and is returned as it is; one of the device comes before the first part but where it fails on the way.
func (d *Device) DownloadTo(b *Buffer, take func(part []float32) error) error {
	packed, err := d.packed(b)
	if err != nil {
		return err
	}
	if packed == b { // nobody's release may give it to others meanwhile
		if err := b.Retain(); err != nil {
			return err
		}
	}
	defer packed.Release()
	v := packed.view
	n := v.H * v.S * v.D
	if direct, ok := d.backend.(Addressable); ok {
		return take(direct.Elements(v.Mem)[v.Offset:][:n])
	}
	if n <= part {
		all := make([]float32, n)
		if err := d.get(packed, 0, all); err != nil {
			return err
		}
		return take(all)
	}
	return d.parts(packed, n, take)
}

// parts downloads n elements: a part is taken while the next is on its way.
func (d *Device) parts(b *Buffer, n int, take func(part []float32) error) (err error) {
	rooms, full, done := make(chan []float32, 2), make(chan []float32, 1), make(chan error, 1)
	rooms <- make([]float32, part)
	rooms <- make([]float32, part)
	var stopped atomic.Bool
	go func() {
		var err error
		for x := range full {
			if err == nil {
				err = take(x)
				stopped.Store(err != nil)
			}
			rooms <- x[:cap(x)]
		}
		done <- err
	}()
	defer func() {
		close(full)
		if taken := <-done; err == nil {
			err = taken
		}
	}()
	for at := 0; at < n && !stopped.Load(); at += part {
		x := (<-rooms)[:min(part, n-at)]
		if err := d.get(b, at, x); err != nil {
			return err
		}
		full <- x
	}
	return nil
}

// packed is b where its elements lie behind each other, else a copy in which they do.
func (d *Device) packed(b *Buffer) (*Buffer, error) {
	c, err := d.begin("Download", operand{"x", b})
	if err != nil {
		return nil, err
	}
	defer c.end()
	v := c.views[0]
	if v.packed() {
		return b, nil
	}
	return c.run1(shape{h: v.H, s: v.S, d: v.D}, func(o View) error { return d.backend.Gather([]View{o}, []View{v}) })
}

// get reads elements of a packed array.
func (d *Device) get(b *Buffer, at int, x []float32) error {
	c, err := d.begin("Download", operand{"x", b})
	if err != nil {
		return err
	}
	defer c.end()
	return backendError(c.op, d.backend.Download(x, b.view.Mem, b.view.Offset+at), 0, d.backend.InUse())
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
