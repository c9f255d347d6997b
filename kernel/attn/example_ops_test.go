package attn_test

import (
	"fmt"
	"math"

	"github.com/attnb/attnb/kernel/attn"
)

// Each query with each key, with the mask that comes later: its cells keep their values, and a picture hatches them.
func ExampleScores() {
	q := attn.FromSlice([]float32{1, 0, 0, 2}, "heads seq dim", 1, 2, 2)
	k := attn.FromSlice([]float32{3, 4, 5, 6}, "heads seq dim", 1, 2, 2)
	fmt.Println(attn.Scores(q, k, attn.Causal, attn.Scale(1)).Download())
	// Output:
	// [3 5 8 12]
}

// The weights of the last row. What the scores are masked by need not be said again.
func ExampleTensor_Softmax() {
	p := attn.Get("scores").Softmax()
	fmt.Printf("%.3f\n", p.Head(2).Rows(8, 9).Download())
	// Output:
	// [0.079 0.043 0.025 0.283 0.028 0.299 0.143 0.048 0.051]
}

// Weighing values by hand: a quarter of the first and three quarters of the second.
func ExampleContext() {
	p := attn.FromSlice([]float32{0.25, 0.75}, "heads query key", 1, 1, 2)
	v := attn.FromSlice([]float32{4, 0, 0, 4}, "heads seq dim", 1, 2, 2)
	fmt.Println(attn.Context(p, v).Download())
	// Output:
	// [1 3]
}

// Attention as a model runs it, in one call. It is what scores, softmax and context make step by step.
func ExamplePrefill() {
	out := attn.Prefill(attn.Get("q"), attn.Get("k"), attn.Get("v"))
	fmt.Println(out)
	attn.Require(attn.Compare(out, attn.Get("out")))
	// Output:
	// [heads 4, seq 9, dim 16]
	// Compare Prefill with "out": pass
}

// One more token behind a cache: its row is rotated to the position after the last one.
func ExampleDecode() {
	k, v := attn.Get("k"), attn.Get("v")
	q1, k1, v1 := attn.Load("data/neox_layer.npz", "qkv_decode").Rows(0, 1).SplitHeads(attn.NeoX(4))
	at := attn.HalfSplit(8).Offset(k.Shape()[1])
	k = attn.AppendKV(k, k1.RoPE(at))
	v = attn.AppendKV(v, v1)
	out := attn.Decode(q1.RoPE(at), k, v)
	attn.Require(out.Check())
	fmt.Println(out, k)
	// Output:
	// Check Decode: pass
	// [heads 4, seq 1, dim 16] [heads 4, seq 10, dim 16]
}

// A cache grows by a row. The one before stays as it was, for another way to go on.
func ExampleAppendKV() {
	cache := attn.FromSlice([]float32{1, 2, 3, 4}, "heads seq dim", 2, 1, 2)
	row := attn.FromSlice([]float32{5, 6, 7, 8}, "heads seq dim", 2, 1, 2)
	longer := attn.AppendKV(cache, row)
	fmt.Println(cache, longer, longer.Download())
	// Output:
	// [heads 2, seq 1, dim 2] [heads 2, seq 2, dim 2] [1 2 5 6 3 4 7 8]
}

// The residual that a layer adds its output to.
func ExampleAdd() {
	x := attn.FromSlice([]float32{1, 2, 3, 4}, "seq hidden", 2, 2)
	out := attn.FromSlice([]float32{10, 20, 30, 40}, "seq hidden", 2, 2)
	fmt.Println(attn.Add(x, out).Download())
	// Output:
	// [11 22 33 44]
}

// The gate of a Llama MLP.
func ExampleMultiply() {
	gate := attn.FromSlice([]float32{0, 1, 2}, "seq hidden", 1, 3)
	up := attn.FromSlice([]float32{5, 5, 5}, "seq hidden", 1, 3)
	fmt.Println(attn.Multiply(gate, up).Download())
	fmt.Printf("%.3f\n", attn.Multiply(gate.SiLU(), up).Download())
	// Output:
	// [0 5 10]
	// [0.000 3.655 8.808]
}

