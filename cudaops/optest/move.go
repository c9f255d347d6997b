package optest

import (
	"errors"
	"fmt"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/plan"
	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/bound"
	"gonum.org/v1/gonum/mat"
)

// count is a tensor of 0, 1, 2, ...: a moved element tells where it came from.
func count(h, s, d int) tensor { return fill(h, s, d, func(i int) float64 { return float64(i) }) }

// moveCases are the ops that copy: split, merge, swap, gather, pitched copy. They are exact.
func moveCases() []testCase {
	var all []testCase
	for _, s := range []struct {
		layout               plan.Layout
		rows, heads, kv, dim int
	}{
		{plan.GPT2, 1, 1, 1, 1}, {plan.GPT2, 5, 3, 3, 7}, {plan.GPT2, 7, 6, 2, 5}, {plan.GPT2, 257, 2, 2, 3},
		{plan.NeoX, 1, 1, 1, 1}, {plan.NeoX, 5, 3, 3, 7}, {plan.NeoX, 255, 4, 4, 2}, {plan.NeoX, 37, 12, 12, 64},
		{plan.Grouped, 1, 4, 2, 1}, {plan.Grouped, 5, 6, 2, 3}, {plan.Grouped, 9, 8, 1, 4}, {plan.Grouped, 256, 3, 3, 5},
		{plan.Grouped, 33, 32, 8, 16},
	} {
		name := fmt.Sprintf("split/%v/S%d H%d KV%d d%d", s.layout, s.rows, s.heads, s.kv, s.dim)
		all = append(all, splitCase(name, count(1, s.rows, (s.heads+2*s.kv)*s.dim), s.layout, s.heads, s.kv, s.dim))
	}
	for _, s := range [][3]int{{1, 1, 1}, {3, 5, 7}, {2, 257, 3}, {12, 37, 64}, {37, 2, 1}} {
		x := count(s[0], s[1], s[2])
		name := fmt.Sprintf("H%d S%d d%d", s[0], s[1], s[2])
		all = append(all, mergeCase("merge/"+name, x), swapCase("swap/"+name, x), cloneCase("clone/"+name, x))
	}
	for _, g := range []plan.Gather{
		{Rows: 5, SrcRowStride: 17, CompOffset: 3, HeadStride: 4, Heads: 3, Dim: 2, HeadsMajor: true},
		{Rows: 5, SrcRowStride: 17, CompOffset: 3, HeadStride: 4, Heads: 3, Dim: 2},
		{Rows: 1, SrcRowStride: 9, HeadStride: 0, Heads: 4, Dim: 9, HeadsMajor: true}, // one head, four times
		{Rows: 257, SrcRowStride: 3, CompOffset: 1, HeadStride: 1, Heads: 2, Dim: 1},
	} {
		name := fmt.Sprintf("gather/rows%d stride%d comp%d head%d H%d d%d major%v",
			g.Rows, g.SrcRowStride, g.CompOffset, g.HeadStride, g.Heads, g.Dim, g.HeadsMajor)
		all = append(all, gatherCase(name, count(1, g.Rows, g.SrcRowStride), g))
	}
	return append(all,
		pitchedCase("pitched copy/between pitches", count(1, 5, 11), count(1, 7, 9),
			plan.PitchedCopy{SrcOffset: 2, DstOffset: 4, SrcPitch: 9, DstPitch: 11, Width: 5, Height: 4}),
		pitchedCase("pitched copy/one element", count(1, 1, 1), count(1, 3, 1),
			plan.PitchedCopy{SrcOffset: 2, SrcPitch: 1, DstPitch: 1, Width: 1, Height: 1}),
	)
}

func splitCase(name string, x tensor, l plan.Layout, heads, kv, dim int) testCase {
	layouts := map[plan.Layout]reference.Layout{
		plan.GPT2: reference.GPT2, plan.NeoX: reference.NeoX, plan.Grouped: reference.Grouped,
	}
	return testCase{
		name: name,
		in:   []tensor{x},
		do: func(d *cudaops.Device, in []*cudaops.Buffer) ([]*cudaops.Buffer, error) {
			q, k, v, err := d.SplitHeads(in[0], l, heads, kv, dim)
			if err != nil {
				return nil, err
			}
			return []*cudaops.Buffer{q, k, v}, nil
		},
		want: func(in []bound.Heads) ([]bound.Heads, error) {
			q, k, v, err := bound.Split(in[0], layouts[l], heads, kv, dim)
			return []bound.Heads{q, k, v}, err
		},
	}
}

func mergeCase(name string, x tensor) testCase {
	return testCase{
		name: name,
		in:   []tensor{x},
		do: func(d *cudaops.Device, in []*cudaops.Buffer) ([]*cudaops.Buffer, error) {
			return one(d.MergeHeads(in[0]))
		},
		want: func(in []bound.Heads) ([]bound.Heads, error) { return truth(bound.Merge(in[0])) },
	}
}

