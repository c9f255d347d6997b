package detect

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/mat"
)

// weights are probabilities by a rule, as an f32 implementation makes them: written from the rule, apart from the detective.
// sees, where it is not nil, hides more.
func weights(q, k reference.Heads, r Rule, sees reference.Visible) reference.Heads {
	rows, dim := q[0].Dims()
	keys, _ := k[0].Dims()
	if r.Scale == 0 {
		r.Scale = 1 / math.Sqrt(float64(dim))
	}
	out := zeros(shape{len(q), rows, keys})
	for h := range q {
		for row := range rows {
			p, total, any := out[h].RawRowView(row), 0.0, false
			scores, most := make([]float64, keys), math.Inf(-1)
			for col := range keys {
				var dot float32
				for i := range dim {
					dot += float32(q[h].At(row, i)) * float32(k[h/(len(q)/len(k))].At(col, i))
				}
				scores[col] = float64(dot) * r.Scale
				if r.Softcap > 0 {
					scores[col] = r.Softcap * math.Tanh(scores[col]/r.Softcap)
				}
				if r.Bias != nil {
					scores[col] = float64(float32(scores[col])) + of(r.Bias, h, row, col)
				}
				if r.Slopes != nil {
					scores[col] = float64(float32(scores[col])) - float64(float32(r.Slopes[h]))*math.Abs(float64(row+r.Diagonal-col))
				}
				scores[col] = float64(float32(scores[col]))
			}
			shown := func(col int) bool { return r.shows(h, row, col, keys) && (sees == nil || sees(row, col)) }
			for col, score := range scores {
				if shown(col) || r.Empty == EmptyUnmasked {
					most = max(most, score)
				}
			}
			for col := range keys {
				if shown(col) {
					p[col], any = math.Exp(scores[col]-most), true
					total += p[col]
				}
			}
			if r.Sinks != nil {
				total += math.Exp(r.Sinks[h] - most)
			}
			switch {
			case !any && r.Empty == EmptyNaN:
				p[0], total = math.NaN(), 1
			case !any && r.Empty == EmptyUniform:
				for col := range p {
					p[col] = 1
				}
				total = float64(keys)
			case !any && r.Empty == EmptyFirstKey:
				p[0], total = 1, 1
			case !any && r.Empty == EmptyUnmasked:
				total = 0
				for col := range p {
					p[col] = math.Exp(scores[col] - most)
					total += p[col]
				}
			case !any:
				total = 1
			}
			for col := range p {
				p[col] = float64(float32(p[col] / total))
			}
		}
	}
	return out
}

// shows says whether a cell is visible, by the words of the rule.
func (r Rule) shows(h, row, col, keys int) bool {
	own := row + r.Diagonal
	document := func(x int) int {
		for i, n := range r.Documents {
			if x -= n; x < 0 {
				return i
			}
		}
		return -1
	}
	switch {
	case r.Causal && col > own, r.Window > 0 && (col <= own-r.Window || col >= own+r.Window):
		return false
	case col < r.PadLeft || col >= keys-r.PadRight:
		return false
	case r.Documents != nil && (own < 0 || document(own) < 0 || document(own) != document(col)):
		return false
	}
	return r.Allowed == nil || of(r.Allowed, h, row, col) != 0
}

func masked(t *testing.T, q, k, p reference.Heads, r Rule) MaskFinding {
	t.Helper()
	return must[MaskFinding](t)(Mask(t.Context(), q, k, p, r, Float32))
}

// scored are q and k whose scores are s, at scale 1.
func scored(s *mat.Dense) (q, k reference.Heads) {
	_, keys := s.Dims()
	identity := mat.NewDense(keys, keys, nil)
	for i := range keys {
		identity.Set(i, i, 1)
	}
	return reference.Heads{s}, reference.Heads{identity}
}

// Reports of masks aligned at the wrong corner: bottom-right, top-left and none, of two queries and five keys.
func TestMaskAlignmentReport(t *testing.T) {
	q, k := scored(matrix([]float64{1, 2, 3, 4, 5}, []float64{5, 4, 3, 2, 1}))
	bottomRight := weights(q, k, Rule{Scale: 1, Causal: true, Diagonal: 3}, nil)
	topLeft := weights(q, k, Rule{Scale: 1, Causal: true}, nil)
	none := weights(q, k, Rule{Scale: 1}, nil)
	for i, want := range [][]float64{{.032059, .087144, .236883, .643914, 0}, {1, 0, 0, 0, 0}, {.011656, .031685, .086129, .234122, .636409}} {
		for col, w := range want {
			if got := []reference.Heads{bottomRight, topLeft, none}[i][0].At(0, col); math.Abs(got-w) > 1e-6 {
				t.Fatalf("planted %v, want %v", got, w)
			}
		}
	}
	declared := Rule{Scale: 1, Causal: true, Diagonal: 3}
	for _, c := range []struct {
		p        reference.Heads
		declared Rule
		kinds    string
	}{
		{bottomRight, declared, ""}, {topLeft, declared, string(WrongAlignment)}, {none, declared, string(NoCausalMask)},
		{bottomRight, Rule{Scale: 1, Causal: true}, string(WrongAlignment)}, {topLeft, Rule{Scale: 1, Causal: true}, ""},
		{bottomRight, Rule{Scale: 1}, string(UnexpectedMask)}, {none, Rule{Scale: 1}, ""},
	} {
		if f := masked(t, q, k, c.p, c.declared); f.Faults.kinds() != c.kinds {
			t.Errorf("%+v: %v, want %s", c.declared, f, c.kinds)
		}
	}
}

