package optest

import (
	"errors"
	"fmt"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/plan"
)

// property is what must hold of a device beyond the values of single ops.
type property struct {
	name  string
	check func(d *cudaops.Device) error
}

var properties = []property{
	{"a decode step is the last row of the prefill", decodeIsLastRow},
	{"a variant is the same by matrices and as a whole", variantsAgree},
	{"two appends to one cache do not see each other", forkedAppend},
	{"a cache takes in its own rows", ownRows},
	{"appends within capacity take no memory", appendWithinCapacity},
	{"memory lives as long as a view of it", viewsHoldMemory},
	{"too large an array is out of memory and harms nothing", outOfMemory},
}

// decodeIsLastRow compares a decode step with the last row of the prefill of the same keys, both with the truth: one bound
// holds for both.
func decodeIsLastRow(d *cudaops.Device) error {
	n := dims{4, 2, 1, 300, 16}
	q, k, v := n.random("last row", 2)
	step := decodeCase("", q, k, v, n.scale())
	a, err := step.run(d, placements[0])
	if err != nil {
		return err
	}
	block := prefillCase("", q, k, v, cudaops.Attention{Scale: n.scale(), Mask: cudaops.Mask{Causal: true, Diagonal: n.t - 1}})
	b, err := block.run(d, placements[0])
	if err != nil {
		return err
	}
	step.truth = step.expect
	return errors.Join(step.compare(a), step.compare(b[:1]))
}

func forkedAppend(d *cudaops.Device) error {
	r := source("fork")
	first, left, right := normal(r, 1, 2, 3, 4), normal(r, 1, 2, 1, 4), normal(r, 1, 2, 2, 4)
	in, err := placements[0].uploadAll(d, []tensor{first, left, right})
	if err != nil {
		return err
	}
	var made []*cudaops.Buffer
	grow := func(cache, rows *cudaops.Buffer) *cudaops.Buffer {
		if err != nil {
			return nil
		}
		var next *cudaops.Buffer
		if next, err = d.AppendKV(cache, rows); err == nil {
			made = append(made, next)
		}
		return next
	}
	base := grow(grow(nil, in[0]), in[1]) // 4 rows, in an array with room for more
	a := grow(base, in[1])
	b := grow(base, in[2])
	c := grow(a, in[2])
	if err != nil {
		return err
	}
	for _, w := range []struct {
		name   string
		got    *cudaops.Buffer
		pieces []tensor
	}{
		{"base", base, []tensor{first, left}},
		{"first fork", a, []tensor{first, left, left}},
		{"second fork", b, []tensor{first, left, right}},
		{"behind the first fork", c, []tensor{first, left, left, right}},
	} {
		got, err := d.Download(w.got)
		if err != nil {
			return err
		}
		if at := differ(got, stack(w.pieces)); at >= 0 {
			return fmt.Errorf("%s: element %d is wrong", w.name, at)
		}
	}
	return release(append(made, in...)...)
}

// ownRows appends to a cache, within its capacity, rows that lie in the same array.
func ownRows(d *cudaops.Device) error {
	x := normal(source("own rows"), 1, 2, 4, 3)
	first, err := d.Upload(x.data, x.h, x.s, x.d)
	if err != nil {
		return err
	}
	begun, err := d.AppendKV(nil, first)
	if err != nil {
		return err
	}
	grown, err := d.AppendKV(begun, first) // 8 rows, full
	if err != nil {
		return err
	}
	roomy, err := d.AppendKV(grown, first) // 12 of 16
	if err != nil {
		return err
	}
	before := d.InUse()
	own, err := roomy.Rows(1, 4)
	if err != nil {
		return err
	}
	last, err := d.AppendKV(roomy, own)
	if err != nil {
		return err
	}
	if now := d.InUse(); now != before {
		return fmt.Errorf("%d bytes in use, %d before: it does not lie in the same array", now, before)
	}
	got, err := d.Download(last)
	if err != nil {
		return err
	}
	tail := tensor{x.h, 3, x.d, nil}
	for h := range x.h {
		tail.data = append(tail.data, x.data[(h*x.s+1)*x.d:(h+1)*x.s*x.d]...)
	}
	if at := differ(got, stack([]tensor{x, x, x, tail})); at >= 0 {
		return fmt.Errorf("element %d is wrong", at)
	}
	return release(first, begun, grown, roomy, own, last)
}

