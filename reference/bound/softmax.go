package bound

import (
	"math"

	"github.com/attnb/attnb/reference"
)

// Softmax is [reference.Softmax]. The weight exp(s_j - m) of a visible column is off by at most a factor e^(D_j), D_j summing
//
//	E_j                 the error of the score
//	u |s_j|             its rounding to another base, where there is one
//	4u |s_j - m|        subtraction, and the factor to another base
//	4u                  the exponential
//	(n/8 + 2) 5u        online softmax: an exponential and a product each time that the maximum grows, and at the last merge
//
// With n visible columns and A = sum_k p_k (e^(D_k) - 1), the sum is off by at most a factor (1 + A)(1 + gamma_n), and
//
//	E = p_j (e^(D_j) (1 + A) (1 + gamma_(n+8)) - 1)
//
// holds for errors of any size, not to first order only; to first order it is p_j (D_j + sum_k p_k D_k + gamma_n). An error
// cannot exceed 1, the range of a probability. Hidden columns are exactly 0. The maximum grows at most once a tile, so n/8
// is the worst of tiles of 8 keys or more; smaller ones reach it only on scores that rise along nearly the whole row.
func Softmax(s Heads, v reference.Visible) (Heads, error) {
	in, err := measure("Softmax", "s", s)
	if err != nil {
		return Heads{}, err
	}
	out := Heads{make(reference.Heads, in.heads), make(reference.Heads, in.heads)}
	err = parallel(in.heads, func(h int) error {
		p, err := softmax(s.head(h), v)
		if err != nil {
			return err
		}
		out.Value[h], out.Err[h] = p.Value[0], p.Err[0]
		return nil
	})
	return out, err
}

// softmax is Softmax of one head.
func softmax(s Heads, v reference.Visible) (Heads, error) {
	p, err := reference.Softmax(s.Value, v)
	if err != nil {
		return Heads{}, err
	}
	e := like(p[0])
	rows, columns := p[0].Dims()
	seen := make([]int, 0, columns)
	for row := range rows {
		seen = visible(seen[:0], v, row, columns)
		softmaxRow(e.RawRowView(row), p[0].RawRowView(row), s.Value[0].RawRowView(row), s.Err[0].RawRowView(row), seen)
	}
	return Heads{p, reference.Heads{e}}, nil
}

// softmaxRow writes the bounds of one row to e.
func softmaxRow(e, p, s, sErr []float64, seen []int) {
	carried := growth(e, p, s, sErr, seen)
	rest := (1 + carried) * (1 + gamma(len(seen)+8))
	floor := float64(len(seen)) * tiny
	for _, j := range seen {
		e[j] = (p[j]+e[j])*rest - p[j] + floor
		if !(e[j] < 1) { // also NaN, from infinite growth
			e[j] = 1 + gamma(len(seen)+8)
		}
	}
}

// growth writes p_j (e^(D_j) - 1) to e for each visible column and returns their sum A. A score of -Inf has weight 0 to the bit.
func growth(e, p, s, sErr []float64, seen []int) (carried float64) {
	m, top := math.Inf(-1), 0.0 // the largest score and its probability
	for _, j := range seen {
		if s[j] > m {
			m, top = s[j], p[j]
		}
	}
	lse := m - math.Log(top)
	online := float64(len(seen)/8+2)*5*u + function
	for _, j := range seen {
		e[j] = 0
		if math.IsInf(s[j], -1) {
			continue
		}
		d := sErr[j] + u*math.Abs(s[j]) + 4*u*math.Abs(s[j]-m) + online
		if d <= 1 {
			e[j] = p[j] * (d + d*d) // at least e^d - 1, and quick
		} else {
			e[j] = math.Exp(s[j]-lse+d) - p[j] // p may have underflowed
		}
		carried += e[j]
	}
	return carried
}

// LSE is [reference.LSE]; the result is [1, H, S]. The sum is off by a factor (1 + A)(1 + gamma_n) as in [Softmax], its logarithm
// by as much, absolutely; the logarithm and the sum with m are rounded, perhaps in base 2.
//
//	E = (1 + A)(1 + gamma_n) - 1 + 8u |LSE - m| + 4u |m| + u
func LSE(s Heads, v reference.Visible) (Heads, error) {
	in, err := measure("LSE", "s", s)
	if err != nil {
		return Heads{}, err
	}
	value, err := reference.LSE(s.Value, v)
	if err != nil {
		return Heads{}, err
	}
	p, err := reference.Softmax(s.Value, v)
	if err != nil {
		return Heads{}, err
	}
	e := like(value)
	scratch := make([]float64, in.dim)
	for h := range in.heads {
		for row := range in.rows {
			scores := s.Value[h].RawRowView(row)
			seen := visible(nil, v, row, in.dim)
			if math.IsInf(value.At(h, row), 0) {
				continue // exact: nothing visible, or an infinite score
			}
			carried := growth(scratch, p[h].RawRowView(row), scores, s.Err[h].RawRowView(row), seen)
			m := largest(scores, seen)
			e.Set(h, row, (1+carried)*(1+gamma(len(seen)))-1+8*u*math.Abs(value.At(h, row)-m)+4*u*math.Abs(m)+u)
		}
	}
	return Heads{reference.Heads{value}, reference.Heads{e}}, nil
}

// visible appends the columns that row sees.
func visible(seen []int, v reference.Visible, row, columns int) []int {
	for j := range columns {
		if v == nil || v(row, j) {
			seen = append(seen, j)
		}
	}
	return seen
}

func largest(s []float64, seen []int) float64 {
	m := math.Inf(-1)
	for _, j := range seen {
		m = max(m, s[j])
	}
	return m
}
