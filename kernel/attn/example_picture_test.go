package attn_test

import (
	"fmt"
	"math"

	"github.com/attnb/attnb/kernel/attn"
)

// All heads, a panel each, and in numbers how spread the attention of each is, how far back it looks, and how much is on the first token.
// Then one head.
func ExampleTensor_Heatmap() {
	p := attn.Get("p")
	p.Heatmap(attn.Statistics)
	p.Head(2).Heatmap(attn.Enlarge, attn.Log) // a click enlarges it; a logarithmic scale tells small weights apart
	// Output:
	// p.
	// 4 heatmaps on one scale, each of 9 query x 9 key (probability).
	// From 3.31e-05 at head 0, query 6, key 2 to 1 at head 0, query 0, key 0.
	// 144 of 324 cells masked.
	// head 0: entropy 1.06 bits, distance 2.18 keys, sink 40.6%.
	// head 2 of p.
	// Heatmap of 9 query x 9 key (probability).
	// From 0.00109 at query 6, key 3 to 1 at query 0, key 0.
	// 36 of 81 cells masked.
}

// A chart that tells each value under the pointer.
func ExampleTensor_Interactive() {
	attn.Get("scores").Head(2).Interactive()
	// Output:
	// head 2 of scores, causal.
	// Heatmap of 9 query x 9 key (score).
	// From -3.97 at query 5, key 4 to 3.7 at query 6, key 6.
	// 36 of 81 cells masked.
}

// Attention over a text too long for its matrix: each cell stands for many, the largest of them, or their mean.
func ExampleMap() {
	wave := make([]float64, 4000*4)
	for i := range wave {
		wave[i] = math.Sin(float64(i))
	}
	x := attn.FromSlice(wave, "heads seq dim", 1, 4000, 4)
	attn.Map(x, x, attn.Causal)
	attn.Map(x, x, attn.Causal, attn.PoolMean, attn.Log)
	// Output:
	// probabilities, causal.
	// Heatmap of 512 query x 512 key (probability).
	// Query 0–3999, key 0–3999; pooled: each cell is the largest of up to 8 × up to 8.
	// From 0.000559 at query 3992–3999, key 1203–1209 to 1 at query 0–6, key 0–6.
	// 130816 of 262144 cells masked.
	// probabilities, causal.
	// Heatmap of 512 query x 512 key (probability).
	// Query 0–3999, key 0–3999; pooled: each cell is the mean of up to 8 × up to 8.
	// From 0.000247 at query 3992–3999, key 3000–3006 to 0.25 at query 0–6, key 0–6.
	// 130816 of 262144 cells masked.
}

// A matrix that is there, pooled to 3 x 3 cells: the weight that falls into each, or the least and the largest of it.
func ExampleTensor_Map() {
	p := attn.Get("p").Head(2)
	p.Map(attn.Size(3), attn.PoolSum)
	p.Map(attn.Size(3), attn.PoolMin)
	p.Map(attn.Size(3), attn.PoolMax)
	// Output:
	// head 2 of p.
	// Heatmap of 3 query x 3 key (probability).
	// Query 0–8, key 0–8; pooled: each cell is the sum of 3 × 3.
	// From 0.509 at query 3–5, key 3–5 to 3 at query 0–2, key 0–2.
	// 3 of 9 cells masked.
	// head 2 of p.
	// Heatmap of 3 query x 3 key (probability).
	// Query 0–8, key 0–8; pooled: each cell is the smallest of 3 × 3.
	// From 0.00109 at query 6–8, key 3–5 to 0.0896 at query 0–2, key 0–2.
	// 3 of 9 cells masked.
	// head 2 of p.
	// Heatmap of 3 query x 3 key (probability).
	// Query 0–8, key 0–8; pooled: each cell is the largest of 3 × 3.
	// From 0.206 at query 3–5, key 3–5 to 1 at query 0–2, key 0–2.
	// 3 of 9 cells masked.
}

// One head of many, so that its picture has all the room.
func ExampleOnlyHead() {
	attn.Map(attn.Get("q"), attn.Get("k"), attn.Causal, attn.OnlyHead(3))
	// Output:
	// probabilities, causal, head 3.
	// Heatmap of 9 query x 9 key (probability).
	// From 0.000706 at query 4, key 1 to 1 at query 0, key 0.
	// 36 of 81 cells masked.
}

// What the last three queries see.
func ExampleQueries() {
	attn.Map(attn.Get("q"), attn.Get("k"), attn.Causal, attn.OnlyHead(3), attn.Queries(6, 9))
	// Output:
	// probabilities, causal, head 3.
	// Heatmap of 3 query x 9 key (probability).
	// Query 6–8, key 0–8.
	// From 0.000882 at query 8, key 1 to 0.576 at query 8, key 4.
	// 3 of 27 cells masked.
}

// Who looks at the first two tokens: before the softmax, where they compete with nothing.
func ExampleKeys() {
	attn.Map(attn.Get("q"), attn.Get("k"), attn.Causal, attn.OnlyHead(3), attn.Keys(0, 2), attn.OfScores)
	// Output:
	// scores, causal, head 3.
	// Heatmap of 9 query x 2 key (score).
	// From -5.21 at query 4, key 1 to 3.33 at query 2, key 1.
	// 1 of 18 cells masked.
}

