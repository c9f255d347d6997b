package resident

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/attnb/attnb/kernel/resident/chain"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference"
)

// Faults that real projects shipped, each asked about as a cell asks: the tensor that it made has to be named for what it is, and the
// right one has to raise nothing.

// shipped is one fault: what is asked of the right tensors, with what in place of them where the fault is.
type shipped struct {
	name     string
	topic    string
	p        wire.Params // the declaration
	settings []wire.Fact
	right    map[string]reference.Heads
	wrong    map[string]reference.Heads // roles whose tensors differ
	kind     string
	words    string // in the sentence; empty: any
}

// normals are seeded values as f32 holds them.
func normals(seed uint64, heads, rows, dim int) reference.Heads {
	r := rand.New(rand.NewPCG(seed, 2))
	out := make(reference.Heads, heads)
	for h := range out {
		out[h] = mat.NewDense(rows, dim, nil)
		out[h].Apply(func(_, _ int, _ float64) float64 { return float64(float32(r.NormFloat64())) }, out[h])
	}
	return out
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// turned rotates x as r says.
func turned(x reference.Heads, r wire.Params) reference.Heads {
	return must(reference.ApplyRoPE(x, chain.ReferenceRoPE(r)))
}

// fusedBy is a row of q, k and v in a layout, by what Split makes of column numbers.
func fusedBy(l reference.Layout, q, k, v reference.Heads) reference.Heads {
	seq, dim := q[0].Dims()
	width := (len(q) + 2*len(k)) * dim
	numbers := mat.NewDense(1, width, nil)
	for i := range width {
		numbers.Set(0, i, float64(i))
	}
	qs, ks, vs, err := reference.Split(numbers, l, len(q), len(k), dim)
	if err != nil {
		panic(err)
	}
	out := mat.NewDense(seq, width, nil)
	for p, part := range []reference.Heads{q, k, v} {
		for h, m := range part {
			for i := range dim {
				at := int([]reference.Heads{qs, ks, vs}[p][h].At(0, i))
				for row := range seq {
					out.Set(row, at, m.At(row, i))
				}
			}
		}
	}
	return reference.Heads{out}
}

// expanded repeats each KV head for its group, or lays all of them one behind another, which is wrong.
func expanded(k reference.Heads, heads int, tiled bool) reference.Heads {
	out := make(reference.Heads, heads)
	for h := range out {
		if out[h] = k[h*len(k)/heads]; tiled {
			out[h] = k[h%len(k)]
		}
	}
	return out
}

// each changes every element.
func each(x reference.Heads, f func(row, col int, v float64) float64) reference.Heads {
	out := make(reference.Heads, len(x))
	for h, m := range x {
		out[h] = mat.DenseCopyOf(m)
		out[h].Apply(f, m)
	}
	return out
}

// flatHeads reads a tensor as one row.
func flatHeads(x reference.Heads) reference.Heads {
	all := chain.Flat(x)
	return reference.Heads{mat.NewDense(1, len(all), all)}
}

func rotationFaults() []shipped {
	half := wire.Params{Rotary: 16}
	at := func(p wire.Params, offset int, positions ...int) wire.Params {
		p.Offset, p.Positions = offset, positions
		return p
	}
	x := normals(1, 12, 6, 16)
	of := func(name string, declared, was wire.Params, kind, words string) shipped {
		return shipped{name, "rope", declared, nil, map[string]reference.Heads{"before": x, "after": turned(x, declared)},
			map[string]reference.Heads{"after": turned(x, was)}, kind, words}
	}
	llama := func(factor float64) wire.Params {
		return wire.Params{Rotary: 16, Base: 5e5, Scaling: &wire.Scaling{Kind: wire.ScalingLlama3, Factor: factor, Low: 1, High: 4, Trained: 8192}}
	}
	inter := wire.Params{Rotary: 16, Interleaved: true}
	swapped := each(x, func(int, int, float64) float64 { return 0 })
	for h := range x {
		t := turned(x, inter)[h]
		for row := range 6 {
			for i := range 8 {
				swapped[h].Set(row, i, t.At(row, 2*i))
				swapped[h].Set(row, i+8, t.At(row, 2*i+1))
			}
		}
	}
	// Frequencies padded with zeros to the head dim: pairs (i, i+8) for i < 4.
	padded := turned(x, wire.Params{Rotary: 16, InvFreq: []float64{1, 1e-1, 1e-2, 1e-3, 0, 0, 0, 0}})
	quarter := wire.Params{Rotary: 8}
	return []shipped{
		of("halves for pairs", inter, half, "pairing", "half-split"),
		of("pairs for halves", half, inter, "pairing", ""),
		{"evens and odds side by side", "rope", inter, nil, map[string]reference.Heads{"before": x, "after": turned(x, inter)}, map[string]reference.Heads{"after": swapped}, "order of the output", ""},
		of("the cached branch begins at 0", at(half, 4), half, "offset", "restarted"),
		of("a table kept without its offset", at(half, 3), half, "offset", ""),
		of("every decoded token at 0", at(half, 40), at(half, 0, 0, 0, 0, 0, 0, 0), "not rotated", "(every row at one position)"),
		of("the prompt counted again", at(half, 6), at(half, 12), "offset", "counted twice"),
		of("the length one too long", at(half, 9), at(half, 10), "offset", "off by one"),
		of("layer 0 counted for the others", at(half, 7), at(half, 8), "offset", "off by one"),
		of("heads for rows", at(half, 40), at(half, 12), "offset", "number of heads"),
		of("left padding not counted", at(half, 0, 0, 0, 0, 0, 1, 2), half, "positions", "ignore the padding"),
		of("positions of another row", at(half, 0, 0, 0, 0, 0, 1, 2), at(half, 0, 0, 0, 1, 2, 3, 4), "positions", ""),
		{"cached rotated, and again", "rope", at(half, 5), nil, map[string]reference.Heads{"before": x, "after": turned(x, at(half, 5))},
			map[string]reference.Heads{"after": turned(turned(x, at(half, 5)), at(half, 5))}, "rotated twice", ""},
		{"dropped from 24 rows on", "rope", half, nil, map[string]reference.Heads{"before": normals(3, 2, 25, 16), "after": turned(normals(3, 2, 25, 16), half)},
			map[string]reference.Heads{"after": normals(3, 2, 25, 16)}, "not rotated", ""},
		{"padded with zeros to the head dim", "rope", quarter, nil, map[string]reference.Heads{"before": x, "after": turned(x, quarter)}, map[string]reference.Heads{"after": padded}, "stride of pairs", "do not pad"},
		of("all dims for a half", quarter, half, "rotary dims", ""),
		of("a quarter ignored", wire.Params{Rotary: 4}, half, "rotary dims", ""),
		of("the head dim for a denominator", quarter, wire.Params{Rotary: 8, InvFreq: []float64{1, math.Pow(1e4, -2./16), math.Pow(1e4, -4./16), math.Pow(1e4, -6./16)}}, "denominator", ""),
		of("another llama3 factor", llama(32), llama(8), "scaling", ""),
		of("position scale 2 by default", half, wire.Params{Rotary: 16, Scaling: &wire.Scaling{Kind: wire.ScalingLinear, Factor: 2}}, "scaling", ""),
		of("dynamic NTK never used", wire.Params{Rotary: 16, Scaling: &wire.Scaling{Kind: wire.ScalingDynamicNTK, Factor: 6, Trained: 2, Length: 6}}, half, "scaling", ""),
		of("f32 angles far out", at(half, 131000), at(wire.Params{Rotary: 16, Float32Angles: true}, 131000), "rounded angles", ""),
	}
}

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
	return []shipped{
		{"one third each for a head's own", "layout", four, nil, parts(neox, k, v), map[string]reference.Heads{"rows": flatRows}, "layout", "GPT2 (all of q, then k, then v), declared NeoX"},
		{"KV groups read flat", "layout", grouped, nil, parts(fusedBy(reference.Grouped, q, gk, gv), gk, gv), map[string]reference.Heads{"rows": fusedBy(reference.GPT2, q, gk, gv)}, "layout", ""},
		{"shards cut from one", "layout", plain, nil, parts(rows, gk, gv), map[string]reference.Heads{"rows": {sharded}}, "layout", "declared GPT2"},
		{"q and k exchanged", "layout", four, nil, parts(neox, k, v), map[string]reference.Heads{"q": k, "k": q}, "order of q, k and v", ""},
		{"KV tiled", "layout", plain, nil, parts(rows, expanded(gk, 4, false), expanded(gv, 4, false)),
			map[string]reference.Heads{"k": expanded(gk, 4, true), "v": expanded(gv, 4, true)}, "tiled KV heads", ""},
		{"KV tiled, by the context", "layout", plain, nil, map[string]reference.Heads{"rows": rows, "context": context(false)}, map[string]reference.Heads{"context": context(true)}, "tiled KV heads", ""},
		{"merged without transposing", "layout", plain, nil, map[string]reference.Heads{"rows": rows, "merged": merged}, map[string]reference.Heads{"merged": untransposed}, "merge", ""},
		{"by rows for by heads", "order", wire.Params{}, []wire.Fact{{Name: "axes", Words: []string{"heads seq dim"}}}, map[string]reference.Heads{"x": cache, "flat": flatHeads(cache)},
			map[string]reference.Heads{"flat": flatHeads(must(reference.Swap(cache)))}, "order of axes", ""},
	}
}

