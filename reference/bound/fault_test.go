package bound_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/bound"
	"gonum.org/v1/gonum/mat"
)

// layer is what an attention layer was told to do.
type layer struct {
	q, k, v       tensor
	ropeQ, ropeK  reference.RoPE
	scale         float64
	diagonal      int
	repeat, merge func(tensor) tensor // KV heads to query heads; context to rows
}

// rows is the merged context of the layer, in f32.
func (l layer) rows(a arithmetic) tensor {
	q, k := a.rope(l.q, l.ropeQ), a.rope(l.k, l.ropeK)
	return l.merge(a.attention(q, l.repeat(k), l.repeat(l.v), l.scale, reference.Causal(l.diagonal)))
}

// The known mistakes, each in f32 against the bounds of the right layer: the bounds of a whole chain still find them, at sizes
// where they are widest.
func TestFaultsStandOut(t *testing.T) {
	for _, s := range []setting{
		{heads: 4, kv: 2, queries: 7, keys: 9, dim: 16, rotary: 8, amplitude: 1},
		{heads: 4, kv: 2, queries: 37, keys: 127, dim: 64, rotary: 32, amplitude: 1},
		{heads: 4, kv: 2, queries: 9, keys: 1024, dim: 64, rotary: 32, amplitude: 1},
		{heads: 4, kv: 2, queries: 9, keys: 1024, dim: 64, rotary: 32, amplitude: 4},
	} {
		t.Run(s.String(), func(t *testing.T) { faults(t, s) })
	}
}

func faults(t *testing.T, s setting) {
	r := rand.New(rand.NewPCG(7, 0))
	amplitude := math.Sqrt(s.amplitude) // of q and k, so that scores have it
	right := layer{
		q: normal(r, s.heads, s.queries, s.dim, amplitude), k: normal(r, s.kv, s.keys, s.dim, amplitude), v: normal(r, s.kv, s.keys, s.dim, 1),
		ropeQ: reference.RoPE{Rotary: s.rotary, Base: 1e4, Offset: s.keys - s.queries}, ropeK: reference.RoPE{Rotary: s.rotary, Base: 1e4},
		scale: 1 / math.Sqrt(float64(s.dim)), diagonal: s.keys - s.queries,
		repeat: func(x tensor) tensor { return x },
		merge:  func(x tensor) tensor { return tensor{merged(x)} },
	}
	q := must(t)(bound.ApplyRoPE(bound.Leaf(wide(right.q)), right.ropeQ))
	k := must(t)(bound.ApplyRoPE(bound.Leaf(wide(right.k)), right.ropeK))
	want := must(t)(bound.Merge(must(t)(bound.Attention(q, k, bound.Leaf(wide(right.v)), right.scale, reference.Causal(right.diagonal)))))
	for _, a := range arithmetics() {
		report := compare(t, right.rows(a), want)
		if !report.Pass || report.MaxRatio > 0.1 {
			t.Errorf("right, %s: %v", a.name, report)
		}
	}
	for _, f := range []struct {
		name   string
		change func(*layer)
	}{
		{"RoPE of q one too far", func(l *layer) { l.ropeQ.Offset++ }},
		{"RoPE of q one too near", func(l *layer) { l.ropeQ.Offset-- }},
		{"RoPE of q from 0", func(l *layer) { l.ropeQ.Offset = 0 }},
		{"the other pairing", func(l *layer) { l.ropeQ.Interleaved, l.ropeK.Interleaved = true, true }},
		{"denominator d", func(l *layer) {
			for i := range s.rotary / 2 {
				l.ropeQ.InvFreq = append(l.ropeQ.InvFreq, math.Pow(1e4, -2*float64(i)/float64(s.dim)))
			}
			l.ropeK.InvFreq = l.ropeQ.InvFreq
		}},
		{"no RoPE of k", func(l *layer) { l.ropeK.Positions = make([]int, s.keys) }},
		{"no scale", func(l *layer) { l.scale = 1 }},
		{"scale of twice the dim", func(l *layer) { l.scale /= math.Sqrt2 }},
		{"mask one too wide", func(l *layer) { l.diagonal++ }},
		{"mask one too narrow", func(l *layer) { l.diagonal-- }},
		{"mask top-left", func(l *layer) { l.diagonal = 0 }},
		{"KV heads tiled", func(l *layer) { l.repeat = func(x tensor) tensor { return tensor{x[0], x[1], x[0], x[1]} } }},
		{"merge without transpose", func(l *layer) {
			l.merge = func(x tensor) tensor {
				return narrow(reference.Heads{mat.NewDense(s.queries, s.heads*s.dim, wideSlice(flat(x)))})
			}
		}},
	} {
		wrong := right
		f.change(&wrong)
		report := compare(t, wrong.rows(arithmetics()[0]), want)
		t.Logf("%-24s error/bound %.3g, %d of %d cells", f.name, report.MaxRatio, report.Failed, report.N)
		if report.Pass || !(report.MaxRatio > 10) {
			t.Errorf("%s goes unseen: %v", f.name, report)
		}
	}
}

func wideSlice(x []float32) []float64 {
	out := make([]float64, len(x))
	for i := range x {
		out[i] = float64(x[i])
	}
	return out
}

// Attention with bounds at the size of a real layer.
func BenchmarkAttention(b *testing.B) {
	r := rand.New(rand.NewPCG(8, 0))
	const heads, rows, dim = 12, 1024, 64
	x := func() bound.Heads { return bound.Leaf(wide(normal(r, heads, rows, dim, 1))) }
	q, k, v := x(), x(), x()
	rope := reference.RoPE{Rotary: dim, Base: 1e4}
	for b.Loop() {
		q, k := must(b)(bound.ApplyRoPE(q, rope)), must(b)(bound.ApplyRoPE(k, rope))
		must(b)(bound.Attention(q, k, v, .125, reference.Causal(0)))
	}
}