// A coarse map, for a small place on a page.
func ExampleSize() {
	attn.Map(attn.Get("q"), attn.Get("k"), attn.Causal, attn.OnlyHead(3), attn.Size(2))
	// Output:
	// probabilities, causal, head 3.
	// Heatmap of 2 query x 2 key (probability).
	// Query 0–8, key 0–8; pooled: each cell is the largest of up to 5 × up to 5.
	// From 0.576 at query 4–8, key 4–8 to 1 at query 0–3, key 0–3.
	// 1 of 4 cells masked.
}

// A heading that says what to look for.
func ExampleTitle() {
	attn.Get("p").Head(0).Heatmap(attn.Title("head 0 looks at the third token"))
	// Output:
	// head 0 looks at the third token.
	// Heatmap of 9 query x 9 key (probability).
	// From 3.31e-05 at query 6, key 2 to 1 at query 0, key 0.
	// 36 of 81 cells masked.
}

// Words instead of numbers, along the axes that stand for tokens.
func ExampleTokens() {
	x := attn.FromSlice([]float32{1, 0, 0, 1, 1, 1}, "seq dim", 3, 2)
	attn.Scores(x, x).Heatmap(attn.Tokens("the", "cat", "sat"))
	// Output:
	// scores.
	// Heatmap of 3 query x 3 key (score).
	// From 0 at query 0 “the”, key 1 “cat” to 1.41 at query 2 “sat”, key 2 “sat”.
}

// All heads of a model at a glance: how spread their attention is, how far back they look, and which rest on the first token.
func ExampleLayers() {
	p := attn.Get("p")
	layers := []attn.Tensor{p, attn.Get("scores").Softmax(attn.Window(3))}
	attn.Layers(layers, attn.Entropy)
	attn.Layers(layers, attn.Distance)
	attn.Layers(layers, attn.SinkShare)
	// Output:
	// Mean entropy of each head.
	// Heatmap of 2 layer x 4 head (entropy (bits)).
	// From 0.466 at layer 1, head 1 to 1.25 at layer 0, head 2.
	// Mean distance attended of each head.
	// Heatmap of 2 layer x 4 head (distance (keys)).
	// From 0.57 at layer 1, head 0 to 2.39 at layer 0, head 1.
	// Mean share of key 0 of each head.
	// Heatmap of 2 layer x 4 head (weight on key 0).
	// From 0.139 at layer 1, head 3 to 0.406 at layer 0, head 0.
}

// What becomes of the scores of query 8 in head 3, key by key, up to its context.
func ExampleTrace() {
	attn.Trace(attn.Get("scores"), attn.Get("v"), 8, attn.OnlyHead(3))
	// Output:
	// head 3, query 8.
	// 5 charts over 9 key.
	// scores (score): from -3.23 at key 1 to 3.25 at key 4.
	// scale · q·k.
	// masked (score): from -3.23 at key 1 to 3.25 at key 4.
}

// A prompt of six tokens and three steps behind it, as one growing picture.
func ExampleDecoding() {
	q, k := attn.Get("q"), attn.Get("k")
	cache := k.Rows(0, 6)
	steps := []attn.Tensor{attn.Scores(q.Rows(0, 6), cache, attn.Causal).Softmax()}
	for i := 6; i < 9; i++ {
		cache = attn.AppendKV(cache, k.Rows(i, i+1))
		steps = append(steps, attn.Scores(q.Rows(i, i+1), cache).Softmax())
	}
	attn.Decoding(steps, attn.OnlyHead(0), attn.Title("a run"))
	// Output:
	// a run.
	// Heatmap of 9 query x 9 key (probability).
	// From 3.31e-05 at query 6, key 2 to 1 at query 0, key 0.
	// 15 of 81 cells masked.
	// 21 cells not there.
}

// A cache that was filled, trimmed, and filled again: which call wrote each slot.
func ExampleTensor_Timeline() {
	k := attn.Get("k")
	cache := attn.AppendKV(k.Rows(0, 4), k.Rows(4, 7))
	cache = attn.AppendKV(cache.Rows(0, 5), k.Rows(5, 6))
	cache.Timeline(attn.Title("after a step back"))
	// Output:
	// after a step back.
	// Heatmap of 7 slot x 4 step (position).
	// From 0 at slot 0, step 0 to 6 at slot 6, step 1.
	// 6 cells not there.
	// A number stands where a slot is written.
}

// The cache of another program, which goes round after four slots.
func ExampleWrites() {
	var steps []attn.Write
	for position := range 10 {
		steps = append(steps, attn.Write{Slots: []int{position % 4}, Positions: []int{position}})
	}
	attn.Writes(steps, attn.Title("ring of 4"))
	// Output:
	// ring of 4.
	// Heatmap of 4 slot x 10 step (position).
	// From 0 at slot 0, step 0 to 9 at slot 1, step 9.
	// 6 cells not there.
	// overwritten in 6 cells, first at slot 0, step 4.
}