func maskFaults() []shipped {
	weights := func(q, k reference.Heads, v reference.Variant, vis reference.Visible) reference.Heads {
		return must(v.Softmax(must(reference.Scores(q, k, 1/math.Sqrt(8))), vis))
	}
	q, k := normals(11, 2, 8, 8), normals(12, 2, 8, 8)
	few, long := normals(13, 2, 2, 8), normals(14, 2, 7, 8)
	short := normals(15, 2, 3, 8)
	none := reference.Variant{}
	of := func(name string, q, k reference.Heads, p wire.Params, right, wrong reference.Heads, kind, words string) shipped {
		return shipped{name, "mask", p, nil, map[string]reference.Heads{"q": q, "k": k, "p": right}, map[string]reference.Heads{"p": wrong}, kind, words}
	}
	bottom := wire.Params{Mask: wire.MaskCausal}
	steep := each(q, func(_, _ int, v float64) float64 { return 12 * v })
	sink := reference.Heads{mat.NewDense(1, 2, []float64{2, 1})}
	empty := weights(q, short, none, reference.Causal(3-8))
	hold := func(x float64) reference.Heads {
		return each(empty, func(row, col int, v float64) float64 {
			if row < 5 {
				return x
			}
			return v
		})
	}
	window := bottom
	window.Window = 3
	capped := bottom
	capped.Softcap = 50
	sunk := of("a sink dropped", q, k, bottom, weights(q, k, reference.Variant{Sinks: []float64{2, 1}}, reference.Causal(0)), weights(q, k, none, reference.Causal(0)), "sink", "")
	sunk.right["sinks"] = sink
	return []shipped{
		of("top-left for bottom-right", few, long, bottom, weights(few, long, none, reference.Causal(5)), weights(few, long, none, reference.Causal(0)), "alignment of the mask", "top-left"),
		of("a prefill behind a cache without a mask", few, long, bottom, weights(few, long, none, reference.Causal(5)), weights(few, long, none, nil), "no causal mask", ""),
		of("one key too far", q, k, bottom, weights(q, k, none, reference.Causal(0)), weights(q, k, none, reference.Causal(1)), "diagonal", "off by one"),
		of("rows that see nothing are NaN", q, short, bottom, hold(0), hold(math.NaN()), "rows that see nothing", "NaN"),
		of("rows that see nothing are uniform", q, short, bottom, hold(0), hold(1./3), "rows that see nothing", "uniform"),
		of("a window of one more", q, k, window, weights(q, k, none, reference.All(reference.Causal(0), reference.Window(0, 3))),
			weights(q, k, none, reference.All(reference.Causal(0), reference.Window(0, 4))), "window", "off by one"),
		of("a softcap dropped", steep, k, capped, weights(steep, k, reference.Variant{Softcap: 50}, reference.Causal(0)), weights(steep, k, none, reference.Causal(0)), "softcap", ""),
		of("a softcap of 0 for all scores 0", q, k, bottom, weights(q, k, none, reference.Causal(0)), weights(each(q, func(int, int, float64) float64 { return 0 }), k, none, reference.Causal(0)), "scale", ""),
		sunk,
	}
}