// Five queries, two keys: the first three see nothing, and there are five conventions for what they hold.
func TestMaskEmptyRows(t *testing.T) {
	r := seeded(20, 0)
	q, k := r.heads(1, 5, 4), r.heads(1, 2, 4)
	for e := EmptyZero; e <= EmptyUnmasked; e++ {
		rule := Rule{Causal: true, Diagonal: -3, Empty: e}
		p := weights(q, k, rule, nil)
		if f := masked(t, q, k, p, rule); f.Faults != nil || f.EmptyRows != 3 || f.Empty != e {
			t.Errorf("%v: %v, %d empty rows of %v", e, f, f.EmptyRows, f.Empty)
		}
		declared := rule
		declared.Empty = (e + 1) % 5
		if f := masked(t, q, k, p, declared); f.Faults.kinds() != string(WrongEmptyRow) {
			t.Errorf("%v: %v", e, f)
		}
	}
}

// A softcap left out, and a sink left out, with the published numbers.
func TestMaskSoftcapAndSinkReports(t *testing.T) {
	q, k := scored(matrix([]float64{0, 60, 100}))
	capped := Rule{Scale: 1, Softcap: 50}
	p := weights(q, k, capped, nil)
	if math.Abs(p[0].At(0, 2)-.998527) > 1e-6 {
		t.Fatalf("planted %v", mat.Formatted(p[0]))
	}
	if f := masked(t, q, k, p, capped); f.Faults != nil {
		t.Error(f)
	}
	if f := masked(t, q, k, weights(q, k, Rule{Scale: 1}, nil), capped); f.Faults.kinds() != string(WrongSoftcap) {
		t.Error(f)
	}
	if f := masked(t, q, k, p, Rule{Scale: 1}); !f.Faults.Has(WrongSoftcap) && !f.Faults.Has(WrongScale) {
		t.Error(f) // one row of three keys cannot tell a cap from a scale
	}

	q, k = scored(matrix([]float64{1, 2, 3}))
	sink := Rule{Scale: 1, Sinks: []float64{2}}
	p = weights(q, k, sink, nil)
	for col, w := range []float64{.072329, .196612, .534447} {
		if math.Abs(p[0].At(0, col)-w) > 1e-6 {
			t.Fatalf("planted %v", mat.Formatted(p[0]))
		}
	}
	if f := masked(t, q, k, p, sink); f.Faults != nil {
		t.Error(f)
	}
	if f := masked(t, q, k, p, Rule{Scale: 1}); f.Faults.kinds() != string(WrongSink) || math.Abs(f.Sinks[0]-2) > 1e-4 {
		t.Error(f)
	}
	if f := masked(t, q, k, weights(q, k, Rule{Scale: 1}, nil), sink); f.Faults.kinds() != string(WrongSink) {
		t.Error(f)
	}
}

func countOf(x reference.Heads) int { rows, _ := x[0].Dims(); return rows }

func TestMaskTiled(t *testing.T) {
	var found rate
	for trial := range planted(20) {
		r := seeded(23, trial)
		q, k := r.heads(4, 4, 5), r.heads(2, 6, 5)
		tiled := reference.Heads{k[0], k[1], k[0], k[1]}
		rule := Rule{Causal: true, Diagonal: 2}
		f := masked(t, q, k, weights(q, tiled, rule, nil), rule)
		found.count(f.Faults.kinds() == string(TiledKV), "%v", f)
	}
	found.atLeast(t, 0.95)
}

