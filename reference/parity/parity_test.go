package parity_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/attnb/attnb/reference/parity"
)

var (
	nan  = math.NaN()
	inf  = math.Inf(1)
	nan3 = float32(nan)
	inf3 = float32(inf)
)

// Single cells, each with its class, its ratio and whether it passes.
func TestCells(t *testing.T) {
	negativeZero := float32(math.Copysign(0, -1))
	for _, c := range []struct {
		name        string
		got         float32
		want, bound float64
		class       parity.Class
		ratio       float64
	}{
		{"equal", 1.5, 1.5, 1e-6, parity.Equal, 0},
		{"equal, exact", 1.5, 1.5, 0, parity.Equal, 0},
		{"nearest f32", 0.1, 0.1, 1e-8, parity.Equal, math.Abs(float64(float32(0.1))-0.1) / 1e-8},
		{"nearest f32, but exact was asked for", 0.1, 0.1, 0, parity.Mismatched, inf},
		{"within", 1.25, 1, 0.5, parity.Rounding, 0.5},
		{"at the bound", 1.25, 1, 0.25, parity.Rounding, 1},
		{"beyond", 1.25, 1, 0.125, parity.Mismatched, 2},
		{"zero bound, off by one step", math.Nextafter32(1, 2), 1, 0, parity.Mismatched, inf},
		{"masked", 0, 0, 0, parity.Zero, 0},
		{"near 0", 0x1p-20, 0, 0x1p-10, parity.Rounding, 0x1p-10},
		{"-0 for 0", negativeZero, 0, 0, parity.Zero, 0},
		{"0 for -0", 0, math.Copysign(0, -1), 0, parity.Zero, 0},
		{"not masked", 1e-45, 0, 0, parity.Mismatched, inf},
		{"underflow within", 0, 1e-60, 1e-45, parity.Equal, 1e-60 / 1e-45},
		{"NaN for NaN", nan3, nan, nan, parity.NonFinite, 0},
		{"NaN", nan3, 1, 1e9, parity.Mismatched, inf},
		{"number for NaN", 1, nan, nan, parity.Mismatched, inf},
		{"Inf for NaN", inf3, nan, nan, parity.Mismatched, inf},
		{"NaN for Inf", nan3, inf, nan, parity.Mismatched, inf},
		{"Inf for Inf", inf3, inf, nan, parity.NonFinite, 0},
		{"-Inf for -Inf", -inf3, -inf, 0, parity.NonFinite, 0},
		{"-Inf for Inf", -inf3, inf, 0, parity.Mismatched, inf},
		{"Inf for a number", inf3, 3, 1e9, parity.Mismatched, inf},
		{"number for -Inf", -math.MaxFloat32, -inf, 1e9, parity.Mismatched, inf},
		{"overflow", inf3, 1e39, 1e32, parity.NonFinite, 0},
		{"overflow of the other sign", -inf3, 1e39, 1e32, parity.Mismatched, inf},
		{"negative overflow", -inf3, -1e39, 1e32, parity.NonFinite, 0},
		{"overflow within the bound", inf3, math.MaxFloat32, 1e32, parity.NonFinite, 0},
		{"overflow, exact", inf3, math.MaxFloat32, 0, parity.Mismatched, inf},
		{"Inf within an infinite bound", inf3, 3, inf, parity.Mismatched, inf},
		{"NaN bound", 1, 1, nan, parity.Mismatched, inf},
		{"infinite bound", 1, 2, inf, parity.Mismatched, inf},
		{"negative bound", 1, 1, -1, parity.Mismatched, inf},
		{"negative bound, off", 2, 1, -1, parity.Mismatched, inf},
	} {
		r, err := parity.Compare([]float32{c.got}, []float64{c.want}, []float64{c.bound})
		if err != nil {
			t.Fatal(err)
		}
		if r.Counts[c.class] != 1 {
			t.Errorf("%s: %v, want %v", c.name, r, c.class)
		}
		if !same(r.MaxRatio, c.ratio) {
			t.Errorf("%s: ratio %v, want %v", c.name, r.MaxRatio, c.ratio)
		}
		if fail := c.class == parity.Mismatched; r.Pass == fail || r.Failed != map[bool]int{true: 1}[fail] {
			t.Errorf("%s: pass %v, failed %d", c.name, r.Pass, r.Failed)
		}
		if ratio := parity.Ratio([]float32{c.got}, []float64{c.want}, []float64{c.bound}); !same(ratio[0], c.ratio) {
			t.Errorf("%s: Ratio %v, want %v", c.name, ratio[0], c.ratio)
		}
	}
}

