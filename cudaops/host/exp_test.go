package host

import (
	"math"
	"testing"
)

// TestExp measures e^x of every kernel against float64, in ULP of f32: of normal results and of denormal ones. The bounds of package
// reference/bound take 2 ULP for granted.
func TestExp(t *testing.T) {
	var all []float32
	for bits := uint32(0); bits < math.Float32bits(110); bits += 997 {
		all = append(all, math.Float32frombits(bits), -math.Float32frombits(bits))
	}
	for n := -151; n <= 129; n++ { // around the places where the exponent changes, and where n is rounded
		for _, at := range []float64{float64(n) * math.Ln2, (float64(n) + 0.5) * math.Ln2} {
			x := float32(at)
			all = append(all, math.Nextafter32(x, -200), x, math.Nextafter32(x, 200))
		}
	}
	eachKernels(t, func(t *testing.T, k *kernels) {
		got := make([]float32, len(all))
		k.exponentialsRow(got, all, 0)
		worst, at := 0.0, float32(0)
		for i, x := range all {
			if ulp := ulps(got[i], math.Exp(float64(x))); !(ulp <= worst) {
				worst, at = ulp, x
			}
		}
		t.Logf("at most %.3f ULP off, at %v", worst, at)
		allowed := 1.0
		if k == plain {
			allowed = 1.25 // no fused multiply-add
		}
		if !(worst <= allowed) {
			t.Errorf("e^%v is %v ULP off, more than %v", at, worst, allowed)
		}
		for _, c := range [][2]float64{
			{0, 1}, {math.Copysign(0, -1), 1}, {math.Inf(-1), 0}, {-104, 0}, {-math.MaxFloat32, 0},
			{math.Inf(1), math.Inf(1)}, {89, math.Inf(1)}, {math.MaxFloat32, math.Inf(1)}, {math.NaN(), math.NaN()},
		} {
			x, want := float32(c[0]), float32(c[1])
			for n := 1; n <= 9; n++ { // the last of a vector, and of its rest
				row := make([]float32, n)
				row[n-1] = x
				k.exponentialsRow(row, row, 0)
				same(t, "row", row[n-1:], []float32{want})
			}
			for _, s := range []*stripKernels{&k.strip, &k.wide} {
				lanes := make([]float32, tileRows)
				lanes[s.lanes-1] = x
				s.exponentials(make([]float32, tileRows), lanes, make([]float32, tileRows), 1)
				same(t, "lane", lanes[s.lanes-1:s.lanes], []float32{want})
			}
		}
	})
}

// ulps is how many units in the last place, as f32 has them at want, got is off; of a truth beyond f32, 0 for an overflow.
func ulps(got float32, want float64) float64 {
	if want > math.MaxFloat32 && math.IsInf(float64(got), 1) {
		return 0
	}
	_, e := math.Frexp(want)
	return math.Abs(float64(got)-want) / math.Ldexp(1, max(e-24, -149))
}