func TestMaskNoneFits(t *testing.T) {
	r := seeded(24, 0)
	q, k := r.heads(2, 6, 5), r.heads(2, 6, 5)
	rule := Rule{Causal: true}
	// Other keys: no score fits. A checkerboard: no mask fits. Heads of their own. A row lost. Weights that lack something.
	if f := masked(t, q, k, weights(q, r.heads(2, 6, 5), rule, nil), rule); !f.Faults.Has(UnknownScores) {
		t.Error(f)
	}
	if f := masked(t, q, k, weights(q, k, Rule{}, func(row, col int) bool { return (row+col)%2 == 0 || col == 0 && row == 1 }), rule); !f.Faults.Has(UnknownMask) {
		t.Error(f)
	}
	p := reference.Heads{weights(q, k, rule, nil)[0], weights(q, k, Rule{}, nil)[1]}
	if f := masked(t, q, k, p, rule); !f.Faults.Has(HeadsDiffer) {
		t.Error(f)
	}
	p = weights(q, k, rule, nil)
	p[1].SetRow(4, make([]float64, 6))
	if f := masked(t, q, k, p, rule); f.Faults.kinds() != string(LostRow) {
		t.Error(f)
	}
	if f := masked(t, q, k, zeros(shape{2, 6, 6}), Rule{}); f.Faults.kinds() != string(LostRow) {
		t.Error(f)
	}
	alike := weights(zeros(shape{2, 6, 5}), k, Rule{}, nil) // as if every score were 0
	for _, declared := range []Rule{{}, rule} {
		if f := masked(t, q, k, alike, declared); !f.Faults.Has(LostRow) {
			t.Error(f)
		}
	}
	p = weights(q, k, rule, nil)
	p[1].Scale(0.9, p[1])
	if f := masked(t, q, k, p, rule); !f.Faults.Has(WrongSum) && !f.Faults.Has(WrongSink) {
		t.Error(f)
	}
	p = weights(q, k, rule, nil)
	p[0].Set(3, 1, -p[0].At(3, 1))
	if f := masked(t, q, k, p, rule); f.Faults.kinds() != string(WrongSum) {
		t.Error(f)
	}
}

func TestMaskGolden(t *testing.T) {
	for _, name := range []string{"gpt2_a", "neox_a", "llama_yarn_a", "gptj_a"} {
		g := open(t, name)
		rule := Rule{Scale: g.meta.Scale, Causal: true}
		if f := masked(t, g.heads("q"), g.heads("k"), g.heads("probs"), rule); f.Faults != nil || f.High != [2]float64{} {
			t.Errorf("%s: %v", name, f)
		}
	}
}

func TestMaskRefusals(t *testing.T) {
	r := seeded(25, 0)
	q, k, p := r.heads(2, 3, 4), r.heads(1, 5, 4), zeros(shape{2, 3, 5})
	for _, c := range []struct {
		q, k, p reference.Heads
		rule    Rule
		kind    error
		text    string
	}{
		{q, k, zeros(shape{2, 5, 3}), Rule{}, reference.ErrShape, "detect: Mask: shapes do not fit: probabilities [2, 5, 3] are not [2, 3, 5]"},
		{q, r.heads(1, 5, 3), p, Rule{}, reference.ErrShape, "detect: Mask: shapes do not fit: q [2, 3, 4] and k [1, 5, 3] do not fit together"},
		{q, k, p, Rule{Window: -1}, reference.ErrArgument, "detect: Mask: bad argument: window -1 and softcap 0 must not be negative"},
		{q, k, p, Rule{Sinks: []float64{1}}, reference.ErrArgument, "detect: Mask: bad argument: 1 sinks for 2 heads"},
		{q, k, p, Rule{Slopes: []float64{1}}, reference.ErrArgument, "detect: Mask: bad argument: 1 slopes for 2 heads"},
		{q, k, p, Rule{PadLeft: 4, PadRight: 2}, reference.ErrArgument, "detect: Mask: bad argument: padding of 4 and 2 columns does not fit 5"},
		{q, k, p, Rule{Documents: []int{2, 2}}, reference.ErrArgument, "detect: Mask: bad argument: documents of [2 2] do not fill 5 columns"},
		{q, k, p, Rule{Documents: []int{2, 4}}, reference.ErrArgument, "detect: Mask: bad argument: documents of [2 4] do not fill 5 columns"},
		{q, k, p, Rule{Bias: zeros(shape{2, 2, 5})}, reference.ErrShape, "detect: Mask: shapes do not fit: bias [2, 2, 5] and probabilities [2, 3, 5]: columns, and rows and heads or 1"},
		{q, k, p, Rule{Allowed: zeros(shape{1, 1, 4})}, reference.ErrShape, "detect: Mask: shapes do not fit: allowed [1, 1, 4] and probabilities [2, 3, 5]: columns, and rows and heads or 1"},
		{q, r.heads(1, 1, 4), zeros(shape{2, 3, 1}), Rule{}, ErrTooLittle, "detect: Mask: too little data: one key has all the weight, whatever the rule; needs at least two"},
	} {
		if _, err := Mask(t.Context(), c.q, c.k, c.p, c.rule, Float32); err == nil || err.Error() != c.text || !errors.Is(err, c.kind) {
			t.Errorf("%v\nwant %s", err, c.text)
		}
	}
	// Queries of 0: the mask shows, the scale does not.
	f := masked(t, zeros(shape{2, 3, 4}), k, weights(zeros(shape{2, 3, 4}), k, Rule{Causal: true, Diagonal: 2}, nil), Rule{Causal: true, Diagonal: 2})
	if f.Faults != nil || !math.IsNaN(f.Scale) || !strings.Contains(f.String(), "scale not told") {
		t.Error(f)
	}
}
