// Package optest is the conformance suite of the ops: one table of cases, which every backend must pass.
//
// A case is an op, its inputs and what package reference makes of them. Each result is compared cell by cell with the
// float64 truth, and may be off by the bound that package reference/bound derives for any correct f32 computation of it:
// no tolerance is chosen here. Copies have bound 0.
//
// Every case runs with its inputs packed, as parts of larger arrays and seen through other strides; on a device whose
// arrays begin as NaN, so that an element which an op forgot to write shows; and again with each allocation and each call of the
// backend failing in turn, after which nothing may have leaked and no input may have changed.
package optest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/bound"
	"github.com/attnb/attnb/reference/parity"
)

// Run runs the suite. open returns a device for one test, and sees to its end by t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) *cudaops.Device) {
	all := cases()
	t.Run("values", func(t *testing.T) {
		d := poisoned(open(t))
		for _, c := range all {
			for _, p := range placements {
				if p.scattered && c.packed {
					continue
				}
				t.Run(c.name+"/"+p.name, func(t *testing.T) {
					if err := c.check(d, p); err != nil {
						t.Error(err)
					}
				})
			}
		}
	})
	t.Run("golden", func(t *testing.T) {
		d := poisoned(open(t))
		for _, g := range goldens() {
			t.Run(g.name, func(t *testing.T) {
				if err := g.check(d); err != nil {
					t.Error(err)
				}
			})
		}
	})
	t.Run("properties", func(t *testing.T) {
		d := poisoned(open(t))
		for _, p := range properties {
			t.Run(p.name, func(t *testing.T) {
				if err := p.check(d); err != nil {
					t.Error(err)
				}
			})
		}
	})
	t.Run("failures", func(t *testing.T) {
		d := open(t)
		for _, c := range all {
			if c.size() > smallCase {
				continue
			}
			t.Run(c.name, func(t *testing.T) {
				if err := c.checkFailures(d); err != nil {
					t.Error(err)
				}
			})
		}
	})
}

// Results are the outputs of every case, by its name, to compare two devices or two ways through one: bit by bit
// where they must agree so.
func Results(d *cudaops.Device) (map[string][][]float32, error) {
	results := map[string][][]float32{}
	for _, c := range cases() {
		out, err := c.run(d, placements[0])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		results[c.name] = out
	}
	return results, nil
}

// testCase is one op on given inputs.
type testCase struct {
	name   string
	in     []tensor
	packed bool // the op takes packed arrays only
	do     func(d *cudaops.Device, in []*cudaops.Buffer) ([]*cudaops.Buffer, error)
	want   func(in []bound.Heads) ([]bound.Heads, error)
	truth  func() ([]bound.Heads, error) // want of the inputs, computed once
}

// size is how many elements the inputs have.
func (c testCase) size() int {
	n := 0
	for _, x := range c.in {
		n += len(x.data)
	}
	return n
}

// run uploads the inputs, runs the op and downloads the outputs. It refuses a device on which more memory is in use
// afterwards than before, and inputs that changed.
func (c testCase) run(d *cudaops.Device, p placement) (out [][]float32, err error) {
	before := d.InUse()
	in, err := p.uploadAll(d, c.in)
	if err != nil {
		return nil, err
	}
	bufs, err := c.do(d, in)
	if err == nil {
		out, err = downloadAll(d, bufs)
	}
	err = errors.Join(err, unchanged(d, in, c.in), release(append(bufs, in...)...))
	if now := d.InUse(); err == nil && now != before {
		err = fmt.Errorf("%d bytes in use, %d before", now, before)
	}
	return out, err
}

// check compares the outputs with the truth, and, where the inputs are packed, a second run with the first.
func (c testCase) check(d *cudaops.Device, p placement) error {
	got, err := c.run(d, p)
	if err != nil {
		return err
	}
	if p.scattered {
		return c.compare(got)
	}
	again, err := c.run(d, p)
	if err != nil {
		return err
	}
	for i := range got {
		if at := differ(got[i], again[i]); at >= 0 {
			return fmt.Errorf("output %d, element %d: %v, then %v from the same inputs", i, at, got[i][at], again[i][at])
		}
	}
	return c.compare(got)
}

// compare compares outputs with the truth.
func (c testCase) compare(got [][]float32) error {
	want, err := c.truth()
	if err != nil {
		return err
	}
	if len(got) != len(want) {
		return fmt.Errorf("%d outputs, want %d", len(got), len(want))
	}
	for i := range want {
		if err := within(got[i], want[i]); err != nil {
			return fmt.Errorf("output %d: %w", i, err)
		}
	}
	return nil
}

// within says by how much got misses want, or nil.
func within(got []float32, want bound.Heads) error {
	r, err := parity.Compare(got, flat(want.Value), flat(want.Err))
	if err != nil {
		return err
	}
	if !r.Pass {
		rows, dim := want.Value[0].Dims()
		w := r.Cells[0]
		return fmt.Errorf("%d of %d cells off; worst at head %d, row %d, element %d: got %v, want %v within %.3g",
			r.Failed, r.N, w.Index/(rows*dim), w.Index/dim%rows, w.Index%dim, w.Got, w.Want, w.Bound)
	}
	return nil
}

// flat is a tensor as one list.
func flat(x reference.Heads) []float64 {
	var all []float64
	for _, m := range x {
		rows, _ := m.Dims()
		for r := range rows {
			all = append(all, m.RawRowView(r)...)
		}
	}
	return all
}
