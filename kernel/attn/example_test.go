package attn_test

import (
	"fmt"

	"github.com/attnb/attnb/kernel/attn"
)

// The examples have no expected output: they run in a notebook, where a device process is.

// An attention layer from fused rows to its context, looked at and checked.
func Example() {
	qkv := attn.Load("data/layer.npz", "qkv").Named("qkv")
	q, k, v := qkv.SplitHeads(attn.NeoX(4))
	q, k = q.RoPE(attn.HalfSplit(8)), k.RoPE(attn.HalfSplit(8))
	s := attn.Scores(q, k, attn.Causal)
	s.Head(2).Heatmap()
	s.Softmax().Heatmap()
	out := attn.Prefill(q, k, v)
	attn.Require(out.Check())
}

// One more token behind a cache: its row is rotated to the position after the last one.
func ExampleDecode() {
	k, v := attn.Get("k"), attn.Get("v")
	q1, k1, v1 := attn.Load("data/layer.npz", "qkv_decode").Rows(0, 1).SplitHeads(attn.NeoX(4))
	at := attn.HalfSplit(8).Offset(k.Shape()[1])
	k = attn.AppendKV(k, k1.RoPE(at))
	v = attn.AppendKV(v, v1)
	attn.Decode(q1.RoPE(at), k, v).Check()
}

// A tensor that a package-level variable holds is computed once, not in every cell.
func ExampleOnce() {
	qkv := attn.Once("qkv", func() attn.Tensor { return attn.Load("data/layer.npz", "qkv") })
	fmt.Println(qkv)
}

// Values made in Go, with the meaning of each dimension.
func ExampleFromSlice() {
	x := attn.FromSlice([]float64{1, 0, 0, 1, 1, 1}, "seq dim", 3, 2)
	attn.Scores(x, x, attn.Causal).Softmax().Heatmap(attn.Tokens("the", "cat", "sat"))
}

// Separate projections, as of a Llama layer with 8 query heads and 2 key and value heads.
func ExampleTensor_Heads() {
	q := attn.Load("data/llama.npz", "q_proj").Heads(8).RoPE(attn.HalfSplit(16).Base(500000))
	k := attn.Load("data/llama.npz", "k_proj").Heads(2).RoPE(attn.HalfSplit(16).Base(500000))
	v := attn.Load("data/llama.npz", "v_proj").Heads(2)
	attn.Prefill(q, k, v).Merge().Named("context")
}

// A matrix of another framework, of which one item of the batch is wanted, with its axes in another order.
func ExampleTensor_Axes() {
	ctx := attn.Load("data/layer.npz", "ctx").Axes("seq heads dim")
	ctx.Head(1).Interactive()
	attn.Load("data/batched.npy").Batch(0).Heatmap(attn.Title("first prompt"))
}

// Attention over a long text: too many cells to hold or to draw. Then a part of it, unpooled.
func ExampleMap() {
	q, k := attn.Get("q"), attn.Get("k")
	attn.Map(q, k, attn.Causal, attn.Log)
	attn.Map(q, k, attn.Causal, attn.OnlyHead(3), attn.Queries(4096, 4160), attn.Keys(4000, 4160))
	attn.Map(q, k, attn.Causal, attn.OfScores, attn.PoolMean, attn.Title("scores, mean of each pool"))
}

// What heads look at: numbers beside each head, one number for each head of a model, and panels that a click enlarges.
func ExampleLayers() {
	var layers []attn.Tensor
	for i := range 12 {
		layers = append(layers, attn.Get(fmt.Sprintf("p%d", i)))
	}
	attn.Layers(layers)
	attn.Layers(layers, attn.SinkShare)
	layers[3].Heatmap(attn.Statistics)
	layers[3].Heatmap(attn.Enlarge)
}

// What becomes of the scores of query 8 in head 3, key by key, up to its context.
func ExampleTrace() {
	q, k, v := attn.Get("q"), attn.Get("k"), attn.Get("v")
	attn.Trace(attn.Scores(q, k, attn.Causal), v, 8, attn.OnlyHead(3), attn.Tokens("The", " cat", " sat"))
}

