package detect

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/mat"
)

// varied is a random rule of everything that a rule can say, and inputs.
func varied(r random) (q, k reference.Heads, rule Rule) {
	q, k, rule = ruled(r)
	rows, keys := countOf(q), countOf(k)
	if !rule.Causal {
		rule.Diagonal = keys - rows
		rule.Window = pick(r, 0, 0, r.between(1, keys))
	}
	if r.IntN(3) == 0 {
		rule.Slopes = usualSlopes(len(q))
	}
	if r.IntN(4) == 0 {
		rule.Bias = r.heads(pick(r, 1, len(q)), pick(r, 1, rows), keys)
	}
	if r.IntN(3) == 0 {
		rule.PadLeft = r.IntN(3)
		rule.PadRight = r.IntN(keys - rule.PadLeft)
	}
	if r.IntN(3) == 0 {
		rule.Documents = r.lengths(keys)
	}
	if r.IntN(4) == 0 {
		rule.Allowed = r.allowed(pick(r, 1, len(q)), pick(r, 1, rows), keys)
	}
	if rule.Sinks != nil {
		rule.Empty = EmptyZero
	}
	return q, k, rule
}

func usualSlopes(heads int) []float64 {
	s, err := reference.ALiBiSlopes(heads)
	if err != nil {
		panic(err)
	}
	return s
}

// lengths are those of documents that fill the keys.
func (r random) lengths(keys int) (out []int) {
	for keys > 0 {
		n := r.between(1, keys)
		out, keys = append(out, n), keys-n
	}
	return out
}

// allowed are cells of which one in five is hidden.
func (r random) allowed(heads, rows, keys int) reference.Heads {
	out := zeros(shape{heads, rows, keys})
	for h := range out {
		out[h].Apply(func(_, _ int, _ float64) float64 { return pick(r, 0., 1, 1, 1, 1) }, out[h])
	}
	return out
}

func TestMaskVariantsSilent(t *testing.T) {
	for trial := range right(10) {
		r := seeded(26, trial)
		q, k, rule := varied(r)
		p := weights(q, k, rule, nil)
		f, err := Mask(t.Context(), q, k, p, rule, Float32)
		if err != nil || f.Faults != nil {
			t.Fatalf("trial %d: %d heads of %d, %d x %d, %+v: %v, %v\n%.4v", trial, len(q), len(k), countOf(q), countOf(k), rule, f, err, mat.Formatted(p[0]))
		}
	}
}

// tells says whether the data can show that one rule was done in place of the other: cells that they show differently lie in rows that
// see something by both, or, where rows see the same, every head has rows enough for a slope beside a scale.
func tells(rule, wrong Rule, q, k reference.Heads) bool {
	rows, keys := countOf(q), countOf(k)
	differ, least := 0, keys*rows
	alike := reflect.DeepEqual(rule.Slopes, wrong.Slopes) && reflect.DeepEqual(rule.Bias, wrong.Bias)
	for h := range q {
		freedom := 0
		for row := range rows {
			var x, y, apart int
			for col := range keys {
				a, b := rule.shows(h, row, col, keys), wrong.shows(h, row, col, keys)
				x, y, apart = x+btoi(a), y+btoi(b), apart+btoi(a != b)
			}
			if x > 0 && y > 0 {
				differ += apart
			}
			freedom += max(0, y-1)
		}
		least = min(least, freedom)
	}
	if alike {
		return differ > 0
	}
	return least >= 5
}

