package bound_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/bound"
	"github.com/attnb/attnb/reference/noise"
	"gonum.org/v1/gonum/mat"
)

// change is what a variant does to scores, in f32.
func (a arithmetic) change(s tensor, v reference.Variant) tensor {
	out := make(tensor, len(s))
	c := float32(v.Softcap)
	for h := range s {
		out[h] = make([][]float32, len(s[h]))
		for i, row := range s[h] {
			out[h][i] = make([]float32, len(row))
			for j, x := range row {
				if c != 0 {
					argument := a.off(x / c)
					if a.scaleQ { // by the reciprocal
						argument = x * (1 / c)
					}
					x = c * a.off(float32(math.Tanh(float64(argument))))
				}
				if v.Bias != nil {
					b := v.Bias[min(h, len(v.Bias)-1)]
					n, _ := b.Dims()
					x += float32(b.At(min(i, n-1), j))
				}
				if v.Slopes != nil {
					x -= float32(v.Slopes[h]) * float32(math.Abs(float64(j-i-v.Diagonal)))
				}
				out[h][i][j] = x
			}
		}
	}
	return out
}

// variantAttention is probabilities and context: a sink is a column of its own, without a value.
func (a arithmetic) variantAttention(s, values tensor, v reference.Variant, vis reference.Visible) (p, context tensor) {
	for h := range s {
		head := tensor{nil}
		value := append([][]float32(nil), values[h*len(values)/len(s)]...)
		cols := len(value)
		for _, row := range s[h] {
			row = append([]float32(nil), row...)
			if v.Sinks != nil {
				row = append(row, float32(v.Sinks[h]))
			}
			head[0] = append(head[0], row)
		}
		if v.Sinks != nil {
			value = append(value, make([]float32, len(value[0])))
		}
		seen := v.Visible(h, vis)
		sees := func(row, col int) bool { return col == cols || seen == nil || seen(row, col) }
		ph := a.softmax(head, sees)
		if a.tile == 0 {
			context = append(context, a.context(ph, tensor{value})...)
		} else {
			rows := make([][]float32, len(s[h]))
			for i := range rows {
				rows[i] = a.online(head[0][i], value, i, sees)
			}
			context = append(context, rows)
		}
		for i := range ph[0] {
			ph[0][i] = ph[0][i][:cols]
		}
		p = append(p, ph[0])
	}
	return p, context
}

// exactly is a variant as the bounds take it, from f32 values.
func exactly(v reference.Variant) (bound.Variant, noise.Variant) {
	b := bound.Variant{Softcap: v.Softcap, Slopes: v.Slopes, Diagonal: v.Diagonal, Allowed: v.Allowed}
	n := noise.Variant{Softcap: v.Softcap, Slopes: v.Slopes, Diagonal: v.Diagonal, Allowed: v.Allowed}
	if v.Bias != nil {
		b.Bias, n.Bias = bound.Leaf(v.Bias), noise.Exact(v.Bias)
	}
	if v.Sinks != nil {
		sinks := reference.Heads{mat.NewDense(1, len(v.Sinks), v.Sinks)}
		b.Sinks, n.Sinks = bound.Leaf(sinks), noise.Exact(sinks)
	}
	return b, n
}

type variantCase struct {
	name    string
	variant reference.Variant
	vis     reference.Visible
}

// variants are of 3 heads, s queries and t keys. Every number is an f32.
func variants(r *rand.Rand, s, t int) []variantCase {
	all := func(heads, rows, cols int, amplitude float64) reference.Heads {
		return wide(normal(r, heads, rows, cols, amplitude))
	}
	sinks := func(amplitude float64) []float64 { return mat.Row(nil, 0, all(1, 1, 3, amplitude)[0]) }
	allowed := all(1, s, t, 1)
	allowed[0].Apply(func(_, _ int, x float64) float64 { return float64(max(0, int(2*x))) }, allowed[0])
	causal := reference.Causal(t - s)
	slopes := []float64{.5, .25, .00390625}
	return []variantCase{
		{"softcap that bends", reference.Variant{Softcap: 5}, causal},
		{"softcap hardly felt", reference.Variant{Softcap: 50}, nil},
		{"softcap of nearly nothing", reference.Variant{Softcap: 0.015625}, nil},
		{"window", reference.Variant{}, reference.All(causal, reference.Window(t-s, 3))},
		{"bias", reference.Variant{Bias: all(3, s, t, 4)}, causal},
		{"large bias of one row", reference.Variant{Bias: all(1, 1, t, 100)}, nil},
		{"ALiBi", reference.Variant{Slopes: slopes, Diagonal: t - s}, causal},
		{"ALiBi on both sides", reference.Variant{Slopes: slopes, Diagonal: t - s}, nil},
		{"sinks", reference.Variant{Sinks: sinks(3)}, causal},
		{"large sinks", reference.Variant{Sinks: []float64{40, -40, 0}}, causal},
		{"allowed", reference.Variant{Allowed: allowed}, causal},
		{"all of it", reference.Variant{Softcap: 3, Bias: all(1, s, t, 1), Slopes: slopes, Diagonal: t - s, Allowed: allowed, Sinks: sinks(1)},
			reference.All(causal, reference.Window(t-s, 20))},
	}
}

