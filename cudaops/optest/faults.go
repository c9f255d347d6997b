package optest

import (
	"errors"
	"fmt"
	"math"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/plan"
)

// smallCase is up to how many input elements a case is repeated with every failure.
const smallCase = 2000

// poison is a backend whose arrays begin as NaN.
type poison struct {
	cudaops.Backend
	nan []float32 // as many as the longest array had
}

func poisoned(d *cudaops.Device) *cudaops.Device {
	return cudaops.NewDevice(&poison{Backend: d.Backend()})
}

func (p *poison) Alloc(n int) (cudaops.Memory, error) {
	m, err := p.Backend.Alloc(n)
	if err != nil {
		return nil, err
	}
	for len(p.nan) < m.Len() {
		p.nan = append(p.nan, float32(math.NaN()))
	}
	return m, p.Upload(m, 0, p.nan[:m.Len()])
}

// Faults is a backend that fails on purpose: at a chosen allocation, or a chosen call that does work. A failing call
// does its work first, so that what it wrote must not be taken for a result.
type Faults struct {
	cudaops.Backend
	FailAlloc, FailCall int   // which one fails, counted from 1; 0: none
	Err                 error // how a call fails
	Allocs, Calls       int   // how many there were
}

// Reset counts from 0 again, with no failure chosen.
func (f *Faults) Reset() { f.Allocs, f.Calls, f.FailAlloc, f.FailCall = 0, 0, 0, 0 }

// Alloc counts, and fails as out of memory where chosen.
func (f *Faults) Alloc(n int) (cudaops.Memory, error) {
	f.Allocs++
	if f.Allocs == f.FailAlloc {
		return nil, fmt.Errorf("%w: allocation %d fails on purpose", cudaops.ErrOutOfMemory, f.Allocs)
	}
	return f.Backend.Alloc(n)
}

func (f *Faults) call(err error) error {
	f.Calls++
	if f.Calls == f.FailCall {
		return f.Err
	}
	return err
}

// The calls that do work.

// Upload counts.
func (f *Faults) Upload(dst cudaops.Memory, offset int, src []float32) error {
	return f.call(f.Backend.Upload(dst, offset, src))
}

// Download counts.
func (f *Faults) Download(dst []float32, src cudaops.Memory, offset int) error {
	return f.call(f.Backend.Download(dst, src, offset))
}

// Copy counts.
func (f *Faults) Copy(dst, src cudaops.Memory, copies []plan.PitchedCopy) error {
	return f.call(f.Backend.Copy(dst, src, copies))
}

// Gather counts.
func (f *Faults) Gather(dst, src []cudaops.View) error { return f.call(f.Backend.Gather(dst, src)) }

// RoPE counts.
func (f *Faults) RoPE(dst, src cudaops.View, r cudaops.RoPE) error {
	return f.call(f.Backend.RoPE(dst, src, r))
}

// Softmax counts.
func (f *Faults) Softmax(dst, src cudaops.View, m cudaops.Mask) error {
	return f.call(f.Backend.Softmax(dst, src, m))
}

// SoftmaxChanged counts.
func (f *Faults) SoftmaxChanged(dst, src cudaops.View, c cudaops.Changes) (int, error) {
	empty, err := f.Backend.SoftmaxChanged(dst, src, c)
	return empty, f.call(err)
}

// Add counts.
func (f *Faults) Add(dst, a, b cudaops.View) error { return f.call(f.Backend.Add(dst, a, b)) }

// Multiply counts.
func (f *Faults) Multiply(dst, a, b cudaops.View) error { return f.call(f.Backend.Multiply(dst, a, b)) }

// Activate counts.
func (f *Faults) Activate(dst, src cudaops.View, a cudaops.Activation) error {
	return f.call(f.Backend.Activate(dst, src, a))
}

// Norm counts.
func (f *Faults) Norm(dst, x, w, b cudaops.View, n cudaops.Norm) error {
	return f.call(f.Backend.Norm(dst, x, w, b, n))
}

// Embedding counts.
func (f *Faults) Embedding(dst, table cudaops.View, tokens []int) error {
	return f.call(f.Backend.Embedding(dst, table, tokens))
}

// Scores counts.
func (f *Faults) Scores(dst, q, k cudaops.View, scale float32) error {
	return f.call(f.Backend.Scores(dst, q, k, scale))
}

