package bound_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/bound"
	"github.com/attnb/attnb/reference/parity"
)

// compare judges an f32 tensor by the bounds of its truth.
func compare(t testing.TB, got tensor, want bound.Heads) parity.Report {
	t.Helper()
	var value, allowed []float64
	for h := range want.Value {
		rows, _ := want.Value[h].Dims()
		for row := range rows {
			value = append(value, want.Value[h].RawRowView(row)...)
			allowed = append(allowed, want.Err[h].RawRowView(row)...)
		}
	}
	r, err := parity.Compare(flat(got), value, allowed)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func must(t testing.TB) func(bound.Heads, error) bound.Heads {
	return func(x bound.Heads, err error) bound.Heads {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
}

// ratios collects the largest error/bound of each stage over many runs.
type ratios struct {
	names []string
	worst map[string]parity.Report
}

func (r *ratios) note(t testing.TB, stage string, report parity.Report) {
	t.Helper()
	if !report.Pass {
		t.Errorf("%s: %v", stage, report)
	}
	if r.worst == nil {
		r.worst = map[string]parity.Report{}
	}
	old, seen := r.worst[stage]
	if !seen {
		r.names = append(r.names, stage)
	}
	if !seen || report.MaxRatio > old.MaxRatio {
		r.worst[stage] = report
	}
}

func (r *ratios) log(t testing.TB) {
	t.Helper()
	for _, name := range r.names {
		t.Logf("%-22s %v", name, r.worst[name])
	}
}

// setting is one geometry of the chain.
type setting struct {
	heads, kv, queries, keys, dim, rotary int
	amplitude                             float64
	interleaved                           bool
}

func (s setting) String() string {
	return fmt.Sprintf("H%d_KV%d_S%d_T%d_d%d_r%d_amplitude%g", s.heads, s.kv, s.queries, s.keys, s.dim, s.rotary, s.amplitude)
}

func settings() []setting {
	out := []setting{
		{heads: 3, kv: 3, queries: 1, keys: 1, dim: 2, rotary: 2},
		{heads: 4, kv: 2, queries: 7, keys: 7, dim: 10, rotary: 4, interleaved: true},
		{heads: 3, kv: 1, queries: 5, keys: 37, dim: 16, rotary: 16},
		{heads: 2, kv: 2, queries: 77, keys: 77, dim: 64, rotary: 32},
		{heads: 2, kv: 1, queries: 3, keys: 577, dim: 24, rotary: 24, interleaved: true},
		{heads: 1, kv: 1, queries: 13, keys: 1024, dim: 64, rotary: 64},
	}
	for _, s := range out {
		s.amplitude = 4
		out = append(out, s)
	}
	for i := range len(out) / 2 {
		out[i].amplitude = 1
	}
	return out
}

// Every f32 implementation stays within the bound of every cell, at every stage of a chain that it ran in f32 alone.
func TestSound(t *testing.T) {
	for n, s := range settings() {
		t.Run(s.String(), func(t *testing.T) {
			var worst ratios
			for _, a := range arithmetics() {
				chain(t, rand.New(rand.NewPCG(uint64(n), 1)), s, a, &worst)
			}
			worst.log(t)
		})
	}
}

// chain is rotate, scores, softmax, context, attention, merge, linear, add; in f32 and as truth with bounds.
func chain(t *testing.T, r *rand.Rand, s setting, a arithmetic, worst *ratios) {
	q, k := normal(r, s.heads, s.queries, s.dim, s.amplitude), normal(r, s.kv, s.keys, s.dim, s.amplitude)
	v := normal(r, s.kv, s.keys, s.dim, 1)
	scale, vis := 1/math.Sqrt(float64(s.dim)), reference.Causal(s.keys-s.queries)
	rope := reference.RoPE{Rotary: s.rotary, Base: 1e4, Interleaved: s.interleaved, Offset: 3}
	ropeQ := rope
	ropeQ.Offset += s.keys - s.queries

	bq, bk := must(t)(bound.ApplyRoPE(bound.Leaf(wide(q)), ropeQ)), must(t)(bound.ApplyRoPE(bound.Leaf(wide(k)), rope))
	bs := must(t)(bound.Scores(bq, bk, scale))
	bp := must(t)(bound.Softmax(bs, vis))
	bv := bound.Leaf(wide(v))
	bc := must(t)(bound.Context(bp, bv))
	ba := must(t)(bound.Attention(bq, bk, bv, scale, vis))

	q, k = a.rope(q, ropeQ), a.rope(k, rope)
	worst.note(t, "RoPE", compare(t, q, bq))
	worst.note(t, "RoPE of k", compare(t, k, bk))
	scores := a.scores(q, k, scale)
	worst.note(t, "scores", compare(t, scores, bs))
	p := a.softmax(scores, vis)
	worst.note(t, "probabilities", compare(t, p, bp))
	worst.note(t, "context", compare(t, a.context(p, v), bc))
	out := a.attention(q, k, v, scale, vis)
	worst.note(t, "attention", compare(t, out, ba))

	hidden := s.heads * s.dim
	w, b := normal(r, 1, hidden, hidden, 1/math.Sqrt(float64(hidden))), normal(r, 1, 1, hidden, 1)
	x := normal(r, 1, s.queries, hidden, 1)
	bm := must(t)(bound.Merge(ba))
	bl := must(t)(bound.Linear(bm, bound.Leaf(wide(w)), bound.Leaf(wide(b))))
	br := must(t)(bound.Add(bound.Leaf(wide(x)), bl))
	projected := a.linear(merged(out), w[0], b[0])
	worst.note(t, "linear", compare(t, tensor{projected}, bl))
	for i := range projected {
		for j := range projected[i] {
			projected[i][j] += x[0][i][j]
		}
	}
	worst.note(t, "residual add", compare(t, tensor{projected}, br))
}

func merged(x tensor) [][]float32 {
	out := make([][]float32, len(x[0]))
	for i := range out {
		for h := range x {
			out[i] = append(out[i], x[h][i]...)
		}
	}
	return out
}

// Each op alone, from f32 inputs: the figures of one op's tolerance.
func TestSoundAlone(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 0))
	var worst ratios
	for _, amplitude := range []float64{1, 4} {
		q, k, v := normal(r, 4, 21, 64, amplitude), normal(r, 2, 130, 64, amplitude), normal(r, 2, 130, 64, 1)
		bq, bk, bv := bound.Leaf(wide(q)), bound.Leaf(wide(k)), bound.Leaf(wide(v))
		vis := reference.Causal(109)
		for _, a := range arithmetics() {
			worst.note(t, "scores", compare(t, a.scores(q, k, .125), must(t)(bound.Scores(bq, bk, .125))))
			s := a.scores(q, k, .125)
			bs := bound.Leaf(wide(s))
			worst.note(t, "softmax", compare(t, a.softmax(s, vis), must(t)(bound.Softmax(bs, vis))))
			p := a.softmax(s, vis)
			worst.note(t, "context", compare(t, a.context(p, v), must(t)(bound.Context(bound.Leaf(wide(p)), bv))))
			worst.note(t, "attention", compare(t, a.attention(q, k, v, .125, vis), must(t)(bound.Attention(bq, bk, bv, .125, vis))))
			lse := make([][]float32, len(s))
			for h := range s {
				for row := range s[h] {
					lse[h] = append(lse[h], a.lse(s[h][row], row, vis))
				}
			}
			worst.note(t, "lse", compare(t, tensor{lse}, must(t)(bound.LSE(bs, vis))))
			for _, offset := range []int{0, 1, 40, 2000, 131071, 1048575, -7} {
				for _, f32 := range []bool{false, true} {
					rope := reference.RoPE{Rotary: 48, Base: 1e4, Offset: offset, Float32Angles: f32, Magnitude: 1.139}
					worst.note(t, fmt.Sprintf("rope, f32 angles %v", f32), compare(t, a.rope(q, rope), must(t)(bound.ApplyRoPE(bq, rope))))
				}
			}
		}
	}
	worst.log(t)
}

func (a arithmetic) lse(s []float32, row int, vis reference.Visible) float32 {
	m := float32(math.Inf(-1))
	var w []float32
	for j := range s {
		if vis == nil || vis(row, j) {
			m = max(m, s[j])
		}
	}
	for j := range s {
		if vis == nil || vis(row, j) {
			w = append(w, a.exp(a.argument(s[j], m)))
		}
	}
	return m + a.off(float32(math.Log(float64(a.sum(w)))))
}
