package bound

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

const (
	u = 0x1p-24 // unit roundoff of f32: rounding to nearest is off by at most u, relatively

	// tiny is what a result can be off by, absolutely, when it is denormal: it may be flushed to 0.
	tiny = 0x1p-126

	function = 4 * u // exp, log, cosine, sine, division: 2 ULP

	// angle is the relative error of a float64 angle: a position is exact, and Base^x, its product with the position and the
	// reduction are each within a few 2^-53, here and in the implementation.
	angle = 0x1p-49
)

// gamma bounds the relative error of n roundings, one on another: n u / (1 - n u). n u >= 1 leaves no accuracy to speak of.
func gamma(n int) float64 {
	nu := float64(n) * u
	if nu >= 1 {
		return math.Inf(1)
	}
	return nu / (1 - nu)
}

// magnitudes are |value|, and what the f32 magnitude can be at most, |value| + err. A value that is not finite
// counts as 0: the cells that it reaches are not finite themselves, and those that it does not reach must not hear of it.
func magnitudes(value, err *mat.Dense) (exact, most *mat.Dense) {
	exact, most = like(value), like(value)
	rows, _ := value.Dims()
	for row := range rows {
		v, e := value.RawRowView(row), err.RawRowView(row)
		x, m := exact.RawRowView(row), most.RawRowView(row)
		for i := range v {
			if abs := math.Abs(v[i]); abs <= math.MaxFloat64 {
				x[i], m[i] = abs, abs+e[i]
			}
		}
	}
	return exact, most
}