// stack is the rows of the pieces behind one another, in each head.
func stack(pieces []tensor) []float32 {
	var all []float32
	for h := range pieces[0].h {
		for _, p := range pieces {
			all = append(all, p.data[h*p.s*p.d:(h+1)*p.s*p.d]...)
		}
	}
	return all
}

func appendWithinCapacity(d *cudaops.Device) error {
	in, err := placements[0].uploadAll(d, []tensor{count(2, 8, 3), count(2, 1, 3)})
	if err != nil {
		return err
	}
	before := d.InUse()
	cache, err := d.AppendKV(nil, in[0])
	if err != nil {
		return err
	}
	growths, last := 0, d.InUse()
	const steps = 1000
	for range steps {
		next, err := d.AppendKV(cache, in[1])
		if err = errors.Join(err, cache.Release()); err != nil {
			return err
		}
		cache = next
		if now := d.InUse(); now != last {
			growths, last = growths+1, now
		}
	}
	if _, rows, _ := cache.Shape(); rows != 8+steps {
		return fmt.Errorf("%d rows after %d appends to 8", rows, steps)
	}
	if growths != 7 { // 8 rows to 16, 32, ..., 1024
		return fmt.Errorf("the cache grew %d times in %d appends to 8 rows, want 7", growths, steps)
	}
	if err := release(append(in, cache)...); err != nil {
		return err
	}
	if now := d.InUse(); now >= before {
		return fmt.Errorf("%d bytes in use after the release, %d before", now, before)
	}
	return nil
}

func viewsHoldMemory(d *cudaops.Device) error {
	before := d.InUse()
	x := count(2, 5, 3)
	whole, err := d.Upload(x.data, x.h, x.s, x.d)
	if err != nil {
		return err
	}
	held := d.InUse()
	head, err := whole.Head(1)
	if err != nil {
		return err
	}
	if err := whole.Release(); err != nil {
		return err
	}
	if now := d.InUse(); now != held {
		return fmt.Errorf("%d bytes in use while a view lives, %d before", now, held)
	}
	got, err := d.Download(head)
	if err != nil {
		return err
	}
	if at := differ(got, x.data[15:]); at >= 0 {
		return fmt.Errorf("element %d of the view is wrong", at)
	}
	if _, err := d.Download(whole); !errors.Is(err, cudaops.ErrReleased) {
		return fmt.Errorf("reading a released buffer: %v", err)
	}
	if err := whole.Release(); !errors.Is(err, cudaops.ErrReleased) {
		return fmt.Errorf("releasing twice: %v", err)
	}
	if err := head.Release(); err != nil {
		return err
	}
	if now := d.InUse(); now != before {
		return fmt.Errorf("%d bytes in use, %d before", now, before)
	}
	return nil
}

// outOfMemory asks for one row 2^31 times: 2^50 bytes, which no device has.
func outOfMemory(d *cudaops.Device) error {
	x := count(1, 1, 1<<17)
	in, err := placements[0].uploadAll(d, []tensor{x})
	if err != nil {
		return err
	}
	before := d.InUse()
	big, err := d.GatherHeads(in[0], plan.Gather{Rows: 1, SrcRowStride: x.d, Heads: 1 << 31, Dim: x.d, HeadsMajor: true})
	var oom *cudaops.MemoryError
	switch {
	case err == nil:
		return errors.Join(errors.New("2^50 bytes were allocated"), big.Release())
	case !errors.Is(err, cudaops.ErrOutOfMemory) || !errors.As(err, &oom):
		return fmt.Errorf("2^50 bytes: %w, want out of memory", err)
	case oom.Asked != 1<<50 || oom.InUse != before:
		return fmt.Errorf("%w: want %d bytes asked for, %d in use", err, 1<<50, before)
	}
	if err := unchanged(d, in, []tensor{x}); err != nil {
		return err
	}
	if now := d.InUse(); now != before {
		return fmt.Errorf("%d bytes in use, %d before", now, before)
	}
	return release(in...)
}
