package bound

import (
	"math"

	"github.com/attnb/attnb/reference"
)

// ApplyRoPE is [reference.ApplyRoPE]. Each turned element is a sum of two products, x1 c - x2 s or x1 s + x2 c, so
//
//	E = (|x1| + E1)(|c| + Ec)(1 + gamma_2) - |x1||c|  +  the same of x2 and s
//
// where the cosine (and so the sine) is off by the function's 2 ULP, the rounding of the magnitude and of the product with it, and
// the error of the angle, 2^-49 of it: Ec = (4u + 3u)|c| + 2^-49 |angle|. An f32 angle is defined to the bit and adds none.
// Copied elements keep their error.
func ApplyRoPE(x Heads, r reference.RoPE) (Heads, error) {
	s, err := measure("ApplyRoPE", "x", x)
	if err != nil {
		return Heads{}, err
	}
	turned, err := reference.ApplyRoPE(x.Value, r)
	if err != nil {
		return Heads{}, err
	}
	out := Heads{turned, make(reference.Heads, s.heads)}
	for h := range turned {
		out.Err[h] = like(turned[h])
	}
	for row := range s.rows {
		for h := range turned {
			copy(out.Err[h].RawRowView(row), x.Err[h].RawRowView(row))
		}
		for i := range r.Rotary / 2 {
			a, b := r.Pair(i)
			cos, sin, off := turn(r, row, i)
			for h := range turned {
				v, e, to := x.Value[h].RawRowView(row), x.Err[h].RawRowView(row), out.Err[h].RawRowView(row)
				to[a] = product(v[a], e[a], cos, off) + product(v[b], e[b], sin, off) + 2*tiny
				to[b] = product(v[a], e[a], sin, off) + product(v[b], e[b], cos, off) + 2*tiny
			}
		}
	}
	return out, nil
}

// turn is |cos|, |sin| of a pair, and the part of their error that comes from the angle.
func turn(r reference.RoPE, row, i int) (cos, sin, off float64) {
	cos, sin = r.Turn(row, i)
	cos, sin = math.Abs(cos), math.Abs(sin)
	if !r.Float32Angles {
		// cos and sin come with the magnitude, so their root sum of squares is the magnitude.
		off = angle * math.Abs(float64(r.Position(row))*r.Frequency(i)) * math.Hypot(cos, sin)
	}
	return cos, sin, off
}

// product bounds the error of an f32 product of x, off by e, with a cosine or sine c >= 0, within a sum of two.
func product(x, e, c, off float64) float64 {
	x = math.Abs(x)
	return (x+e)*(c+(function+3*u)*c+off)*(1+gamma(2)) - x*c
}
