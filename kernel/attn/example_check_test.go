package attn_test

import (
	"fmt"

	"github.com/attnb/attnb/kernel/attn"
)

// Is it right? Every cell against float64, with what f32 arithmetic may be off by.
func ExampleTensor_Check() {
	v := attn.Get("out").Check()
	fmt.Println(v.Pass, v.Cells, "cells,", v.Failed, "outside")
	// Output:
	// Check "out": pass
	// true 576 cells, 0 outside
}

// My values against a framework's: both, and what is between them; then the same in f32 steps.
func ExampleCompare() {
	mine, theirs := attn.Get("out"), attn.Load("data/neox_layer.npz", "ctx").Axes("seq heads dim")
	v := attn.Compare(mine, theirs, attn.Differences, attn.Within(5e-6))
	fmt.Println(v.Pass, v.Cells)
	attn.Compare(mine, theirs, attn.ULP, attn.Within(5e-6))
	// Output:
	// Compare "out" with neox_layer.npz: ctx: pass
	// true 576
	// Compare "out" with neox_layer.npz: ctx: pass
}

// Expected values that were printed with two decimals.
func ExampleWithin() {
	printed := attn.FromSlice([]float64{0.67, 0.33}, "dim", 2)
	mine := attn.FromSlice([]float64{2. / 3, 1. / 3}, "dim", 2)
	attn.Compare(mine, printed)
	attn.Compare(mine, printed, attn.Within(0.005))
	// Output:
	// Compare FromSlice with FromSlice: FAIL
	// Compare FromSlice with FromSlice: pass
}

// A loop in search of the setting that gives a framework's values.
func ExampleVerdict_Passed() {
	_, k, _ := attn.Get("qkv").SplitHeads(attn.NeoX(4))
	theirs := attn.Load("data/neox_layer.npz", "k")
	for _, rotary := range []int{16, 8, 4} {
		if attn.Compare(k.RoPE(attn.HalfSplit(rotary)), theirs, attn.Within(2e-6)).Passed() {
			fmt.Println("rotary", rotary)
		}
	}
	// Output:
	// Compare RoPE with neox_layer.npz: k: FAIL
	// Compare RoPE with neox_layer.npz: k: pass
	// rotary 8
	// Compare RoPE with neox_layer.npz: k: FAIL
}

// The verdict in a line, for a log.
func ExampleVerdict_String() {
	q := attn.Get("q")
	fmt.Println(attn.Compare(q, q))
	// Output:
	// Compare "q" with "q": pass
	// pass: error/bound 0 over 576 cells
}

// A notebook that is a test: the cell ends here, with an error, where a finding does not pass.
func ExampleRequire() {
	attn.Require(attn.Get("p").Check())
	attn.Require(attn.RowsSum(attn.Get("p")))
	fmt.Println("both hold")
	// Output:
	// Check "p": pass
	// RowsSum: pass: rows sum to 1: holds
	// both hold
}

// Which call is off? Each of the chain that made a tensor, on its own.
func ExampleAudit() {
	a := attn.Audit(attn.Get("out"))
	for _, s := range a.Stages {
		fmt.Println(s.Name, s.Shape, s.Enters.Pass)
	}
	// Output:
	// Audit "out": pass: every stage is what f32 arithmetic makes of its inputs
	// SplitHeads.q [heads 4, seq 9, dim 16] true
	// RoPE "q" [heads 4, seq 9, dim 16] true
	// SplitHeads.k [heads 4, seq 9, dim 16] true
	// RoPE "k" [heads 4, seq 9, dim 16] true
	// Scores "scores" [heads 4, query 9, key 9] true
	// Softmax "p" [heads 4, query 9, key 9] true
	// SplitHeads.v "v" [heads 4, seq 9, dim 16] true
	// Context "out" [heads 4, seq 9, dim 16] true
}

// A framework's tensors, audited by the chain of this kernel. Its keys were rotated one position too far; its scores are right for such keys.
func ExampleStage() {
	_, k, _ := attn.Get("qkv").SplitHeads(attn.NeoX(4))
	theirK := k.RoPE(attn.HalfSplit(8).Offset(1))
	theirScores := attn.Scores(attn.Get("q"), theirK)
	a := attn.Audit(attn.Get("scores"), attn.Stage(attn.Get("k"), theirK), attn.Stage(attn.Get("scores"), theirScores))
	fmt.Println("first:", a.First)
	// Output:
	// Audit "scores": FAIL: the first stage to depart is RoPE "k": of RoPE, by its own inputs: FAIL
	// first: RoPE "k"
}

// One score in each number format. A report that fails by 0.01 is no matter of f32.
func ExampleLadder() {
	l := attn.Ladder(attn.Get("scores"), 1, 5, 3, 0.01)
	for _, r := range l.Rungs {
		fmt.Printf("%s %.2f\n", r.Format, r.Value)
	}
	fmt.Println(l.Place)
	// Output:
	// Ladder: pass: head 1, query 5, key 3: the tensor holds -5.55
	// float64 -5.55
	// f32 -5.55
	// f32, f32 angles -5.55
	// TF32 -5.55
	// fp16 -5.55
	// bf16 -5.56
	// 0.01 is more than any of these formats makes of this cell
}

