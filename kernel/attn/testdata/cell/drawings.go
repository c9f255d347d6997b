package main

import (
	"os"

	"github.com/attnb/attnb/kernel/attn"
)

func init() {
	cells["drawings"] = func() {
		q, k, v := attn.Get("qkv").SplitHeads(attn.NeoX(4))
		q, k = q.RoPE(attn.HalfSplit(8)), k.RoPE(attn.HalfSplit(8))
		s := attn.Scores(q, k, attn.Causal)
		p := s.Softmax()
		tokens := attn.Tokens("a", "b", "</script>", "d", "e", "f", "g", "h", "\n")
		p.Heatmap(attn.Statistics, tokens)
		p.Heatmap(attn.Enlarge)
		attn.Layers([]attn.Tensor{p, p.Head(1)}, attn.SinkShare)
		attn.Trace(s, v, 5, attn.OnlyHead(2), tokens)
		steps := []attn.Tensor{attn.Scores(q.Rows(0, 3), k.Rows(0, 3), attn.Causal).Softmax()}
		for i := 3; i < 6; i++ {
			steps = append(steps, attn.Scores(q.Rows(i, i+1), k.Rows(0, i+1)).Softmax())
		}
		attn.Decoding(steps, attn.OnlyHead(1), attn.Title("run"))
		attn.AppendKV(k.Rows(0, 4), k.Rows(4, 5)).Timeline()
		attn.Writes([]attn.Write{{Slots: []int{0, 1}, Positions: []int{0, 1}}, {Slots: []int{3}, Positions: []int{2}}, {Slots: []int{0}, Positions: []int{3}}})
		attn.HalfSplit(8).Phasors(12, attn.Beside(attn.Interleaved(8).Offset(3)))
		attn.Compare(p, attn.Load(os.Getenv("GOLDEN"), "probs").Axes("heads query key"), attn.Differences)
		p.Check(attn.ULP)
	}
}
