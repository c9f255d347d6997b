package reference_test

import (
	"errors"
	"math"
	"testing"

	"github.com/attnb/attnb/reference"
)

// 5 x 7 cells into 2 x 3: pools of 2 and 3 rows, and of 2, 2 and 3 columns.
func TestPool(t *testing.T) {
	x := reference.Heads{count(5, 7)}
	for _, c := range []struct {
		by   reference.Reduction
		v    reference.Visible
		want [][]float64
	}{
		{reference.Max, nil, [][]float64{{8, 10, 13}, {29, 31, 34}}},
		{reference.Min, nil, [][]float64{{0, 2, 4}, {14, 16, 18}}},
		{reference.Sum, nil, [][]float64{{16, 24, 51}, {129, 141, 234}}},
		{reference.Mean, nil, [][]float64{{4, 6, 8.5}, {21.5, 23.5, 26}}},
		// rows see 1, 2, 3, 4, 5 columns
		{reference.Mean, reference.Causal(0), [][]float64{{(0 + 7 + 8) / 3., 0, 0}, {21.5, (16 + 23 + 24 + 30 + 31) / 5., 32}}},
		{reference.Sum, reference.Causal(0), [][]float64{{15, 0, 0}, {129, 124, 32}}},
		{reference.Max, reference.Causal(-9), [][]float64{{0, 0, 0}, {0, 0, 0}}},
	} {
		got, err := reference.Pool(x, c.v, c.by, 2, 3)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			for j := range 3 {
				if g := got[0].At(i, j); !(math.Abs(g-c.want[i][j]) <= 1e-12) {
					t.Errorf("reduction %d: [%d, %d] is %v, want %v", c.by, i, j, g, c.want[i][j])
				}
			}
		}
	}
}

// Nothing abnormal hides in a pool, and nothing that is hidden shows.
func TestPoolOfOddValues(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	hide := func(_, col int) bool { return col > 0 }
	for _, c := range []struct {
		cells []float64
		want  [4]float64 // by Max, Mean, Sum, Min
	}{
		{[]float64{nan, 1, 2, 3}, [4]float64{3, 2, 6, 1}},
		{[]float64{0, nan, inf, 3}, [4]float64{nan, nan, nan, nan}},
		{[]float64{0, -inf, nan, 3}, [4]float64{nan, nan, nan, nan}},
		{[]float64{0, 1, inf, 3}, [4]float64{inf, inf, inf, 1}},
		{[]float64{0, 1, -inf, 3}, [4]float64{3, -inf, -inf, -inf}},
	} {
		for by, want := range c.want {
			got, err := reference.Pool(one(c.cells), hide, reference.Reduction(by), 1, 1)
			if err != nil {
				t.Fatal(err)
			}
			if g := got[0].At(0, 0); g != want && !(math.IsNaN(g) && math.IsNaN(want)) {
				t.Errorf("reduction %d of %v without the first: %v, want %v", by, c.cells, g, want)
			}
		}
	}
}

func TestPoolRefuses(t *testing.T) {
	x := reference.Heads{count(5, 7)}
	for _, c := range []struct {
		x          reference.Heads
		by         reference.Reduction
		rows, cols int
		want       string
	}{
		{x, 0, 0, 1, "reference: Pool: bad argument: x [1, 5, 7] does not pool into 0 x 1"},
		{x, 0, 6, 1, "reference: Pool: bad argument: x [1, 5, 7] does not pool into 6 x 1"},
		{x, 0, 1, 8, "reference: Pool: bad argument: x [1, 5, 7] does not pool into 1 x 8"},
		{x, 4, 1, 1, "reference: Pool: bad argument: unknown reduction 4"},
		{nil, 0, 1, 1, "reference: Pool: shapes do not fit: x has no heads"},
	} {
		got, err := reference.Pool(c.x, nil, c.by, c.rows, c.cols)
		var refused *reference.Error
		if got != nil || !errors.As(err, &refused) || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}