// Every f32 implementation of every variant stays within the bound of every cell, and within the limit of the relative L2 error.
func TestSoundVariants(t *testing.T) {
	var worst ratios
	largest := 0.0
	for n, size := range [][2]int{{1, 1}, {7, 7}, {5, 37}, {3, 577}} {
		for _, amplitude := range []float64{1, 8} {
			r := rand.New(rand.NewPCG(uint64(n), 7))
			s, keys, dim := size[0], size[1], 16
			for _, c := range variants(r, s, keys) {
				q, k, v := normal(r, 3, s, dim, amplitude), normal(r, 1, keys, dim, amplitude), normal(r, 1, keys, dim, 1)
				by, noisy := exactly(c.variant)
				bs := must(t)(bound.Scores(bound.Leaf(wide(q)), bound.Leaf(wide(k)), .25))
				bp := must(t)(by.Softmax(bs, c.vis))
				ba := must(t)(by.Attention(bound.Leaf(wide(q)), bound.Leaf(wide(k)), bound.Leaf(wide(v)), .25, c.vis))
				na, err := noisy.Attention(noise.Exact(wide(q)), noise.Exact(wide(k)), noise.Exact(wide(v)), .25, c.vis)
				if err != nil {
					t.Fatal(err)
				}
				bl := must(t)(by.LSE(bs, c.vis))
				for _, a := range arithmetics() {
					scores := a.change(a.scores(q, k, .25), c.variant)
					p, context := a.variantAttention(scores, v, c.variant, c.vis)
					worst.note(t, "probabilities, "+c.name, compare(t, p, bp))
					worst.note(t, "context, "+c.name, compare(t, context, ba))
					worst.note(t, "LSE, "+c.name, compare(t, a.variantLSE(scores, c.variant, c.vis), bl))
					if rel, of := share(t, context, ba.Value, na, nil); rel > 0 {
						largest = max(largest, of)
						if !(of <= .8) {
							t.Errorf("%s, %s, %v keys: relative L2 %.3g is %.3g of its limit", c.name, a.name, keys, rel, of)
						}
					}
				}
			}
		}
	}
	worst.log(t)
	t.Logf("relative L2 error at most %.3g of its limit", largest)
}

func (a arithmetic) variantLSE(s tensor, v reference.Variant, vis reference.Visible) tensor {
	out := make([][]float32, len(s))
	for h := range s {
		seen := v.Visible(h, vis)
		for i, row := range s[h] {
			row = append([]float32(nil), row...)
			sees := seen
			if v.Sinks != nil {
				cols := len(row)
				row = append(row, float32(v.Sinks[h]))
				sees = func(row, col int) bool { return col == cols || seen == nil || seen(row, col) }
			}
			out[h] = append(out[h], a.lse(row, i, sees))
		}
	}
	return tensor{out}
}

// The values beside the bounds are the reference's own, with and without sinks.
func TestVariantValues(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for _, c := range variants(r, 4, 9) {
		s := wide(normal(r, 3, 4, 9, 2))
		by, noisy := exactly(c.variant)
		got := must(t)(by.Softmax(bound.Leaf(s), c.vis))
		want, err := c.variant.Softmax(s, c.vis)
		if err != nil {
			t.Fatal(err)
		}
		lse := must(t)(by.LSE(bound.Leaf(s), c.vis))
		wantLSE, err := c.variant.LSE(s, c.vis)
		if err != nil || !mat.EqualApprox(lse.Value[0], wantLSE, 1e-13) {
			t.Errorf("%s: LSE %v, want %v", c.name, lse.Value[0], wantLSE)
		}
		spread, err := noisy.Softmax(noise.Rounded(s), c.vis)
		if err != nil {
			t.Fatal(err)
		}
		for h := range want {
			if !mat.EqualApprox(got.Value[h], want[h], 1e-15) {
				t.Errorf("%s: head %d: %v, want %v", c.name, h, mat.Formatted(got.Value[h]), mat.Formatted(want[h]))
			}
			for i := range 4 {
				for j := range 9 {
					sees := c.variant.Visible(h, c.vis)
					if hidden := sees != nil && !sees(i, j); hidden && (got.Err[h].At(i, j) != 0 || spread[h].At(i, j) != 0) {
						t.Errorf("%s: a hidden cell may be off by %v, %v", c.name, got.Err[h].At(i, j), spread[h].At(i, j))
					}
				}
			}
		}
	}
}

