package cudaops

// storage is one memory of the backend, shared by the buffers that view it. It goes back when the last of them is
// released. Guarded by the device's lock.
type storage struct {
	d    *Device
	mem  Memory
	refs int // live buffers

	// A storage made by AppendKV is a cache: [heads, capacity, dim], of which the newest view has rows rows.
	// Both are 0 elsewhere.
	capacity, rows int
}

// Buffer is a counted handle on an array of a device, or on a part of one. What it shows never changes: every op
// makes a new buffer. Its zero value is of no use; ops and views make buffers.
type Buffer struct {
	store *storage
	view  View
	refs  int // guarded by the device's lock
}

// newBuffer makes a handle with one reference. The caller holds the device's lock.
func newBuffer(st *storage, v View) *Buffer {
	st.refs++
	return &Buffer{store: st, view: v, refs: 1}
}

// Device is the device that holds the buffer.
func (b *Buffer) Device() *Device { return b.store.d }

// Shape is the number of heads, rows and elements a row.
func (b *Buffer) Shape() (heads, rows, dim int) { return b.view.H, b.view.S, b.view.D }

// Len is the number of elements that the buffer shows.
func (b *Buffer) Len() int { return b.view.H * b.view.S * b.view.D }

// View is the geometry of the buffer: where its elements lie in its memory.
func (b *Buffer) View() View { return b.view }

// Packed reports whether the elements touch, in the order [H, S, D].
func (b *Buffer) Packed() bool { return b.view.packed() }

func (v View) packed() bool {
	return (v.S == 1 || v.RowStride == v.D) && (v.H == 1 || v.HeadStride == v.S*v.D)
}

// valid tells a buffer from nil and from the zero value, of which no device knows.
func (b *Buffer) valid() bool { return b != nil && b.store != nil }

// Retain adds a reference; each needs a Release of its own. It fails with a [ReleasedError] after the last release.
func (b *Buffer) Retain() error {
	if !b.valid() {
		return noBuffer("Retain", "buffer")
	}
	b.store.d.mu.Lock()
	defer b.store.d.mu.Unlock()
	if b.refs == 0 {
		return &ReleasedError{Op: "Retain", Args: args(operand{"buffer", b}.arg())}
	}
	b.refs++
	return nil
}

// Release drops a reference. With the last one of the last buffer of an array its memory goes back. One release too
// many is a [ReleasedError].
func (b *Buffer) Release() error {
	if !b.valid() {
		return noBuffer("Release", "buffer")
	}
	d := b.store.d
	d.mu.Lock()
	defer d.unlock()
	if b.refs == 0 {
		return &ReleasedError{Op: "Release", Args: args(operand{"buffer", b}.arg())}
	}
	b.refs--
	if b.refs > 0 {
		return nil
	}
	b.store.refs--
	if b.store.refs == 0 && !d.closed {
		d.backend.Free(b.store.mem)
	}
	return nil
}

func noBuffer(op, name string) error {
	return &InputError{Op: op, Args: args(Arg{Name: name}), Reason: "no buffer given"}
}