// Did a framework's layer have another layout than its name says?
func ExampleFindLayout() {
	theirs := attn.Load("data/neox_layer.npz", "q_pre")
	f := attn.FindLayout(attn.Get("qkv"), attn.GPT2(4), attn.Known{Q: theirs})
	fmt.Println(f.Faults[0].Kind, "-", f.Faults[0].Fix)
	// Output:
	// FindLayout: FAIL: layout: NeoX (q k v of each head), declared GPT2 (all of q, then k, then v)
	// layout - declare the layout found
}

// A cache that is a bare array of numbers: by heads or by rows?
func ExampleFindOrder() {
	k := attn.Get("k")
	cache := attn.FromSlice(k.Merge().Download(), "dim", 4*9*16)
	f := attn.FindOrder(k, cache, "heads seq dim")
	fmt.Println(f.Fits)
	// Output:
	// FindOrder: FAIL: order of axes: it is seq heads dim, declared heads seq dim
	// [seq heads dim]
}

// How did a framework rotate? Not as I declared it.
func ExampleFindRoPE() {
	before, after := attn.Load("data/neox_layer.npz", "q_pre"), attn.Load("data/neox_layer.npz", "q")
	f := attn.FindRoPE(before, after, attn.Interleaved(8))
	fmt.Println(f.Pairing, "-", f.Rotary, "dims")
	fmt.Println(f.Faults[0].Fix)
	// Output:
	// FindRoPE: FAIL: pairing: half-split, pairs (i, i+r/2), declared interleaved, pairs (2i, 2i+1)
	// half-split, pairs (i, i+r/2) - 8 dims
	// use the other pairing, or permute the weights of q and k
}

// Which keys did a model hide? One more than its config says.
func ExampleFindMask() {
	q, k := attn.Get("q"), attn.Get("k")
	p := attn.Scores(q, k, attn.Causal, attn.Window(5)).Softmax()
	f := attn.FindMask(q, k, p, attn.Causal, attn.Window(4))
	fmt.Println(f.Faults[0].Kind, "-", f.Faults[0].Detail)
	// Output:
	// FindMask: FAIL: window: 5 keys, declared 4 (off by one: a window counts the query itself)
	// window - 5 keys, declared 4 (off by one: a window counts the query itself)
}

// Queries that see nothing: this kernel gives them no weight, some frameworks the mean of all values. A declaration says which is meant.
func ExampleEmptyRow() {
	q, k := attn.Get("q"), attn.Get("k")
	p := attn.Scores(q, k, attn.Causal, attn.KeyPadding(2, 0)).Softmax()
	attn.FindMask(q, k, p, attn.Causal, attn.KeyPadding(2, 0), attn.EmptyRow("0"))
	f := attn.FindMask(q, k, p, attn.Causal, attn.KeyPadding(2, 0), attn.EmptyRow("uniform"))
	fmt.Println(f.Faults[0].Kind)
	// Output:
	// FindMask: pass: the declared rule fits (scale 0.25, col-row open to 0)
	// FindMask: FAIL: rows that see nothing: 8 rows that see nothing hold 0, declared uniform
	// rows that see nothing
}

// A cache filled in two goes, the second of them one position too far.
func ExampleCheckCache() {
	_, k, _ := attn.Get("qkv").SplitHeads(attn.NeoX(4))
	rope := attn.HalfSplit(8)
	cache := attn.AppendKV(k.Rows(0, 5).RoPE(rope), k.Rows(5, 9).RoPE(rope.Offset(6)))
	f := attn.CheckCache(k, cache, attn.RotatedBy(rope))
	fmt.Println(f.Rows, f.Positions)
	// Output:
	// CheckCache: FAIL: row at another position: slots 5 (at position 6, its row's is 5), 6 (at position 7, its row's is 6), 7 (at position 8, its row's is 7), 8 (at position 9, its row's is 8)
	// [0 1 2 3 4 5 6 7 8] [0 1 2 3 4 6 7 8 9]
}

// Values are cached as they are, keys rotated.
func ExampleRotatedBy() {
	_, k, v := attn.Get("qkv").SplitHeads(attn.NeoX(4))
	attn.CheckCache(v, attn.Get("v"))
	attn.CheckCache(k, attn.Get("k"), attn.RotatedBy(attn.HalfSplit(8)))
	// Output:
	// CheckCache: pass: all 9 slots hold their row
	// CheckCache: pass: all 9 slots hold their row
}

// What a serving engine logged of its cache: slot 3 was left out, slot 4 written twice.
func ExampleCheckWrites() {
	f := attn.CheckWrites([]attn.Write{{Slots: []int{0, 1, 2}}, {Slots: []int{4}}, {Slots: []int{4}}})
	fmt.Println(f.Length, "slots, holes", f.Holes, "overwritten", f.Overwritten)
	// Output:
	// CheckWrites: FAIL: hole: slots [3] were never written: they hold what was there before
	// 5 slots, holes [3] overwritten [4]
}

// A cache of this kernel, by the calls that made it: its last rows were not rotated, which no shape shows.
func ExampleTensor_CheckWrites() {
	_, k, _ := attn.Get("qkv").SplitHeads(attn.NeoX(4))
	cache := attn.AppendKV(attn.Get("k").Rows(0, 5), k.Rows(5, 9))
	f := cache.CheckWrites()
	fmt.Println(f.Faults[0].Kind)
	// Output:
	// CheckWrites: FAIL: row never rotated: 4 of 9 rows, the first in slot 5, were not rotated, as the others were
	// row never rotated
}
