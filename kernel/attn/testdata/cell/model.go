package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/attnb/attnb/kernel/attn"
)

func init() {
	cells["forward"] = func() { forward(attn.Tensor.GELU) }
	cells["forward by another function"] = func() { forward(attn.Tensor.GELUTanh) }
	cells["geometry"] = func() {
		m := attn.OpenModel(os.Getenv("MODEL"))
		l := m.Layers[len(m.Layers)-1]
		fmt.Println(m.Family, m.Hidden, m.Positions, len(m.Layers), l.Heads, l.KVHeads, l.HeadDim, l.Window, l.Fused, l.Rotary)
		fmt.Println(l.Out.Weight(), l.Norm.RMS(), l.Norm.Eps(), len(l.Options()), m.Tensor(os.Getenv("TENSOR")))
		x := ramp("seq hidden", 5, m.Hidden)
		q, k, v := l.Project(x)
		fmt.Println(q, k, v, q.Download()[:4], k.Download()[:2])
		attn.Require(attn.Prefill(l.Rotate(q), l.Rotate(k), v, l.Options()...).Check())
		attn.Require(attn.Decode(l.Rotate(q.Rows(4, 5), 4), l.Rotate(k), v, l.Options()...).Check())
		attn.Require(l.Attend(x).Check())
	}
}

// forward is a whole model, from tokens to logits, each stage compared with what PyTorch made of the same weights in float64.
func forward(activation func(attn.Tensor) attn.Tensor) {
	dir := os.Getenv("MODEL")
	golden := func(name string) attn.Tensor { return attn.Load(filepath.Join(dir, "golden.npz"), name) }
	m := attn.OpenModel(dir)
	var tokens []int
	for _, id := range golden("ids").Download() {
		tokens = append(tokens, int(id))
	}
	agree := func(x attn.Tensor, name string) {
		want := golden(name)
		if axes := x.AxisNames(); len(axes) == len(want.Shape()) {
			want = want.Axes(strings.Join(axes, " "))
		}
		attn.Require(attn.Compare(x, want))
	}
	x := attn.Embedding(m.Tensor("gpt_neox.embed_in.weight"), tokens)
	agree(x, "embeddings")
	for i, l := range m.Layers {
		at := fmt.Sprintf("gpt_neox.layers.%d.", i)
		w := func(name string) attn.Tensor { return m.Tensor(at + name) }
		q, k, v := l.Project(l.Norm.Of(x))
		agree(q, fmt.Sprintf("q_pre.%d", i))
		q, k = l.Rotate(q), l.Rotate(k)
		agree(q, fmt.Sprintf("q.%d", i))
		agree(k, fmt.Sprintf("k.%d", i))
		agree(attn.Scores(q, k, l.Options()...).Softmax(), fmt.Sprintf("p.%d", i))
		x = attn.Add(x, l.Out.Of(attn.Prefill(q, k, v, l.Options()...).Merge()))
		inner := attn.LayerNorm(x, l.Norm.Eps(), w("post_attention_layernorm.weight"), w("post_attention_layernorm.bias"))
		inner = attn.Linear(inner, w("mlp.dense_h_to_4h.weight"), w("mlp.dense_h_to_4h.bias"))
		inner = activation(inner)
		x = attn.Add(x, attn.Linear(inner, w("mlp.dense_4h_to_h.weight"), w("mlp.dense_4h_to_h.bias")))
		agree(x, fmt.Sprintf("hidden.%d", i))
	}
	x = attn.LayerNorm(x, m.Layers[0].Norm.Eps(), m.Tensor("gpt_neox.final_layer_norm.weight"), m.Tensor("gpt_neox.final_layer_norm.bias"))
	logits := attn.Linear(x, m.Tensor("embed_out.weight")).Named("logits")
	agree(logits, "logits")
	v := attn.Compare(logits, golden("logits"))
	fmt.Printf("%d logits, relative L2 %.2g of %.2g, largest error/bound %.2g\n", v.Cells, v.RelL2, v.LimitL2, v.MaxRatio)
	attn.Require(logits.Check())
}
