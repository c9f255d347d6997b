package noise

import (
	"math"

	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/mat"
)

// Add is the variance of [reference.Add]: of both, and a rounding of the sum.
func Add(a, b Heads) (reference.Heads, error) {
	sum, err := reference.Add(a.Value, b.Value)
	if err != nil {
		return nil, err
	}
	out := Rounded(sum).Var
	for h := range out {
		out[h].Add(out[h], a.Var[h])
		out[h].Add(out[h], b.Var[h])
	}
	return out, nil
}

// RoPE is the variance of [reference.ApplyRoPE]. For x1 c - x2 s, and likewise for the other of the pair,
//
//	V = c^2 V1 + s^2 V2 + 2 u^2 (c^2 x1^2 + s^2 x2^2) + u^2 (x1 c - x2 s)^2 + (2^-49 angle)^2 (x1^2 + x2^2)
//
// where cosine, product and sum are rounded, and the float64 angle is off by what package bound has. Where there is a magnitude its
// product with the cosine is rounded too.
func RoPE(x Heads, r reference.RoPE) (reference.Heads, error) {
	turned, err := reference.ApplyRoPE(x.Value, r)
	if err != nil {
		return nil, err
	}
	roundings := 2 * u * u
	if r.Magnitude != 0 && r.Magnitude != 1 {
		roundings += u * u
	}
	out := make(reference.Heads, len(turned))
	for h := range out {
		out[h] = mat.DenseCopyOf(x.Var[h])
		rows, _ := out[h].Dims()
		for row := range rows {
			v, e, now, to := x.Value[h].RawRowView(row), x.Var[h].RawRowView(row), turned[h].RawRowView(row), out[h].RawRowView(row)
			for i := range r.Rotary / 2 {
				a, b := r.Pair(i)
				cos, sin := r.Turn(row, i)
				c, s := cos*cos, sin*sin
				va, vb := v[a]*v[a], v[b]*v[b]
				angle := 0.0
				if !r.Float32Angles {
					angle = math.Pow(0x1p-49*float64(r.Position(row))*r.Frequency(i), 2) * (c + s) * (va + vb)
				}
				to[a] = c*e[a] + s*e[b] + roundings*(c*va+s*vb) + u*u*now[a]*now[a] + angle
				to[b] = s*e[a] + c*e[b] + roundings*(s*va+c*vb) + u*u*now[b]*now[b] + angle
			}
			for i := range to {
				if to[i]-to[i] != 0 {
					to[i] = 0 // beside a value that is not finite
				}
			}
		}
	}
	return out, nil
}