// A fault of what no band says, beside everything else that a rule may say. Where a fault changes what rows see, it has to change it in
// rows that see something by both rules, since what empty rows hold is another question.
func TestMaskVariantsPlanted(t *testing.T) {
	for _, c := range []struct {
		name  string
		kinds []Kind
		plant func(r random, rule *Rule, heads, rows, keys int) (ok bool) // changes the declared rule into the one that is done
	}{
		{"ALiBi left out", []Kind{WrongSlopes}, func(r random, rule *Rule, heads, rows, keys int) bool {
			ok := rule.Slopes != nil
			rule.Slopes = nil
			return ok
		}},
		{"ALiBi", []Kind{WrongSlopes}, func(r random, rule *Rule, heads, rows, keys int) bool {
			ok := rule.Slopes == nil
			rule.Slopes = usualSlopes(heads)
			return ok
		}},
		{"slopes from 0", []Kind{WrongSlopes}, func(r random, rule *Rule, heads, rows, keys int) bool {
			ok := rule.Slopes != nil
			rule.Slopes = slices.Clone(rule.Slopes)
			for h := range rule.Slopes {
				rule.Slopes[h] *= math.Exp2(8 / float64(heads))
			}
			return ok
		}},
		{"slopes of the other sign", []Kind{WrongSlopes}, func(r random, rule *Rule, heads, rows, keys int) bool {
			ok := rule.Slopes != nil
			rule.Slopes = slices.Clone(rule.Slopes)
			for h := range rule.Slopes {
				rule.Slopes[h] *= -1
			}
			return ok
		}},
		{"bias left out", []Kind{WrongBias}, func(r random, rule *Rule, heads, rows, keys int) bool {
			ok := rule.Bias != nil
			rule.Bias = nil
			return ok
		}},
		{"padding seen", []Kind{PaddedKeys}, func(r random, rule *Rule, heads, rows, keys int) bool {
			ok := rule.PadLeft+rule.PadRight > 0
			rule.PadLeft, rule.PadRight = 0, 0
			return ok
		}},
		{"padding of one less", []Kind{PaddedKeys}, func(r random, rule *Rule, heads, rows, keys int) bool {
			ok := rule.PadLeft > 0
			rule.PadLeft--
			return ok
		}},
		{"documents ignored", []Kind{PackedDocuments}, func(r random, rule *Rule, heads, rows, keys int) bool {
			ok := rule.Documents != nil
			rule.Documents = nil
			return ok
		}},
		{"documents cut one later", []Kind{PackedDocuments}, func(r random, rule *Rule, heads, rows, keys int) bool {
			ok := len(rule.Documents) > 1 && rule.Documents[1] > 1
			if ok {
				rule.Documents = slices.Clone(rule.Documents)
				rule.Documents[0]++
				rule.Documents[1]--
			}
			return ok
		}},
		{"a cell that is not allowed", []Kind{WrongAllowed}, func(r random, rule *Rule, heads, rows, keys int) bool {
			ok := rule.Allowed != nil
			rule.Allowed = nil
			return ok
		}},
		{"a window to both sides", []Kind{WrongWindow}, func(r random, rule *Rule, heads, rows, keys int) bool {
			ok := rule.Window > 1 && !rule.Causal && rule.Allowed == nil && rule.Documents == nil
			rule.Window += pick(r, -1, 1)
			return ok
		}},
		{"a window behind documents", []Kind{WrongWindow}, func(r random, rule *Rule, heads, rows, keys int) bool {
			ok := rule.Window > 1 && rule.Causal && rule.Documents != nil && rule.Allowed == nil && rule.Diagonal == keys-rows && keys >= rows
			rule.Window--
			return ok
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var found rate
			for trial := 0; found.all < planted(20); trial++ {
				r := seeded(27, trial)
				q, k, rule := varied(r)
				rule.Empty = EmptyZero
				wrong := rule
				if !c.plant(r, &wrong, len(q), countOf(q), countOf(k)) || !tells(rule, wrong, q, k) {
					continue
				}
				f := masked(t, q, k, weights(q, k, wrong, nil), rule)
				named := slices.ContainsFunc(c.kinds, f.Faults.Has) || slices.Contains(c.kinds, PackedDocuments) && strings.Contains(f.String(), "or a document")
				found.count(named, "trial %d, %d x %d x %d: %+v planted %+v: %v", trial, len(q), countOf(q), countOf(k), rule, wrong, f)
			}
			found.atLeast(t, 0.95)
		})
	}
}

