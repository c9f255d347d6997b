package main

import (
	"fmt"
	"math"
	"os"

	"github.com/attnb/attnb/kernel/attn"
)

// expect stops a cell whose finding is not the one that its name says: silent without kinds, else with a fault of each.
func expect(what string, d attn.Diagnosis, kinds ...string) {
	ok := d.Passed() == (len(kinds) == 0) && d.Pass == (len(d.Faults) == 0) && d.Report != "" && d.Sentence != ""
	for _, k := range kinds {
		ok = ok && d.Has(k)
	}
	if !ok {
		panic(fmt.Sprintf("%s: want %q: %v", what, kinds, d))
	}
}

func expectThat(what string, ok bool, found any) {
	if !ok {
		panic(fmt.Sprintf("%s: %+v", what, found))
	}
}

// naive is an attention of the user's own, computed in this process: causal over a window, where that is not 0.
func naive(window int) attn.Attention {
	return func(q, k, v attn.Tensor) attn.Tensor {
		heads, rows, dim := q.Shape()[0], q.Shape()[1], q.Shape()[2]
		kv, keys := k.Shape()[0], k.Shape()[1]
		qs, ks, vs := q.Download(), k.Download(), v.Download()
		out := make([]float32, len(qs))
		for h := range heads {
			g := h / (heads / kv)
			for row := range rows {
				last := keys - rows + row
				weights, sum, most := make([]float64, keys), 0.0, math.Inf(-1)
				for pass := range 2 {
					for key := range keys {
						if key > last || window > 0 && key <= last-window {
							continue
						}
						s := 0.0
						for i := range dim {
							s += float64(qs[(h*rows+row)*dim+i]) * float64(ks[(g*keys+key)*dim+i])
						}
						if s /= math.Sqrt(float64(dim)); pass == 0 {
							most = math.Max(most, s)
						} else {
							weights[key] = math.Exp(s - most)
							sum += weights[key]
						}
					}
				}
				for i := range dim {
					x := 0.0
					for key, w := range weights {
						if w != 0 { // so that a hidden NaN stays hidden
							x += w / sum * float64(vs[(g*keys+key)*dim+i])
						}
					}
					out[(h*rows+row)*dim+i] = float32(x)
				}
			}
		}
		return attn.FromSlice(out, "heads seq dim", heads, rows, dim)
	}
}

