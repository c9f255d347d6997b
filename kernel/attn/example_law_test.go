package attn_test

import (
	"fmt"

	"github.com/attnb/attnb/kernel/attn"
)

// By which rule does a function of mine work? It is called with queries and keys that tell, of the size of my model.
func ExampleProbe() {
	mine := func(q, k, v attn.Tensor) attn.Tensor { return attn.Prefill(q, k, v, attn.Window(3)) }
	f := attn.Probe(mine, attn.Causal, attn.Window(4), attn.Geometry{Heads: 8, KVHeads: 2})
	fmt.Println(f.Faults[0].Kind, "-", f.Faults[0].Detail)
	// Output:
	// Probe: FAIL: window: 3 keys, declared 4 (off by one: a window counts the query itself)
	// window - 3 keys, declared 4 (off by one: a window counts the query itself)
}

// A rotation keeps the length of what it turns. This one was followed by something else.
func ExampleNormsKept() {
	before, rope := attn.Load("data/neox_layer.npz", "q_pre"), attn.HalfSplit(8)
	attn.NormsKept(before, before.RoPE(rope), rope)
	attn.NormsKept(before, attn.Add(before, before.RoPE(rope)), rope)
	// Output:
	// NormsKept: pass: norms are kept by RoPE: holds
	// NormsKept: FAIL: norms are kept by RoPE: BROKEN
}

// Probabilities of a framework, of which nothing else is known. With a sink a row's sum may be less than 1.
func ExampleRowsSum() {
	attn.RowsSum(attn.Load("data/neox_layer.npz", "probs").Axes("heads query key"))
	sinks := attn.FromSlice([]float32{1, 2, 0, 1}, "heads", 4)
	p := attn.Get("scores").Softmax(attn.Sinks(sinks))
	attn.RowsSum(p)
	attn.RowsSum(p, attn.Sunk)
	// Output:
	// RowsSum: pass: rows sum to 1: holds
	// RowsSum: FAIL: rows sum to 1: BROKEN
	// RowsSum: pass: rows sum to at most 1: holds
}

// Which number format explains that rows of probabilities do not sum to 1 exactly?
func ExamplePrecision() {
	p := attn.FromSlice([]float64{0.1001, 0.2, 0.7}, "query key", 1, 3)
	for _, format := range []attn.Precision{attn.F64, attn.TF32, attn.FP16, attn.BF16} {
		fmt.Println(format, attn.RowsSum(p, format).Pass)
	}
	// Output:
	// RowsSum: FAIL: rows sum to 1: BROKEN
	// f64 false
	// RowsSum: pass: rows sum to 1: holds
	// tf32 true
	// RowsSum: pass: rows sum to 1: holds
	// fp16 true
	// RowsSum: pass: rows sum to 1: holds
	// bf16 true
}

// No query has weight on a key behind it.
func ExampleNoFuture() {
	attn.NoFuture(attn.Get("p"))
	f := attn.NoFuture(attn.Get("scores").Softmax(attn.Unmasked))
	fmt.Println(f.Where)
	// Output:
	// NoFuture: pass: no weight on the future: holds
	// NoFuture: FAIL: no weight on the future: BROKEN
	// head 0 row 0 key 1
}

// Does a function look ahead, in any way? Its keys and values of the future are changed, to NaN too.
func ExampleFutureUnseen() {
	attn.FutureUnseen(func(q, k, v attn.Tensor) attn.Tensor { return attn.Prefill(q, k, v) })
	attn.FutureUnseen(func(q, k, v attn.Tensor) attn.Tensor { return attn.Prefill(q, k, v, attn.Unmasked) })
	// Output:
	// FutureUnseen: pass: a changed future key changes nothing: holds
	// FutureUnseen: FAIL: a changed future key changes nothing: BROKEN
}

// Are heads mixed up? The second function gives every query head the first KV head.
func ExampleHeadsPermute() {
	attn.HeadsPermute(func(q, k, v attn.Tensor) attn.Tensor { return attn.Prefill(q, k, v) })
	attn.HeadsPermute(func(q, k, v attn.Tensor) attn.Tensor { return attn.Prefill(q, k.Head(0), v.Head(0)) })
	// Output:
	// HeadsPermute: pass: permuted heads give permuted results: holds
	// HeadsPermute: FAIL: permuted heads give permuted results: BROKEN
}

// Does decoding give what prefill gives? Not with a mask that is aligned at the first key.
func ExamplePrefillIsDecode() {
	attn.PrefillIsDecode(func(q, k, v attn.Tensor) attn.Tensor { return attn.Prefill(q, k, v) })
	attn.PrefillIsDecode(func(q, k, v attn.Tensor) attn.Tensor { return attn.Prefill(q, k, v, attn.CausalAt(0)) })
	// Output:
	// PrefillIsDecode: pass: decode = prefill = prefill in chunks: holds
	// PrefillIsDecode: FAIL: decode = prefill = prefill in chunks: BROKEN
}

// Do scores depend on distance alone, far out too? Angles in f32 break it.
func ExampleRelativeOnly() {
	rotate := func(x attn.Tensor, offset int) attn.Tensor { return x.RoPE(attn.HalfSplit(16).Offset(offset)) }
	attn.RelativeOnly(rotate, nil)
	rounded := func(x attn.Tensor, offset int) attn.Tensor {
		return x.RoPE(attn.HalfSplit(16).Offset(offset).Float32Angles())
	}
	attn.RelativeOnly(rounded, []int{0, 131000})
	// Output:
	// RelativeOnly: pass: scores depend on distance only: holds
	// RelativeOnly: FAIL: scores depend on distance only: BROKEN
}

// Asking for one kind of fault among several.
func ExampleDiagnosis_Has() {
	before, after := attn.Load("data/neox_layer.npz", "q_pre"), attn.Load("data/neox_layer.npz", "q")
	f := attn.FindRoPE(before, after, attn.HalfSplit(8).Offset(1))
	fmt.Println(f.Has("offset"), f.Has("pairing"))
	// Output:
	// FindRoPE: FAIL: offset: the first row is at position 0, declared 1 (off by one)
	// true false
}

// Which of two declarations explains the numbers?
func ExampleDiagnosis_Passed() {
	before, after := attn.Load("data/neox_layer.npz", "q_pre"), attn.Load("data/neox_layer.npz", "q")
	for _, rotary := range []int{16, 8} {
		fmt.Println(rotary, attn.FindRoPE(before, after, attn.HalfSplit(rotary)).Passed())
	}
	// Output:
	// FindRoPE: FAIL: rotary dims: 8 of 16 turn, declared 16
	// 16 false
	// FindRoPE: pass: the declared rotation fits
	// 8 true
}

// A finding in a line, for a log.
func ExampleDiagnosis_String() {
	f := attn.CheckWrites([]attn.Write{{Slots: []int{0, 1, 3}}})
	fmt.Println(f)
	// Output:
	// CheckWrites: FAIL: hole: slots [2] were never written: they hold what was there before
	// CheckWrites: FAIL: hole: slots [2] were never written: they hold what was there before; the length to write at is the number of rows so far
}
