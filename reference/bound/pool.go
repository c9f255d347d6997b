package bound

import (
	"math"

	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/mat"
)

// Weights is [reference.Softmax] by another way: exp(s_j - L) with the row's log of the sum, L, already at hand: s [H, S, T], lse
// [1, H, S]. Only what the row sees is computed. The exponent is off by at most D_j, which sums
//
//	E_j + E_L           the errors of the score and of L
//	u (|s_j| + |L|)     their rounding to another base, where there is one
//	4u |s_j - L|        subtraction, and the factor to another base
//	4u                  the exponential
//
// so that the error is at most p_j (e^(D_j) - 1). Unlike that of Softmax it grows with |L|: an f32 L is not as near.
func Weights(s, lse Heads, v reference.Visible) (Heads, error) {
	in, err := measure("Weights", "s", s)
	if err != nil {
		return Heads{}, err
	}
	ls, err := measure("Weights", "lse", lse)
	if err != nil {
		return Heads{}, err
	}
	if ls != (shape{1, in.heads, in.rows}) {
		return Heads{}, &reference.Error{Op: "Weights", Kind: reference.ErrShape, Detail: "s " + in.String() + " and lse " + ls.String()}
	}
	value, err := reference.Softmax(s.Value, v)
	if err != nil {
		return Heads{}, err
	}
	out := Heads{value, make(reference.Heads, in.heads)}
	for h := range value {
		out.Err[h] = like(value[h])
		for row := range in.rows {
			p, e := value[h].RawRowView(row), out.Err[h].RawRowView(row)
			scores, scoreErr := s.Value[h].RawRowView(row), s.Err[h].RawRowView(row)
			l, lErr := lse.Value[0].At(h, row), lse.Err[0].At(h, row)
			for _, j := range visible(nil, v, row, in.dim) {
				if math.IsInf(scores[j], -1) {
					continue // weight 0 to the bit
				}
				d := scoreErr[j] + lErr + u*(math.Abs(scores[j])+math.Abs(l)) + 4*u*math.Abs(scores[j]-l) + function
				if d <= 1 {
					e[j] = p[j]*math.Expm1(d) + tiny
				} else {
					e[j] = math.Exp(scores[j]-l+d) + tiny // p may have underflowed
				}
			}
		}
	}
	return out, nil
}

// Pool is [reference.Pool]. An extreme is off by at most what moves it when every cell moves by its error; a sum of n cells by
//
//	E = (1 + gamma_(n+4)) sum (|x| + Ex) - sum |x|
//
// and a mean by that over n.
func Pool(x Heads, v reference.Visible, by reference.Reduction, rows, cols int) (Heads, error) {
	in, err := measure("Pool", "x", x)
	if err != nil {
		return Heads{}, err
	}
	value, err := reference.Pool(x.Value, v, by, rows, cols)
	if err != nil {
		return Heads{}, err
	}
	out := Heads{value, make(reference.Heads, in.heads)}
	for h := range value {
		e := mat.NewDense(rows, cols, nil)
		for i := range rows {
			for j := range cols {
				var p pool
				for row := i * in.rows / rows; row < (i+1)*in.rows/rows; row++ {
					for col := j * in.dim / cols; col < (j+1)*in.dim/cols; col++ {
						if v == nil || v(row, col) {
							p.add(x.Value[h].At(row, col), x.Err[h].At(row, col))
						}
					}
				}
				e.Set(i, j, p.err(by, value[h].At(i, j)))
			}
		}
		out.Err[h] = e
	}
	return out, nil
}

// pool gathers what the error of a pooled cell needs.
type pool struct {
	n                  int        // cells
	finite             int        // of them
	least, most        [2]float64 // the extremes with every cell as low, and as high, as it can be
	magnitude, widened float64    // sums of |x| and |x| + Ex
}

func (p *pool) add(x, e float64) {
	p.n++
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return // the result is not finite, or heeds it not
	}
	if p.finite++; p.finite == 1 {
		p.least, p.most = [2]float64{x - e, x + e}, [2]float64{x - e, x + e}
	}
	for i, v := range [2]float64{x - e, x + e} {
		p.least[i], p.most[i] = math.Min(p.least[i], v), math.Max(p.most[i], v)
	}
	p.magnitude += math.Abs(x)
	p.widened += math.Abs(x) + e
}

func (p *pool) err(by reference.Reduction, value float64) float64 {
	ends := p.most
	switch {
	case p.n == 0:
		return 0
	case by == reference.Min:
		ends = p.least
	case by != reference.Max:
		e := (1+gamma(p.n+4))*p.widened - p.magnitude + float64(p.n)*tiny
		if by == reference.Mean {
			e = e/float64(p.n) + tiny
		}
		return e
	}
	return math.Max(ends[1]-value, value-ends[0])
}
