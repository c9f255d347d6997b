package optest

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/bound"
	"gonum.org/v1/gonum/mat"
)

// tensor is an input: [h, s, d], packed.
type tensor struct {
	h, s, d int
	data    []float32
}

// fill is a tensor of f(0), f(1), ...
func fill(h, s, d int, f func(i int) float64) tensor {
	x := tensor{h, s, d, make([]float32, h*s*d)}
	for i := range x.data {
		x.data[i] = float32(f(i))
	}
	return x
}

// source is a random generator that depends on the name alone.
func source(name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return rand.New(rand.NewPCG(h.Sum64(), 1))
}

// normal is a tensor of normal values times amplitude.
func normal(r *rand.Rand, amplitude float64, h, s, d int) tensor {
	return fill(h, s, d, func(int) float64 { return amplitude * r.NormFloat64() })
}

func (x tensor) at(h, s, i int) *float32 { return &x.data[(h*x.s+s)*x.d+i] }

// leaf is the tensor as the start of a reference computation.
func (x tensor) leaf() bound.Heads {
	heads := make(reference.Heads, x.h)
	for h := range heads {
		heads[h] = mat.NewDense(x.s, x.d, nil)
		for s := range x.s {
			for i := range x.d {
				heads[h].Set(s, i, float64(*x.at(h, s, i)))
			}
		}
	}
	return bound.Leaf(heads)
}

// placement is a way to lay an input into device memory.
type placement struct {
	name      string
	scattered bool // the elements do not touch
	upload    func(d *cudaops.Device, x tensor) (*cudaops.Buffer, error)
}

var placements = []placement{
	{"packed", false, func(d *cudaops.Device, x tensor) (*cudaops.Buffer, error) {
		return d.Upload(x.data, x.h, x.s, x.d)
	}},
	// Heads further apart than their rows reach, as those of a cache with spare capacity.
	{"capacity", true, func(d *cudaops.Device, x tensor) (*cudaops.Buffer, error) {
		return part(d, x, x.h, x.s+3, x.d, func(h, s, i int) (int, int, int) { return h, s, i },
			func(b *cudaops.Buffer) (*cudaops.Buffer, error) { return b.Rows(0, x.s) })
	}},
	// Rows that hold all heads side by side.
	{"rows", true, func(d *cudaops.Device, x tensor) (*cudaops.Buffer, error) {
		return part(d, x, 1, x.s, x.h*x.d, func(h, s, i int) (int, int, int) { return 0, s, h*x.d + i },
			func(b *cudaops.Buffer) (*cudaops.Buffer, error) { return b.AsHeads(x.h) })
	}},
	// A block inside a larger one: every offset and stride is odd or unaligned.
	{"inside", true, func(d *cudaops.Device, x tensor) (*cudaops.Buffer, error) {
		return part(d, x, x.h+2, x.s+3, x.d+3, func(h, s, i int) (int, int, int) { return h + 1, s + 1, i + 1 },
			func(b *cudaops.Buffer) (*cudaops.Buffer, error) { return block(b, x) })
	}},
}

// block is the view of a placement "inside".
func block(b *cudaops.Buffer, x tensor) (*cudaops.Buffer, error) {
	heads, err := b.Heads(1, 1+x.h)
	if err != nil {
		return nil, err
	}
	rows, err := heads.Rows(1, 1+x.s)
	if err = errors.Join(err, heads.Release()); err != nil {
		return nil, err
	}
	columns, err := rows.Columns(1, 1+x.d)
	return columns, errors.Join(err, rows.Release())
}

// part uploads an array [h, s, d] that is NaN but for x, at the places that put names, and returns the view of x in it.
func part(d *cudaops.Device, x tensor, h, s, dim int, put func(h, s, i int) (int, int, int),
	view func(*cudaops.Buffer) (*cudaops.Buffer, error)) (*cudaops.Buffer, error) {
	around := fill(h, s, dim, func(int) float64 { return math.NaN() })
	for hx := range x.h {
		for sx := range x.s {
			for i := range x.d {
				*around.at(put(hx, sx, i)) = *x.at(hx, sx, i)
			}
		}
	}
	whole, err := d.Upload(around.data, h, s, dim)
	if err != nil {
		return nil, err
	}
	b, err := view(whole)
	return b, errors.Join(err, whole.Release())
}

func (p placement) uploadAll(d *cudaops.Device, in []tensor) ([]*cudaops.Buffer, error) {
	bufs := make([]*cudaops.Buffer, len(in))
	for i, x := range in {
		b, err := p.upload(d, x)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("input %d: %w", i, err), release(bufs[:i]...))
		}
		bufs[i] = b
	}
	return bufs, nil
}

func downloadAll(d *cudaops.Device, bufs []*cudaops.Buffer) ([][]float32, error) {
	out := make([][]float32, len(bufs))
	for i, b := range bufs {
		data, err := d.Download(b)
		if err != nil {
			return nil, err
		}
		out[i] = data
	}
	return out, nil
}

func release(bufs ...*cudaops.Buffer) error {
	var errs []error
	for _, b := range bufs {
		errs = append(errs, b.Release())
	}
	return errors.Join(errs...)
}

// unchanged compares the inputs on the device with what was uploaded.
func unchanged(d *cudaops.Device, bufs []*cudaops.Buffer, in []tensor) error {
	now, err := downloadAll(d, bufs)
	if err != nil {
		return err
	}
	for i, x := range in {
		if at := differ(now[i], x.data); at >= 0 {
			return fmt.Errorf("input %d, element %d changed from %v to %v", i, at, x.data[at], now[i][at])
		}
	}
	return nil
}

// differ is the first index at which two lists differ in their bits, or -1.
func differ(a, b []float32) int {
	if len(a) != len(b) {
		return min(len(a), len(b))
	}
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return i
		}
	}
	return -1
}