func same(a, b float64) bool {
	return a == b || !math.IsInf(b, 0) && math.Abs(a-b) <= 1e-12*math.Abs(b)
}

// planted is a right tensor of 7 rows of 11, its truth and bound.
func planted() (got []float32, want, bound []float64) {
	r := rand.New(rand.NewPCG(1, 0))
	for range 77 {
		x := r.NormFloat64()
		got, want, bound = append(got, float32(x)), append(want, x), append(bound, 1e-6)
	}
	return got, want, bound
}

// Faults planted in a right tensor: each fails, and the report says where.
func TestPlanted(t *testing.T) {
	for _, c := range []struct {
		name   string
		plant  func([]float32)
		failed int
		worst  int // -1: any
	}{
		{"nothing", func([]float32) {}, 0, -1},
		{"one NaN", func(x []float32) { x[40] = nan3 }, 1, 40},
		{"one cell", func(x []float32) { x[76] += 1e-4 }, 1, 76},
		{"first cell", func(x []float32) { x[0] -= 1e-4 }, 1, 0},
		{"rows one off", func(x []float32) { copy(x[11:], append([]float32(nil), x[:66]...)) }, 66, -1},
		{"wrong scale", func(x []float32) {
			for i := range x {
				x[i] *= 1.001
			}
		}, 77, -1},
		{"two NaN: the first", func(x []float32) { x[30], x[20] = nan3, nan3 }, 2, 20},
	} {
		got, want, bound := planted()
		c.plant(got)
		r, err := parity.Compare(got, want, bound)
		if err != nil {
			t.Fatal(err)
		}
		if r.N != 77 || r.Failed != c.failed || r.Pass != (c.failed == 0) || r.Counts[parity.Mismatched] != c.failed {
			t.Errorf("%s: %v, want %d failures", c.name, r, c.failed)
		}
		if c.worst >= 0 && r.Worst != c.worst {
			t.Errorf("%s: worst %d, want %d", c.name, r.Worst, c.worst)
		}
		total, binned := 0, 0
		for _, n := range r.Counts {
			total += n
		}
		for _, b := range r.Histogram {
			binned += b.Count
		}
		if total != 77 || binned != 77 {
			t.Errorf("%s: %d cells classified, %d binned", c.name, total, binned)
		}
	}
}

func TestMeasures(t *testing.T) {
	got := []float32{2, 100.5, 0, nan3, math.Nextafter32(1, 0)}
	want := []float64{1, 100, 0.25, nan, 1}
	r, err := parity.Compare(got, want, []float64{4, 4, 4, 0, 4})
	if err != nil {
		t.Fatal(err)
	}
	if r.MaxAbs != 1 || r.MaxRel != 1 || r.MaxRatio != .25 || r.Worst != 0 || !r.Pass {
		t.Errorf("%+v", r)
	}
	if want := math.Sqrt((1 + .25 + .0625) / (1 + 1e4 + .0625 + 1)); math.Abs(r.RelL2-want) > 1e-9 {
		t.Errorf("relative L2 %v, want %v", r.RelL2, want)
	}
	if want := float64(0x3e800000); r.MaxULP != want { // 0.25 lies so many steps above 0
		t.Errorf("ULP %v, want %v", r.MaxULP, want)
	}
}

