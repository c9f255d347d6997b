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
	forced   bool    // an option chose the path
	samples  int     // of a case, whose median counts
}

// benchCase is an op at one shape: what it must move and compute at least, and how it is run.
type benchCase struct {
	row          row
	bytes, flops float64
	inputs       float64 // bytes that a run reads: more sets are made until they are past the L2
	tensor       bool    // its products may go to tensor cores, as fp16x3
	prepare      func(m *meter, sets int) (*prepared, error)
}

// prepared are the inputs of a case on the device.
type prepared struct {
	run   func(set int) error                                // queues one run
	error func() (float64, error)                            // relative L2 error of set 0
	more  func() (peak int64, took time.Duration, err error) // something to measure once, before the runs
	held  []*cudaops.Buffer

	mostRuns int // of one sample; 0: as usual

	// What error leaves besides, where the case measures it.
	maxRel  float64
	peak    int64
	picture []float32
}

func (p *prepared) release() {
	for _, b := range p.held {
		_ = b.Release()
	}
}

const (
	samples   = 15                   // but for those over many sizes
	shortest  = 2 * time.Millisecond // of one sample
	mostRuns  = 200
	pastCache = 4 // times the L2
)

// measure runs a case, or several that are to be compared: correctness first, then time, in turns.
func (m *meter) measure(cases ...benchCase) ([]row, error) {
	var rows []row
	var turns []turn
	for _, c := range cases {
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
		r.MaxRel, r.PeakBytes, r.Picture = p.maxRel, p.peak, p.picture
		if r.Path == "" {
			r.Path = m.b.LastKernel()
		}
		if m.forced {
			r.Path = "forced: " + r.Path
		}
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
		rows = append(rows, r)
		turns = append(turns, turn{sets: r.Sets, most: p.mostRuns, run: p.run, row: len(rows) - 1})
	}
	runtime.GC() // not in the middle of what follows
	if err := m.medians(turns); err != nil {
		return nil, err
	}
	for i, t := range turns {
		c, r := cases[i], &rows[t.row]
		r.MS = t.ms
		rate := m.facts.FFMA
		if c.row.Few && c.tensor {
			rate = tensorLimit(m.facts)
		}
		floor := math.Max(c.bytes/m.copyRate, c.flops/rate)
		r.FloorMS = 1e3 * floor
		r.FloorShare = r.FloorMS / r.MS
		if c.flops > 0 {
			r.TFLOPs = c.flops / r.MS / 1e9
		}
		if c.bytes/m.copyRate >= c.flops/rate {
			r.TBs = c.bytes / r.MS / 1e9
		}
	}
	return rows, nil
}

func ms(t time.Duration) float64 { return float64(t) / float64(time.Millisecond) }

// turn is what takes turns with others at being measured.
type turn struct {
	sets, most int // most runs of a sample; 0: as usual
	run        func(set int) error
	row        int
	ms         float64 // the median time of a run, in milliseconds

	next, runs int
	all        []float64
}

// batch is the time of n runs, queued behind each other.
func (t *turn) batch(m *meter, n int) (time.Duration, error) {
	return m.b.Elapsed(func() error {
		for range n {
			if err := t.run(t.next % t.sets); err != nil {
				return err
			}
			t.next++
		}
		return nil
	})
}

// medians measures sample by sample, one turn after the other.
func (m *meter) medians(turns []turn) error {
	for i := range turns {
		t := &turns[i]
		warm, err := t.batch(m, 3)
		if err != nil {
			return err
		}
		most := t.most
		if most == 0 {
			most = mostRuns
		}
		t.runs = min(most, max(1, int(3*shortest/max(warm, 1))))
		if _, err := t.batch(m, t.runs); err != nil {
			return err
		}
	}
	for range m.samples {
		for i := range turns {
			t := &turns[i]
			took, err := t.batch(m, t.runs)
			if err != nil {
				return err
			}
			t.all = append(t.all, ms(took)/float64(t.runs))
		}
	}
	for i := range turns {
		slices.Sort(turns[i].all)
		turns[i].ms = turns[i].all[m.samples/2]
	}
	return nil
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
	t := []turn{{sets: 1, run: func(int) error { return m.b.CopyDevice(block[1], block[0]) }}}
	err := m.medians(t)
	return 2 * 4 * n / (t[0].ms / 1e3), err
}
