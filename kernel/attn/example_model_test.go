package attn_test

import (
	"fmt"

	"github.com/attnb/attnb/kernel/attn"
)

// A layer of a model on disk, by hand, and one more token behind its cache.
func ExampleOpenModel() {
	m := attn.OpenModel("models/induction") // or "EleutherAI/pythia-14m", where the Hugging Face cache has it
	l := m.Layers[0]
	x := attn.Embedding(m.Tensor("gpt_neox.embed_in.weight"), []int{0, 41, 7, 98, 41}) // [seq, hidden]
	q, k, v := l.Project(l.Norm.Of(x.Rows(0, 4)))
	q, k = l.Rotate(q), l.Rotate(k)
	attn.Scores(q, k, l.Options()...).Softmax().Heatmap()

	q1, k1, v1 := l.Project(l.Norm.Of(x.Rows(4, 5)))
	out := attn.Decode(l.Rotate(q1, 4), attn.AppendKV(k, l.Rotate(k1, 4)), attn.AppendKV(v, v1), l.Options()...)
	fmt.Println(m.Family, len(m.Layers), "layers,", out)
	// Output:
	// probabilities.
	// 4 heatmaps on one scale, each of 4 query x 4 key (probability).
	// From 3.05e-06 at head 2, query 3, key 0 to 1 at head 0, query 0, key 0.
	// 24 of 64 cells masked.
	// gpt_neox 2 layers, [heads 4, seq 1, dim 32]
}

// Weights that are no part of the attention: of the embedding, of the MLP.
func ExampleModel_Tensor() {
	m := attn.OpenModel("models/induction")
	fmt.Println(m.Tensor("gpt_neox.embed_in.weight"), m.Tensor("gpt_neox.layers.0.mlp.dense_h_to_4h.bias"))
	// Output:
	// [seq 121, hidden 128] [dim 512]
}

// A GPT-NeoX block: attention, then an MLP, each behind its norm and added to the residual.
func ExampleModelLayer_Attend() {
	m := attn.OpenModel("models/induction")
	l, at := m.Layers[0], "gpt_neox.layers.0."
	x := attn.Embedding(m.Tensor("gpt_neox.embed_in.weight"), []int{0, 41, 7, 98, 41})
	x = attn.Add(x, l.Attend(x))
	inner := attn.LayerNorm(x, l.Norm.Eps(), m.Tensor(at+"post_attention_layernorm.weight"), m.Tensor(at+"post_attention_layernorm.bias"))
	inner = attn.Linear(inner, m.Tensor(at+"mlp.dense_h_to_4h.weight"), m.Tensor(at+"mlp.dense_h_to_4h.bias")).GELU()
	x = attn.Add(x, attn.Linear(inner, m.Tensor(at+"mlp.dense_4h_to_h.weight"), m.Tensor(at+"mlp.dense_4h_to_h.bias")))
	attn.Require(x.Check())
	// Output:
	// Check Add: pass
}

// Queries, keys and values, before they are rotated.
func ExampleModelLayer_Project() {
	m := attn.OpenModel("models/induction")
	x := attn.Embedding(m.Tensor("gpt_neox.embed_in.weight"), []int{0, 41, 7})
	q, k, v := m.Layers[0].Project(m.Layers[0].Norm.Of(x))
	fmt.Println(q, k, v)
	// Output:
	// [heads 4, seq 3, dim 32] [heads 4, seq 3, dim 32] [heads 4, seq 3, dim 32]
}

// As the model rotates, whatever that is: keys from position 0, or one row behind a cache of 12.
func ExampleModelLayer_Rotate() {
	l := attn.OpenModel("models/induction").Layers[0]
	row := attn.FromSlice(make([]float32, 4*32), "heads seq dim", 4, 1, 32)
	fmt.Println(l.Rotate(row, 12), "-", l.Rotary, "of", l.HeadDim, "dims turn")
	// Output:
	// [heads 4, seq 1, dim 32] - 16 of 32 dims turn
}

// What the model's attention has beside q, k and v: the mask, the scale, a window where there is one.
func ExampleModelLayer_Options() {
	l := attn.OpenModel("models/induction").Layers[0]
	q := attn.FromSlice(make([]float32, 4*3*32), "heads seq dim", 4, 3, 32)
	fmt.Println(attn.Prefill(q, q, q, l.Options()...), len(l.Options()), "options")
	// Output:
	// [heads 4, seq 3, dim 32] 2 options
}

// The residual before attention.
func ExampleNorm_Of() {
	m := attn.OpenModel("models/induction")
	x := attn.Embedding(m.Tensor("gpt_neox.embed_in.weight"), []int{0, 41})
	fmt.Println(m.Layers[0].Norm.Of(x))
	// Output:
	// [seq 2, hidden 128]
}

// What the other norms of a block have, too.
func ExampleNorm_Eps() {
	fmt.Println(attn.OpenModel("models/induction").Layers[0].Norm.Eps())
	// Output:
	// 1e-05
}

// LayerNorm or RMSNorm? Llama has the latter, GPT-NeoX has not.
func ExampleNorm_RMS() {
	fmt.Println(attn.OpenModel("models/induction").Layers[0].Norm.RMS())
	// Output:
	// false
}

// The output projection, on heads side by side.
func ExampleProjection_Of() {
	l := attn.OpenModel("models/induction").Layers[0]
	context := attn.FromSlice(make([]float32, 4*3*32), "heads seq dim", 4, 3, 32)
	fmt.Println(l.Out.Of(context.Merge()))
	// Output:
	// [seq 3, hidden 128]
}

// The weight of a fused projection, whichever way it lies in the file.
func ExampleProjection_Weight() {
	l := attn.OpenModel("models/induction").Layers[0]
	fmt.Println(l.Fused, l.QKV.Weight())
	// Output:
	// true [out 384, in 128]
}

// Does a projection have a bias? Llama's have none, Qwen2's of q, k and v have one.
func ExampleProjection_Bias() {
	b, ok := attn.OpenModel("models/induction").Layers[0].QKV.Bias()
	fmt.Println(b, ok)
	// Output:
	// [dim 384] true
}
