// Package reference holds the float64 truth: every op of attention as a small function, computed from its
// definition, written to be read beside the formula in its comment. Speed is no aim.
//
// A tensor is a [Heads]: one matrix a head, rows (tokens) by columns (elements of a head, or keys). Symbols: H query
// heads, KV key/value heads, S query rows, T key rows, d head dim, r rotary dims. Heads are numbered as in the fused
// projection; query head h reads KV head h/(H/KV) (grouped-query attention, Ainslie et al., arXiv:2305.13245).
//
// The scores of a query change in this order: scale, then visibility. What a [Variant] of attention does to them has its
// place between the two (softcap, then bias), because a hidden key must stay hidden whatever is added to it.
//
// No function changes its arguments, and none shares memory with its result. Arguments that do not fit are refused by an
// error that wraps [ErrShape] or [ErrArgument] and names the op and the shapes; no function panics for them. Values
// are free: NaN and infinities follow the formula, and reach a result only through what the formula reads there.
package reference
