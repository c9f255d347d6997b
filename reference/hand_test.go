package reference_test

import (
	"math"
	"testing"

	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/mat"
)

// Small inputs whose right values were worked out by hand or in float64: faults that were shipped all gave other ones.

// matrix is a matrix from its rows.
func matrix(rows ...[]float64) *mat.Dense {
	m := mat.NewDense(len(rows), len(rows[0]), nil)
	for i, row := range rows {
		m.SetRow(i, row)
	}
	return m
}

func one(rows ...[]float64) reference.Heads { return reference.Heads{matrix(rows...)} }

// count is a matrix of 0, 1, 2, ...
func count(rows, dim int) *mat.Dense {
	m := mat.NewDense(rows, dim, nil)
	for i := range rows * dim {
		m.Set(i/dim, i%dim, float64(i))
	}
	return m
}

func TestRoPEConvention(t *testing.T) {
	x := []float64{1, 2, 3, 4}
	for _, c := range []struct {
		name string
		x    []float64
		rope reference.RoPE
		want []float64
	}{
		{"half-split", x, reference.RoPE{Rotary: 4, Base: 1e4, Offset: 1}, []float64{-1.984111, 1.959901, 2.462378, 4.019800}},
		{"interleaved", x, reference.RoPE{Rotary: 4, Base: 1e4, Offset: 1, Interleaved: true}, []float64{-1.142640, 1.922076, 2.959851, 4.029800}},
		{"position 0", x, reference.RoPE{Rotary: 4, Base: 1e4}, x},
		{"position 0 interleaved", x, reference.RoPE{Rotary: 4, Base: 1e4, Interleaved: true}, x},
		{"explicit position", x, reference.RoPE{Rotary: 4, Base: 1e4, Offset: 77, Positions: []int{1}}, []float64{-1.984111, 1.959901, 2.462378, 4.019800}},
		{"explicit frequencies", x, reference.RoPE{Rotary: 4, InvFreq: []float64{1, 0.01}, Offset: 1}, []float64{-1.984111, 1.959901, 2.462378, 4.019800}},
		{"backwards", []float64{-1.984111, 1.959901, 2.462378, 4.019800}, reference.RoPE{Rotary: 4, Base: 1e4, Offset: -1}, x},
		{"magnitude", x, reference.RoPE{Rotary: 4, Base: 1e4, Offset: 1, Magnitude: 2}, []float64{-3.968222, 3.919802, 4.924756, 8.039600}},
		{"partial", []float64{1, 2, 3, 4, 5, 6, 7, 8}, reference.RoPE{Rotary: 4, Base: 1e4, Offset: 3},
			[]float64{-1.413353, 1.879118, -2.828857, 4.058191, 5, 6, 7, 8}},
		{"full", []float64{1, 2, 3, 4, 5, 6, 7, 8}, reference.RoPE{Rotary: 8, Base: 1e4, Offset: 3},
			[]float64{-1.695593, 0.137552, 2.788682, 3.975982, -4.808842, 6.323059, 7.086837, 8.011964}},
		{"partial interleaved", []float64{1, 2, 3, 4, 5, 6, 7, 8}, reference.RoPE{Rotary: 4, Base: 1e4, Offset: 3, Interleaved: true},
			[]float64{-1.272233, -1.838865, 2.878668, 4.088187, 5, 6, 7, 8}},
	} {
		t.Run(c.name, func(t *testing.T) {
			agree(t, "rotated", must(t)(reference.ApplyRoPE(one(c.x), c.rope)), one(c.want), 1e-6)
		})
	}
}

// The elements behind the rotary ones are copied to the bit, at any position and magnitude.
func TestRoPECopiesTheRest(t *testing.T) {
	x := count(3, 16)
	got := must(t)(reference.ApplyRoPE(reference.Heads{x}, reference.RoPE{Rotary: 4, Base: 1e4, Offset: 131071, Magnitude: 1.3}))[0]
	agree(t, "rest", reference.Heads{mat.DenseCopyOf(got.Slice(0, 3, 4, 16))}, reference.Heads{mat.DenseCopyOf(x.Slice(0, 3, 4, 16))}, 0)
}

