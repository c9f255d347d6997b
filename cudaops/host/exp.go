package host

import "math"

// exp32 is e^x of any x, within 1.25 ULP (TestExp: 1.10 measured; 0.84 of the assembly, which has fused multiply-adds and does the same otherwise): x = n ln 2 + r, and 2^n times a polynomial of r. avogen/exp.go
// says where that is from.
func exp32(x float32) float32 {
	if x != x {
		return x
	}
	x = min(max(x, -104), 89)          // e^x rounds to 0, or is beyond f32
	n := int32(x*1.442695+151.5) - 151 // the nearest: the sum is above 0, where cutting rounds down
	r := x - float32(n)*0.693359375
	r -= float32(n) * -2.12194440e-4
	p := float32(0.0013814541)
	p = p*r + 0.0083687454
	p = p*r + 0.04166839
	p = p*r + 0.16666521
	p = p*r + 0.49999994
	p = p*r + 1
	p = p*r + 1
	half := n >> 1 // 2^n in two steps, of which the second alone may round
	p *= math.Float32frombits(uint32(half+127) << 23)
	return p * math.Float32frombits(uint32(n-half+127)<<23)
}
