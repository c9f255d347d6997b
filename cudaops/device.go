package cudaops

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/attnb/attnb/cudaops/plan"
)

const elementBytes = int64(unsafe.Sizeof(float32(0)))

// Device runs ops on one backend and owns its arrays. It is safe for concurrent use: ops run one after the other.
type Device struct {
	*shared
	ctx context.Context // its ops end with it; nil: they do not
}

// shared is what the handles of one device have in common.
type shared struct {
	mu      sync.Mutex // held through every op: the backend sees one goroutine at a time
	backend Backend
	closed  bool
	root    *Device // without a context: what buffers outlive the context of their op by
	info    Info
	inUse   atomic.Int64 // at the end of the last op
	powers  powers
	rests   atomic.Int32 // calls of Rest since the last op
}

// NewDevice wraps a backend, which the device owns from now on.
func NewDevice(b Backend) *Device {
	d := &Device{shared: &shared{backend: b, info: b.Info()}}
	d.root = d
	d.inUse.Store(b.InUse())
	return d
}

// Under is the same device for a client that may go away: once ctx is done its ops fail with [ErrInterrupted], and the one that
// runs is interrupted where the backend can do so. Ops of others are not, whatever they wait for. Buffers may be used by any handle
// of the device.
func (d *Device) Under(ctx context.Context) *Device { return &Device{shared: d.shared, ctx: ctx} }

// Backend is the backend below the device, for tests and diagnosis. Whoever calls it keeps the device idle meanwhile.
func (d *Device) Backend() Backend { return d.backend }

// Info describes the device. It does not wait.
func (d *Device) Info() Info { return d.info }

// InUse is the number of bytes that the arrays of the device take. It does not wait: while an op runs it is what was in use before.
func (d *Device) InUse() int64 {
	if !d.mu.TryLock() {
		return d.inUse.Load()
	}
	defer d.mu.Unlock()
	return d.backend.InUse()
}

// unlock gives way to the next op.
func (d *Device) unlock() {
	d.rests.Store(0)
	if !d.closed {
		d.inUse.Store(d.backend.InUse())
	}
	d.mu.Unlock()
}

// Sync waits for the queued work and returns its error, if any.
func (d *Device) Sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fmt.Errorf("Sync: %w", ErrClosed)
	}
	return backendError("Sync", d.backend.Sync(), 0, 0)
}

// Interruptible reports whether an op that runs can be stopped. Where it cannot, ops are queued, and calls return at once.
func (d *Device) Interruptible() bool {
	_, ok := d.backend.(Interrupter)
	return ok
}

// Interrupt makes the op that runs now, in another goroutine, fail with [ErrInterrupted], where the backend can do so.
func (d *Device) Interrupt() {
	if i, ok := d.backend.(Interrupter); ok {
		i.Interrupt()
	}
}

// Rest is to be called now and then by a program that shares the device: where no op has come since the call before, it gives others the memory that
// the backend keeps for later arrays. It does not wait, and does nothing while an op runs.
func (d *Device) Rest() error {
	const enough = 4 // what the first did not give back was still in use by queued work
	n := d.rests.Load()
	if n > enough || !d.rests.CompareAndSwap(n, n+1) || n == 0 {
		return nil
	}
	t, ok := d.backend.(Trimmer)
	if !ok || !d.mu.TryLock() {
		return nil
	}
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	return backendError("Rest", t.Trim(), 0, 0)
}

// Progress is how much of the op that runs is done, from 0 to 1; 0 where none runs, or the backend cannot tell. It does not wait.
func (d *Device) Progress() float64 {
	if p, ok := d.backend.(Progresser); ok {
		return p.Progress()
	}
	return 0
}

// Close gives the backend back, with every array that is still held. Buffers of a closed device are of no use.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fmt.Errorf("Close: %w", ErrClosed)
	}
	d.closed = true
	return backendError("Close", d.backend.Close(), 0, 0)
}

// operand is a buffer given to an op, under the name that errors call it by.
type operand struct {
	name string
	buf  *Buffer
}

// call is one op in progress. It holds the device's lock from begin to end.
type call struct {
	d     *Device
	op    string
	in    []operand
	views []View // of the operands, in their order
	quiet func() // ends the wait for the end of the context
}

// begin locks the device and checks that every operand is a live buffer of it. After a nil error the caller must end
// the call.
func (d *Device) begin(op string, in ...operand) (*call, error) {
	c := &call{d: d, op: op, in: in, views: make([]View, len(in))}
	for _, o := range in {
		if !o.buf.valid() {
			return nil, noBuffer(op, o.name)
		}
		if o.buf.store.d.shared != d.shared {
			return nil, c.refuse(args(o.arg()), "lives on another device")
		}
	}
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil, fmt.Errorf("%s: %w", op, ErrClosed)
	}
	for i, o := range in {
		if o.buf.refs == 0 {
			d.mu.Unlock()
			return nil, &ReleasedError{Op: op, Args: args(o.arg())}
		}
		c.views[i] = o.buf.view
	}
	if d.ctx != nil {
		if d.ctx.Err() != nil {
			d.mu.Unlock()
			return nil, fmt.Errorf("%s: %w", op, ErrInterrupted)
		}
		c.quiet = d.interruptAfter(d.ctx)
	}
	return c, nil
}