// A projection from 3 to 2 numbers, its weight as PyTorch's nn.Linear has it: a row for each number that comes out.
func ExampleLinear() {
	x := attn.FromSlice([]float32{1, 2, 3}, "seq in", 1, 3)
	w := attn.FromSlice([]float32{1, 0, 0, 0, 1, 1}, "out in", 2, 3)
	b := attn.FromSlice([]float32{10, 20}, "out", 2)
	fmt.Println(attn.Linear(x, w).Download(), attn.Linear(x, w, b).Download())
	// Output:
	// [1 5] [11 25]
}

// Tokens become rows.
func ExampleEmbedding() {
	table := attn.FromSlice([]float32{0, 0, 1, 10, 2, 20}, "token hidden", 3, 2)
	x := attn.Embedding(table, []int{2, 0, 2})
	fmt.Println(x, x.Download())
	// Output:
	// [seq 3, hidden 2] [2 20 0 0 2 20]
}

// A row of mean 0 and variance 1, then a weight and a bias.
func ExampleLayerNorm() {
	x := attn.FromSlice([]float32{1, 3, 5, 7}, "seq hidden", 1, 4)
	w := attn.FromSlice([]float32{1, 1, 1, 2}, "hidden", 4)
	b := attn.FromSlice([]float32{0, 0, 0, 1}, "hidden", 4)
	fmt.Printf("%.3f\n%.3f\n", attn.LayerNorm(x, 1e-5).Download(), attn.LayerNorm(x, 1e-5, w, b).Download())
	// Output:
	// [-1.342 -0.447 0.447 1.342]
	// [-1.342 -0.447 0.447 3.683]
}

// A row of mean square 1: nothing is subtracted.
func ExampleRMSNorm() {
	x := attn.FromSlice([]float32{1, 3, 5, 7}, "seq hidden", 1, 4)
	fmt.Printf("%.3f\n", attn.RMSNorm(x, 1e-6).Download())
	// Output:
	// [0.218 0.655 1.091 1.528]
}

// The activation of GPT-NeoX.
func ExampleTensor_GELU() {
	x := attn.FromSlice([]float32{-2, -1, 0, 1, 2}, "hidden", 5)
	fmt.Printf("%.4f\n", x.GELU().Download())
	// Output:
	// [-0.0455 -0.1587 0.0000 0.8413 1.9545]
}

// The activation of GPT-2 is near to that of GPT-NeoX, but not the same: a mistake that no picture shows.
func ExampleTensor_GELUTanh() {
	x := attn.FromSlice([]float32{-2, -1, 0, 1, 2}, "hidden", 5)
	fmt.Printf("%.4f\n", x.GELUTanh().Download())
	// Output:
	// [-0.0454 -0.1588 0.0000 0.8412 1.9546]
}

// The activation of Llama, in its gate.
func ExampleTensor_SiLU() {
	x := attn.FromSlice([]float32{-2, -1, 0, 1, 2}, "hidden", 5)
	fmt.Printf("%.4f\n", x.SiLU().Download())
	// Output:
	// [-0.2384 -0.2689 0.0000 0.7311 1.7616]
}

// A model that scales by something else than 1/sqrt(dim): T5 does not divide at all.
func ExampleScale() {
	q, k := attn.Get("q"), attn.Get("k")
	usual, undivided := attn.Scores(q, k), attn.Scores(q, k, attn.Scale(1))
	fmt.Println(undivided.Download()[0] / usual.Download()[0])
	// Output:
	// 4
}

// Two new queries against a cache of four keys. By Causal, which aligns the ends, the first of them sees three keys. Aligned at the start it
// sees one: a common mistake.
func ExampleCausalAt() {
	flat := attn.FromSlice(make([]float32, 2*4), "heads query key", 1, 2, 4)
	fmt.Printf("%.2f\n", flat.Softmax(attn.Causal).Download())
	fmt.Printf("%.2f\n", flat.Softmax(attn.CausalAt(0)).Download())
	fmt.Printf("%.2f\n", flat.Softmax(attn.Unmasked).Download())
	// Output:
	// [0.33 0.33 0.33 0.00 0.25 0.25 0.25 0.25]
	// [1.00 0.00 0.00 0.00 0.50 0.50 0.00 0.00]
	// [0.25 0.25 0.25 0.25 0.25 0.25 0.25 0.25]
}