// Left padding: two rows of tokens, 3 and 5 long; each token's position counts from its own start.
func TestRoPEPositions(t *testing.T) {
	x := reference.Heads{matrix([]float64{1, 2}, []float64{1, 2}, []float64{1, 2}, []float64{1, 2}, []float64{1, 2})}
	got := must(t)(reference.ApplyRoPE(x, reference.RoPE{Rotary: 2, Base: 1e4, Positions: []int{0, 0, 0, 1, 2}}))
	want := matrix([]float64{1, 2}, []float64{1, 2}, []float64{1, 2},
		[]float64{math.Cos(1) - 2*math.Sin(1), math.Sin(1) + 2*math.Cos(1)},
		[]float64{math.Cos(2) - 2*math.Sin(2), math.Sin(2) + 2*math.Cos(2)})
	agree(t, "padded", got, reference.Heads{want}, 1e-15)
}

// An f32 angle differs from a float64 one as much as f32 rounding says, and by nothing where the angle is exact.
func TestRoPEFloat32Angles(t *testing.T) {
	const position = 131071
	f := math.Pow(1e4, -0.5) // pair 1 of rotary 4
	r := reference.RoPE{Rotary: 4, Base: 1e4, Offset: position, Float32Angles: true}
	cos, sin := r.Turn(0, 1)
	angle := float32(position) * float32(f)
	if want := float64(float32(math.Cos(float64(angle)))); cos != want {
		t.Errorf("cos %v, want %v", cos, want)
	}
	if want := float64(float32(math.Sin(float64(angle)))); sin != want {
		t.Errorf("sin %v, want %v", sin, want)
	}
	if off := math.Abs(float64(angle) - position*f); off == 0 || off > position*f*0x1p-23 {
		t.Errorf("f32 angle off by %v", off)
	}
}

// One query at position 4 over five keys. Another position gives other probabilities: 0, 3 or 5 are the known mistakes.
func TestRoPEOffsetBehindCache(t *testing.T) {
	keys := one([]float64{1, 0, 0, 1}, []float64{0, 1, 1, 0}, []float64{1, 1, 0, 0}, []float64{0, 0, 1, 1}, []float64{1, 0, 1, 0})
	query := one([]float64{1, 2, 3, 4})
	for offset, want := range map[int][]float64{
		0: {0.452843, 0.152203, 0.334025, 0.056210, 0.004718},
		3: {0.080019, 0.046997, 0.021068, 0.706163, 0.145754},
		4: {0.335602, 0.012113, 0.010559, 0.497822, 0.143905},
		5: {0.797793, 0.013660, 0.026763, 0.134852, 0.026931},
	} {
		k := must(t)(reference.ApplyRoPE(keys, reference.RoPE{Rotary: 4, Base: 1e4}))
		q := must(t)(reference.ApplyRoPE(query, reference.RoPE{Rotary: 4, Base: 1e4, Offset: offset}))
		p := must(t)(reference.Softmax(must(t)(reference.Scores(q, k, 0.5)), nil))
		agree(t, "probabilities", p, one(want), 1e-6)
	}
}