// A picture with a control for all that turns anything in the chain of calls behind it.
func ExampleExplore() {
	attn.Explore(attn.Get("p"))
	// Output:
	// p.
	// 4 heatmaps on one scale, each of 9 query x 9 key (probability).
	// From 3.31e-05 at head 0, query 6, key 2 to 1 at head 0, query 0, key 0.
	// 144 of 324 cells masked.
	// [query offset: -64 to 64]
	// [query shift: -6.71e+07 to 6.71e+07]
	// [rotary: 2 to 16]
	// [base: 100 to 1e+07]
	// [scaling: none, linear, dynamic NTK, llama3, YaRN]
	// [pairing: half-split, interleaved]
	// [layout: GPT2, NeoX, Grouped]
	// [scale: 0.0156 to 4]
	// [mask: none, causal]
	// [diagonal: -64 to 64]
	// [head: all, head 0, head 1, head 2, head 3]
}

// A slider for the position of the first query, and nothing else: at which distance is it right?
func ExampleDial() {
	attn.Explore(attn.Get("p"), attn.Dial("query offset", -8, 8), attn.Dial("base", 500.0, 1e6))
	// Output:
	// p.
	// 4 heatmaps on one scale, each of 9 query x 9 key (probability).
	// From 3.31e-05 at head 0, query 6, key 2 to 1 at head 0, query 0, key 0.
	// 144 of 324 cells masked.
	// [query offset: -8 to 8]
	// [base: 500 to 1e+06]
}

// The two ways to pair dims, one click apart.
func ExampleChoice() {
	attn.Explore(attn.Get("q"), attn.Choice("pairing"))
	// Output:
	// q [heads 4, seq 9, dim 16].
	// 4 heatmaps on one scale, each of 9 seq x 16 dim (value).
	// From -3.67 at head 0, seq 8, dim 13 to 4.42 at head 3, seq 0, dim 13.
	// [pairing: half-split, interleaved]
}

// Values of a framework that mine should be: turn until the second picture is white.
func ExampleExpected() {
	_, k, _ := attn.Get("qkv").SplitHeads(attn.NeoX(4))
	theirs := attn.Load("data/neox_layer.npz", "k")
	attn.Explore(k.RoPE(attn.Interleaved(8)), attn.Expected(theirs))
	// Output:
	// rotated k of qkv [heads 4, seq 9, dim 16].
	// 4 heatmaps on one scale, each of 9 seq x 16 dim (value).
	// From -4.43 at head 1, seq 5, dim 7 to 4.87 at head 2, seq 6, dim 1.
	// error against neox_layer.npz: k: relative L2 error 0.53, they differ.
	// 4 heatmaps on one scale, each of 9 seq x 16 dim (|error| / (1e-4 of the largest)).
	// [offset: -64 to 64]
	// [shift: -6.71e+07 to 6.71e+07]
	// [rotary: 2 to 16]
	// [base: 100 to 1e+07]
	// [scaling: none, linear, dynamic NTK, llama3, YaRN]
	// [pairing: half-split, interleaved]
	// [layout: GPT2, NeoX, Grouped]
	// [head: all, head 0, head 1, head 2, head 3]
}

// Anything that a page can show: what another package drew, or text that the notebook formats.
func ExampleShow() {
	attn.Show("text/plain", []byte("a table of one's own"))
	// Output:
	// a table of one's own
}

// A number that the cell hears about while it runs. Here somebody drags the slider to its end and closes it.
func ExampleSlider() {
	q, k := attn.Get("q"), attn.Get("k")
	for window := range attn.Slider("window", 1, 9, 3).Values() {
		p := attn.Scores(q, k, attn.Causal, attn.Window(window)).Softmax()
		fmt.Printf("window %d: head 2 gives its own token %.2f\n", window, p.Head(2).Rows(8, 9).Download()[8])
	}
	// Output:
	// window: a control that its cell hears while it runs
	// window 3: head 2 gives its own token 0.21
	// window 9: head 2 gives its own token 0.05
}

// A choice by name, which the cell hears about while it runs.
func ExampleMenu() {
	layouts := map[string]attn.Layout{"GPT-2": attn.GPT2(4), "GPT-NeoX": attn.NeoX(4)}
	for name := range attn.Menu("layout", "GPT-2", "GPT-NeoX").Values() {
		q, _, _ := attn.Get("qkv").SplitHeads(layouts[name])
		fmt.Printf("%s: %.3f\n", name, q.Head(1).Download()[0])
	}
	// Output:
	// layout: a control that its cell hears while it runs
	// GPT-2: 1.709
	// GPT-NeoX: -0.456
}

// The loop ends when the cell has what it wanted, and cells after it run.
func ExampleInput_Values() {
	for threshold := range attn.Slider("threshold", 0, 100, 50).Values() {
		fmt.Println("above", threshold, "percent")
		if threshold == 100 {
			break
		}
	}
	// Output:
	// threshold: a control that its cell hears while it runs
	// above 50 percent
	// above 100 percent
}