// The last of six queries sees three keys, its own among them.
func ExampleWindow() {
	flat := attn.FromSlice(make([]float32, 6*6), "heads query key", 1, 6, 6)
	p := flat.Softmax(attn.Causal, attn.Window(3))
	fmt.Printf("%.2f\n", p.Rows(5, 6).Download())
	// Output:
	// [0.00 0.00 0.00 0.33 0.33 0.33]
}

// A batch padded on the left: two keys are no tokens, and no query sees them.
func ExampleKeyPadding() {
	flat := attn.FromSlice(make([]float32, 4*4), "heads query key", 1, 4, 4)
	p := flat.Softmax(attn.Causal, attn.KeyPadding(2, 0))
	fmt.Printf("%.2f\n", p.Rows(3, 4).Download())
	fmt.Println(p.EmptyRows(), "queries see nothing")
	// Output:
	// [0.00 0.00 0.50 0.50]
	// 2 queries see nothing
}

// Two texts in one row of training data, of two and three tokens: none of the second sees the first.
func ExampleDocuments() {
	flat := attn.FromSlice(make([]float32, 5*5), "heads query key", 1, 5, 5)
	p := flat.Softmax(attn.Causal, attn.Documents(2, 3))
	fmt.Printf("%.2f\n", p.Rows(4, 5).Download())
	// Output:
	// [0.00 0.00 0.33 0.33 0.33]
}

// Gemma 2 keeps scores within 50: small ones hardly change, large ones come closer to each other.
func ExampleSoftcap() {
	s := attn.FromSlice([]float32{1, 100, 110}, "heads query key", 1, 1, 3)
	fmt.Printf("%.3f\n", s.Softmax().Download())
	fmt.Printf("%.3f\n", s.Softmax(attn.Softcap(50)).Download())
	// Output:
	// [0.000 0.000 1.000]
	// [0.000 0.358 0.642]
}

// Farther keys weigh less, by a slope that each head has of its own.
func ExampleALiBi() {
	flat := attn.FromSlice(make([]float32, 2*4*4), "heads query key", 2, 4, 4)
	p := flat.Softmax(attn.Causal, attn.ALiBi(1, 0.25)).Rows(3, 4).Download()
	fmt.Printf("%.2f\n%.2f\n", p[:4], p[4:])
	// Output:
	// [0.03 0.09 0.24 0.64]
	// [0.17 0.21 0.27 0.35]
}

// A mask that is added, as PyTorch has them: -Inf hides. Any other number is a preference, as T5's for distances.
func ExampleBias() {
	s := attn.FromSlice([]float32{0, 0, 0}, "heads query key", 1, 1, 3)
	b := attn.FromSlice([]float64{0, math.Log(3), math.Inf(-1)}, "heads query key", 1, 1, 3)
	fmt.Printf("%.2f\n", s.Softmax(attn.Bias(b)).Download())
	// Output:
	// [0.25 0.75 0.00]
}

// A mask of booleans, as of a tree of drafts: the third query follows the first, not the second.
func ExampleAllowed() {
	m := attn.FromSlice([]float32{1, 0, 0, 1, 1, 0, 1, 0, 1}, "heads query key", 1, 3, 3)
	flat := attn.FromSlice(make([]float32, 9), "heads query key", 1, 3, 3)
	fmt.Println(flat.Softmax(attn.Allowed(m)).Download())
	// Output:
	// [1 0 0 0.5 0.5 0 0.5 0 0.5]
}

// A head that finds nothing gives its weight to the sink: what is left for the keys is less than 1.
func ExampleSinks() {
	s := attn.FromSlice([]float32{0, 0, 0}, "heads query key", 1, 1, 3)
	sinks := attn.FromSlice([]float64{math.Log(5)}, "heads", 1)
	fmt.Printf("%.3f\n", s.Softmax(attn.Sinks(sinks)).Download())
	// Output:
	// [0.125 0.125 0.125]
}
