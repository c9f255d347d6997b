package main

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/host"
	"github.com/attnb/attnb/reference"
)

const (
	samples = 21
	sample  = 5 * time.Millisecond  // at least, unless one run takes longer; short, so that some are undisturbed where other work shares the cores
	pause   = 10 * time.Millisecond // between turns, in which the threads of the one before go to sleep
)

// row is what was measured of a case, with some kernels.
type row struct {
	Name    string    `json:"name"`
	Kernels string    `json:"kernels"`
	MS      spread    `json:"ms"`
	GFLOPs  float64   `json:"gflops,omitempty"`
	GBs     float64   `json:"gb_s,omitempty"`
	RelL2   float64   `json:"rel_l2"`
	Limit   float64   `json:"rel_l2_limit"`
	Peers   []peerRow `json:"peers"`
	Pass    bool      `json:"pass"`
}

// peerRow is what was measured of one way of PyTorch.
type peerRow struct {
	Name  string  `json:"name"`
	MS    spread  `json:"ms"`
	RelL2 float64 `json:"rel_l2"`
	Ratio float64 `json:"ratio"` // how many times as fast we are
	Need  float64 `json:"need,omitempty"`
}

// spread is of the time of a run, in milliseconds, over all samples. Other work on the same cores only adds to a time: ratios are of the quickest.
type spread struct {
	Quickest float64 `json:"quickest"`
	Median   float64 `json:"median"`
}

// turn is what is measured by turns with others.
type turn struct {
	run  func(n int) (time.Duration, error)
	runs int
	all  []float64
}

func (t *turn) spread() spread {
	slices.Sort(t.all)
	return spread{t.all[0], t.all[len(t.all)/2]}
}

// byTurns measures sample by sample, one turn after the other.
func byTurns(turns []*turn) error {
	for _, t := range turns {
		if _, err := t.run(1); err != nil {
			return err
		}
		took, err := t.run(2)
		if err != nil {
			return err
		}
		t.runs = max(1, int(2*sample/max(took, 1)))
	}
	for range samples {
		for _, t := range turns {
			time.Sleep(pause)
			took, err := t.run(t.runs)
			if err != nil {
				return err
			}
			t.all = append(t.all, took.Seconds()*1e3/float64(t.runs))
		}
	}
	return nil
}

// measure checks a case and then times it, with each of the kernels, next to PyTorch.
func measure(c *benchCase, p *peer, kernels []host.Kernels) ([]row, error) {
	want, err := c.want()
	if err != nil {
		return nil, err
	}
	results, names, err := p.prepare(c)
	if err != nil {
		return nil, err
	}
	var peers []peerRow
	var turns []*turn
	best := 0.0
	for _, name := range names {
		r := peerRow{Name: name, RelL2: relL2(results[name], want), Need: c.need[name]}
		if best == 0 || r.RelL2 < best {
			best = r.RelL2
		}
		peers = append(peers, r)
		turns = append(turns, &turn{run: func(n int) (time.Duration, error) { return p.run(name, n) }})
	}
	var rows []row
	for i, k := range kernels {
		d := cudaops.NewDevice(host.New(host.Options{Kernels: k}))
		var in []*cudaops.Buffer
		for _, x := range c.in {
			b, err := d.Upload(x.data, x.h, x.s, x.d)
			if err != nil {
				return nil, err
			}
			in = append(in, b)
		}
		out, err := c.run(d, in)
		if err != nil {
			return nil, err
		}
		got, err := d.Download(out)
		if err != nil {
			return nil, err
		}
		r := row{Name: c.name, Kernels: k.String(), RelL2: relL2(got, want), Limit: max(c.limit, 1.2*best), Peers: slices.Clone(peers)}
		for j := range r.Peers {
			if i < len(kernels)-1 {
				r.Peers[j].Need = 0 // the best kernels alone are held to it
			}
		}
		rows = append(rows, r)
		turns = append(turns, &turn{run: func(n int) (time.Duration, error) {
			begin := time.Now()
			for range n {
				out, err := c.run(d, in)
				if err != nil {
					return 0, err
				}
				if err := out.Release(); err != nil {
					return 0, err
				}
			}
			return time.Since(begin), nil
		}})
	}
	want = nil
	runtime.GC() // not in the middle of what follows
	if err := byTurns(turns); err != nil {
		return nil, err
	}
	for i := range rows {
		r := &rows[i]
		r.MS = turns[len(peers)+i].spread()
		r.GFLOPs, r.GBs = c.flops/r.MS.Quickest/1e6, c.bytes/r.MS.Quickest/1e6
		r.Pass = r.RelL2 <= r.Limit
		for j := range r.Peers {
			q := &r.Peers[j]
			q.MS = turns[j].spread()
			q.Ratio = q.MS.Quickest / r.MS.Quickest
			r.Pass = r.Pass && q.Ratio >= q.Need
		}
	}
	return rows, nil
}

// want is the truth.
func (c *benchCase) want() (reference.Heads, error) {
	var in []reference.Heads
	for _, x := range c.in {
		in = append(in, x.heads())
	}
	want, err := c.truth(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	return want, nil
}
