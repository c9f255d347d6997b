package detect

import (
	"testing"

	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/mat"
)

// ruled is a random rule and inputs.
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
		f, err := Mask(t.Context(), q, k, p, rule, Float32)
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
