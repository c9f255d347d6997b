package attn

import "github.com/attnb/attnb/kernel/wire"

// Layout says how q, k and v share a fused row, [(heads + 2 * kv heads) * dim].
type Layout struct {
	layout    wire.Layout
	heads, kv int
}

// GPT2 is q of all heads, then k of all heads, then v of all heads, as GPT-2 has it.
func GPT2(heads int) Layout { return Layout{wire.LayoutGPT2, heads, heads} }

// NeoX is q, k and v of head 0, then of head 1, and so on, as GPT-NeoX, Pythia and BLOOM have it.
func NeoX(heads int) Layout { return Layout{wire.LayoutNeoX, heads, heads} }

// Grouped is, for each of the kv groups, its heads/kv query heads, then its k and its v, as Falcon 40B has it.
func Grouped(heads, kv int) Layout { return Layout{wire.LayoutGrouped, heads, kv} }

// KV is the layout with another number of key and value heads: GPT2(32).KV(8) is 32 q, then 8 k, then 8 v.
func (l Layout) KV(heads int) Layout {
	l.kv = heads
	return l
}

// SplitHeads takes fused rows [seq, hidden] apart into q [heads, seq, dim], k and v [kv heads, seq, dim]. dim is hidden
// divided by heads + 2 * kv heads; what does not divide is refused.
func (x Tensor) SplitHeads(l Layout) (q, k, v Tensor) {
	p := wire.Params{Layout: l.layout, Heads: l.heads, KVHeads: l.kv}
	ts := run(wire.OpSplit, p, 3, x)
	return ts[0], ts[1], ts[2]
}

// Heads sees rows [seq, n*dim] of one projection by head: [n, seq, dim]. [Tensor.Merge] is its inverse. Rows that do not divide by n are
// refused.
func (x Tensor) Heads(n int) Tensor { return run1(wire.OpHeads, wire.Params{Heads: n}, x) }

// Merge lays the heads of each row side by side, as an output projection takes them: [heads, seq, dim], or [seq, heads, dim] by its axes,
// becomes [seq, heads*dim].
func (x Tensor) Merge() Tensor { return run1(wire.OpMerge, wire.Params{}, x) }

// Rotation are the parameters of RoPE (Su et al., arXiv:2104.09864). Its methods return another one with something changed, so that they
// can be put one behind the other: HalfSplit(64).Base(500000).Offset(12).
type Rotation struct{ p wire.Params }

// HalfSplit turns the first dims of a head, an even number, in pairs (i, i+dims/2), as GPT-NeoX and Hugging Face do. Base 10000, offset 0.
func HalfSplit(dims int) Rotation { return Rotation{wire.Params{Rotary: dims}} }

// Interleaved turns the first dims of a head, an even number, in pairs (2i, 2i+1), as GPT-J and Meta do. Base 10000, offset 0.
func Interleaved(dims int) Rotation { return Rotation{wire.Params{Rotary: dims, Interleaved: true}} }

// Offset is the position of the first row: of rows behind a cache, the number of rows in it. The rows after it are at the positions after it.
func (r Rotation) Offset(position int) Rotation {
	r.p.Offset = position
	return r
}

// Base is the base of the frequencies: pair i turns by position * base^(-2i/dims) radians.
func (r Rotation) Base(base float64) Rotation {
	r.p.Base = base
	return r
}

// Positions gives each row its own position, instead of Offset: as many as there are rows.
func (r Rotation) Positions(of ...int) Rotation {
	r.p.Positions = append([]int{}, of...)
	return r
}

// InvFreq gives each pair its own frequency, in radians a position, instead of Base: half as many as dims turn.
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

// RoPE rotates each row by its position: of a pair (a, b), at the angle t, come a cos t - b sin t and a sin t + b cos t; dims behind those that
// turn are copied. x is [heads, seq, dim], [seq, heads, dim] or [seq, dim], by its axes. Positions are within 2^27, either way.
func (x Tensor) RoPE(r Rotation) Tensor { return run1(wire.OpRoPE, r.p, x) }

