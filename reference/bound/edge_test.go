package bound_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/bound"
	"gonum.org/v1/gonum/mat"
)

// Scores that rise along the whole row are the worst for online softmax: its maximum grows at every key.
func TestSoundOnRisingScores(t *testing.T) {
	var worst ratios
	for _, rise := range []float64{1e-6, 1e-2, 0.5} {
		const n = 1024
		q, k := tensor{{{1}}}, tensor{make([][]float32, n)}
		for j := range k[0] {
			k[0][j] = []float32{float32(rise * float64(j))}
		}
		v := normal(rand.New(rand.NewPCG(1, 1)), 1, n, 3, 1)
		bq, bk, bv := bound.Leaf(wide(q)), bound.Leaf(wide(k)), bound.Leaf(wide(v))
		for _, a := range arithmetics() {
			worst.note(t, a.name, compare(t, a.attention(q, k, v, 1, nil), must(t)(bound.Attention(bq, bk, bv, 1, nil))))
		}
	}
	worst.log(t)
}

// Equal terms round the same way again and again: the worst for a sum.
func TestSoundOnEqualKeys(t *testing.T) {
	var worst ratios
	const n = 1000
	q, k, v := tensor{{{1, 2}}}, tensor{make([][]float32, n)}, tensor{make([][]float32, n)}
	for j := range n {
		k[0][j], v[0][j] = []float32{.3, .1}, []float32{.1, 1.7}
	}
	bq, bk, bv := bound.Leaf(wide(q)), bound.Leaf(wide(k)), bound.Leaf(wide(v))
	for _, a := range arithmetics() {
		worst.note(t, a.name, compare(t, a.attention(q, k, v, .7, nil), must(t)(bound.Attention(bq, bk, bv, .7, nil))))
	}
	worst.log(t)
}

// Large scores underflow most weights; small inputs are denormal in f32.
func TestSoundAtTheEdges(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	var worst ratios
	for _, amplitude := range []float64{1e-38, 1e-20, 1e-3, 30} {
		q, k, v := normal(r, 2, 9, 8, amplitude), normal(r, 2, 17, 8, amplitude), normal(r, 2, 17, 8, amplitude)
		bq, bk, bv := bound.Leaf(wide(q)), bound.Leaf(wide(k)), bound.Leaf(wide(v))
		for _, a := range arithmetics() {
			s := a.scores(q, k, .35)
			worst.note(t, "scores", compare(t, s, must(t)(bound.Scores(bq, bk, .35))))
			worst.note(t, "softmax", compare(t, a.softmax(s, reference.Causal(8)), must(t)(bound.Softmax(must(t)(bound.Scores(bq, bk, .35)), reference.Causal(8)))))
			worst.note(t, "attention", compare(t, a.attention(q, k, v, .35, reference.Causal(8)),
				must(t)(bound.Attention(bq, bk, bv, .35, reference.Causal(8)))))
		}
	}
	worst.log(t)
}

// A leaf from float64 carries what rounding it to f32 costs, and the chain holds for the rounded tensors.
func TestLeafFromFloat64(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	x := make(reference.Heads, 2)
	for h := range x {
		x[h] = mat.NewDense(19, 12, nil)
		x[h].Apply(func(int, int, float64) float64 { return r.NormFloat64() }, x[h])
	}
	leaf := bound.Leaf(x)
	if e := leaf.Err[0].At(0, 0); e == 0 || e > math.Abs(x[0].At(0, 0))*0x1p-24 {
		t.Errorf("leaf error %v of %v", e, x[0].At(0, 0))
	}
	if report := compare(t, narrow(x), leaf); !report.Pass || report.MaxRatio != 1 {
		t.Errorf("leaf: %v", report)
	}
	want := must(t)(bound.Attention(leaf, leaf, leaf, .3, reference.Causal(0)))
	for _, a := range arithmetics() {
		if report := compare(t, a.attention(narrow(x), narrow(x), narrow(x), .3, reference.Causal(0)), want); !report.Pass {
			t.Errorf("%s: %v", a.name, report)
		}
	}
}

