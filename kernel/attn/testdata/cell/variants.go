package main

import (
	"fmt"

	"github.com/attnb/attnb/kernel/attn"
)

func init() {
	cells["variants"] = variants
}

func variants() {
	s := attn.FromSlice([]float32{1, 2, 3}, "query key", 1, 3)
	two := attn.FromSlice([]float32{2, 1, 0}, "query key", 1, 3).Softmax(attn.Softcap(1e6), attn.Allowed(attn.FromSlice([]float32{1, 1, 0}, "query key", 1, 3)),
		attn.Bias(attn.FromSlice([]float32{0.411, 0, 0}, "query key", 1, 3)))
	fmt.Printf("%.3g %.3g %.3g\n", two.Download()[0], two.Download()[1], two.Download()[2])
	fmt.Printf("%.3g\n", s.Softmax(attn.Sinks(attn.FromSlice([]float32{2}, "heads", 1))).Download())

	rope := attn.HalfSplit(4).Base(5e5).YaRN(4, 4096).Ramp(16, 2).Untruncated()
	q, k, v := heads(4, 5, 4).RoPE(rope.Offset(-4)), heads(2, 9, 4).RoPE(rope.Offset(-8)), heads(2, 9, 4)
	linear, ntk, llama3 := attn.HalfSplit(4).Linear(2), attn.HalfSplit(4).DynamicNTK(2, 4, 9), attn.HalfSplit(4).Llama3(8, 1, 4, 8192)
	fmt.Println("all scaled:", q.RoPE(linear).Check().Pass, q.RoPE(ntk).Check().Pass, q.RoPE(llama3).Check().Pass)
	sinks := attn.Sinks(ramp("heads", 4))
	numbers := []attn.Option{attn.Causal, attn.Window(3), attn.KeyPadding(5, 0), attn.Documents(4, 5), attn.Softcap(2), attn.ALiBi()}
	whole := attn.Prefill(q, k, v, append(numbers, sinks)...)
	attn.Require(whole.Check())
	attn.Require(attn.Compare(attn.Context(attn.Scores(q, k, numbers...).Softmax(sinks), v), whole))
	attn.Require(attn.Compare(attn.Decode(q.Rows(4, 5), k, v, append(numbers[1:], sinks)...), whole.Rows(4, 5)))
	fmt.Printf("%d rows see nothing, without a mask %d\n", whole.EmptyRows(), attn.Prefill(q, k, v, attn.Unmasked).EmptyRows())
}
