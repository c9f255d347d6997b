package main

import "github.com/attnb/attnb/kernel/attn"

func init() {
	cells["explore"] = func() {
		q, k, _ := attn.Get("qkv").SplitHeads(attn.NeoX(4))
		q, k = q.RoPE(attn.HalfSplit(8)), k.RoPE(attn.HalfSplit(8))
		p := attn.Scores(q, k, attn.Causal).Softmax()
		attn.Explore(p, attn.Dial("offset", -64, 64), attn.Dial("base", 500, 1e6), attn.Choice("pairing"), attn.Title("turn me"))
		attn.Explore(p)
	}
}
