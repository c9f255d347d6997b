package attn_test

import (
	"fmt"

	"github.com/attnb/attnb/kernel/attn"
)

// Queries turned to their positions, those behind a cache of 9 rows too.
func ExampleTensor_RoPE() {
	rope := attn.HalfSplit(8) // of 16 dims the first 8 turn, as in Pythia
	q := attn.Load("data/neox_layer.npz", "q_pre").RoPE(rope)
	next, _, _ := attn.Load("data/neox_layer.npz", "qkv_decode").SplitHeads(attn.NeoX(4))
	fmt.Println(q, next.RoPE(rope.Offset(9)))
	// Output:
	// [heads 4, seq 9, dim 16] [heads 4, seq 3, dim 16]
}

// Dims 0 and 2 are a pair, as in Hugging Face's Llama and in GPT-NeoX: at position 1 the first pair has turned by 1 radian.
func ExampleHalfSplit() {
	x := attn.FromSlice([]float32{1, 1, 0, 0}, "seq dim", 1, 4)
	fmt.Printf("%.3f\n", x.RoPE(attn.HalfSplit(4).Offset(1)).Download())
	// Output:
	// [0.540 1.000 0.841 0.010]
}

// Dims 0 and 1 are a pair, as in GPT-J and in Meta's Llama. The same row turns to another one: weights must be permuted between the two.
func ExampleInterleaved() {
	x := attn.FromSlice([]float32{1, 1, 0, 0}, "seq dim", 1, 4)
	fmt.Printf("%.3f\n", x.RoPE(attn.Interleaved(4).Offset(1)).Download())
	// Output:
	// [-0.301 1.382 0.000 0.000]
}

// The base of Llama 3. From the second pair on it turns slower than the usual one.
func ExampleRotation_Base() {
	x := attn.FromSlice([]float32{1, 1, 0, 0}, "seq dim", 1, 4)
	fmt.Printf("%.4f\n", x.RoPE(attn.HalfSplit(4).Offset(100)).Download())
	fmt.Printf("%.4f\n", x.RoPE(attn.HalfSplit(4).Offset(100).Base(500000)).Download())
	// Output:
	// [0.8623 0.5403 -0.5064 0.8415]
	// [0.8623 0.9900 -0.5064 0.1410]
}

// Rows one by one behind a cache are what they are all at once.
func ExampleRotation_Offset() {
	_, k, _ := attn.Get("qkv").SplitHeads(attn.NeoX(4))
	all := k.RoPE(attn.HalfSplit(8))
	last := k.Rows(8, 9).RoPE(attn.HalfSplit(8).Offset(8))
	fmt.Println(attn.Compare(last, all.Rows(8, 9)).MaxAbs)
	// Output:
	// Compare RoPE with Rows of RoPE: pass
	// 0
}

// Packed documents, whose positions begin again.
func ExampleRotation_Positions() {
	x := attn.FromSlice([]float32{1, 0, 1, 0, 1, 0}, "seq dim", 3, 2)
	fmt.Printf("%.3f\n", x.RoPE(attn.HalfSplit(2).Positions(0, 1, 0)).Download())
	// Output:
	// [1.000 0.000 0.540 0.841 1.000 0.000]
}

// Frequencies that no formula makes, as LongRoPE's.
func ExampleRotation_InvFreq() {
	x := attn.FromSlice([]float32{1, 1, 0, 0}, "seq dim", 1, 4)
	fmt.Printf("%.3f\n", x.RoPE(attn.HalfSplit(4).Offset(1).InvFreq(1, 0.5)).Download())
	// Output:
	// [0.540 0.878 0.841 0.479]
}

// To find a framework's own values again, far out: its angles were rounded to f32.
func ExampleRotation_Float32Angles() {
	q := attn.Load("data/neox_layer.npz", "q_pre")
	far := attn.HalfSplit(8).Offset(131000)
	off := attn.Compare(q.RoPE(far.Float32Angles()), q.RoPE(far)).MaxAbs
	fmt.Println("off by more than 1e-3:", off > 1e-3)
	// Output:
	// Compare RoPE with RoPE: FAIL
	// off by more than 1e-3: true
}

// YaRN's attention factor, where a config gives it itself. It makes rows longer.
func ExampleRotation_Magnitude() {
	x := attn.FromSlice([]float32{3, 4}, "seq dim", 1, 2)
	fmt.Println(x.RoPE(attn.HalfSplit(2).Magnitude(2)).Download())
	// Output:
	// [6 8]
}

