package optest

import (
	"math"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/plan"
	"github.com/attnb/attnb/reference/bound"
)

// seedCases are small inputs with values by formula, among them those with which the op set was first published.
func seedCases() []testCase {
	sin := func(a float64) func(int) float64 { return func(i int) float64 { return math.Sin(a * float64(i)) } }
	cos := func(a float64) func(int) float64 { return func(i int) float64 { return math.Cos(a * float64(i)) } }
	line := func(a, b float64) func(int) float64 { return func(i int) float64 { return a*float64(i) + b } }

	rope := fill(2, 2, 6, line(0.31, -1.5)) // [S 2, H 2, d 6]: seen by head through a transposed view
	wave := fill(1, 3, 4, func(i int) float64 { return 0.4*float64(7*i%5) - 1 })
	q, k, v := fill(2, 3, 2, sin(0.37)), fill(2, 3, 2, cos(0.53)), fill(2, 3, 2, line(0.25, -1))
	attention := cudaops.Attention{Scale: 1 / math.Sqrt2, Mask: cudaops.Mask{Causal: true}}
	dq, dk, dv := fill(2, 3, 2, sin(0.41)), fill(2, 3, 2, cos(0.29)), fill(2, 3, 2, line(-0.2, 1.5))
	last := tensor{2, 1, 2, []float32{*dq.at(0, 2, 0), *dq.at(0, 2, 1), *dq.at(1, 2, 0), *dq.at(1, 2, 1)}}
	a, b := fill(1, 1, 8, line(0.5, 0)), fill(1, 1, 8, line(-1, 4))
	square := func(x tensor) tensor { return tensor{1, 2, 4, x.data} }

	return []testCase{
		pitchedCase("seed/pitched copy", count(1, 2, 3), count(1, 2, 5),
			plan.PitchedCopy{SrcOffset: 1, SrcPitch: 5, DstPitch: 3, Width: 3, Height: 2}),
		gatherCase("seed/gather GPT-2 keys", count(1, 3, 12),
			plan.Gather{Rows: 3, SrcRowStride: 12, CompOffset: 4, HeadStride: 2, Heads: 2, Dim: 2, HeadsMajor: true}),
		gatherCase("seed/gather NeoX queries", count(1, 2, 12),
			plan.Gather{Rows: 2, SrcRowStride: 12, HeadStride: 6, Heads: 2, Dim: 2}),
		gatherCase("seed/gather merge", count(2, 3, 2), plan.Merge(2, 3, 2)),
		roundTripCase("seed/gather round trip", count(1, 3, 12)),
		rowsRoPECase("seed/rope offset 0", rope, cudaops.RoPE{Rotary: 4, Base: 1e4}),
		rowsRoPECase("seed/rope offset 3", rope, cudaops.RoPE{Rotary: 4, Base: 1e4, Offset: 3}),
		softmaxCase("seed/softmax causal", wave, cudaops.Mask{Causal: true}),
		softmaxCase("seed/softmax rows", wave, cudaops.Mask{}),
		addCase("seed/add", a, b),
		addCase("seed/add 2x4", square(a), square(b)),
		prefillCase("seed/prefill", q, k, v, attention),
		prefillCase("seed/prefill of the decode inputs", dq, dk, dv, attention),
		decodeCase("seed/decode", last, dk, dv, 1/math.Sqrt2),
		appendCase("seed/append keys", true, fill(2, 2, 2, line(1, 0)), fill(2, 1, 2, line(1, 100))),
		appendCase("seed/append values", true, fill(2, 2, 2, line(0.5, 0)), fill(2, 1, 2, line(1, 50))),
	}
}

// roundTripCase takes the keys out of GPT-2 rows, heads-major, and merges them back: the key columns, as they were.
func roundTripCase(name string, x tensor) testCase {
	hidden := x.d / 3
	return testCase{
		name:   name,
		in:     []tensor{x},
		packed: true,
		do: func(d *cudaops.Device, in []*cudaops.Buffer) ([]*cudaops.Buffer, error) {
			k, err := d.GatherHeads(in[0], plan.Gather{
				Rows: x.s, SrcRowStride: x.d, CompOffset: hidden, HeadStride: hidden / 2,
				Heads: 2, Dim: hidden / 2, HeadsMajor: true,
			})
			if err != nil {
				return nil, err
			}
			merged, err := d.MergeHeads(k)
			return finish(merged, err, k)
		},
		want: func(in []bound.Heads) ([]bound.Heads, error) {
			rows := in[0].Value[0]
			return truth(exactly(1, x.s, hidden, func(_, s, i int) float64 { return rows.At(s, hidden+i) }), nil)
		},
	}
}

// rowsRoPECase rotates x, [S, H, d], through a transposed view and looks at the result in the order of x.
func rowsRoPECase(name string, x tensor, r cudaops.RoPE) testCase {
	return testCase{
		name: name,
		in:   []tensor{x},
		do: func(d *cudaops.Device, in []*cudaops.Buffer) ([]*cudaops.Buffer, error) {
			byHead, err := in[0].Transpose()
			if err != nil {
				return nil, err
			}
			turned, err := d.RoPE(byHead, r)
			if err != nil {
				return finish(nil, err, byHead)
			}
			byRow, err := turned.Transpose()
			return finish(byRow, err, byHead, turned)
		},
		want: func(in []bound.Heads) ([]bound.Heads, error) {
			byHead, err := bound.Swap(in[0])
			if err != nil {
				return nil, err
			}
			turned, err := bound.ApplyRoPE(byHead, referenceRoPE(r))
			if err != nil {
				return nil, err
			}
			return truth(bound.Swap(turned))
		},
	}
}