func TestSplitLayouts(t *testing.T) {
	for _, c := range []struct {
		layout         reference.Layout
		heads, kv, dim int
		q, k, v        reference.Heads
	}{
		{reference.GPT2, 2, 2, 2, reference.Heads{matrix([]float64{0, 1}), matrix([]float64{2, 3})},
			reference.Heads{matrix([]float64{4, 5}), matrix([]float64{6, 7})}, reference.Heads{matrix([]float64{8, 9}), matrix([]float64{10, 11})}},
		{reference.NeoX, 2, 2, 2, reference.Heads{matrix([]float64{0, 1}), matrix([]float64{6, 7})},
			reference.Heads{matrix([]float64{2, 3}), matrix([]float64{8, 9})}, reference.Heads{matrix([]float64{4, 5}), matrix([]float64{10, 11})}},
		{reference.Grouped, 4, 2, 1, reference.Heads{matrix([]float64{0}), matrix([]float64{1}), matrix([]float64{4}), matrix([]float64{5})},
			reference.Heads{matrix([]float64{2}), matrix([]float64{6})}, reference.Heads{matrix([]float64{3}), matrix([]float64{7})}},
		{reference.GPT2, 4, 2, 1, reference.Heads{matrix([]float64{0}), matrix([]float64{1}), matrix([]float64{2}), matrix([]float64{3})},
			reference.Heads{matrix([]float64{4}), matrix([]float64{5})}, reference.Heads{matrix([]float64{6}), matrix([]float64{7})}},
	} {
		rows := count(1, (c.heads+2*c.kv)*c.dim)
		q, k, v, err := reference.Split(rows, c.layout, c.heads, c.kv, c.dim)
		if err != nil {
			t.Fatal(err)
		}
		agree(t, c.layout.String()+" q", q, c.q, 0)
		agree(t, c.layout.String()+" k", k, c.k, 0)
		agree(t, c.layout.String()+" v", v, c.v, 0)
	}
}

