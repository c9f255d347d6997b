package noise

import (
	"math"

	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/mat"
)

// LayerNorm is the variance of [reference.LayerNorm]; the zero Heads as weight or bias mean none. With d = x - m, s = v + eps and
// y0 = d / sqrt(s),
//
//	V  = w^2 ((sum_j Vx_j (delta_ij - 1/n - d_i d_j / (n s))^2 + Vm) / s + r y0^2) + y0^2 Vw + Vb + u^2 (2 w^2 y0^2 + y^2)
//	Vm = u^2 (sum S_k^2 / n^2 + m^2)                the mean; S_k are the partial sums of x
//	r  = u^2 (sum Q_k^2 / (2 n s)^2 + 17)           1/sqrt(s); Q_k are those of d^2; square root and division are 4u off
//
// where a rounding of d counts as one of x.
func LayerNorm(x, weight, bias Heads, eps float64) (reference.Heads, error) {
	return normed(x, weight, bias, eps, true)
}

// RMSNorm is the variance of [reference.RMSNorm]: that of [LayerNorm] without the mean and its 1/n.
func RMSNorm(x, weight Heads, eps float64) (reference.Heads, error) {
	return normed(x, weight, Heads{}, eps, false)
}

func normed(x, weight, bias Heads, eps float64, centred bool) (reference.Heads, error) {
	const op = "Norm"
	heads, rows, dim, err := x.shape(op, "x")
	if err != nil {
		return nil, err
	}
	w, err := affineOf(op, "weight", weight, dim, 1)
	if err != nil {
		return nil, err
	}
	b, err := affineOf(op, "bias", bias, dim, 0)
	if err != nil {
		return nil, err
	}
	return eachHead(heads, func(h int) *mat.Dense {
		out := mat.NewDense(rows, dim, nil)
		for row := range rows {
			normRow(out.RawRowView(row), x.Value[h].RawRowView(row), x.Var[h].RawRowView(row), w, b, eps, centred)
		}
		return out
	}), nil
}

// affine is one row of weights or biases, and their variances.
type affine struct{ value, variance []float64 }

// affineOf reads a row of n, or makes one of a constant.
func affineOf(op, name string, x Heads, n int, otherwise float64) (affine, error) {
	if x.Value == nil {
		a := affine{make([]float64, n), make([]float64, n)}
		for i := range a.value {
			a.value[i] = otherwise
		}
		return a, nil
	}
	heads, rows, dim, err := x.shape(op, name)
	if err != nil {
		return affine{}, err
	}
	if heads != 1 || rows != 1 || dim != n {
		return affine{}, unfit(op, [3]int{heads, rows, dim}, [3]int{1, 1, n})
	}
	return affine{x.Value[0].RawRowView(0), x.Var[0].RawRowView(0)}, nil
}

func normRow(out, x, variance []float64, w, b affine, eps float64, centred bool) {
	n := float64(len(x))
	sum, sums, part := 0.0, 0.0, 0.0
	mean, off := 0.0, 0.0 // the mean and its variance
	if centred {
		for _, v := range x {
			sum += v
			sums += sum * sum
		}
		mean, part = sum/n, 1/n
		off = u * u * (sums/(n*n) + mean*mean)
	}
	d, in := make([]float64, len(x)), make([]float64, len(x))
	square, squares := 0.0, 0.0
	var v0, v1, v2 float64 // sums of the variances, times d^0, d^1, d^2
	for i := range x {
		d[i], in[i] = x[i]-mean, variance[i]
		if centred {
			in[i] += u * u * d[i] * d[i]
		}
		square += d[i] * d[i]
		squares += square * square
		v0, v1, v2 = v0+in[i], v1+in[i]*d[i], v2+in[i]*d[i]*d[i]
	}
	s := square/n + eps
	r := u * u * (squares/(4*n*n*s*s) + 17)
	for i := range out {
		c, y0 := d[i]/(n*s), d[i]/math.Sqrt(s)
		spread := in[i]*(1-2*part-2*c*d[i]) + part*part*v0 + 2*c*part*v1 + c*c*v2
		y := w.value[i]*y0 + b.value[i]
		scaled := w.value[i] * w.value[i]
		out[i] = scaled*((spread+off)/s+r*y0*y0) + y0*y0*w.variance[i] + b.variance[i] + u*u*(2*scaled*y0*y0+y*y)
		if out[i]-out[i] != 0 {
			out[i] = 0 // beside a value that is not finite
		}
	}
}
