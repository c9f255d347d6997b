package resident

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/attnb/attnb/kernel/resident/chain"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference"
)

func layoutFaults() []shipped {
	q, k, v := normals(5, 4, 7, 6), normals(6, 4, 7, 6), normals(7, 4, 7, 6)
	gk, gv := normals(8, 2, 7, 6), normals(9, 2, 7, 6)
	four := wire.Params{Layout: wire.LayoutNeoX, Heads: 4}
	grouped := wire.Params{Layout: wire.LayoutGrouped, Heads: 4, KVHeads: 2}
	parts := func(rows, k, v reference.Heads) map[string]reference.Heads {
		return map[string]reference.Heads{"rows": rows, "q": q, "k": k, "v": v}
	}
	neox, flatRows := fusedBy(reference.NeoX, q, k, v), fusedBy(reference.GPT2, q, k, v)
	plain := wire.Params{Layout: wire.LayoutGPT2, Heads: 4, KVHeads: 2}
	rows := fusedBy(reference.GPT2, q, gk, gv)
	scale := 1 / math.Sqrt(6)
	context := func(tiled bool) reference.Heads {
		return must(reference.Attention(q, expanded(gk, 4, tiled), expanded(gv, 4, tiled), scale, reference.Causal(0)))
	}
	merged := reference.Heads{must(reference.Merge(context(false)))}
	untransposed := reference.Heads{mat.NewDense(7, 24, chain.Flat(context(false)))}
	// Two shards, each [q k v] of its heads, read as one: with two KV heads that is the grouped layout.
	sharded := mat.NewDense(7, 24+24, nil)
	for shard := range 2 {
		for p, part := range []reference.Heads{q[2*shard : 2*shard+2], gk[shard : shard+1], gv[shard : shard+1]} {
			for h, m := range part {
				for i := range 6 {
					for row := range 7 {
						sharded.Set(row, shard*24+[3]int{0, 12, 18}[p]+h*6+i, m.At(row, i))
					}
				}
			}
		}
	}
	cache := normals(10, 2, 5, 4)
	// Weights converted for the other pairing: the halves of each q and k head interleaved.
	converted := func(x reference.Heads) reference.Heads {
		return each(x, func(row, col int, _ float64) float64 { return 0 })
	}
	permutedQ, permutedK := converted(q), converted(k)
	for h := range q {
		for row := range 7 {
			for i := range 6 {
				permutedQ[h].Set(row, i%3*2+i/3, q[h].At(row, i))
				permutedK[h].Set(row, i%3*2+i/3, k[h].At(row, i))
			}
		}
	}
	counted := func(n int) reference.Heads {
		m := mat.NewDense(1, n, nil)
		for i := range n {
			m.Set(0, i, float64(i))
		}
		return reference.Heads{m}
	}
	heads := func(dim int, values ...float64) (out reference.Heads) {
		for ; len(values) > 0; values = values[dim:] {
			out = append(out, mat.NewDense(1, dim, values[:dim:dim]))
		}
		return out
	}
	// a to h of two heads, merged as printed: head 0 is [[0 1] [2 3]], head 1 [[4 5] [6 7]]. Identical scores make the context the mean.
	pair := reference.Heads{mat.NewDense(2, 2, []float64{0, 1, 2, 3}), mat.NewDense(2, 2, []float64{4, 5, 6, 7})}
	order := []wire.Fact{{Name: "axes", Words: []string{"seq heads dim"}}}
	value := normals(32, 2, 5, 4)
	return []shipped{
		{"R5", "q and k of weights that were permuted for the other pairing", "layout", four, nil, map[string]reference.Heads{"rows": neox, "q": q, "k": k},
			map[string]reference.Heads{"q": permutedQ, "k": permutedK}, "elements within a head", "half-split RoPE", nil},
		{"Q1", "as printed, one third each", "layout", wire.Params{Layout: wire.LayoutNeoX, Heads: 2}, nil, map[string]reference.Heads{"rows": counted(12), "k": heads(2, 2, 3, 8, 9)},
			map[string]reference.Heads{"k": heads(2, 4, 5, 6, 7)}, "layout", "GPT2 (all of q, then k, then v), declared NeoX", nil},
		{"Q2", "as printed, flat", "layout", wire.Params{Layout: wire.LayoutGrouped, Heads: 4, KVHeads: 2}, nil,
			map[string]reference.Heads{"rows": counted(8), "q": heads(1, 0, 1, 4, 5), "k": heads(1, 2, 6), "v": heads(1, 3, 7)},
			map[string]reference.Heads{"q": heads(1, 0, 1, 2, 3), "k": heads(1, 4, 5), "v": heads(1, 6, 7)}, "layout", "declared Grouped", nil},
		{"Q4", "no longer interleaved by group", "layout", grouped, nil, parts(fusedBy(reference.Grouped, q, gk, gv), gk, gv), map[string]reference.Heads{"rows": rows}, "layout", "GPT2", nil},
		{"G1", "as printed, tiled", "layout", wire.Params{Layout: wire.LayoutGPT2, Heads: 4, KVHeads: 2}, nil,
			map[string]reference.Heads{"rows": counted(8), "k": heads(1, 4, 4, 5, 5)}, map[string]reference.Heads{"k": heads(1, 4, 5, 4, 5)}, "tiled KV heads", "repeat, not tile", nil},
		{"M1", "as printed, read on without transposing", "order", wire.Params{}, order, map[string]reference.Heads{"x": pair, "flat": flatHeads(must(reference.Swap(pair)))},
			map[string]reference.Heads{"flat": flatHeads(pair)}, "order of axes", "it is heads seq dim", nil},
		{"K1", "values by rows though keys are by heads", "order", wire.Params{}, []wire.Fact{{Name: "axes", Words: []string{"heads seq dim"}}},
			map[string]reference.Heads{"x": value, "flat": flatHeads(value)}, map[string]reference.Heads{"flat": flatHeads(must(reference.Swap(value)))}, "order of axes", "seq heads dim", nil},
		{"Q1", "one third each for a head's own", "layout", four, nil, parts(neox, k, v), map[string]reference.Heads{"rows": flatRows}, "layout", "GPT2 (all of q, then k, then v), declared NeoX", nil},
		{"Q2", "KV groups read flat", "layout", grouped, nil, parts(fusedBy(reference.Grouped, q, gk, gv), gk, gv), map[string]reference.Heads{"rows": fusedBy(reference.GPT2, q, gk, gv)}, "layout", "", nil},
		{"Q5", "shards cut from one", "layout", plain, nil, parts(rows, gk, gv), map[string]reference.Heads{"rows": {sharded}}, "layout", "declared GPT2", nil},
		{"Q4", "q and k exchanged", "layout", four, nil, parts(neox, k, v), map[string]reference.Heads{"q": k, "k": q}, "order of q, k and v", "", nil},
		{"G1", "KV tiled", "layout", plain, nil, parts(rows, expanded(gk, 4, false), expanded(gv, 4, false)),
			map[string]reference.Heads{"k": expanded(gk, 4, true), "v": expanded(gv, 4, true)}, "tiled KV heads", "", nil},
		{"G1", "KV tiled, by the context", "layout", plain, nil, map[string]reference.Heads{"rows": rows, "context": context(false)}, map[string]reference.Heads{"context": context(true)}, "tiled KV heads", "", nil},
		{"M1", "merged without transposing", "layout", plain, nil, map[string]reference.Heads{"rows": rows, "merged": merged}, map[string]reference.Heads{"merged": untransposed}, "merge", "", nil},
		{"K1", "by rows for by heads", "order", wire.Params{}, []wire.Fact{{Name: "axes", Words: []string{"heads seq dim"}}}, map[string]reference.Heads{"x": cache, "flat": flatHeads(cache)},
			map[string]reference.Heads{"flat": flatHeads(must(reference.Swap(cache)))}, "order of axes", "", nil},
	}
}