func init() {
	cells["find"] = func() {
		golden := func(name string) attn.Tensor { return attn.Load(os.Getenv("GOLDEN"), name).Named(name) }
		qkv := golden("qkv")
		q, k, v := qkv.SplitHeads(attn.NeoX(4))
		layout := attn.FindLayout(qkv, attn.NeoX(4), attn.Known{Q: q, K: k})
		expect("layout", layout.Diagnosis)
		expectThat("layout", len(layout.Fits) == 1 && layout.Residual <= layout.Floor && layout.Margin > 1e3, layout)
		expect("another layout", attn.FindLayout(qkv, attn.GPT2(4), attn.Known{Q: q, V: v}).Diagnosis, "layout")
		expect("order", attn.FindOrder(q, q.Merge(), "seq heads dim").Diagnosis)
		expect("another order", attn.FindOrder(q, q, "seq heads dim").Diagnosis, "order of axes")

		r := attn.HalfSplit(8)
		theirs := golden("q") // f32 angles, small positions
		rope := attn.FindRoPE(q, theirs, r)
		expect("rope", rope.Diagnosis)
		expectThat("rope", rope.Rotary == 8 && rope.Positions[3] == 3 && rope.Magnitude == 1 && len(rope.Frequencies) == 4 && rope.Pairing == "half-split, pairs (i, i+r/2)", rope)
		expect("another pairing", attn.FindRoPE(q, theirs, attn.Interleaved(8)).Diagnosis, "pairing")
		expect("one too far", attn.FindRoPE(q, theirs, r.Offset(1)).Diagnosis, "offset")
		expect("scaled", attn.FindRoPE(q, q.RoPE(r.Linear(2.5)), r.Linear(2.5)).Diagnosis)
		expect("not scaled", attn.FindRoPE(q, q.RoPE(r), r.Linear(2.5)).Diagnosis, "scaling")
		expect("norms", attn.NormsKept(q, theirs, r).Diagnosis)
		expect("norms of what was not rotated alone", attn.NormsKept(q, attn.Add(theirs, theirs), r).Diagnosis, "norms are kept by RoPE")

		q, k = q.RoPE(r), k.RoPE(r)
		p := attn.Scores(q, k, attn.Causal).Softmax()
		mask := attn.FindMask(q, k, golden("probs"), attn.Causal)
		expect("mask", mask.Diagnosis)
		expectThat("mask", math.Abs(mask.Scale-0.25) < 1e-5 && mask.EmptyRows == 0, mask)
		expect("a window", attn.FindMask(q, k, attn.Scores(q, k, attn.Causal, attn.Window(4)).Softmax(), attn.Causal, attn.Window(3)).Diagnosis, "window")
		sinks := attn.FromSlice([]float32{1, 2, 0, 1}, "heads", 4)
		sunk := attn.Scores(q, k, attn.Causal).Softmax(attn.Sinks(sinks))
		expect("sinks", attn.FindMask(q, k, sunk, attn.Causal, attn.Sinks(sinks)).Diagnosis)
		expect("sinks not declared", attn.FindMask(q, k, sunk, attn.Causal).Diagnosis, "sink")
		biased := attn.FromSlice(make([]float32, 9), "heads query key", 1, 1, 9)
		rule := []attn.Option{attn.Causal, attn.ALiBi(), attn.KeyPadding(1, 0), attn.Documents(4, 5), attn.Softcap(20)}
		all := attn.Scores(q, k, rule...).Softmax(attn.Bias(biased), attn.Sinks(sinks))
		whole := attn.FindMask(q, k, all, rule[0], rule[1], rule[2], rule[3], rule[4], attn.Bias(biased), attn.Sinks(sinks))
		expect("everything declared", whole.Diagnosis)
		expectThat("everything declared", len(whole.Slopes) == 4 && whole.Slopes[0] == 0.25 && whole.Softcap == 20 && len(whole.Sinks) == 4 && len(whole.HiddenKeys) == 1 && len(whole.Documents) == 2, whole)
		expect("all but ALiBi declared", attn.FindMask(q, k, all, rule[0], rule[2], rule[3], rule[4], attn.Sinks(sinks)).Diagnosis, "ALiBi")
		expect("all but the documents declared", attn.FindMask(q, k, all, rule[0], rule[1], rule[2], rule[4], attn.Sinks(sinks)).Diagnosis, "documents")
		expect("sums", attn.RowsSum(p).Diagnosis)
		expect("sums beside a sink", attn.RowsSum(sunk).Diagnosis, "rows sum to 1")
		expect("sums with a sink", attn.RowsSum(sunk, attn.Sunk).Diagnosis)
		expect("no future", attn.NoFuture(p).Diagnosis)
		expect("a future", attn.NoFuture(p, attn.CausalAt(-1)).Diagnosis, "no weight on the future")

		cache := attn.AppendKV(k.Rows(0, 5), k.Rows(5, 9))
		_, raw, _ := qkv.SplitHeads(attn.NeoX(4))
		expect("cache", attn.CheckCache(raw, cache, attn.RotatedBy(r)).Diagnosis)
		wrong := attn.AppendKV(k.Rows(0, 5), raw.Rows(5, 9).RoPE(r.Offset(6)))
		found := attn.CheckCache(raw, wrong, attn.RotatedBy(r))
		expect("cache", found.Diagnosis, "row at another position")
		expectThat("cache", found.Rows[8] == 8 && found.Positions[8] == 9, found)
		expect("appends", cache.CheckWrites().Diagnosis)
		expect("appends", wrong.CheckWrites().Diagnosis, "row at another position")
		expect("appends, trimmed and written again", attn.AppendKV(cache.Rows(0, 7), k.Rows(7, 9)).CheckWrites().Diagnosis)
		expect("never rotated", attn.AppendKV(k.Rows(0, 5), raw.Rows(5, 9)).CheckWrites().Diagnosis, "row never rotated")
		expect("rotated twice", attn.AppendKV(k.Rows(0, 5), k.Rows(5, 9).RoPE(r.Offset(5))).CheckWrites().Diagnosis, "row rotated twice")
		hole := attn.CheckWrites([]attn.Write{{Slots: []int{0, 1, 2}, Positions: []int{0, 1, 2}}, {Slots: []int{4}, Positions: []int{4}}, {Slots: []int{4}}})
		expect("a hole", hole.Diagnosis, "hole", "overwritten slot")
		expectThat("a hole", hole.Length == 5 && len(hole.Holes) == 1 && hole.Holes[0] == 3 && hole.Overwritten[0] == 4, hole)
		attn.Require(rope)
		fmt.Println("must fail")
		attn.Require(hole)
	}
	cells["probe"] = func() {
		mine := func(q, k, v attn.Tensor) attn.Tensor { return attn.Prefill(q, k, v) }
		expect("ours", attn.Probe(mine, attn.Causal).Diagnosis)
		small := attn.Geometry{Heads: 2, Rows: 5, Keys: 9, Dim: 4}
		expect("a window of 3", attn.Probe(naive(3), attn.Causal, attn.Window(3), small).Diagnosis)
		expect("a window of 4 for 3", attn.Probe(naive(4), attn.Causal, attn.Window(3), small).Diagnosis, "window")
		expect("top-left", attn.Probe(func(q, k, v attn.Tensor) attn.Tensor { return attn.Prefill(q, k, v, attn.CausalAt(0)) }, attn.Causal).Diagnosis, "alignment of the mask")
		expect("heads", attn.HeadsPermute(mine).Diagnosis)
		expect("decode", attn.PrefillIsDecode(mine).Diagnosis)
		expect("decode, naive", attn.PrefillIsDecode(naive(0), small).Diagnosis)
		expect("future", attn.FutureUnseen(naive(0), small).Diagnosis)
		expect("future", attn.FutureUnseen(func(q, k, v attn.Tensor) attn.Tensor { return attn.Prefill(q, k, v, attn.Unmasked) }).Diagnosis, "a changed future key changes nothing")
		expect("tril of the block alone", attn.PrefillIsDecode(func(q, k, v attn.Tensor) attn.Tensor { return attn.Prefill(q, k, v, attn.CausalAt(0)) }).Diagnosis,
			"decode = prefill = prefill in chunks")
		rotate := func(x attn.Tensor, offset int) attn.Tensor { return x.RoPE(attn.HalfSplit(16).Offset(offset)) }
		expect("distance", attn.RelativeOnly(rotate, nil).Diagnosis)
		far := func(x attn.Tensor, offset int) attn.Tensor {
			return x.RoPE(attn.HalfSplit(16).Offset(offset).Float32Angles())
		}
		law := attn.RelativeOnly(far, []int{0, 131000})
		expect("f32 angles far out", law.Diagnosis, "scores depend on distance only")
		expectThat("law", law.Worst > law.Floor && law.Where != "", law)
	}
	cells["audit"] = func() {
		q, k, v := attn.Get("qkv").SplitHeads(attn.NeoX(4))
		raw := k
		q, k = q.RoPE(attn.HalfSplit(8)), k.RoPE(attn.HalfSplit(8))
		s := attn.Scores(q, k, attn.Causal)
		p := s.Softmax()
		out := attn.Context(p, v).Merge()
		a := attn.Audit(out)
		attn.Require(a)
		expectThat("audit", a.First == "" && len(a.Stages) == 9 && a.Stages[8].Name == "Merge" && a.Stages[8].Carried.Pass && a.Stages[8].Carried.Ratio < 1, a.Stages)
		theirs := raw.RoPE(attn.HalfSplit(8).Offset(1))
		b := attn.Audit(out, attn.Stage(k, theirs), attn.Stage(p, attn.Scores(q, theirs, attn.Causal).Softmax()))
		expect("theirs", b.Diagnosis, "rope")
		expectThat("theirs", b.First == "RoPE" && len(b.Faults) == 1, b.Faults)
		score := attn.Ladder(s, 1, 5, 3)
		attn.Require(score)
		expectThat("ladder", len(score.Rungs) >= 5 && score.Rungs[0].Error == 0 && score.Error <= score.Bound && score.Rungs[len(score.Rungs)-1].Error > score.Rungs[1].Error, score)
		attn.Require(attn.Ladder(attn.Prefill(q, k, v), 3, 8, 15, 1e-3))
		attn.Require(attn.Ladder(attn.Context(p, v), 0, 0, 0))
	}
}

// third is no attention.
func third(_, _, v attn.Tensor) attn.Tensor { return v }

func zeros(shape ...int) attn.Tensor {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return attn.FromSlice(make([]float32, n), "heads seq dim", shape...)
}

func other() attn.Tensor { return zeros(1, 2, 4).Named("other") }
