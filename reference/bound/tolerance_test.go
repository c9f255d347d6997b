package bound_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/bound"
	"gonum.org/v1/gonum/floats"
)

// The figures of docs/tolerances.md: go test ./reference/bound -run Tolerances -v

// l2 is the fixed relative L2 error that an op is allowed where the bounds are not computed. Attention: in tiles.
var l2 = map[string]float64{"Add": 6e-8, "RoPE": 1e-7, "Softmax": 1e-6, "Scores": 5e-7, "Linear": 2e-6, "Attention": 3e-6}

// figures are what one row of the table says.
type figures struct {
	op, shape string
	bound     float64 // median over the cells of bound / root mean square of the values
	off       float64 // relative L2 of the error
	ratio     float64 // largest error/bound
	ulp       float64
}

func measure(t *testing.T, op, shape string, got tensor, want bound.Heads) figures {
	t.Helper()
	report := compare(t, got, want)
	if !report.Pass {
		t.Errorf("%s %s: %v", op, shape, report)
	}
	value, allowed := flat64(want.Value), flat64(want.Err)
	slices.Sort(allowed)
	size := floats.Norm(value, 2) / math.Sqrt(float64(len(value)))
	return figures{op, shape, allowed[len(allowed)/2] / size, report.RelL2, report.MaxRatio, report.MaxULP}
}

func flat64(x reference.Heads) []float64 {
	var out []float64
	for _, m := range x {
		out = append(out, m.RawMatrix().Data...)
	}
	return out
}

func (f figures) String() string {
	return fmt.Sprintf("| %s | %s | %.1e | %.1e | %.1e | %.0f |", f.op, f.shape, f.bound, f.off, f.ratio, f.ulp)
}

func TestTolerances(t *testing.T) {
	t.Log("| op | shape | bound | rel. L2 | largest error/bound | ULP |")
	show := func(f figures) {
		t.Helper()
		t.Log(f)
		if !(f.off <= l2[f.op]) {
			t.Errorf("%s %s: relative L2 %.2g, allowed %.2g", f.op, f.shape, f.off, l2[f.op])
		}
	}
	r := rand.New(rand.NewPCG(11, 0))
	plain := arithmetics()[0] // sums in order: the least accurate that is common
	leaf := func(x tensor) bound.Heads { return bound.Leaf(wide(x)) }

	a, b := normal(r, 1, 64, 256, 1), normal(r, 1, 64, 256, 1)
	sum := tensor{make([][]float32, 64)}
	for i := range a[0] {
		for j := range a[0][i] {
			sum[0][i] = append(sum[0][i], a[0][i][j]+b[0][i][j])
		}
	}
	show(measure(t, "Add", "64 x 256", sum, must(t)(bound.Add(leaf(a), leaf(b)))))
	for _, offset := range []int{0, 131071, 1048575} {
		rope := reference.RoPE{Rotary: 128, Base: 1e4, Offset: offset}
		x := normal(r, 2, 64, 128, 1)
		show(measure(t, "RoPE", fmt.Sprintf("d 128, offset %d", offset), plain.rope(x, rope), must(t)(bound.ApplyRoPE(leaf(x), rope))))
	}
	for _, d := range []int{64, 128} {
		q, k := normal(r, 1, 64, d, 1), normal(r, 1, 256, d, 1)
		show(measure(t, "Scores", fmt.Sprintf("d %d", d), plain.scores(q, k, .1), must(t)(bound.Scores(leaf(q), leaf(k), .1))))
	}
	for _, n := range []int{128, 1024, 4096} {
		s := normal(r, 1, 16, n, 2)
		show(measure(t, "Softmax", fmt.Sprintf("%d columns", n), plain.softmax(s, nil), must(t)(bound.Softmax(leaf(s), nil))))
	}
	for _, n := range []int{768, 4096} {
		x, w := normal(r, 1, 16, n, 1), normal(r, 1, 64, n, 1)
		show(measure(t, "Linear", fmt.Sprintf("%d inputs", n), tensor{plain.linear(x[0], w[0], nil)}, must(t)(bound.Linear(leaf(x), leaf(w), bound.Heads{}))))
	}
	tiled := arithmetics()[len(arithmetics())-2]
	for _, amplitude := range []float64{1, 4} {
		for _, keys := range []int{128, 1024, 8192} {
			size := math.Sqrt(amplitude) // of q and k, so that the scores have the amplitude
			q, k, v := normal(r, 1, 8, 64, size), normal(r, 1, keys, 64, size), normal(r, 1, keys, 64, 1)
			causal := reference.Causal(keys - 8)
			want := must(t)(bound.Attention(leaf(q), leaf(k), leaf(v), .125, causal))
			shape := fmt.Sprintf("d 64, %d keys, amplitude %g", keys, amplitude)
			show(measure(t, "Attention", shape+", tiles of 16", tiled.attention(q, k, v, .125, causal), want))
			t.Log(measure(t, "Attention", shape+", sums in order", plain.attention(q, k, v, .125, causal), want))
		}
	}
}

// The bound of a long sum is wide: one hidden key too many is beyond the bounds of 1,000 keys and within those of 65,536, where
// the relative L2 error still shows it.
func TestMaskFaultByLength(t *testing.T) {
	t.Log("| keys | largest error/bound | rel. L2 |")
	r := rand.New(rand.NewPCG(12, 0))
	how := arithmetics()[len(arithmetics())-2]
	for _, keys := range []int{128, 1024, 8192, 65536} {
		q, k, v := normal(r, 1, 1, 64, 1), normal(r, 1, keys, 64, 1), normal(r, 1, keys, 64, 1)
		want := must(t)(bound.Attention(bound.Leaf(wide(q)), bound.Leaf(wide(k)), bound.Leaf(wide(v)), .125, nil))
		wrong := how.attention(q, k, v, .125, reference.Causal(keys-2))
		report := compare(t, wrong, want)
		t.Logf("| %d | %.3g | %.1e |", keys, report.MaxRatio, report.RelL2)
		if keys <= 1024 && report.Pass || !(report.RelL2 > 100*l2["Attention"]) {
			t.Errorf("%d keys: %v", keys, report)
		}
	}
}