// Moves are exact: no error where a leaf has none, and each error goes with its value.
func TestMoves(t *testing.T) {
	rows := bound.Heads{Value: reference.Heads{mat.NewDense(2, 12, nil)}, Err: reference.Heads{mat.NewDense(2, 12, nil)}}
	for i := range 24 {
		rows.Value[0].Set(i/12, i%12, float64(i))
		rows.Err[0].Set(i/12, i%12, float64(i)/1000)
	}
	q, k, v, err := bound.Split(rows, reference.NeoX, 2, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []bound.Heads{q, k, v, must(t)(bound.Merge(k)), must(t)(bound.Swap(k)), must(t)(bound.Append(k, v)),
		must(t)(bound.Append(bound.Heads{}, v)), must(t)(bound.Unmerge(rows, 3))} {
		for h := range x.Value {
			r, c := x.Value[h].Dims()
			for i := range r * c {
				if got, want := x.Err[h].At(i/c, i%c), x.Value[h].At(i/c, i%c)/1000; got != want {
					t.Errorf("error %v, want %v", got, want)
				}
			}
		}
	}
}

// What is hidden has no say in value or bound, even NaN; hidden probabilities and empty rows must be exact.
func TestHidden(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	q, k, v := bound.Leaf(wide(normal(r, 2, 5, 6, 1))), wide(normal(r, 1, 5, 6, 1)), wide(normal(r, 1, 5, 6, 1))
	clean := must(t)(bound.Attention(q, bound.Leaf(k), bound.Leaf(v), .4, reference.Causal(-1)))
	for i := range 6 {
		k[0].Set(4, i, math.NaN())
		v[0].Set(4, i, math.Inf(1))
	}
	got := must(t)(bound.Attention(q, bound.Leaf(k), bound.Leaf(v), .4, reference.Causal(-1)))
	for h := range got.Value {
		if !mat.EqualApprox(got.Value[h], clean.Value[h], 1e-15) || !mat.EqualApprox(got.Err[h], clean.Err[h], 1e-15) {
			t.Errorf("head %d: a hidden NaN changes value or bound", h)
		}
		for i := range 6 {
			if got.Value[h].At(0, i) != 0 || got.Err[h].At(0, i) != 0 {
				t.Errorf("the empty row is %v with bound %v", got.Value[h].At(0, i), got.Err[h].At(0, i))
			}
		}
	}
	p := must(t)(bound.Softmax(must(t)(bound.Scores(q, bound.Leaf(k), .4)), reference.Causal(-1)))
	for row := range 5 {
		for col := range 5 {
			if hidden := col > row-1; hidden != (p.Err[0].At(row, col) == 0) || hidden != (p.Value[0].At(row, col) == 0) {
				t.Errorf("p[%d, %d] = %v with bound %v", row, col, p.Value[0].At(row, col), p.Err[0].At(row, col))
			}
		}
	}
	lse := must(t)(bound.LSE(must(t)(bound.Scores(q, bound.Leaf(k), .4)), reference.Causal(-1)))
	if !math.IsInf(lse.Value[0].At(0, 0), -1) || lse.Err[0].At(0, 0) != 0 {
		t.Errorf("LSE of an empty row is %v with bound %v", lse.Value[0].At(0, 0), lse.Err[0].At(0, 0))
	}
}

// A visible key of -Inf has weight 0, one of -1e39 too, and neither widens the bound of the rest.
func TestInfiniteKeys(t *testing.T) {
	q, v := bound.Leaf(wide(tensor{{{1, 0.5}}})), bound.Leaf(wide(tensor{{{3, 4}, {5, 6}, {7, 8}}}))
	clean := must(t)(bound.Attention(q, bound.Leaf(wide(tensor{{{1, 2}, {2, 1}, {-300, -300}}})), v, 1, nil))
	for _, far := range []float32{float32(math.Inf(-1)), -1e38} {
		k := bound.Leaf(wide(tensor{{{1, 2}, {2, 1}, {far, far}}}))
		got := must(t)(bound.Attention(q, k, v, 1, nil))
		if e, want := got.Err[0].At(0, 0), clean.Err[0].At(0, 0); !(e > 0 && e <= 1.1*want) {
			t.Errorf("key %v: bound %v, without it %v", far, e, want)
		}
		lse := must(t)(bound.LSE(must(t)(bound.Scores(q, k, 1)), nil))
		if e := lse.Err[0].At(0, 0); !(e > 0 && e < 1e-5) {
			t.Errorf("key %v: bound of LSE %v", far, e)
		}
	}
}

// The values are those of package reference, to the bit, whatever the number of workers.
func TestValuesAreTheReference(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	q, k, v := wide(normal(r, 6, 9, 10, 1)), wide(normal(r, 3, 12, 10, 1)), wide(normal(r, 3, 12, 10, 1))
	want, err := reference.Attention(q, k, v, .3, reference.Causal(3))
	if err != nil {
		t.Fatal(err)
	}
	got := must(t)(bound.Attention(bound.Leaf(q), bound.Leaf(k), bound.Leaf(v), .3, reference.Causal(3)))
	for h := range want {
		if !slices.Equal(got.Value[h].RawMatrix().Data, want[h].RawMatrix().Data) {
			t.Errorf("head %d differs", h)
		}
	}
}

func TestRefusals(t *testing.T) {
	x := func(heads, rows, dim int) bound.Heads {
		out := make(reference.Heads, heads)
		for h := range out {
			out[h] = mat.NewDense(rows, dim, nil)
		}
		return bound.Leaf(out)
	}
	bare := bound.Heads{Value: x(1, 2, 2).Value}
	ragged := bound.Heads{Value: x(1, 2, 2).Value, Err: x(1, 2, 3).Err}
	hole := bound.Leaf(reference.Heads{nil})
	last := func(_ any, err error) error { return err }
	split := func(rows bound.Heads) error {
		_, _, _, err := bound.Split(rows, reference.GPT2, 1, 1, 1)
		return err
	}
	for want, err := range map[string]error{
		"reference: Merge: shapes do not fit: x has 1 heads of values and 0 of errors":                          last(bound.Merge(bare)),
		"reference: Swap: shapes do not fit: x has [2, 3] in head 0, [2, 2] before":                             last(bound.Swap(ragged)),
		"reference: Softmax: shapes do not fit: s has an empty head 0":                                          last(bound.Softmax(hole, nil)),
		"reference: LSE: shapes do not fit: s has no heads":                                                     last(bound.LSE(bound.Heads{}, nil)),
		"reference: Split: shapes do not fit: rows is not a plain matrix":                                       split(x(2, 2, 3)),
		"reference: Unmerge: shapes do not fit: rows [2, 3] are not 2 heads":                                    last(bound.Unmerge(x(1, 2, 3), 2)),
		"reference: Scores: shapes do not fit: q has dim 3, k 4":                                                last(bound.Scores(x(2, 2, 3), x(2, 2, 4), 1)),
		"reference: Scores: shapes do not fit: 3 heads are no multiple of 2 KV heads":                           last(bound.Scores(x(3, 2, 3), x(2, 2, 3), 1)),
		"reference: Context: shapes do not fit: p [2, 2, 3] has 3 columns, v [2, 4, 3] has 4 rows":              last(bound.Context(x(2, 2, 3), x(2, 4, 3))),
		"reference: Attention: shapes do not fit: q [2, 2, 3], k [2, 4, 3] and v [2, 5, 3]: heads, rows or dim": last(bound.Attention(x(2, 2, 3), x(2, 4, 3), x(2, 5, 3), 1, nil)),
		"reference: Append: shapes do not fit: old [2, 2, 3] and rows [2, 2, 4] differ in heads or dim":         last(bound.Append(x(2, 2, 3), x(2, 2, 4))),
		"reference: Add: shapes do not fit: a [2, 2, 3] and b [2, 2, 4] differ":                                 last(bound.Add(x(2, 2, 3), x(2, 2, 4))),
		"reference: Linear: shapes do not fit: b is [1, 3], want [1, 4]":                                        last(bound.Linear(x(1, 2, 3), x(1, 4, 3), x(1, 1, 3))),
		"reference: ApplyRoPE: bad argument: rotary 5 is not an even number from 2 to the head dim 6":           last(bound.ApplyRoPE(x(1, 2, 6), reference.RoPE{Rotary: 5, Base: 1e4})),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		if !errors.Is(err, reference.ErrShape) && !errors.Is(err, reference.ErrArgument) {
			t.Errorf("%v has no kind", err)
		}
	}
}
