package cudaops

import "github.com/attnb/attnb/cudaops/plan"

// AppendKV puts rows, [KV, new, d], behind a cache, [KV, T, d], and returns the cache of T + new rows. A nil cache
// begins one. The given cache keeps showing its own T rows.
//
// The result shares the memory of the cache where that was itself made by AppendKV, nothing was appended to it yet and
// its capacity allows: then only the new rows are copied. Else the result has an array of its own, of twice the
// rows of the cache, so that the copies of many appends stay proportional to the rows appended.
func (d *Device) AppendKV(cache, rows *Buffer) (*Buffer, error) {
	if cache == nil {
		return d.beginCache(rows)
	}
	c, err := d.begin("AppendKV", operand{"cache", cache}, operand{"rows", rows})
	if err != nil {
		return nil, err
	}
	defer c.end()
	old, add := c.views[0], c.views[1]
	if old.H != add.H || old.D != add.D {
		return nil, c.bad([]int{0, 1}, "heads and head dim must be equal")
	}
	p := plan.Append{
		Heads: old.H, Old: old.S, New: add.S, Dim: old.D, HasPrevious: true,
		NewHeadStride: add.HeadStride, NewRowStride: add.RowStride,
	}
	if st := cache.store; st.newest(old) && old.S+add.S <= st.capacity {
		return c.within(st, p)
	}
	if _, _, err := p.Plan(); err != nil {
		return nil, c.bad([]int{0, 1}, "%s", reason(err))
	}
	return c.grow(p)
}

// beginCache copies the first rows of a cache to an array of their own.
func (d *Device) beginCache(rows *Buffer) (*Buffer, error) {
	c, err := d.begin("AppendKV", operand{"rows", rows})
	if err != nil {
		return nil, err
	}
	defer c.end()
	v := c.views[0]
	b, err := c.run1(shape{h: v.H, s: v.S, d: v.D}, func(o View) error {
		return d.backend.Gather([]View{o}, []View{v})
	})
	if err != nil {
		return nil, err
	}
	b.store.capacity, b.store.rows = v.S, v.S
	return b, nil
}

// newest reports whether v is all of a cache: every head, and every row that was written.
func (st *storage) newest(v View) bool {
	return st.capacity > 0 && v.S == st.rows && v.Offset == 0 && v.RowStride == v.D &&
		v.HeadStride == st.capacity*v.D && v.H*v.HeadStride == st.mem.Len()
}

// within writes the new rows behind the old ones.
func (c *call) within(st *storage, p plan.Append) (*Buffer, error) {
	p.Capacity, p.OldCapacity = st.capacity, st.capacity
	_, rows, err := p.Plan()
	if err != nil {
		return nil, c.bad([]int{0, 1}, "%s", reason(err))
	}
	add := c.views[1]
	if err := c.d.backend.Copy(st.mem, add.Mem, shifted(rows, add.Offset)); err != nil {
		return nil, backendError(c.op, err, 0, c.d.backend.InUse())
	}
	v := c.views[0]
	v.S += p.New
	st.rows = v.S
	return newBuffer(st, v), nil
}

// grow copies old and new rows to a larger array. Where twice the capacity does not fit, one without spare room may.
func (c *call) grow(p plan.Append) (*Buffer, error) {
	exact := p.Old + p.New
	p.Capacity = max(2*p.Old, exact)
	n, err := shape{h: p.Heads, s: p.Capacity, d: p.Dim}.check()
	var mem Memory
	if err == nil {
		mem, err = c.alloc(n)
	}
	if err != nil && p.Capacity > exact {
		p.Capacity = exact
		n, err = shape{h: p.Heads, s: exact, d: p.Dim}.check()
		if err != nil {
			return nil, c.bad([]int{0, 1}, "%s", reason(err))
		}
		mem, err = c.alloc(n)
	}
	if err != nil {
		return nil, err
	}
	published := false
	defer func() {
		if !published {
			c.d.backend.Free(mem)
		}
	}()
	old, add := c.views[0], c.views[1]
	v := shape{h: p.Heads, s: p.Capacity, d: p.Dim}.view(mem)
	v.S = exact
	head := v // where the old rows go
	head.S = p.Old
	tail := v // where the new rows go
	tail.Offset, tail.S = p.Old*v.RowStride, p.New
	if err := c.d.backend.Gather([]View{head, tail}, []View{old, add}); err != nil {
		return nil, backendError(c.op, err, 0, c.d.backend.InUse())
	}
	published = true
	return newBuffer(&storage{d: c.d.root, mem: mem, capacity: p.Capacity, rows: exact}, v), nil
}

// shifted moves the sources of a plan that was made for an array which begins at offset.
func shifted(copies []plan.PitchedCopy, offset int) []plan.PitchedCopy {
	for i := range copies {
		copies[i].SrcOffset += offset
	}
	return copies
}
