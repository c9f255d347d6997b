package reference

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// Softmax is p_j = exp(s_j - m) / sum_k exp(s_k - m) in each row, over the visible columns k, m the largest visible s. Hidden
// columns get exactly 0 and are not read. A row that sees nothing gets 0 everywhere.
func Softmax(s Heads, v Visible) (Heads, error) {
	in, err := measure("Softmax", "s", s)
	if err != nil {
		return nil, err
	}
	out := zeros(in)
	for h, scores := range s {
		for row := range in.rows {
			softmaxRow(out[h].RawRowView(row), scores.RawRowView(row), row, v)
		}
	}
	return out, nil
}

// softmaxRow writes the visible columns of p, which comes zeroed. Sinks take part in the sum alone.
func softmaxRow(p, s []float64, row int, v Visible, sinks ...float64) {
	m, sum := largest(s, row, v, sinks...), 0.0
	for _, x := range sinks {
		sum += math.Exp(x - m)
	}
	for j := range s {
		if v.sees(row, j) {
			p[j] = math.Exp(s[j] - m)
			sum += p[j]
		}
	}
	for j := range p {
		if v.sees(row, j) {
			p[j] /= sum
		}
	}
}

// LSE is ln sum_k exp(s_k) over the visible columns k of each row, -Inf for a row that sees nothing. The result is [H, S].
func LSE(s Heads, v Visible) (*mat.Dense, error) {
	in, err := measure("LSE", "s", s)
	if err != nil {
		return nil, err
	}
	out := mat.NewDense(in.heads, in.rows, nil)
	for h, scores := range s {
		for row := range in.rows {
			out.Set(h, row, lseRow(scores.RawRowView(row), row, v))
		}
	}
	return out, nil
}

func lseRow(s []float64, row int, v Visible, sinks ...float64) float64 {
	m, sum := largest(s, row, v, sinks...), 0.0
	if math.IsInf(m, 0) {
		return m // exp(m-m) would be NaN where the limit is plain
	}
	for _, x := range sinks {
		sum += math.Exp(x - m)
	}
	for j := range s {
		if v.sees(row, j) {
			sum += math.Exp(s[j] - m)
		}
	}
	return m + math.Log(sum)
}

// largest is the largest of the visible scores and the sinks, -Inf where there is none, NaN where one is NaN.
func largest(s []float64, row int, v Visible, sinks ...float64) float64 {
	m := math.Inf(-1)
	for _, x := range sinks {
		m = math.Max(m, x)
	}
	for j := range s {
		if v.sees(row, j) {
			m = math.Max(m, s[j])
		}
	}
	return m
}