// A prompt and ten steps behind it, as one growing picture; then the cache that they filled.
func ExampleDecoding() {
	q, k := attn.Get("q"), attn.Get("k") // prompt and steps, rotated
	cache := k.Rows(0, 9)
	steps := []attn.Tensor{attn.Scores(q.Rows(0, 9), cache, attn.Causal).Softmax()}
	for i := 9; i < 19; i++ {
		cache = attn.AppendKV(cache, k.Rows(i, i+1))
		steps = append(steps, attn.Scores(q.Rows(i, i+1), cache).Softmax())
	}
	attn.Decoding(steps, attn.OnlyHead(0))
	cache.Timeline()
}

// The cache of another program, which goes round after four slots.
func ExampleWrites() {
	var steps []attn.Write
	for position := range 10 {
		steps = append(steps, attn.Write{Slots: []int{position % 4}, Positions: []int{position}})
	}
	attn.Writes(steps, attn.Title("ring of 4"))
}

// Two conventions and an offset, side by side: dims turn together in other pairs.
func ExampleRotation_Phasors() {
	attn.HalfSplit(64).Phasors(32)
	attn.HalfSplit(8).Phasors(16, attn.Beside(attn.Interleaved(8).Offset(1)))
}

// Both sides and what is between them, in values and in f32 steps.
func ExampleCompare() {
	mine, theirs := attn.Get("out"), attn.Load("data/layer.npz", "ctx").Axes("seq heads dim")
	attn.Compare(mine, theirs, attn.Differences)
	mine.Check(attn.ULP)
}

// A layer of a model on disk, by hand, and one more token behind its cache.
func ExampleOpenModel() {
	m := attn.OpenModel("models/pythia-14m") // or "EleutherAI/pythia-14m", where the Hugging Face cache has it
	l := m.Layers[0]
	x := attn.Embedding(m.Tensor("gpt_neox.embed_in.weight"), []int{510, 5798, 2206, 327, 253}) // [seq, hidden]
	q, k, v := l.Project(l.Norm.Of(x.Rows(0, 4)))
	q, k = l.Rotate(q), l.Rotate(k)
	attn.Scores(q, k, l.Options()...).Softmax().Heatmap()
	attn.Require(attn.Prefill(q, k, v, l.Options()...).Check())

	q1, k1, v1 := l.Project(l.Norm.Of(x.Rows(4, 5)))
	attn.Decode(l.Rotate(q1, 4), attn.AppendKV(k, l.Rotate(k1, 4)), attn.AppendKV(v, v1), l.Options()...).Check()
}

// A GPT-NeoX block with its MLP in parallel to its attention, as Pythia has it.
func ExampleModelLayer_Attend() {
	m, x := attn.OpenModel("models/pythia-14m"), attn.Get("x")
	l, at := m.Layers[0], "gpt_neox.layers.0."
	inner := attn.LayerNorm(x, l.Norm.Eps(), m.Tensor(at+"post_attention_layernorm.weight"), m.Tensor(at+"post_attention_layernorm.bias"))
	inner = attn.Linear(inner, m.Tensor(at+"mlp.dense_h_to_4h.weight"), m.Tensor(at+"mlp.dense_h_to_4h.bias")).GELU()
	inner = attn.Linear(inner, m.Tensor(at+"mlp.dense_4h_to_h.weight"), m.Tensor(at+"mlp.dense_4h_to_h.bias"))
	attn.Add(x, attn.Add(l.Attend(x), inner)).Named("x")
}

// The gated MLP of a Llama block.
func ExampleMultiply() {
	m, x := attn.OpenModel("models/llama"), attn.Get("x")
	w := func(name string) attn.Tensor { return m.Tensor("model.layers.0." + name) }
	n := attn.RMSNorm(x, m.Layers[0].Norm.Eps(), w("post_attention_layernorm.weight"))
	gate := attn.Linear(n, w("mlp.gate_proj.weight")).SiLU()
	attn.Add(x, attn.Linear(attn.Multiply(gate, attn.Linear(n, w("mlp.up_proj.weight"))), w("mlp.down_proj.weight"))).Check()
}
