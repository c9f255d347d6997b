package reference_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/mat"
)

// seen is a row of 1 where the row sees a column.
func seen(v reference.Visible, row, cols int) []float64 {
	out := make([]float64, cols)
	for j := range out {
		if v == nil || v(row, j) {
			out[j] = 1
		}
	}
	return out
}

func TestMasks(t *testing.T) {
	for _, c := range []struct {
		name string
		v    reference.Visible
		row  int
		want []float64
	}{
		{"a window counts the query itself", reference.All(reference.Causal(0), reference.Window(0, 3)), 5, []float64{0, 0, 0, 1, 1, 1, 0, 0}},
		{"behind a cache", reference.All(reference.Causal(4), reference.Window(4, 3)), 1, []float64{0, 0, 0, 1, 1, 1, 0, 0}},
		{"both sides", reference.Window(0, 2), 5, []float64{0, 0, 0, 0, 1, 1, 1, 0}},
		{"padding", reference.Padded(2, 3, 8), 0, []float64{0, 0, 1, 1, 1, 0, 0, 0}},
		{"first document", reference.Documents(0, []int{3, 5}), 2, []float64{1, 1, 1, 0, 0, 0, 0, 0}},
		{"second document", reference.Documents(1, []int{3, 5}), 2, []float64{0, 0, 0, 1, 1, 1, 1, 1}},
		{"before all documents", reference.Documents(-3, []int{3, 5}), 2, make([]float64, 8)},
		{"behind all documents", reference.Documents(6, []int{3, 5}), 2, make([]float64, 8)},
		{"allowed", reference.Allowed(matrix([]float64{0, -1, math.NaN(), 0, 2, math.Copysign(0, -1), 1, 0})), 7, []float64{0, 1, 1, 0, 1, 0, 1, 0}},
		{"nothing hidden", reference.All(nil, nil), 3, []float64{1, 1, 1, 1, 1, 1, 1, 1}},
	} {
		agree(t, c.name, one(seen(c.v, c.row, 8)), one(c.want), 0)
	}
}

// softmax of one row, and its LSE.
func variantRow(t *testing.T, v reference.Variant, vis reference.Visible, s ...float64) (p reference.Heads, lse float64) {
	t.Helper()
	p = must(t)(v.Softmax(one(s), vis))
	l, err := v.LSE(one(s), vis)
	if err != nil {
		t.Fatal(err)
	}
	return p, l.At(0, 0)
}

func TestSoftcap(t *testing.T) {
	capped := must(t)(reference.Softcap(one([]float64{0, 60, 100}), 50))
	agree(t, "capped", capped, one([]float64{0, 41.682730, 48.201379}), 5e-7)
	p, _ := variantRow(t, reference.Variant{Softcap: 50}, nil, 0, 60, 100)
	if got := p[0].At(0, 2); !(math.Abs(got-.998527) <= 5e-7) {
		t.Errorf("third probability %v, want .998527", got)
	}
	if p, _ := variantRow(t, reference.Variant{}, nil, 0, 60, 100); p[0].At(0, 2) != 1 {
		t.Errorf("without a cap %v, want 1", p[0].At(0, 2))
	}
}

func TestSink(t *testing.T) {
	p, lse := variantRow(t, reference.Variant{Sinks: []float64{2}}, nil, 1, 2, 3)
	agree(t, "with a sink", p, one([]float64{.072329, .196612, .534447}), 5e-7)
	if sum := mat.Sum(p[0]); !(math.Abs(sum-.803388) <= 5e-7) {
		t.Errorf("sum %v, want .803388", sum)
	}
	if want := math.Log(math.Exp(1) + 2*math.Exp(2) + math.Exp(3)); !(math.Abs(lse-want) <= 1e-14) {
		t.Errorf("LSE %v, want %v", lse, want)
	}
	p, _ = variantRow(t, reference.Variant{}, nil, 1, 2, 3)
	agree(t, "without", p, one([]float64{.090031, .244728, .665241}), 5e-7)
	p, lse = variantRow(t, reference.Variant{Sinks: []float64{700}}, nil, 1, 2, 3)
	if want := math.Exp(-698); !(math.Abs(p[0].At(0, 1)/want-1) <= 1e-12) || lse != 700 {
		t.Errorf("a large sink leaves %v and LSE %v", p[0].At(0, 1), lse)
	}
	// A row that sees nothing weighs nothing; what is left of its sum is the sink.
	p, lse = variantRow(t, reference.Variant{Sinks: []float64{2}}, reference.Causal(-1), 1, 2, 3)
	agree(t, "empty", p, one([]float64{0, 0, 0}), 0)
	if lse != 2 {
		t.Errorf("LSE of an empty row is %v, want the sink", lse)
	}
}

// The changes come in the order softcap, bias, mask: any other order gives other numbers.
func TestOrderOfChanges(t *testing.T) {
	v := reference.Variant{Softcap: 2, Bias: one([]float64{0, 3, math.NaN()}), Slopes: []float64{.5}, Diagonal: 1,
		Allowed: one([]float64{1, 1, 0})}
	a, b := 2*math.Tanh(.5)-.5, 2*math.Tanh(1)+3
	p, lse := variantRow(t, v, nil, 1, 2, 99)
	agree(t, "probabilities", p, one([]float64{1 / (1 + math.Exp(b-a)), 1 / (1 + math.Exp(a-b)), 0}), 1e-15)
	if want := math.Log(math.Exp(a) + math.Exp(b)); !(math.Abs(lse-want) <= 1e-14) {
		t.Errorf("LSE %v, want %v", lse, want)
	}
}