func swapCase(name string, x tensor) testCase {
	return testCase{
		name: name,
		in:   []tensor{x},
		do: func(d *cudaops.Device, in []*cudaops.Buffer) ([]*cudaops.Buffer, error) {
			return one(d.Swap(in[0]))
		},
		want: func(in []bound.Heads) ([]bound.Heads, error) { return truth(bound.Swap(in[0])) },
	}
}

func cloneCase(name string, x tensor) testCase {
	return testCase{
		name: name,
		in:   []tensor{x},
		do: func(d *cudaops.Device, in []*cudaops.Buffer) ([]*cudaops.Buffer, error) {
			return one(d.Clone(in[0]))
		},
		want: func(in []bound.Heads) ([]bound.Heads, error) { return in, nil },
	}
}

// exactly is the reference of a copy: an output [h, s, d] of which f gives each element.
func exactly(h, s, d int, f func(h, s, i int) float64) bound.Heads {
	out := make(reference.Heads, h)
	for j := range out {
		out[j] = mat.NewDense(s, d, nil)
		out[j].Apply(func(r, i int, _ float64) float64 { return f(j, r, i) }, out[j])
	}
	return bound.Leaf(out)
}

func gatherCase(name string, x tensor, g plan.Gather) testCase {
	return testCase{
		name:   name,
		in:     []tensor{x},
		packed: true,
		do: func(d *cudaops.Device, in []*cudaops.Buffer) ([]*cudaops.Buffer, error) {
			return one(d.GatherHeads(in[0], g))
		},
		want: func(in []bound.Heads) ([]bound.Heads, error) {
			src := flat(in[0].Value)
			element := func(h, s, i int) float64 { return src[s*g.SrcRowStride+g.CompOffset+h*g.HeadStride+i] }
			if g.HeadsMajor {
				return truth(exactly(g.Heads, g.Rows, g.Dim, element), nil)
			}
			byColumn := func(_, s, i int) float64 { return element(i/g.Dim, s, i%g.Dim) }
			return truth(exactly(1, g.Rows, g.Heads*g.Dim, byColumn), nil)
		},
	}
}

func pitchedCase(name string, dst, src tensor, c plan.PitchedCopy) testCase {
	for i := range dst.data {
		dst.data[i] = -1 - dst.data[i] // no value of src
	}
	return testCase{
		name:   name,
		in:     []tensor{dst, src},
		packed: true,
		do: func(d *cudaops.Device, in []*cudaops.Buffer) ([]*cudaops.Buffer, error) {
			return one(d.PitchedCopy(in[0], in[1], c))
		},
		want: func(in []bound.Heads) ([]bound.Heads, error) {
			to, from := flat(in[0].Value), flat(in[1].Value)
			for r := range c.Height {
				for i := range c.Width {
					to[c.DstOffset+r*c.DstPitch+i] = from[c.SrcOffset+r*c.SrcPitch+i]
				}
			}
			return truth(exactly(dst.h, dst.s, dst.d, func(h, s, i int) float64 { return to[(h*dst.s+s)*dst.d+i] }), nil)
		},
	}
}

// appendCase grows a cache by the inputs, one after the other. Its outputs are all the handles made on the way, as they
// are at the end: each must still show its own rows. The first is made from nothing when begin is set, else it is
// an array that no append made.
func appendCase(name string, begin bool, in ...tensor) testCase {
	return testCase{
		name: name,
		in:   in,
		do: func(d *cudaops.Device, in []*cudaops.Buffer) ([]*cudaops.Buffer, error) {
			var made []*cudaops.Buffer
			cache := in[0]
			if begin {
				cache = nil
			} else {
				in = in[1:]
			}
			for _, rows := range in {
				next, err := d.AppendKV(cache, rows)
				if err != nil {
					return nil, errors.Join(err, release(made...))
				}
				made = append(made, next)
				cache = next
			}
			return made, nil
		},
		want: func(in []bound.Heads) ([]bound.Heads, error) {
			var made []bound.Heads
			var cache bound.Heads
			for i, rows := range in {
				next, err := bound.Append(cache, rows)
				if err != nil {
					return nil, err
				}
				if i > 0 || begin {
					made = append(made, next)
				}
				cache = next
			}
			return made, nil
		},
	}
}

func appendCases() []testCase {
	var all []testCase
	for _, s := range []struct {
		kv, d int
		rows  []int // of the first array and of what is appended
	}{
		{1, 1, []int{1, 1}}, {2, 3, []int{3}}, {3, 5, []int{5, 1, 1, 1, 1, 1, 1, 1}}, {2, 4, []int{4, 3, 7, 1, 2}},
		{2, 3, []int{255, 1, 1}}, {8, 16, []int{9, 300}}, {1, 64, []int{511, 1, 1, 600}},
	} {
		name := fmt.Sprintf("append/KV%d d%d rows%v", s.kv, s.d, s.rows)
		r := source(name)
		var in []tensor
		for _, n := range s.rows {
			in = append(in, normal(r, 1, s.kv, n, s.d))
		}
		all = append(all, appendCase(name, true, in...))
		if len(in) > 1 {
			all = append(all, appendCase(name+" behind an array", false, in...))
		}
	}
	return all
}
