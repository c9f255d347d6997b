//go:build cuda

package main

import (
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/cuda"
)

// meter measures cases on one GPU.
type meter struct {
	b        *cuda.Backend
	d        *cudaops.Device
	facts    cuda.Facts
	copyRate float64 // bytes a second, read and written
}

// benchCase is an op at one shape: what it must move and compute at least, and how it is run.
type benchCase struct {
	row          row
	bytes, flops float64
	inputs       float64 // bytes that a run reads: more sets are made until they are past the L2
	prepare      func(m *meter, sets int) (*prepared, error)
}

// prepared are the inputs of a case on the device.
type prepared struct {
	run   func(set int) error                                // queues one run
	error func() (float64, error)                            // relative L2 error of set 0
	more  func() (peak int64, took time.Duration, err error) // something to measure once, before the runs
	held  []*cudaops.Buffer

	mostRuns int // of one sample; 0: as usual
}

func (p *prepared) release() {
	for _, b := range p.held {
		_ = b.Release()
	}
}

const (
	samples   = 15
	shortest  = 2 * time.Millisecond // of one sample
	mostRuns  = 200
	pastCache = 4 // times the L2
)

// measure runs a case: correctness first, then time.
func (m *meter) measure(c benchCase) ([]row, error) {
	r := c.row
	r.Sets = int(math.Min(64, math.Max(1, math.Ceil(pastCache*float64(m.facts.L2)/c.inputs))))
	p, err := c.prepare(m, r.Sets)
	if err != nil {
		return nil, err
	}
	defer p.release()
	if r.RelL2, err = p.error(); err != nil {
		return nil, err
	}
	var rows []row
	if p.more != nil {
		peak, took, err := p.more()
		if err != nil {
			return nil, err
		}
		once := r
		once.Op += "-grow"
		once.MS, once.PeakBytes, once.Sets = ms(took), peak, 0
		rows = append(rows, once)
	}
	runtime.GC() // not in the middle of what follows
	most := p.mostRuns
	if most == 0 {
		most = mostRuns
	}
	if r.MS, err = m.median(r.Sets, most, p.run); err != nil {
		return nil, err
	}
	floor := math.Max(c.bytes/m.copyRate, c.flops/m.facts.FFMA)
	r.FloorMS = 1e3 * floor
	r.FloorShare = r.FloorMS / r.MS
	if c.flops > 0 {
		r.TFLOPs = c.flops / r.MS / 1e9
	}
	if c.bytes/m.copyRate >= c.flops/m.facts.FFMA {
		r.TBs = c.bytes / r.MS / 1e9
	}
	return append(rows, r), nil
}

func ms(t time.Duration) float64 { return float64(t) / float64(time.Millisecond) }

// median is the median time of a run, in milliseconds: each sample queues several runs, at most most, behind each other.
func (m *meter) median(sets, most int, run func(set int) error) (float64, error) {
	next := 0
	batch := func(n int) (time.Duration, error) {
		return m.b.Elapsed(func() error {
			for range n {
				if err := run(next % sets); err != nil {
					return err
				}
				next++
			}
			return nil
		})
	}
	warm, err := batch(3)
	if err != nil {
		return 0, err
	}
	n := min(most, max(1, int(3*shortest/max(warm, 1))))
	if _, err := batch(n); err != nil {
		return 0, err
	}
	var all []float64
	for range samples {
		t, err := batch(n)
		if err != nil {
			return 0, err
		}
		all = append(all, ms(t)/float64(n))
	}
	slices.Sort(all)
	return all[len(all)/2], nil
}

// copySpeed is the rate of the driver's copy within the GPU.
func (m *meter) copySpeed() (float64, error) {
	const n = 1 << 28 // elements
	var block [2]cudaops.Memory
	for i := range block {
		var err error
		if block[i], err = m.b.Alloc(n); err != nil {
			return 0, err
		}
		defer m.b.Free(block[i])
	}
	t, err := m.median(1, mostRuns, func(int) error { return m.b.CopyDevice(block[1], block[0]) })
	return 2 * 4 * n / (t / 1e3), err
}
