// Command cell stands for the programs that a notebook's cells become. Its argument picks one.
package main

import (
	"fmt"
	"os"

	"github.com/attnb/attnb/kernel/attn"
)

func main() {
	cell, ok := cells[os.Args[1]]
	if !ok {
		cell = failures[os.Args[1]]
	}
	cell()
}

var cells = map[string]func(){
	"load": func() {
		qkv := attn.Load(os.Getenv("GOLDEN"), "qkv").Named("qkv")
		fmt.Println("loaded", qkv)
	},
	"layer": func() {
		qkv := attn.Get("qkv")
		q, k, v := qkv.SplitHeads(attn.NeoX(4))
		q, k = q.RoPE(attn.HalfSplit(8)), k.RoPE(attn.HalfSplit(8))
		s := attn.Scores(q, k, attn.Causal)
		fmt.Println("before")
		s.Head(2).Heatmap()
		fmt.Println("between")
		s.Softmax().Heatmap()
		fmt.Println("after")
		attn.Require(attn.Prefill(q, k, v).Named("out").Check())
	},
	"compare": func() {
		q, k, v := attn.Get("qkv").SplitHeads(attn.NeoX(4))
		framework := attn.HalfSplit(8).Float32Angles()
		q, k = q.RoPE(framework), k.RoPE(framework)
		golden := func(name string) attn.Tensor { return attn.Load(os.Getenv("GOLDEN"), name).Named(name) }
		attn.Require(attn.Compare(q, golden("q"), attn.Within(1e-7)))
		attn.Require(attn.Compare(attn.Scores(q, k, attn.Causal).Softmax(), golden("probs"), attn.Within(1e-7)))
		attn.Require(attn.Compare(attn.Prefill(q, k, v), golden("ctx").Axes("seq heads dim"), attn.Within(1e-7)))
		fmt.Println("must fail")
		attn.Require(attn.Compare(q.Rows(0, 3), golden("q_decode")))
	},
	"panic": func() {
		attn.Get("qkv").RoPE(attn.HalfSplit(4)).Named("turned")
		panic("on purpose")
	},
	"once": func() {
		x := attn.Once("noise", func() attn.Tensor {
			fmt.Println("computing")
			return attn.FromSlice([]float64{1, 2, 3}, "dim", 3)
		})
		fmt.Println(x, x.Download())
	},
	"goroutine": func() {
		done := make(chan bool)
		go func() { attn.Get("nothing"); done <- true }()
		<-done
	},
	"ops": ops,
}

// ops calls every function once and prints shapes and some values.
func ops() {
	x := attn.FromSlice([]float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, "seq hidden", 2, 6)
	fmt.Println(x.Heads(3), x.Heads(3).Merge().Download())
	fmt.Println(x.Swap(), x.Swap().Download())
	fmt.Println(x.Rows(1, 2), x.Rows(1, 2).Download())
	q, k, v := attn.FromSlice(make([]float32, 2*16), "seq hidden", 2, 16).SplitHeads(attn.Grouped(4, 2))
	fmt.Println(q, k, v)
	q, k, v = attn.FromSlice(make([]float32, 2*16), "seq hidden", 2, 16).SplitHeads(attn.GPT2(4).KV(2))
	fmt.Println(q, k, v)
	one := attn.FromSlice([]float32{1, 2, 3, 4}, "seq dim", 1, 4)
	fmt.Println(one.RoPE(attn.Interleaved(4).Offset(1)).Download())
	fmt.Println(one.RoPE(attn.HalfSplit(4).Positions(1).Base(1e4).Magnitude(2)).Download())
	fmt.Println(one.RoPE(attn.HalfSplit(4).Offset(1).InvFreq(1, 0.01).Float32Angles()).Download())
	s := attn.Scores(q, k, attn.CausalAt(0), attn.Scale(2))
	p := s.Softmax(attn.Unmasked)
	fmt.Println(s, p.Head(0).Download(), s.Softmax().Head(0).Download(), s.Softmax(attn.CausalAt(-1)).EmptyRows())
	fmt.Println(attn.Context(s.Softmax(), v), attn.Prefill(q, k, v, attn.Unmasked))
	cache := attn.AppendKV(k, k.Rows(0, 1))
	fmt.Println(cache, attn.Decode(q.Rows(1, 2), cache, attn.AppendKV(v, v.Rows(1, 2))))
	w := attn.FromSlice([]float32{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, "out in", 2, 6)
	fmt.Println(attn.Linear(x, w).Download(), attn.Linear(x, w, attn.FromSlice([]float32{10, 20}, "out", 2)).Download())
	fmt.Println(attn.Add(x, x).Download())
	b := attn.FromSlice(make([]float32, 24), "batch heads seq dim", 2, 3, 2, 2)
	fmt.Println(b.Batch(1), b.Batch(1).Head(2), b.Axes("a b c d"))
	fmt.Println(attn.FromSlice([]float32{1, 2, 3, 4}, "seq heads dim", 1, 2, 2).Head(1).Download())
	x.Named("x")
	attn.Forget("x")
	x.Free()
	attn.Show("text/plain", []byte("shown"))
	fmt.Println(len(attn.Tensors()) > 20)
}

// failures each end the cell at the line that the test names.
var failures = map[string]func(){}

func fails(name string, cell func()) bool {
	failures[name] = cell
	return true
}

func ramp(axes string, shape ...int) attn.Tensor {
	n := 1
	for _, s := range shape {
		n *= s
	}
	data := make([]float32, n)
	for i := range data {
		data[i] = float32(i%7) / 7
	}
	return attn.FromSlice(data, axes, shape...)
}

func heads(h, s, d int) attn.Tensor { return ramp("heads seq dim", h, s, d) }
