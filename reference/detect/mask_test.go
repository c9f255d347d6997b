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
				scores[col] = float64(float32(scores[col]))
			}
			shown := func(col int) bool {
				return (!r.Causal || col <= row+r.Diagonal && (r.Window == 0 || col > row+r.Diagonal-r.Window)) && (sees == nil || sees(row, col))
			}
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

func masked(t *testing.T, q, k, p reference.Heads, r Rule) MaskFinding {
	t.Helper()
	return must[MaskFinding](t)(Mask(q, k, p, r, Float32))
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

// rule is a random rule and inputs.
func ruled(r random) (q, k reference.Heads, rule Rule) {
	kv := r.between(1, 3)
	heads, rows, keys, dim := kv*r.between(1, 3), r.between(2, 9), r.between(3, 12), r.between(2, 16)
	q, k = r.heads(heads, rows, dim), r.heads(kv, keys, dim)
	rule = Rule{Causal: r.IntN(4) > 0, Scale: pick(r, 0, 0, 0.7, 2)}
	if rule.Causal {
		rule.Diagonal = pick(r, keys-rows, keys-rows, 0)
		rule.Window = pick(r, 0, 0, r.between(1, keys))
		rule.Empty = Empty(r.IntN(5))
	}
	if r.IntN(4) == 0 {
		rule.Softcap = pick(r, 2., 5, 50)
	}
	if r.IntN(4) == 0 {
		rule.Sinks = make([]float64, heads)
		for h := range rule.Sinks {
			rule.Sinks[h] = float64(float32(r.NormFloat64()))
		}
		rule.Empty = EmptyZero
	}
	return q, k, rule
}

func TestMaskSilent(t *testing.T) {
	for trial := range right(10) {
		r := seeded(21, trial)
		q, k, rule := ruled(r)
		p := weights(q, k, rule, nil)
		f, err := Mask(q, k, p, rule, Float32)
		if err != nil || f.Faults != nil {
			t.Fatalf("trial %d: %d x %d, %+v: %v, %v\n%.4v", trial, len(q), len(k), rule, f, err, mat.Formatted(p[0]))
		}
	}
}

func TestMaskPlanted(t *testing.T) {
	for _, c := range []struct {
		name  string
		kinds []Kind
		plant func(r random, q, k reference.Heads, rule *Rule) (sees reference.Visible, ok bool)
	}{
		{"alignment", []Kind{WrongAlignment, WrongDiagonal}, func(r random, q, k reference.Heads, rule *Rule) (reference.Visible, bool) {
			offset := countOf(k) - countOf(q)
			if rule.Diagonal == offset {
				rule.Diagonal = 0
			} else {
				rule.Diagonal = offset
			}
			return nil, rule.Causal && offset > 0 && rule.Window == 0
		}},
		{"diagonal", []Kind{WrongDiagonal, WrongAlignment, NoCausalMask}, func(r random, q, k reference.Heads, rule *Rule) (reference.Visible, bool) {
			rule.Diagonal += pick(r, -1, 1)
			return nil, rule.Causal && rule.Window == 0 && rule.Diagonal >= 0 && rule.Diagonal < countOf(k)-2
		}},
		{"none", []Kind{NoCausalMask, WrongDiagonal}, func(r random, q, k reference.Heads, rule *Rule) (reference.Visible, bool) {
			ok := rule.Causal && rule.Window == 0 && rule.Diagonal < countOf(k)-1
			rule.Causal = false
			return nil, ok
		}},
		{"window", []Kind{WrongWindow}, func(r random, q, k reference.Heads, rule *Rule) (reference.Visible, bool) {
			ok := rule.Causal && rule.Window > 1 && rule.Window < countOf(k)-1 && rule.Diagonal == countOf(k)-countOf(q) && rule.Diagonal >= 0
			rule.Window += pick(r, -1, 1)
			return nil, ok
		}},
		{"window left out", []Kind{WrongWindow}, func(r random, q, k reference.Heads, rule *Rule) (reference.Visible, bool) {
			ok := rule.Causal && rule.Window > 0 && rule.Window < countOf(k)-1 && rule.Diagonal == countOf(k)-countOf(q) && rule.Diagonal >= 0
			rule.Window = 0
			return nil, ok
		}},
		{"scale", []Kind{WrongScale}, func(r random, q, k reference.Heads, rule *Rule) (reference.Visible, bool) {
			rule.Scale = pick(r, 1., 0.3, 1/float64(dimOf(q)))
			return nil, rule.Softcap == 0 && (!rule.Causal || rule.Diagonal >= 1 && rule.Window != 1)
		}},
		{"softcap left out", []Kind{WrongSoftcap}, func(r random, q, k reference.Heads, rule *Rule) (reference.Visible, bool) {
			ok := rule.Softcap > 0 && rule.Softcap < 10 && (!rule.Causal || rule.Diagonal >= 1 && rule.Window != 1)
			rule.Softcap = 0
			return nil, ok
		}},
		{"softcap", []Kind{WrongSoftcap}, func(r random, q, k reference.Heads, rule *Rule) (reference.Visible, bool) {
			ok := rule.Softcap == 0 && countOf(q) > 2 && countOf(k) > 3 && (!rule.Causal || rule.Diagonal >= 2 && rule.Window == 0)
			rule.Softcap = pick(r, 3., 7, 20)
			return nil, ok
		}},
		{"sink left out", []Kind{WrongSink}, func(r random, q, k reference.Heads, rule *Rule) (reference.Visible, bool) {
			ok := rule.Sinks != nil
			rule.Sinks = nil
			return nil, ok
		}},
		{"sink", []Kind{WrongSink}, func(r random, q, k reference.Heads, rule *Rule) (reference.Visible, bool) {
			ok := rule.Sinks == nil && rule.Empty == EmptyZero
			rule.Sinks = make([]float64, len(q))
			return nil, ok
		}},
		{"padding", []Kind{PaddedKeys, WrongWindow}, func(r random, q, k reference.Heads, rule *Rule) (reference.Visible, bool) {
			pads := r.between(1, 2)
			return func(row, col int) bool { return col >= pads }, (!rule.Causal || rule.Diagonal > 2) && rule.Window == 0 && rule.Empty == EmptyZero && countOf(q) > 2
		}},
		{"documents", []Kind{PackedDocuments}, func(r random, q, k reference.Heads, rule *Rule) (reference.Visible, bool) {
			rows, keys := countOf(q), countOf(k)
			cut := r.between(2, max(2, rows-2))
			ok := rows == keys && rows > 4 && rule.Causal && rule.Window == 0 && rule.Empty == EmptyZero
			return func(row, col int) bool { return (row < cut) == (col < cut) }, ok
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var found rate
			for trial := 0; found.all < planted(20); trial++ {
				r := seeded(22, trial)
				q, k, rule := ruled(r)
				if c.name == "documents" { // as many rows as keys
					q = r.heads(len(q), countOf(k), dimOf(q))
					rule.Diagonal = 0
				}
				wrong := rule
				sees, ok := c.plant(r, q, k, &wrong)
				if !ok {
					continue
				}
				f := masked(t, q, k, weights(q, k, wrong, sees), rule)
				named := false
				for _, kind := range c.kinds {
					named = named || f.Faults.Has(kind)
				}
				found.count(named, "trial %d, %d x %d x %d: %+v planted %+v: %v", trial, len(q), countOf(q), countOf(k), rule, wrong, f)
			}
			found.atLeast(t, 0.95)
		})
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
		{q, r.heads(1, 1, 4), zeros(shape{2, 3, 1}), Rule{}, ErrTooLittle, "detect: Mask: too little data: one key has all the weight, whatever the rule; needs at least two"},
	} {
		if _, err := Mask(c.q, c.k, c.p, c.rule, Float32); err == nil || err.Error() != c.text || !errors.Is(err, c.kind) {
			t.Errorf("%v\nwant %s", err, c.text)
		}
	}
	// Queries of 0: the mask shows, the scale does not.
	f := masked(t, zeros(shape{2, 3, 4}), k, weights(zeros(shape{2, 3, 4}), k, Rule{Causal: true, Diagonal: 2}, nil), Rule{Causal: true, Diagonal: 2})
	if f.Faults != nil || !math.IsNaN(f.Scale) || !strings.Contains(f.String(), "scale not told") {
		t.Error(f)
	}
}