func TestALiBiSlopes(t *testing.T) {
	for n, want := range map[int][]float64{
		1: {1. / 256}, 2: {1. / 16, 1. / 256}, 3: {1. / 16, 1. / 256, 1. / 4}, 4: {1. / 4, 1. / 16, 1. / 64, 1. / 256},
		8:  {1. / 2, 1. / 4, 1. / 8, 1. / 16, 1. / 32, 1. / 64, 1. / 128, 1. / 256},
		12: {1. / 2, 1. / 4, 1. / 8, 1. / 16, 1. / 32, 1. / 64, 1. / 128, 1. / 256, math.Sqrt2 / 2, math.Sqrt2 / 4, math.Sqrt2 / 8, math.Sqrt2 / 16},
	} {
		got, err := reference.ALiBiSlopes(n)
		if err != nil {
			t.Fatal(err)
		}
		agree(t, "slopes", one(got), one(want), 1e-15)
	}
}

func TestALiBi(t *testing.T) {
	// Queries 2 and 3 of four tokens.
	got := must(t)(reference.ALiBi(one(make([]float64, 4), make([]float64, 4)), []float64{.5}, 2))
	agree(t, "distances", got, one([]float64{-1, -.5, 0, -.5}, []float64{-1.5, -1, -.5, 0}), 0)
}

// A variant that changes nothing is plain attention, and one that does is what its definition gives from matrices.
func TestVariantAttention(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	q, k, v := random(r, 4, 3, 6), random(r, 2, 5, 6), random(r, 2, 5, 6)
	k[1].Set(4, 2, math.NaN()) // hidden below
	v[0].Set(4, 1, math.Inf(1))
	vis := reference.All(reference.Causal(1), reference.Window(1, 2))
	plain := must(t)(reference.Attention(q, k, v, .4, vis))
	agree(t, "nothing changed", must(t)(reference.Variant{}.Attention(q, k, v, .4, vis)), plain, 0)

	allowed := reference.Heads{matrix([]float64{1, 1, 0, 1, 0}, []float64{0, 0, 0, 1, 1}, []float64{1, 0, 1, 1, 0})}
	variant := reference.Variant{Softcap: 1.5, Bias: random(r, 1, 3, 5), Allowed: allowed, Sinks: []float64{.3, -1, 2, 0}}
	got := must(t)(variant.Attention(q, k, v, .4, vis))
	s := must(t)(reference.Scores(q, k, .4))
	for h := range got {
		for row := range 3 {
			sum, want := math.Exp(variant.Sinks[h]), make([]float64, 6)
			for j := range 5 {
				if !vis(row, j) || allowed[0].At(row, j) == 0 {
					continue
				}
				w := math.Exp(1.5*math.Tanh(s[h].At(row, j)/1.5) + variant.Bias[0].At(row, j))
				sum += w
				for i := range want {
					want[i] += w * v[h/2].At(j, i)
				}
			}
			for i := range want {
				if g := got[h].At(row, i); !(math.Abs(g-want[i]/sum) <= 1e-14) {
					t.Errorf("head %d, row %d, element %d: %v, want %v", h, row, i, g, want[i]/sum)
				}
			}
		}
	}
}

func TestVariantRefusals(t *testing.T) {
	s := one([]float64{1, 2, 3})
	for want, call := range map[string]func() error{
		"reference: Softcap: bad argument: cap 0 is not a positive number": func() error {
			_, err := reference.Softcap(s, 0)
			return err
		},
		"reference: AddBias: shapes do not fit: s [1, 1, 3] and b [1, 1, 2]: columns, and rows and heads or 1": func() error {
			_, err := reference.Variant{Bias: one([]float64{1, 2})}.Softmax(s, nil)
			return err
		},
		"reference: ALiBi: shapes do not fit: 2 slopes for s [1, 1, 3]": func() error {
			_, err := reference.Variant{Slopes: []float64{1, 2}}.LSE(s, nil)
			return err
		},
		"reference: Softmax: shapes do not fit: 2 sinks for s [1, 1, 3]": func() error {
			_, err := reference.Variant{Sinks: []float64{1, 2}}.Softmax(s, nil)
			return err
		},
		"reference: LSE: shapes do not fit: s [1, 1, 3] and allowed [1, 2, 3]: columns, and rows and heads or 1": func() error {
			_, err := reference.Variant{Allowed: one([]float64{1, 2, 3}, []float64{1, 2, 3})}.LSE(s, nil)
			return err
		},
		"reference: Attention: shapes do not fit: k [1, 1, 3] and v [1, 2, 3] differ in heads or rows": func() error {
			_, err := reference.Variant{}.Attention(s, s, one([]float64{1, 2, 3}, []float64{1, 2, 3}), 1, nil)
			return err
		},
		"reference: ALiBiSlopes: bad argument: 0 heads": func() error {
			_, err := reference.ALiBiSlopes(0)
			return err
		},
	} {
		err := call()
		if err == nil || err.Error() != want || !errors.Is(err, reference.ErrShape) && !errors.Is(err, reference.ErrArgument) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
