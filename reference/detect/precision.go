package detect

import "math"

// Precision is the number format that data went through, coarsest step included: what f32 tensors hold after a bf16 model ran
// is BFloat16.
type Precision uint8

const (
	Float32  Precision = iota
	Float64            // 53 bits
	TF32               // 11 bits, the exponents of f32: what tensor cores read of an f32
	Float16            // 11 bits, 5 of exponent
	BFloat16           // 8 bits, the exponents of f32
)

func (p Precision) String() string {
	switch p {
	case Float32:
		return "f32"
	case Float64:
		return "float64"
	case TF32:
		return "TF32"
	case Float16:
		return "fp16"
	case BFloat16:
		return "bf16"
	}
	return "unknown precision"
}

// format is the bits of a significand, the leading one counted, and the least and largest exponents of normal numbers.
func (p Precision) format() (bits, lowest, highest int) {
	switch p {
	case Float64:
		return 53, -1022, 1023
	case TF32:
		return 11, -126, 127
	case Float16:
		return 11, -14, 15
	case BFloat16:
		return 8, -126, 127
	}
	return 24, -126, 127
}

// Unit is the unit roundoff: rounding to nearest is off by at most this, relatively.
func (p Precision) Unit() float64 {
	bits, _, _ := p.format()
	return math.Ldexp(1, -bits)
}

// Round is x in this format: to nearest, ties to even, denormals kept, overflow to infinity, as IEEE 754 says.
func (p Precision) Round(x float64) float64 {
	switch {
	case p == Float64 || x == 0 || math.IsNaN(x) || math.IsInf(x, 0):
		return x
	case p == Float32:
		return float64(float32(x))
	}
	bits, lowest, highest := p.format()
	_, e := math.Frexp(x) // |x| is in [2^(e-1), 2^e)
	step := max(e-1, lowest) - (bits - 1)
	r := math.Ldexp(math.RoundToEven(math.Ldexp(x, -step)), step)
	if math.Abs(r) >= math.Ldexp(1, highest+1) {
		return math.Inf(int(math.Copysign(1, x)))
	}
	return r
}

// least is the smallest normal number; below it, roundings are absolute.
func (p Precision) least() float64 {
	_, lowest, _ := p.format()
	return math.Ldexp(1, lowest)
}

// floor is the relative L2 error up to which two tensors count as one value: a few roundings, and for f32 those of the matrix
// products that projections come from.
func (p Precision) floor() float64 {
	switch p {
	case Float64:
		return 1e-12
	case Float32:
		return 4e-6 // a product over 4096 terms is off by 1.1e-6
	}
	return 4 * p.Unit()
}