func TestULP(t *testing.T) {
	smallest := float32(math.SmallestNonzeroFloat32)
	for _, c := range []struct {
		a, b float32
		want float64
	}{
		{1, 1, 0}, {1, math.Nextafter32(1, 2), 1}, {1, math.Nextafter32(1, 0), 1}, {2, 1, 1 << 23}, {0, float32(math.Copysign(0, -1)), 0},
		{smallest, 0, 1}, {-smallest, 0, 1}, {-smallest, smallest, 2}, {-1, math.Nextafter32(-1, 0), 1},
		{math.MaxFloat32, -math.MaxFloat32, 2 * float64(0x7f7fffff)},
	} {
		if got := parity.ULP(c.a, c.b); got != c.want {
			t.Errorf("ULP(%v, %v) = %v, want %v", c.a, c.b, got, c.want)
		}
		if got := parity.ULP(c.b, c.a); got != c.want {
			t.Errorf("ULP(%v, %v) = %v, want %v", c.b, c.a, got, c.want)
		}
	}
}

// The list holds the largest ratios in order, whatever the order of the cells, and no exact cell.
func TestWorstCells(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0))
		n := 1 + r.IntN(40)
		got, want, bound := make([]float32, n), make([]float64, n), make([]float64, n)
		for i := range got {
			got[i], bound[i] = float32(r.IntN(8)), 1 // many ties, some exact
		}
		report, err := parity.Compare(got, want, bound)
		if err != nil {
			t.Fatal(err)
		}
		listed := map[int]bool{}
		for i, c := range report.Cells {
			if c.Ratio == 0 || c.Ratio != float64(got[c.Index]) || c.Got != got[c.Index] || listed[c.Index] {
				t.Fatalf("cell %+v", c)
			}
			listed[c.Index] = true
			if i > 0 {
				before := report.Cells[i-1]
				if before.Ratio < c.Ratio || before.Ratio == c.Ratio && before.Index > c.Index {
					t.Fatalf("%+v listed before %+v", before, c)
				}
			}
		}
		least, inexact := 0.0, 0
		if len(report.Cells) > 0 {
			least = report.Cells[len(report.Cells)-1].Ratio
		}
		for i := range got {
			if got[i] != 0 {
				inexact++
			}
			if !listed[i] && float64(got[i]) > least {
				t.Fatalf("cell %d, ratio %v, is not listed; least listed %v", i, got[i], least)
			}
		}
		if len(report.Cells) != min(inexact, parity.WorstCells) {
			t.Fatalf("%d listed of %d", len(report.Cells), inexact)
		}
		if len(report.Cells) > 0 && (report.Cells[0].Index != report.Worst || report.Cells[0].Ratio != report.MaxRatio) {
			t.Fatalf("first %+v, worst %d", report.Cells[0], report.Worst)
		}
	}
}

func TestHistogram(t *testing.T) {
	ratios := []float64{0, 1e-9, 1e-6, 2e-6, .05, .1, .9, 1, 1.5, 50, 2000, inf}
	got, want, bound := make([]float32, len(ratios)), make([]float64, len(ratios)), make([]float64, len(ratios))
	for i, ratio := range ratios {
		got[i], want[i], bound[i] = 1, 1-ratio, 1
		if math.IsInf(ratio, 1) {
			got[i], want[i] = nan3, 0
		}
	}
	r, err := parity.Compare(got, want, bound)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[float64]int{}
	for _, b := range r.Histogram {
		counts[b.Upper] = b.Count
	}
	// 1 - (1 - .1) is a little less than .1 or more: only the sum of the two bins is certain.
	if counts[0] != 1 || counts[1e-6]+counts[1e-5] != 3 || counts[.1]+counts[1] != 4 || counts[10] != 1 || counts[100] != 1 || counts[inf] != 2 {
		t.Errorf("%v", r.Histogram)
	}
	if passing := counts[0] + counts[1e-6] + counts[1e-5] + counts[.1] + counts[1]; passing != r.N-r.Failed {
		t.Errorf("%d cells up to 1, %d passed", passing, r.N-r.Failed)
	}
}