// Several rows: a column split must not run into the next row. K of GPT-2 is columns 4..7 of 12.
func TestSplitThenMerge(t *testing.T) {
	rows := count(3, 12)
	_, k, _, err := reference.Split(rows, reference.GPT2, 2, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	merged, err := reference.Merge(k)
	if err != nil {
		t.Fatal(err)
	}
	agree(t, "merged k", reference.Heads{merged}, reference.Heads{mat.DenseCopyOf(rows.Slice(0, 3, 4, 8))}, 0)
	agree(t, "unmerged", must(t)(reference.Unmerge(merged, 2)), k, 0)
}

// A merge is a transpose: token 0 holds a row of each head, not two rows of head 0.
func TestMergeTransposes(t *testing.T) {
	x := reference.Heads{matrix([]float64{1, 2}, []float64{3, 4}), matrix([]float64{5, 6}, []float64{7, 8})}
	merged, err := reference.Merge(x)
	if err != nil {
		t.Fatal(err)
	}
	agree(t, "merged", reference.Heads{merged}, one([]float64{1, 2, 5, 6}, []float64{3, 4, 7, 8}), 0)
	agree(t, "swapped", must(t)(reference.Swap(x)),
		reference.Heads{matrix([]float64{1, 2}, []float64{5, 6}), matrix([]float64{3, 4}, []float64{7, 8})}, 0)
	tall := reference.Heads{count(3, 2), count(3, 2), count(3, 2), count(3, 2)}
	agree(t, "swapped twice", must(t)(reference.Swap(must(t)(reference.Swap(tall)))), tall, 0)
}

// Four query heads over two KV heads: neighbours share, 0 0 1 1; tiled it would be 0 1 0 1.
func TestGroupedQueryHeads(t *testing.T) {
	q := reference.Heads{matrix([]float64{1}), matrix([]float64{1}), matrix([]float64{1}), matrix([]float64{1})}
	k := reference.Heads{matrix([]float64{2}, []float64{3}), matrix([]float64{5}, []float64{7})}
	agree(t, "scores", must(t)(reference.Scores(q, k, 10)), reference.Heads{
		matrix([]float64{20, 30}), matrix([]float64{20, 30}), matrix([]float64{50, 70}), matrix([]float64{50, 70})}, 0)
	p := reference.Heads{matrix([]float64{1, 0}), matrix([]float64{0, 1}), matrix([]float64{1, 0}), matrix([]float64{0, 1})}
	want := reference.Heads{matrix([]float64{2}), matrix([]float64{3}), matrix([]float64{5}), matrix([]float64{7})}
	agree(t, "context", must(t)(reference.Context(p, k)), want, 0)
	sharp := must(t)(reference.Attention(q, k, k, 1e3, nil)) // all weight on the larger key
	agree(t, "attention", sharp, reference.Heads{matrix([]float64{3}), matrix([]float64{3}), matrix([]float64{7}), matrix([]float64{7})}, 0)
}

func TestMaskAlignment(t *testing.T) {
	s := one([]float64{1, 2, 3, 4, 5}, []float64{5, 4, 3, 2, 1})
	bottomRight := must(t)(reference.Softmax(s, reference.Causal(3)))
	agree(t, "bottom right", rows(bottomRight, 0, 1), one([]float64{.032059, .087144, .236883, .643914, 0}), 1e-6)
	agree(t, "bottom right, last row", rows(bottomRight, 1, 2), one([]float64{.636409, .234122, .086129, .031685, .011656}), 1e-6)
	agree(t, "top left", must(t)(reference.Softmax(s, reference.Causal(0))),
		one([]float64{1, 0, 0, 0, 0}, []float64{.731059, .268941, 0, 0, 0}), 1e-6)
	agree(t, "no mask", rows(must(t)(reference.Softmax(s, nil)), 0, 1), one([]float64{.011656, .031685, .086129, .234122, .636409}), 1e-6)
}

// Five queries over two keys, the last aligned: the first three see nothing.
func TestEmptyRows(t *testing.T) {
	nan := math.NaN()
	s := one([]float64{nan, 1}, []float64{2, 3}, []float64{4, math.Inf(1)}, []float64{1, nan}, []float64{1, 1})
	causal := reference.Causal(-3)
	agree(t, "probabilities", must(t)(reference.Softmax(s, causal)),
		one([]float64{0, 0}, []float64{0, 0}, []float64{0, 0}, []float64{1, 0}, []float64{.5, .5}), 0)
	lse, err := reference.LSE(s, causal)
	if err != nil {
		t.Fatal(err)
	}
	inf := math.Inf(-1)
	for row, want := range []float64{inf, inf, inf, 1, 1 + math.Ln2} {
		if got := lse.At(0, row); got != want && !(math.Abs(got-want) < 1e-15) {
			t.Errorf("LSE of row %d is %v, want %v", row, got, want)
		}
	}
	q, kv := reference.Heads{count(5, 2)}, reference.Heads{count(2, 2)}
	agree(t, "context", rows(must(t)(reference.Attention(q, kv, kv, 1, causal)), 0, 3), reference.Heads{mat.NewDense(3, 2, nil)}, 0)
}

// A key or value that nobody sees changes nothing, whatever it is; one that is seen shows.
func TestHiddenNaN(t *testing.T) {
	q, k, v := reference.Heads{count(4, 2)}, reference.Heads{count(4, 2)}, reference.Heads{count(4, 2)}
	want := must(t)(reference.Attention(q, k, v, .1, reference.Causal(0)))
	for _, poison := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		bad := reference.Heads{mat.DenseCopyOf(k[0])}
		bad[0].SetRow(3, []float64{poison, poison})
		got := must(t)(reference.Attention(q, bad, bad, .1, reference.Causal(0)))
		agree(t, "rows before", rows(got, 0, 3), rows(want, 0, 3), 1e-15)
		if x := got[0].At(3, 0); x == want[0].At(3, 0) {
			t.Errorf("%v seen by row 3 does not show: %v", poison, x)
		}
		p := must(t)(reference.Softmax(must(t)(reference.Scores(q, k, .1)), reference.Causal(0)))
		agree(t, "context of hidden rows", rows(must(t)(reference.Context(p, bad)), 0, 3), rows(want, 0, 3), 1e-15)
	}
	// Weight 0 by underflow is not hidden.
	sharp := reference.Heads{matrix([]float64{1})}
	keys := reference.Heads{matrix([]float64{0}, []float64{1000})}
	values := reference.Heads{matrix([]float64{math.NaN()}, []float64{1})}
	if x := must(t)(reference.Attention(sharp, keys, values, 1, nil))[0].At(0, 0); !math.IsNaN(x) {
		t.Errorf("a visible NaN under weight 0 gives %v", x)
	}
}