func cacheFaults() []shipped {
	rows := normals(21, 2, 12, 8)
	r := wire.Params{Rotary: 8}
	full := turned(rows, r)
	hole := each(full, func(row, _ int, v float64) float64 {
		if row == 9 {
			return 0
		}
		return v
	})
	again := turned(rows, wire.Params{Rotary: 8, Positions: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12}})
	never := each(full, func(_, _ int, v float64) float64 { return v })
	for h := range never {
		never[h].SetRow(7, rows[h].RawRowView(7))
	}
	of := func(name string, wrong reference.Heads, kind string) shipped {
		return shipped{name, "cache", r, nil, map[string]reference.Heads{"rows": rows, "cache": full}, map[string]reference.Heads{"cache": wrong}, kind, ""}
	}
	return []shipped{
		of("slot 9 never written", hole, "hole"),
		of("from slot 9 on one position too far", again, "row at another position"),
		of("a row cached before it was rotated", never, "row never rotated"),
		of("all rotated twice", turned(full, r), "row rotated twice"),
	}
}

func TestShippedFaults(t *testing.T) {
	p := onHost(t)
	for _, all := range [][]shipped{rotationFaults(), layoutFaults(), maskFaults(), cacheFaults()} {
		for _, s := range all {
			t.Run(s.topic+" "+s.name, func(t *testing.T) {
				c := p.dial()
				c.t = t
				defer c.Close()
				ask := func(wrong map[string]reference.Heads) wire.Answer {
					var roles []string
					var xs []wire.Tensor
					for role, x := range s.right {
						if other, ok := wrong[role]; ok {
							x = other
						}
						data, shape := packed(x)
						axes := hsd
						switch {
						case role == "rows" && s.topic == "layout", role == "merged":
							shape, axes = shape[1:], fused
						case role == "p":
							axes = []string{"heads", "query", "key"}
						case role == "flat" || role == "sinks":
							shape, axes = shape[2:], []string{"dim"}
						}
						roles, xs = append(roles, role), append(xs, c.upload(axes, shape, data))
					}
					return c.ask(s.topic, s.p, s.settings, roles, xs...)
				}
				if a := ask(nil); !a.Finding.Pass || len(a.Finding.Faults) != 0 || !strings.Contains(a.Text, ": pass: ") {
					t.Errorf("right: %s", a.Text)
				}
				a := ask(s.wrong)
				named := false
				for _, f := range a.Finding.Faults {
					named = named || f.Kind == s.kind
				}
				if a.Finding.Pass || !named || !strings.Contains(a.Finding.Sentence, s.words) || !strings.Contains(a.Text, ": FAIL: ") {
					t.Errorf("want %q with %q: %s", s.kind, s.words, a.Text)
				}
			})
		}
	}
}

// packed are values in the order of an upload.
func packed(x reference.Heads) (data []float32, shape []int) {
	rows, dim := x[0].Dims()
	for _, m := range x {
		for i := range rows {
			for _, v := range mat.Row(nil, i, m) {
				data = append(data, float32(v))
			}
		}
	}
	return data, []int{len(x), rows, dim}
}
