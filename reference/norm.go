package reference

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// LayerNorm is, for each row of n elements (Ba et al., arXiv:1607.06450),
//
//	y_i = weight_i (x_i - m) / sqrt(v + eps) + bias_i,  m the mean of the row, v the mean of (x_i - m)^2
//
// weight and bias are [1, n], or nil for none. eps is positive.
func LayerNorm(x Heads, weight, bias *mat.Dense, eps float64) (Heads, error) {
	return normed("LayerNorm", x, weight, bias, eps, true)
}

// RMSNorm is LayerNorm without mean and bias (Zhang and Sennrich, arXiv:1910.07467):
//
//	y_i = weight_i x_i / sqrt(v + eps),  v the mean of x_i^2
func RMSNorm(x Heads, weight *mat.Dense, eps float64) (Heads, error) {
	return normed("RMSNorm", x, weight, nil, eps, false)
}

func normed(op string, x Heads, weight, bias *mat.Dense, eps float64, centred bool) (Heads, error) {
	in, err := measure(op, "x", x)
	if err != nil {
		return nil, err
	}
	for _, p := range []struct {
		name   string
		values *mat.Dense
	}{{"weight", weight}, {"bias", bias}} {
		if p.values == nil {
			continue
		}
		if s, err := measure(op, p.name, Heads{p.values}); err != nil {
			return nil, err
		} else if s.rows != 1 || s.dim != in.dim {
			return nil, badShape(op, "%s is [%d, %d], want [1, %d]", p.name, s.rows, s.dim, in.dim)
		}
	}
	if !(eps > 0) || math.IsInf(eps, 1) {
		return nil, badArgument(op, "eps %v is not a positive number", eps)
	}
	out := zeros(in)
	for h := range x {
		for row := range in.rows {
			to := out[h].RawRowView(row)
			copy(to, x[h].RawRowView(row))
			if centred {
				floats.AddConst(-floats.Sum(to)/float64(in.dim), to)
			}
			floats.Scale(1/math.Sqrt(floats.Dot(to, to)/float64(in.dim)+eps), to)
			if weight != nil {
				floats.Mul(to, weight.RawRowView(0))
			}
			if bias != nil {
				floats.Add(to, bias.RawRowView(0))
			}
		}
	}
	return out, nil
}
