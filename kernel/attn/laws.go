package attn

import "github.com/attnb/attnb/kernel/wire"

// Law is how well something holds that needs no reference. It passes where Worst is at most Floor.
type Law struct {
	Diagnosis
	Worst float64 // largest departure, in proportion to what rounding explains at its place
	Floor float64 // what rounding explains of that
	Where string  // "head 1 row 2"
}

func law(of string, r wire.Request, call func([]Tensor, []int) Tensor, options []FindOption) Law {
	d, f := find(of, r, call, options...)
	return Law{d, f.number("worst"), f.number("floor"), f.word("where")}
}

// NormsKept: a rotation keeps the length of each row's first dims, times its magnitude, and copies the rest.
func NormsKept(before, after Tensor, by Rotation, options ...FindOption) Law {
	r := about("norms")
	give(&r, "before", before)
	give(&r, "after", after)
	rotated(&r, by)
	return law("NormsKept", r, nil, options)
}

// RowsSum: a row of probabilities sums to 1, to 0 where it sees nothing, and none is negative. With [Sunk] a sum may be less.
func RowsSum(p Tensor, options ...FindOption) Law {
	r := about("sums")
	give(&r, "p", p)
	return law("RowsSum", r, nil, options)
}

type sunk struct{}

func (sunk) ask(r *wire.Request) { set(r, "sink", numbers(1)) }

// Sunk says that an attention sink takes a share of each row, for [RowsSum].
var Sunk FindOption = sunk{}

// NoFuture: no row has weight on a key behind its diagonal, which is that of [Causal] unless [CausalAt] says otherwise.
func NoFuture(p Tensor, options ...FindOption) Law {
	r := about("no future")
	give(&r, "p", p)
	return law("NoFuture", r, nil, options)
}

// Attention is a function under test: q [heads, seq, dim], k and v [kv heads, seq, dim], result as q. It may do anything with tensors, also
// Download, compute here and make one again.
type Attention func(q, k, v Tensor) Tensor

// asked is a question about an attention function.
func (f Attention) asked() func([]Tensor, []int) Tensor {
	return func(args []Tensor, _ []int) Tensor { return f(args[0], args[1], args[2]) }
}

// Probe says by which rule an attention function works, as [FindMask] does: it calls f in this cell with chosen queries and keys, and
// values whose result is the probabilities. [Geometry] says of which size.
//
//	attn.Probe(mine, attn.Causal, attn.Window(4), attn.Geometry{Heads: 8, KVHeads: 2})
func Probe(f Attention, declared ...FindOption) MaskFinding {
	r := about("probe")
	d, facts := find("Probe", r, f.asked(), declared...)
	return maskFinding(d, facts)
}

// FutureUnseen: changing a key or value behind a row's diagonal changes nothing in the row, not one bit, to NaN too. The diagonal is
// that of [Causal] unless [CausalAt] says otherwise.
func FutureUnseen(f Attention, options ...FindOption) Law {
	return law("FutureUnseen", about("future"), f.asked(), options)
}

// HeadsPermute: heads in another order, with their KV heads, give the same results in that order.
func HeadsPermute(f Attention, options ...FindOption) Law {
	return law("HeadsPermute", about("permutation"), f.asked(), options)
}

// PrefillIsDecode: rows computed all at once, in chunks, and one by one behind a cache are the same rows. f must be causal as [Causal] is:
// the last query sees the last key.
func PrefillIsDecode(f Attention, options ...FindOption) Law {
	return law("PrefillIsDecode", about("decode"), f.asked(), options)
}

// RelativeOnly: after a rotation scores depend on the distance of the rows alone. rotate turns x [heads, seq, dim], whose first row is
// at the offset. Without offsets they are 0, 1, 77 and 4096.
func RelativeOnly(rotate func(x Tensor, offset int) Tensor, offsets []int, options ...FindOption) Law {
	r := about("distance")
	if len(offsets) > 0 {
		set(&r, "offsets", numbers(offsets...))
	}
	return law("RelativeOnly", r, func(args []Tensor, numbers []int) Tensor { return rotate(args[0], numbers[0]) }, options)
}
