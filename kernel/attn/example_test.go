package attn_test

import (
	"fmt"

	"github.com/attnb/attnb/kernel/attn"
)

// An attention layer from fused rows to its context, looked at and checked. The examples of functions and methods are cells behind this
// one: qkv, q, k, v, scores, p and out are what it names. In the place of a picture stand its words, with numbers rounded; of a report
// stands the head.
func Example() {
	qkv := attn.Load("data/neox_layer.npz", "qkv").Named("qkv") // a row a token: seq 9, hidden 192
	q, k, v := qkv.SplitHeads(attn.NeoX(4))
	rope := attn.HalfSplit(8)
	q, k, v = q.RoPE(rope).Named("q"), k.RoPE(rope).Named("k"), v.Named("v")
	s := attn.Scores(q, k, attn.Causal).Named("scores")
	p := s.Softmax().Named("p")
	p.Head(2).Heatmap()
	out := attn.Context(p, v).Named("out")
	attn.Require(out.Check())
	fmt.Println(out)
	// Output:
	// head 2 of p.
	// Heatmap of 9 query x 9 key (probability).
	// From 0.00109 at query 6, key 3 to 1 at query 0, key 0.
	// 36 of 81 cells masked.
	// Check "out": pass
	// "out" [heads 4, seq 9, dim 16]
}
