package main

import "github.com/attnb/attnb/kernel/attn"

func init() {
	cells["map"] = func() {
		q, k, _ := attn.Get("qkv").SplitHeads(attn.NeoX(4))
		attn.Map(q, k, attn.Causal, attn.PoolMean, attn.Log, attn.Size(4))
		attn.Map(q, k, attn.CausalAt(-1), attn.Scale(0.5), attn.OfScores, attn.PoolMin, attn.OnlyHead(3), attn.Queries(2, 8), attn.Keys(0, 3), attn.Title("part"))
		attn.Scores(q, k, attn.Causal).Softmax().Map(attn.PoolSum, attn.Size(3))
		attn.Scores(q, k, attn.Causal).Softmax().Heatmap(attn.Log)
	}
	cells["explore"] = func() {
		q, k, _ := attn.Get("qkv").SplitHeads(attn.NeoX(4))
		q, k = q.RoPE(attn.HalfSplit(8)), k.RoPE(attn.HalfSplit(8))
		p := attn.Scores(q, k, attn.Causal).Softmax()
		attn.Explore(p, attn.Dial("offset", -64, 64), attn.Dial("base", 500, 1e6), attn.Choice("pairing"), attn.Title("turn me"))
		attn.Explore(p)
	}
}