func (c *call) end() {
	if c.quiet != nil {
		c.quiet()
	}
	c.d.unlock()
}

// interruptAfter interrupts the op that runs once ctx is done. The returned function ends that, and waits for an
// interruption under way: it must not hit the next op.
func (d *Device) interruptAfter(ctx context.Context) func() {
	if ctx.Done() == nil {
		return nil
	}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		d.Interrupt()
	})
	return func() {
		if !stop() {
			<-done
		}
	}
}

func args(a ...Arg) []Arg { return a }

func (o operand) arg() Arg {
	v := o.buf.view
	return Arg{Name: o.name, Shape: []int{v.H, v.S, v.D}}
}

// refuse makes the error for bad input.
func (c *call) refuse(args []Arg, format string, a ...any) error {
	return &InputError{Op: c.op, Args: args, Reason: fmt.Sprintf(format, a...)}
}

// bad refuses the input because of the operands of the given indices.
func (c *call) bad(which []int, format string, a ...any) error {
	var about []Arg
	for _, i := range which {
		about = append(about, c.in[i].arg())
	}
	return c.refuse(about, format, a...)
}

// shape is the shape of an output, and the order in which its memory holds it.
type shape struct {
	h, s, d   int
	rowsMajor bool // [S, H*D] in memory instead of [H, S, D]
}

// like is the shape of v, in the order in which v lies in memory.
func like(v View) shape {
	return shape{v.H, v.S, v.D, v.H > 1 && v.S > 1 && v.HeadStride < v.RowStride}
}

// check refuses a shape that is empty or too large.
func (s shape) check() (elements int, err error) {
	if _, err := plan.Elements("output", plan.Dim{Name: "heads", N: s.h}, plan.Dim{Name: "rows", N: s.s}); err != nil {
		return 0, err
	}
	if uint64(s.h)*uint64(s.s) > plan.MaxDim {
		return 0, &plan.Error{What: "output", Reason: fmt.Sprintf("heads %d * rows %d is more than %d", s.h, s.s, uint64(plan.MaxDim))}
	}
	return plan.Elements("output", plan.Dim{Name: "heads", N: s.h}, plan.Dim{Name: "rows", N: s.s}, plan.Dim{Name: "dim", N: s.d})
}

// view is the view of an output of this shape on a memory of its own.
func (s shape) view(m Memory) View {
	v := View{Mem: m, H: s.h, S: s.s, D: s.d, HeadStride: s.s * s.d, RowStride: s.d}
	if s.rowsMajor {
		v.HeadStride, v.RowStride = s.d, s.h*s.d
	}
	return v
}

// run allocates the outputs, lets f queue the work that fills them and returns them. Where anything fails it gives
// back all that it allocated, also where the backend panics. Every shape is checked before the first is allocated.
func (c *call) run(outs []shape, f func(out []View) error) ([]*Buffer, error) {
	sizes := make([]int, len(outs))
	for i, s := range outs {
		n, err := s.check()
		if err != nil {
			return nil, c.refuse(c.args(), "%s", reason(err))
		}
		sizes[i] = n
	}
	views := make([]View, 0, len(outs))
	published := false
	defer func() {
		if !published {
			c.free(views)
		}
	}()
	for i, s := range outs {
		m, err := c.alloc(sizes[i])
		if err != nil {
			return nil, err
		}
		views = append(views, s.view(m))
	}
	if err := f(views); err != nil {
		return nil, backendError(c.op, err, 0, c.d.backend.InUse())
	}
	published = true
	bufs := make([]*Buffer, len(outs))
	for i, v := range views {
		bufs[i] = newBuffer(&storage{d: c.d.root, mem: v.Mem}, v)
	}
	return bufs, nil
}

// run1 is run for the ops with one output.
func (c *call) run1(out shape, f func(out View) error) (*Buffer, error) {
	bufs, err := c.run([]shape{out}, func(o []View) error { return f(o[0]) })
	if err != nil {
		return nil, err
	}
	return bufs[0], nil
}

func (c *call) alloc(n int) (Memory, error) {
	inUse := c.d.backend.InUse()
	m, err := c.d.backend.Alloc(n)
	if err != nil {
		return nil, backendError(c.op, err, int64(n)*elementBytes, inUse)
	}
	return m, nil
}

func (c *call) free(views []View) {
	for _, v := range views {
		c.d.backend.Free(v.Mem)
	}
}

// args are all operands, for errors.
func (c *call) args() []Arg {
	var all []Arg
	for _, o := range c.in {
		all = append(all, o.arg())
	}
	return all
}