// The faults that projects shipped are far outside of the bounds.
func TestVariantFaults(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	const s, keys, dim = 9, 61, 16
	q, k, v := normal(r, 3, s, dim, 2), normal(r, 1, keys, dim, 2), normal(r, 1, keys, dim, 1)
	causal, window := reference.Causal(keys-s), func(n int) reference.Visible { return reference.Window(keys-s, n) }
	sinks, slopes := []float64{1, 2, 3}, []float64{.5, .25, .125}
	right := reference.Variant{Softcap: 4, Slopes: slopes, Diagonal: keys - s, Sinks: sinks}
	vis := reference.All(causal, window(16))
	by, _ := exactly(right)
	want := must(t)(by.Attention(bound.Leaf(wide(q)), bound.Leaf(wide(k)), bound.Leaf(wide(v)), .25, vis))
	for name, fault := range map[string]func() (reference.Variant, reference.Visible){
		"softcap dropped": func() (reference.Variant, reference.Visible) { w := right; w.Softcap = 0; return w, vis },
		"sinks dropped":   func() (reference.Variant, reference.Visible) { w := right; w.Sinks = nil; return w, vis },
		"ALiBi dropped":   func() (reference.Variant, reference.Visible) { w := right; w.Slopes = nil; return w, vis },
		"ALiBi upside down": func() (reference.Variant, reference.Visible) {
			w := right
			w.Slopes = []float64{-.5, -.25, -.125}
			return w, vis
		},
		"window one too wide":   func() (reference.Variant, reference.Visible) { return right, reference.All(causal, window(17)) },
		"window one too narrow": func() (reference.Variant, reference.Visible) { return right, reference.All(causal, window(15)) },
		"another head's sink": func() (reference.Variant, reference.Visible) {
			w := right
			w.Sinks = []float64{2, 3, 1}
			return w, vis
		},
	} {
		wrong, sees := fault()
		got, err := wrong.Attention(wide(q), wide(k), wide(v), .25, sees)
		if err != nil {
			t.Fatal(err)
		}
		report := compare(t, narrow(got), want)
		t.Logf("%s: error/bound %.3g", name, report.MaxRatio)
		if !(report.MaxRatio > 10) {
			t.Errorf("%s: error/bound %.3g, want more than 10", name, report.MaxRatio)
		}
	}
}

func TestVariantRefusals(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	x := func(heads, rows, dim int) reference.Heads { return wide(normal(r, heads, rows, dim, 1)) }
	for name, v := range map[string]reference.Variant{
		"bias heads":   {Bias: x(2, 4, 5)},
		"bias rows":    {Bias: x(1, 2, 5)},
		"bias columns": {Bias: x(1, 4, 4)},
		"slopes":       {Slopes: []float64{1, 2}},
		"allowed":      {Allowed: x(2, 4, 5)},
		"allowed rows": {Allowed: x(1, 2, 5)},
		"sinks":        {Sinks: []float64{1, 2}},
	} {
		by, noisy := exactly(v)
		_, err := by.Softmax(bound.Leaf(x(3, 4, 5)), nil)
		_, also := by.Attention(bound.Leaf(x(3, 4, 2)), bound.Leaf(x(1, 5, 2)), bound.Leaf(x(1, 5, 2)), 1, nil)
		_, more := noisy.Softmax(noise.Exact(x(3, 4, 5)), nil)
		_, most := noisy.Attention(noise.Exact(x(3, 4, 2)), noise.Exact(x(1, 5, 2)), noise.Exact(x(1, 5, 2)), 1, nil)
		for _, err := range []error{err, also, more, most} {
			if !errors.Is(err, reference.ErrShape) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