// NaN follows the formulas through products, also against zeros.
func TestNaNShows(t *testing.T) {
	nan := math.NaN()
	if x := must(t)(reference.Scores(one([]float64{0, 0}), one([]float64{nan, 1}), 1))[0].At(0, 0); !math.IsNaN(x) {
		t.Errorf("0 * NaN in scores is %v", x)
	}
	if m, err := reference.Linear(matrix([]float64{0, 1}), matrix([]float64{nan, 1}), nil); err != nil || !math.IsNaN(m.At(0, 0)) {
		t.Errorf("0 * NaN in Linear is %v, %v", m, err)
	}
	if x := must(t)(reference.Softmax(one([]float64{1, nan}), nil))[0].At(0, 0); !math.IsNaN(x) {
		t.Errorf("softmax of a row with NaN is %v", x)
	}
}

func TestSoftmaxFarScores(t *testing.T) {
	agree(t, "large", must(t)(reference.Softmax(one([]float64{1e6, 1e6 + 1}), nil)), one([]float64{.2689414213699951, .7310585786300049}), 1e-15)
	agree(t, "negative", must(t)(reference.Softmax(one([]float64{-1e6, -1e6 - 1}), nil)), one([]float64{.7310585786300049, .2689414213699951}), 1e-15)
	lse, err := reference.LSE(one([]float64{1e6, 1e6 + 1}), nil)
	if err != nil || !(math.Abs(lse.At(0, 0)-(1e6+1+math.Log1p(math.Exp(-1)))) <= 1e-9) {
		t.Errorf("LSE %v, %v", lse, err)
	}
	for _, inf := range []float64{math.Inf(1), math.Inf(-1)} {
		if lse, err := reference.LSE(one([]float64{math.Inf(-1), inf}), nil); err != nil || lse.At(0, 0) != inf {
			t.Errorf("LSE of -Inf and %v is %v, %v", inf, lse, err)
		}
	}
}

func TestLinearAppendAdd(t *testing.T) {
	x, w := matrix([]float64{1, 2}, []float64{3, 4}), matrix([]float64{1, 0}, []float64{10, 1}, []float64{0, 100})
	out, err := reference.Linear(x, w, matrix([]float64{.5, .25, .125}))
	if err != nil {
		t.Fatal(err)
	}
	agree(t, "linear", reference.Heads{out}, one([]float64{1.5, 12.25, 200.125}, []float64{3.5, 34.25, 400.125}), 0)
	if out, err = reference.Linear(x, w, nil); err != nil {
		t.Fatal(err)
	}
	agree(t, "linear without bias", reference.Heads{out}, one([]float64{1, 12, 200}, []float64{3, 34, 400}), 0)

	old := reference.Heads{matrix([]float64{0, 1}, []float64{2, 3}), matrix([]float64{4, 5}, []float64{6, 7})}
	added := reference.Heads{matrix([]float64{100, 101}), matrix([]float64{102, 103})}
	want := reference.Heads{matrix([]float64{0, 1}, []float64{2, 3}, []float64{100, 101}), matrix([]float64{4, 5}, []float64{6, 7}, []float64{102, 103})}
	agree(t, "appended", must(t)(reference.Append(old, added)), want, 0)
	fresh := must(t)(reference.Append(nil, added))
	agree(t, "fresh", fresh, added, 0)
	fresh[0].Set(0, 0, -1)
	if added[0].At(0, 0) != 100 {
		t.Error("a fresh cache shares memory with its rows")
	}

	a, b := mat.NewDense(2, 4, nil), mat.NewDense(2, 4, nil)
	for i := range 8 {
		a.Set(i/4, i%4, .5*float64(i))
		b.Set(i/4, i%4, 4-float64(i))
	}
	sum := matrix([]float64{4, 3.5, 3, 2.5}, []float64{2, 1.5, 1, .5})
	agree(t, "sum", must(t)(reference.Add(reference.Heads{a, b, a}, reference.Heads{b, a, b})), reference.Heads{sum, sum, sum}, 0)
	agree(t, "sums", must(t)(reference.Add(reference.Heads{a, a}, reference.Heads{a, b})), reference.Heads{
		matrix([]float64{0, 1, 2, 3}, []float64{4, 5, 6, 7}), sum}, 0)
}