// What is said of a fault beyond its name: which slopes, which keys, which document.
func TestMaskVariantWords(t *testing.T) {
	r := seeded(28, 0)
	q, k := r.heads(4, 8, 6), r.heads(4, 8, 6)
	usual := usualSlopes(4)
	slopes := func(change func(h int) float64) Rule {
		out := Rule{Causal: true, Slopes: make([]float64, 4)}
		for h := range out.Slopes {
			out.Slopes[h] = change(h)
		}
		return out
	}
	alibi := Rule{Causal: true, Slopes: usual}
	packed := Rule{Causal: true, Documents: []int{3, 5}}
	for _, c := range []struct {
		declared, done Rule
		kind           Kind
		words          string
	}{
		{alibi, Rule{Causal: true}, WrongSlopes, "none, declared slopes [0.25 0.0625 0.01562 0.003906]"},
		{Rule{Causal: true}, alibi, WrongSlopes, "slopes [0.25 0.0625 0.01562 0.003906], none declared"},
		{alibi, slopes(func(h int) float64 { return -usual[h] }), WrongSlopes, "the other sign"},
		{alibi, slopes(func(h int) float64 { return usual[h] / math.Sqrt(6) }), WrongSlopes, "multiplied by the scale"},
		{alibi, slopes(func(h int) float64 { return 4 * usual[h] }), WrongSlopes, "i from 0"},
		{alibi, slopes(func(h int) float64 { return usual[3-h] }), WrongSlopes, "the other order"},
		{alibi, slopes(func(h int) float64 { return usual[0] }), WrongSlopes, "head 0's for all"},
		{alibi, Rule{Causal: true, Slopes: usual, Scale: 0.2}, WrongScale, "0.2, declared 0.408"},
		{Rule{PadLeft: 2}, Rule{}, PaddedKeys, "keys [0 1] are padding, and seen: row 0 of head 0 sees key 0"},
		{Rule{PadLeft: 2}, Rule{PadLeft: 1}, PaddedKeys, "no row sees keys [0]; keys [1] are seen, declared 2 on the left and 0 on the right"},
		{Rule{PadLeft: 1}, Rule{PadLeft: 2}, PaddedKeys, "no row sees keys [1]"},
		{packed, Rule{Causal: true}, PackedDocuments, "row 3 of head 0 sees key 0, of another document: lengths [3 5]"},
		{packed, Rule{Causal: true, Documents: []int{4, 4}}, PackedDocuments, "rows see from keys [0 4] on: documents packed into one sequence; declared lengths [3 5]"},
		{packed, Rule{Causal: true, Documents: []int{3, 2, 3}}, PackedDocuments, "rows see from keys"},
		{Rule{Documents: []int{3, 5}}, Rule{Documents: []int{5, 3}}, PackedDocuments, "rows see from keys [0 5] on"},
		{Rule{Allowed: one([]float64{1, 0, 1, 1, 1, 1, 1, 1})}, Rule{}, WrongAllowed, "row 0 of head 0 sees key 1, which is not allowed"},
		{Rule{Window: 2}, Rule{Window: 3}, WrongWindow, "rows see col-row -2 to 2, declared -1 to 1"},
	} {
		p := weights(q, k, c.done, nil)
		if f := masked(t, q, k, p, c.declared); f.Faults.kinds() != string(c.kind) || !strings.Contains(f.String(), c.words) {
			t.Errorf("%+v for %+v: %v, want %s", c.done, c.declared, f, c.words)
		}
		if f := masked(t, q, k, p, c.done); f.Faults != nil {
			t.Errorf("%+v: %v", c.done, f)
		}
	}
	// Documents of which the mask shows no more than is seen anyway: not a fault, and said.
	f := masked(t, q, k, weights(q, k, Rule{Causal: true, Window: 1}, nil), Rule{Causal: true, Window: 1, Documents: []int{3, 5}})
	if f.Faults != nil || !slices.ContainsFunc(f.Undecided, func(s string) bool { return strings.HasPrefix(s, "documents") }) {
		t.Error(f)
	}
}

// The probabilities of a rule are what an f32 implementation makes, written from its words, up to rounding.
func TestRuleProbabilities(t *testing.T) {
	for trial := range right(10) {
		r := seeded(29, trial)
		q, k, rule := varied(r)
		want := weights(q, k, rule, nil)
		got := must[reference.Heads](t)(rule.Probabilities(q, k))
		for h := range want {
			for row := range countOf(want) {
				x, y := got[h].RawRowView(row), want[h].RawRowView(row)
				if slices.ContainsFunc(y, math.IsNaN) && slices.ContainsFunc(x, math.IsNaN) {
					continue
				}
				for col := range x {
					if !(math.Abs(x[col]-y[col]) <= 1e-4) {
						t.Fatalf("trial %d, %+v: head %d row %d: %v, want %v", trial, rule, h, row, x, y)
					}
				}
			}
		}
	}
}