// Context counts.
func (f *Faults) Context(dst, p, v cudaops.View) error { return f.call(f.Backend.Context(dst, p, v)) }

// Prefill counts.
func (f *Faults) Prefill(dst, lse, q, k, v cudaops.View, scale float32, m cudaops.Mask) error {
	return f.call(f.Backend.Prefill(dst, lse, q, k, v, scale, m))
}

// PrefillChanged counts.
func (f *Faults) PrefillChanged(dst, lse, q, k, v cudaops.View, scale float32, c cudaops.Changes) (int, error) {
	empty, err := f.Backend.PrefillChanged(dst, lse, q, k, v, scale, c)
	return empty, f.call(err)
}

// Decode counts.
func (f *Faults) Decode(dst, q, k, v cudaops.View, scale float32) error {
	return f.call(f.Backend.Decode(dst, q, k, v, scale))
}

// Linear counts.
func (f *Faults) Linear(dst, x, w, b cudaops.View) error {
	return f.call(f.Backend.Linear(dst, x, w, b))
}

// LSE counts.
func (f *Faults) LSE(dst, q, k cudaops.View, scale float32, m cudaops.Mask) error {
	return f.call(f.Backend.LSE(dst, q, k, scale, m))
}

// Pool counts.
func (f *Faults) Pool(dst, q, k, lse cudaops.View, scale float32, m cudaops.Mask, by cudaops.Reduce) error {
	return f.call(f.Backend.Pool(dst, q, k, lse, scale, m, by))
}

// errFault is a fault of the device.
var errFault = errors.New("fails on purpose")

// checkFailures repeats the case with each allocation and each call of the backend failing in turn.
func (c testCase) checkFailures(device *cudaops.Device) error {
	faults := &Faults{Backend: device.Backend()}
	d := cudaops.NewDevice(faults)
	before := d.InUse()
	in, err := placements[0].uploadAll(d, c.in)
	if err != nil {
		return err
	}
	held := d.InUse()
	faults.Reset()
	bufs, err := c.do(d, in)
	if err = errors.Join(err, release(bufs...)); err != nil {
		return errors.Join(err, release(in...)) // an op that the device does not support is skipped, and the suite goes on
	}
	if len(bufs) > 0 && faults.Calls == 0 {
		return errors.New("the op calls the backend for nothing: a failure could not show")
	}
	attempt := func(name string, choose func(), kind error) error {
		faults.Reset()
		choose()
		bufs, err := c.do(d, in)
		if err == nil && kind == cudaops.ErrOutOfMemory {
			// An op may do with less memory than it asked for first, but not differently.
			var got [][]float32
			if got, err = downloadAll(d, bufs); err == nil {
				err = errors.Join(c.compare(got), release(bufs...))
			}
			if err != nil {
				return fmt.Errorf("%s, then served with less: %w", name, err)
			}
		} else if !errors.Is(err, kind) || bufs != nil {
			return fmt.Errorf("%s: %d outputs and error %v, want none and %v", name, len(bufs), err, kind)
		}
		faults.Reset()
		if now := d.InUse(); now != held {
			return fmt.Errorf("%s: %d bytes in use, %d before", name, now, held)
		}
		if err := unchanged(d, in, c.in); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	}
	for n, allocs := 1, faults.Allocs; n <= allocs; n++ {
		if err := attempt(fmt.Sprintf("allocation %d fails", n), func() { faults.FailAlloc = n }, cudaops.ErrOutOfMemory); err != nil {
			return err
		}
	}
	faults.Reset()
	if bufs, err = c.do(d, in); err != nil {
		return err
	}
	calls := faults.Calls
	if err := release(bufs...); err != nil {
		return err
	}
	kinds := []struct{ err, kind error }{
		{errFault, cudaops.ErrDevice}, {errFault, errFault},
		{cudaops.ErrUnsupported, cudaops.ErrUnsupported}, {cudaops.ErrInterrupted, cudaops.ErrInterrupted},
	}
	for n := 1; n <= calls; n++ {
		for _, k := range kinds {
			faults.Err = k.err
			if err := attempt(fmt.Sprintf("call %d fails (%v)", n, k.err), func() { faults.FailCall = n }, k.kind); err != nil {
				return err
			}
		}
	}
	if err := release(in...); err != nil {
		return err
	}
	if now := d.InUse(); now != before {
		return fmt.Errorf("%d bytes in use, %d before", now, before)
	}
	return nil
}