// Position 8 looks like position 2: a model trained on 2048 positions reads 8192.
func ExampleRotation_Linear() {
	x := attn.FromSlice([]float32{1, 0}, "seq dim", 1, 2)
	fmt.Printf("%.3f\n", x.RoPE(attn.HalfSplit(2).Offset(2)).Download())
	fmt.Printf("%.3f\n", x.RoPE(attn.HalfSplit(2).Offset(8).Linear(4)).Download())
	// Output:
	// [-0.416 0.909]
	// [-0.416 0.909]
}

// The base grows with the length, beyond the 4 trained positions: the same row of the same cache, turned when the sequence had 4 rows, and 16.
func ExampleRotation_DynamicNTK() {
	x := attn.FromSlice([]float32{1, 1, 0, 0}, "seq dim", 1, 4)
	fmt.Printf("%.4f\n", x.RoPE(attn.HalfSplit(4).Offset(3).DynamicNTK(2, 4, 4)).Download())
	fmt.Printf("%.4f\n", x.RoPE(attn.HalfSplit(4).Offset(3).DynamicNTK(2, 4, 16)).Download())
	// Output:
	// [-0.9900 0.9996 0.1411 0.0300]
	// [-0.9900 1.0000 0.1411 0.0043]
}

// The rotation of Llama 3.1: fast pairs stay, slow ones are divided by 8.
func ExampleRotation_Llama3() {
	x := attn.FromSlice([]float32{1, 1, 0, 0}, "seq dim", 1, 4)
	r := attn.HalfSplit(4).Base(500000).Offset(1000)
	fmt.Printf("%.3f\n", x.RoPE(r).Download())
	fmt.Printf("%.3f\n", x.RoPE(r.Llama3(8, 1, 4, 8192)).Download())
	// Output:
	// [0.562 0.156 0.827 0.988]
	// [0.562 0.865 0.827 0.501]
}

// A model trained on 4096 positions stretched to 16384: the slow pair turns less, and rows become longer, 0.1 ln 4 + 1 times.
func ExampleRotation_YaRN() {
	x := attn.FromSlice([]float32{1, 1, 0, 0}, "seq dim", 1, 4)
	r := attn.HalfSplit(4).Offset(100)
	fmt.Printf("%.3f\n", x.RoPE(r).Download())
	fmt.Printf("%.3f\n", x.RoPE(r.YaRN(4, 4096)).Download())
	// Output:
	// [0.862 0.540 -0.506 0.841]
	// [0.982 0.923 -0.577 0.666]
}

// A config with beta_fast 16 and beta_slow 2: pairs that turn 16 to 32 times are not slowed down any more.
func ExampleRotation_Ramp() {
	x := attn.Load("data/neox_layer.npz", "q_pre")
	r := attn.HalfSplit(16).Offset(100).YaRN(4, 4096)
	fmt.Printf("%.3f\n", x.RoPE(r).Download()[:4])
	fmt.Printf("%.3f\n", x.RoPE(r.Ramp(16, 2)).Download()[:4])
	// Output:
	// [3.517 0.876 0.606 -1.017]
	// [3.517 0.876 0.606 0.048]
}

// A config with "truncate": false, as gpt-oss has it.
func ExampleRotation_Untruncated() {
	x := attn.Load("data/neox_layer.npz", "q_pre")
	r := attn.HalfSplit(16).Base(150000).Offset(100).YaRN(32, 4096)
	fmt.Printf("%.3f\n", x.RoPE(r).Download()[:4])
	fmt.Printf("%.3f\n", x.RoPE(r.Untruncated()).Download()[:4])
	// Output:
	// [4.159 -1.143 0.312 -1.574]
	// [4.159 -1.143 0.312 -1.415]
}

// How far each pair has turned after so many rows, and how q.k falls with distance.
func ExampleRotation_Phasors() {
	attn.HalfSplit(64).Phasors(32)
	// Output:
	// RoPE: angle of each pair.
	// Heatmap of 32 pair x 32 row (angle (rad)).
	// From -3.13 at pair 0 “0: dims 0, 32”, row 22 to 3.1 at pair 8 “8: dims 8, 40”, row 31.
	// q·k of a query in each row with a key at position 0.
	// 1 chart over 32 row.
}

// Two conventions side by side: dims turn together in other pairs.
func ExampleBeside() {
	attn.HalfSplit(8).Phasors(16, attn.Beside(attn.Interleaved(8)))
	// Output:
	// RoPE: angle of each pair.
	// 2 heatmaps on one scale, each of 8 dim x 16 row (angle (rad)).
	// From -2.57 at rotary 8, half-split, offset 0, base 10000, dim 0, row 10 to 3 at rotary 8, half-split, offset 0, base 10000, dim 0, row 3.
	// q·k of a query in each row with a key at position 0.
	// 2 charts over 16 row.
}
