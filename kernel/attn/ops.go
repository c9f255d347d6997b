package attn

import "github.com/attnb/attnb/kernel/wire"

// Layout says how q, k and v share a fused row.
type Layout struct {
	layout    wire.Layout
	heads, kv int
}

// GPT2 is q of all heads, then k of all heads, then v of all heads.
func GPT2(heads int) Layout { return Layout{wire.LayoutGPT2, heads, heads} }

// NeoX is q, k and v of head 0, then of head 1, and so on.
func NeoX(heads int) Layout { return Layout{wire.LayoutNeoX, heads, heads} }

// Grouped is, for each of the kv groups, its heads/kv query heads, then its k and its v.
func Grouped(heads, kv int) Layout { return Layout{wire.LayoutGrouped, heads, kv} }

// KV is the layout with another number of key and value heads: GPT2(32).KV(8) is 32 q, then 8 k, then 8 v.
func (l Layout) KV(heads int) Layout {
	l.kv = heads
	return l
}

// SplitHeads takes fused rows [seq, hidden] apart into q [heads, seq, dim], k and v [kv heads, seq, dim]. dim is hidden
// divided by heads + 2 * kv heads.
func (x Tensor) SplitHeads(l Layout) (q, k, v Tensor) {
	p := wire.Params{Layout: l.layout, Heads: l.heads, KVHeads: l.kv}
	ts := run(wire.OpSplit, p, 3, x)
	return ts[0], ts[1], ts[2]
}

// Heads sees rows [seq, n*dim] of one projection by head: [n, seq, dim]. Merge is its inverse.
func (x Tensor) Heads(n int) Tensor { return run1(wire.OpHeads, wire.Params{Heads: n}, x) }

// Merge lays the heads of each row side by side: [heads, seq, dim] becomes [seq, heads*dim].
func (x Tensor) Merge() Tensor { return run1(wire.OpMerge, wire.Params{}, x) }

// Rotation are the parameters of RoPE.
type Rotation struct{ p wire.Params }

// HalfSplit turns the first dims of a head in pairs (i, i+dims/2), as GPT-NeoX and Hugging Face do. Base 10000, offset 0.
func HalfSplit(dims int) Rotation { return Rotation{wire.Params{Rotary: dims}} }

// Interleaved turns the first dims of a head in pairs (2i, 2i+1), as GPT-J and Meta do. Base 10000, offset 0.
func Interleaved(dims int) Rotation { return Rotation{wire.Params{Rotary: dims, Interleaved: true}} }

// Offset is the position of the first row: of rows behind a cache, the number of rows in it.
func (r Rotation) Offset(position int) Rotation {
	r.p.Offset = position
	return r
}

// Base is the base of the frequencies: pair i turns by position * base^(-2i/dims).
func (r Rotation) Base(base float64) Rotation {
	r.p.Base = base
	return r
}

// Positions gives each row its own position.
func (r Rotation) Positions(of ...int) Rotation {
	r.p.Positions = append([]int{}, of...)
	return r
}

// InvFreq gives each pair its own frequency, instead of Base.
func (r Rotation) InvFreq(freq ...float64) Rotation {
	r.p.InvFreq = append([]float64{}, freq...)
	return r
}

// Float32Angles computes angles in f32, as most frameworks do, to find their values again. They are off by 1e-4 at position
// 4000 and by 1e-3 at 131072.
func (r Rotation) Float32Angles() Rotation {
	r.p.Float32Angles = true
	return r
}

// Magnitude multiplies cosine and sine (the attention factor of YaRN).
func (r Rotation) Magnitude(m float64) Rotation {
	r.p.Magnitude = m
	return r
}

// RoPE rotates each row by its position. x is [heads, seq, dim] or [seq, heads, dim], by its axes.
func (x Tensor) RoPE(r Rotation) Tensor { return run1(wire.OpRoPE, r.p, x) }

// Option is a setting of Scores, Softmax, Prefill or Decode.
type Option struct {
	set   func(*wire.Params)
	extra string // what x is; empty: there is none
	x     Tensor
}

var (
	// Causal hides the future. The last query sees the last key: query i of S sees the keys up to T-S+i of T.
	Causal = number(func(p *wire.Params) { p.Mask = wire.MaskCausal })
	// Unmasked hides nothing.
	Unmasked = number(func(p *wire.Params) { p.Mask = wire.MaskNone })
)

// CausalAt hides the future where query i sees the keys up to i+diagonal. 0 aligns the first query with the first key.
func CausalAt(diagonal int) Option {
	return number(func(p *wire.Params) { p.Mask, p.Diagonal = wire.MaskDiagonal, diagonal })
}

// Scale multiplies q.k, instead of 1/sqrt(dim).
func Scale(s float64) Option { return number(func(p *wire.Params) { p.Scale = s }) }

// Scores is scale * q.k of each query with each key, [heads, query, key]: q [heads, seq, dim], k [kv heads, seq, dim]. A mask
// goes with the result: a picture shows it and Softmax applies it, the values under it stay. So do [Softcap] and [ALiBi]. Without an option
// there is none.
func Scores(q, k Tensor, options ...Option) Tensor {
	return runWith(wire.OpScores, wire.Params{}, options, q, k)
}

// Softmax makes probabilities of scores, row by row, under the scores' own mask, or what is given in place of a part of
// it. What a row does not see is exactly 0; a row that sees nothing is 0.
func (x Tensor) Softmax(options ...Option) Tensor {
	return runWith(wire.OpSoftmax, wire.Params{}, options, x)
}

// Context weighs values by probabilities: p [heads, query, key], v [kv heads, seq, dim], result [heads, seq, dim].
func Context(p, v Tensor) Tensor { return run1(wire.OpContext, wire.Params{}, p, v) }

// Prefill is attention as a whole, softmax(scale * q.k, mask) v, without a matrix of scores. It is causal unless
// an option says otherwise. With more keys than queries the queries are the last rows.
func Prefill(q, k, v Tensor, options ...Option) Tensor {
	return runWith(wire.OpPrefill, wire.Params{Mask: wire.MaskCausal}, options, q, k, v)
}

// Decode is the attention of one new row, q [heads, 1, dim], to a whole cache, k and v [kv heads, seq, dim].
func Decode(q, k, v Tensor, options ...Option) Tensor {
	return runWith(wire.OpDecode, wire.Params{}, options, q, k, v)
}

// AppendKV is the cache with rows behind it. It costs what the new rows cost. cache stays what it was.
func AppendKV(cache, rows Tensor) Tensor { return run1(wire.OpAppend, wire.Params{}, cache, rows) }

// Add is a + b, element by element.
func Add(a, b Tensor) Tensor { return run1(wire.OpAdd, wire.Params{}, a, b) }

// Linear is x w^T + bias for each row: x [seq, in], w [out, in], bias [out] or none.
func Linear(x, w Tensor, bias ...Tensor) Tensor {
	if len(bias) > 1 {
		stop("Linear: one bias at most")
	}
	return run1(wire.OpLinear, wire.Params{}, append([]Tensor{x, w}, bias...)...)
}