// Option is a setting of [Scores], [Tensor.Softmax], [Prefill], [Decode], [Map] or [Trace], and declares a rule of attention to detectives
// and laws.
type Option struct {
	set   func(*wire.Params)
	extra string // what x is; empty: there is none
	x     Tensor
}

var (
	// Causal hides the future. The last query sees the last key: query i of S sees the keys up to T-S+i of T.
	Causal Option = number(func(p *wire.Params) { p.Mask = wire.MaskCausal })
	// Unmasked hides nothing.
	Unmasked Option = number(func(p *wire.Params) { p.Mask = wire.MaskNone })
)

// CausalAt hides the future where query i sees the keys up to i+diagonal. 0 aligns the first query with the first key, below it the
// first queries see nothing. It is no option of Decode.
func CausalAt(diagonal int) Option {
	return number(func(p *wire.Params) { p.Mask, p.Diagonal = wire.MaskDiagonal, diagonal })
}

// Scale multiplies q.k, instead of 1/sqrt(dim).
func Scale(s float64) Option { return number(func(p *wire.Params) { p.Scale = s }) }

// Scores is scale * q.k of each query with each key, [heads, query, key]: q [heads, seq, dim], k [kv heads, seq, dim], heads a multiple of
// kv heads: query head h reads KV head h / (heads/kv heads). The scale is 1/sqrt(dim), or what [Scale] says. A mask
// goes with the result: a picture shows it and Softmax applies it, the values under it stay. So do [Softcap] and [ALiBi]. Without an option
// there is none.
func Scores(q, k Tensor, options ...Option) Tensor {
	return runWith(wire.OpScores, wire.Params{}, options, q, k)
}

// Softmax makes probabilities of scores [heads, query, key], or of any tensor, along its last axis, under the scores' own mask, or what is
// given in place of a part of it. What a row does not see is exactly 0; a row that sees nothing is 0.
func (x Tensor) Softmax(options ...Option) Tensor {
	return runWith(wire.OpSoftmax, wire.Params{}, options, x)
}

// Context weighs values by probabilities: p [heads, query, key], v [kv heads, seq, dim] with a row a key, result [heads, seq, dim] with a
// row a query.
func Context(p, v Tensor) Tensor { return run1(wire.OpContext, wire.Params{}, p, v) }

// Prefill is attention as a whole, softmax(scale * q.k, mask) v, without a matrix of scores: q [heads, seq, dim], k and v [kv heads, seq, dim],
// result as q. It is causal unless an option says otherwise. With more keys than queries the queries are the last rows; a causal mask over fewer is refused. [Unmasked] hides nothing.
func Prefill(q, k, v Tensor, options ...Option) Tensor {
	return runWith(wire.OpPrefill, wire.Params{Mask: wire.MaskCausal}, options, q, k, v)
}

// Decode is the attention of one new row, q [heads, 1, dim], to a whole cache, k and v [kv heads, seq, dim], in which the row's own key and
// value are the last; result as q. The options are those of Prefill, but for CausalAt.
func Decode(q, k, v Tensor, options ...Option) Tensor {
	return runWith(wire.OpDecode, wire.Params{}, options, q, k, v)
}

// AppendKV is the cache [kv heads, seq, dim] with rows [kv heads, n, dim] behind it. It costs what the new rows cost. cache stays what it was.
func AppendKV(cache, rows Tensor) Tensor { return run1(wire.OpAppend, wire.Params{}, cache, rows) }

// Add is a + b, element by element. Shapes and axes must be equal.
func Add(a, b Tensor) Tensor { return run1(wire.OpAdd, wire.Params{}, a, b) }

// Linear is x w^T + bias for each row: x [seq, in], w [out, in], bias [out] or none; result [seq, out].
func Linear(x, w Tensor, bias ...Tensor) Tensor {
	if len(bias) > 1 {
		stop("Linear: one bias at most")
	}
	return run1(wire.OpLinear, wire.Params{}, append([]Tensor{x, w}, bias...)...)
}