// A nil bound asks for exact cells.
func TestExact(t *testing.T) {
	r, err := parity.Compare([]float32{1, 0.5}, []float64{1, 0.5}, nil)
	if err != nil || !r.Pass || r.MaxRatio != 0 || len(r.Cells) != 0 {
		t.Errorf("%v, %v", r, err)
	}
	if r, err = parity.Compare([]float32{1}, []float64{0}, []float64{2}); err != nil || !math.IsInf(r.RelL2, 1) {
		t.Errorf("%v, %v", r, err)
	}
	r, err = parity.Compare([]float32{1, 0.5}, []float64{1, 0.5000001}, nil)
	if err != nil || r.Pass || r.Worst != 1 || !math.IsInf(parity.Ratio([]float32{1}, []float64{2}, nil)[0], 1) {
		t.Errorf("%v, %v", r, err)
	}
}

func TestLengths(t *testing.T) {
	for want, c := range map[string][3]int{
		"parity: Compare: lengths do not fit: got 0 cells, want 0, bound 0": {0, 0, 0},
		"parity: Compare: lengths do not fit: got 2 cells, want 3, bound 2": {2, 3, 2},
		"parity: Compare: lengths do not fit: got 2 cells, want 2, bound 1": {2, 2, 1},
	} {
		_, err := parity.Compare(make([]float32, c[0]), make([]float64, c[1]), make([]float64, c[2]))
		if err == nil || err.Error() != want || !errors.Is(err, parity.ErrShape) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if parity.Ratio(make([]float32, 2), make([]float64, 3), nil) != nil || parity.Ratio(make([]float32, 2), make([]float64, 2), make([]float64, 1)) != nil {
		t.Error("Ratio of different lengths is not nil")
	}
}

func TestString(t *testing.T) {
	got, want, bound := planted()
	got[5] = nan3
	r, err := parity.Compare(got, want, bound)
	if err != nil {
		t.Fatal(err)
	}
	if s := r.String(); !strings.HasPrefix(s, "FAIL (1 cells): 77 cells, max error/bound +Inf at 5;") || !strings.HasSuffix(s, "76 equal, 1 mismatched") || strings.Contains(s, "\n") {
		t.Errorf("%q", s)
	}
	r, err = parity.Compare([]float32{1, 0}, []float64{1.25, 0}, []float64{1, 0})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.String(), "pass: 2 cells, max error/bound 0.25 at 0; abs 0.25, rel 0.2, ULP 2097152, rel. L2 0.2; 1 rounding, 1 zero"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// The histogram has a bin for exact cells, one a decade from 1e-6 to 1e3, each up to its upper end, and one for the rest.
func TestHistogramEnds(t *testing.T) {
	ratios := []float64{0, 1e-9, 1e-6, 2e-6, 0.5, 1, 3, 999, 1000, 1001, inf}
	var got []float32
	var want, bound []float64
	for _, r := range ratios {
		got, want = append(got, 1), append(want, 0)
		bound = append(bound, 1/r) // off by 1
	}
	want[0], bound[0] = 1, 1 // exact
	bound[10] = 0
	r, err := parity.Compare(got, want, bound)
	if err != nil {
		t.Fatal(err)
	}
	uppers, counts := []float64{0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10, 100, 1000, inf}, []int{1, 2, 1, 0, 0, 0, 0, 2, 1, 0, 2, 2}
	if len(r.Histogram) != len(uppers) {
		t.Fatalf("%d bins: %v", len(r.Histogram), r.Histogram)
	}
	for i, b := range r.Histogram {
		if !same(b.Upper, uppers[i]) || b.Count != counts[i] {
			t.Errorf("bin %d: %+v, want %d up to %g", i, b, counts[i], uppers[i])
		}
	}
}

// What is 0 on both sides is off by nothing, in proportion too.
func TestZeros(t *testing.T) {
	r, err := parity.Compare(make([]float32, 3), make([]float64, 3), nil)
	if err != nil || r.RelL2 != 0 || !r.Pass {
		t.Errorf("%+v, %v", r, err)
	}
}
