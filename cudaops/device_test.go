package cudaops_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/host"
	"github.com/attnb/attnb/cudaops/optest"
)

func open() *cudaops.Device { return cudaops.NewDevice(host.New(host.Options{Memory: 1 << 20})) }

func TestReferenceCounts(t *testing.T) {
	d := open()
	b := zeros(t, d, 2, 3, 4)
	if err := b.Retain(); err != nil {
		t.Fatal(err)
	}
	view, err := b.Rows(1, 2)
	if err != nil {
		t.Fatal(err)
	}
	for i, release := range []*cudaops.Buffer{b, b, view} {
		if d.InUse() != 96 {
			t.Errorf("%d bytes in use before release %d, want 96", d.InUse(), i)
		}
		if err := release.Release(); err != nil {
			t.Fatal(err)
		}
	}
	if d.InUse() != 0 {
		t.Errorf("%d bytes in use at the end", d.InUse())
	}
	for name, err := range map[string]error{
		"Release: buffer [2 3 4]: used after its release": b.Release(),
		"Retain: buffer [2 3 4]: used after its release":  b.Retain(),
		"Head: x [2 1 4]: used after its release":         second(view.Head(0)),
		"Add: b [2 1 4]: used after its release":          second(d.Add(zeros(t, d, 2, 1, 4), view)),
	} {
		var released *cudaops.ReleasedError
		if !errors.Is(err, cudaops.ErrReleased) || !errors.As(err, &released) || err.Error() != name {
			t.Errorf("got  %v\nwant %s", err, name)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestForeignBuffer(t *testing.T) {
	d, other := open(), open()
	_, err := d.Add(zeros(t, d, 1, 2, 3), zeros(t, other, 1, 2, 3))
	const want = "Add: b [1 2 3]: lives on another device"
	if e := (*cudaops.InputError)(nil); !errors.As(err, &e) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestErrorCanBeRenamed(t *testing.T) {
	d := open()
	_, err := d.Scores(zeros(t, d, 8, 5, 4), zeros(t, d, 3, 7, 4), 1)
	var e *cudaops.InputError
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	for i := range e.Args {
		e.Args[i] = cudaops.Arg{Name: map[string]string{"q": "queries", "k": `"layer 0 keys"`}[e.Args[i].Name], Shape: e.Args[i].Shape}
	}
	const want = `Scores: queries [8 5 4], "layer 0 keys" [3 7 4]: 8 heads are not a multiple of 3 KV heads`
	if err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestOutOfMemory(t *testing.T) {
	d := open()
	b := zeros(t, d, 1, 1, 1<<17) // half of the budget
	_, err := d.Add(b, b)
	if err != nil {
		t.Fatal("the second half is free: ", err)
	}
	_, err = d.Add(b, b)
	const want = "Add: out of memory: 524288 bytes asked for, 1048576 in use"
	if !errors.Is(err, cudaops.ErrOutOfMemory) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if d.InUse() != 1<<20 {
		t.Errorf("%d bytes in use", d.InUse())
	}
}

func TestBackendErrors(t *testing.T) {
	fault := errors.New("illegal address in Add")
	for _, test := range []struct {
		err, kind error
		want      string
	}{
		{fault, cudaops.ErrDevice, "Add: device fault: illegal address in Add"},
		{fault, fault, "Add: device fault: illegal address in Add"},
		{fmt.Errorf("head dim 300: %w", cudaops.ErrUnsupported), cudaops.ErrUnsupported, "Add: head dim 300: not supported here"},
		{cudaops.ErrInterrupted, cudaops.ErrInterrupted, "Add: interrupted"},
	} {
		faults := &optest.Faults{Backend: host.New(host.Options{}), Err: test.err}
		d := cudaops.NewDevice(faults)
		b := zeros(t, d, 1, 2, 3)
		faults.FailCall = faults.Calls + 1
		_, err := d.Add(b, b)
		if !errors.Is(err, test.kind) || err.Error() != test.want {
			t.Errorf("got  %v\nwant %s", err, test.want)
		}
		if e := (*cudaops.InputError)(nil); errors.As(err, &e) {
			t.Errorf("%v is taken for bad input", err)
		}
	}
}

// blocking is a backend whose Add runs until it is interrupted.
type blocking struct {
	cudaops.Backend
	running   chan bool
	interrupt chan bool
}

func (b *blocking) Add(dst, x, y cudaops.View) error {
	b.running <- true
	if <-b.interrupt {
		return cudaops.ErrInterrupted
	}
	return b.Backend.Add(dst, x, y)
}

func (b *blocking) Interrupt() { b.interrupt <- true }

// The end of a client's context interrupts the client's own op, and no other; meanwhile the device tells about itself.
func TestUnder(t *testing.T) {
	b := &blocking{Backend: host.New(host.Options{Memory: 1 << 20}), running: make(chan bool), interrupt: make(chan bool)}
	d := cudaops.NewDevice(b)
	x := zeros(t, d, 2, 3, 4)
	mine, leave := context.WithCancel(context.Background())
	other, leaveOther := context.WithCancel(context.Background())
	defer leave()
	ended := make(chan error)
	go func() {
		_, err := d.Under(mine).Add(x, x)
		ended <- err
	}()
	<-b.running
	if info, n := d.Info(), d.InUse(); info.Backend != "host" || n != 96 {
		t.Errorf("while an op runs: %+v, %d bytes", info, n)
	}
	waits := make(chan error)
	go func() {
		_, err := d.Under(other).Swap(x)
		waits <- err
	}()
	leaveOther() // its op waits, or has not begun: mine must run on
	select {
	case err := <-ended:
		t.Fatalf("an op of another client ended with %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	leave()
	if err := <-ended; !errors.Is(err, cudaops.ErrInterrupted) || err.Error() != "Add: interrupted" {
		t.Errorf("error %v", err)
	}
	if err := <-waits; !errors.Is(err, cudaops.ErrInterrupted) {
		t.Errorf("the op that waited: %v", err)
	}
	if _, err := d.Under(mine).Swap(x); !errors.Is(err, cudaops.ErrInterrupted) {
		t.Errorf("after the end: %v", err)
	}
	// What such a client made is everyone's.
	fresh, leaveFresh := context.WithCancel(context.Background())
	y, err := d.Under(fresh).Swap(x)
	leaveFresh()
	if err != nil {
		t.Fatal(err)
	}
	if head, err := y.Head(0); err != nil || head.Device() != d {
		t.Errorf("a view after its maker's end: %v", err)
	}
	if data, err := d.Download(y); err != nil || len(data) != 24 {
		t.Errorf("%d values, %v", len(data), err)
	}
}

// known is a fault that knows its op.
type known struct{ error }

func (known) FailedOp() string { return "Prefill" }

func TestFailedOp(t *testing.T) {
	plain := &cudaops.DeviceError{Op: "Download", Err: errors.New("illegal address")}
	late := &cudaops.DeviceError{Op: "Download", Err: fmt.Errorf("while reading: %w", known{errors.New("illegal address")})}
	if plain.FailedOp() != "Download" || late.FailedOp() != "Prefill" {
		t.Errorf("%s and %s", plain.FailedOp(), late.FailedOp())
	}
}

// panicking is a backend that panics in the work of an op.
type panicking struct {
	cudaops.Backend
	calls int // until it does
}

func (p *panicking) Gather(dst, src []cudaops.View) error {
	if p.calls--; p.calls < 0 {
		panic("planted")
	}
	return p.Backend.Gather(dst, src)
}

// A backend that panics costs its op and no more: nothing stays allocated, and the device serves on.
func TestBackendPanics(t *testing.T) {
	p := &panicking{Backend: host.New(host.Options{}), calls: 1 << 20}
	d := cudaops.NewDevice(p)
	x := zeros(t, d, 2, 3, 4)
	cache, err := d.AppendKV(nil, x)
	if err != nil {
		t.Fatal(err)
	}
	transposed, err := x.Transpose()
	if err != nil {
		t.Fatal(err)
	}
	before := d.InUse()
	for name, op := range map[string]func() error{
		"run":      func() error { return second(d.Swap(x)) },
		"grow":     func() error { return second(d.AppendKV(cache, x)) },
		"download": func() error { return second(d.Download(transposed)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			p.calls = 0
			_ = op()
		}()
		if now := d.InUse(); now != before {
			t.Errorf("%s: %d bytes in use after the panic, %d before", name, now, before)
		}
	}
	p.calls = 1
	if y, err := d.Swap(x); err != nil || y == nil {
		t.Errorf("after the panics: %v", err)
	}
}

func TestClosed(t *testing.T) {
	d := open()
	b := zeros(t, d, 1, 2, 3)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"Close": d.Close(), "Sync": d.Sync(), "Add": second(d.Add(b, b)), "Rows": second(b.Rows(0, 1)), "Download": second(d.Download(b)),
	} {
		if !errors.Is(err, cudaops.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := b.Release(); err != nil {
		t.Error("a release after the close is no error: ", err)
	}
}

func TestLayoutOfOutputs(t *testing.T) {
	d := open()
	rows := zeros(t, d, 1, 5, 12)
	heads, err := rows.AsHeads(3)
	if err != nil {
		t.Fatal(err)
	}
	turned, err := d.RoPE(heads, cudaops.RoPE{Rotary: 4, Base: 1e4})
	if err != nil {
		t.Fatal(err)
	}
	if v := turned.View(); v.HeadStride != 4 || v.RowStride != 12 {
		t.Errorf("rows seen by head became %+v", v)
	}
	if heads.Packed() || turned.Packed() || !rows.Packed() {
		t.Error("Packed is wrong")
	}
	if _, err := heads.Reshape(1, 15, 4); err == nil || err.Error() != "Reshape: x [3 5 4]: its rows do not touch: copy it first" {
		t.Error(err)
	}
}

func TestMask(t *testing.T) {
	for _, test := range []struct {
		mask       cudaops.Mask
		rows, cols int
		visible    []int
		empty      int
	}{
		{cudaops.Mask{}, 3, 4, []int{4, 4, 4}, 0},
		{cudaops.Mask{Diagonal: -9}, 3, 4, []int{4, 4, 4}, 0},
		{cudaops.Mask{Causal: true}, 3, 4, []int{1, 2, 3}, 0},
		{cudaops.Mask{Causal: true, Diagonal: 2}, 3, 4, []int{3, 4, 4}, 0},
		{cudaops.Mask{Causal: true, Diagonal: -3}, 5, 2, []int{0, 0, 0, 1, 2}, 3},
		{cudaops.Mask{Causal: true, Diagonal: -9}, 3, 4, []int{0, 0, 0}, 3},
	} {
		var visible []int
		for r := range test.rows {
			visible = append(visible, test.mask.Visible(r, test.cols))
		}
		if !slices.Equal(visible, test.visible) || test.mask.Empty(test.rows, test.cols) != test.empty {
			t.Errorf("%+v: rows see %v, %d empty, want %v, %d", test.mask, visible, test.mask.Empty(test.rows, test.cols), test.visible, test.empty)
		}
	}
}

// TestConcurrentUse appends, reads and releases from many goroutines. The race detector sees to the rest.
func TestConcurrentUse(t *testing.T) {
	d := open()
	shared := zeros(t, d, 2, 3, 4)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			cache := shared
			for i := range 20 {
				next, err := d.AppendKV(cache, shared)
				if err != nil {
					t.Error(err)
					return
				}
				if cache != shared {
					err = cache.Release()
				}
				if cache = next; err != nil {
					t.Error(err)
				}
				data, err := d.Download(cache)
				if err != nil || len(data) != 8*3*(i+2) {
					t.Errorf("%d elements after %d appends, %v", len(data), i+1, err)
				}
				d.Info()
				_ = d.InUse()
			}
			if err := cache.Release(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := shared.Release(); err != nil || d.InUse() != 0 {
		t.Errorf("%d bytes in use, %v", d.InUse(), err)
	}
}

// keeper keeps memory, and counts how often it was asked for it.
type keeper struct {
	*host.Backend
	trimmed int
}

func (k *keeper) Trim() error {
	k.trimmed++
	return nil
}

// A device gives others what its backend keeps once it has been idle from one call to the next, and not for ever.
func TestRest(t *testing.T) {
	k := &keeper{Backend: host.New(host.Options{Workers: 1})}
	d := cudaops.NewDevice(k)
	rest := func(want int) {
		t.Helper()
		if err := d.Rest(); err != nil || k.trimmed != want {
			t.Errorf("%v; trimmed %d times, want %d", err, k.trimmed, want)
		}
	}
	rest(0)
	rest(1)
	for range 2 {
		x, err := d.Upload([]float32{1}, 1, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		was := k.trimmed
		rest(was)
		rest(was + 1)
		if err := x.Release(); err != nil { // memory comes free
			t.Fatal(err)
		}
		was = k.trimmed
		rest(was)
		for i := range 4 {
			rest(was + 1 + i)
		}
		rest(was + 4)
		rest(was + 4)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	was := k.trimmed
	rest(was)
	rest(was)
}
