package bound

import (
	"fmt"

	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/mat"
)

// Context is [reference.Context]. A sum over the n columns of a row that are not exactly 0, then at most a division:
//
//	E = (1 + gamma_(n+4)) sum (|p| + Ep)(|v| + Ev) - sum |p||v|
//
// Dividing the sum by the row's sum of weights, instead of each weight, puts the same roundings in another place.
func Context(p, v Heads) (Heads, error) {
	ps, err := measure("Context", "p", p)
	if err != nil {
		return Heads{}, err
	}
	vs, err := measure("Context", "v", v)
	if err != nil {
		return Heads{}, err
	}
	perKV, err := group("Context", ps, vs)
	if err != nil {
		return Heads{}, err
	}
	value, err := reference.Context(p.Value, v.Value)
	if err != nil {
		return Heads{}, err
	}
	out := Heads{value, make(reference.Heads, ps.heads)}
	err = parallel(ps.heads, func(h int) error {
		out.Err[h] = weighed(p.head(h), v.head(h/perKV))
		return nil
	})
	return out, err
}

// weighed is the error of the context of one head.
func weighed(p, v Heads) *mat.Dense {
	pExact, pMost := magnitudes(p.Value[0], p.Err[0])
	vExact, vMost := magnitudes(v.Value[0], v.Err[0])
	rows, _ := pExact.Dims()
	_, dim := vExact.Dims()
	exact, e := mat.NewDense(rows, dim, nil), mat.NewDense(rows, dim, nil)
	exact.Mul(pExact, vExact)
	e.Mul(pMost, vMost)
	for row := range rows {
		n := 0
		for _, weight := range pMost.RawRowView(row) {
			if weight != 0 {
				n++
			}
		}
		rounding, floor := 1+gamma(n+4), float64(n)*tiny
		to, least := e.RawRowView(row), exact.RawRowView(row)
		for i := range to {
			to[i] = rounding*to[i] - least[i] + floor
		}
	}
	return e
}

// Attention is [reference.Attention]: the bounds of Scores, Softmax and Context, one on another, a head at a time, so that no
// more score matrices are in memory than there are processors.
func Attention(q, k, v Heads, scale float64, vis reference.Visible) (Heads, error) {
	qs, perKV, err := checkAttention(q, k, v)
	if err != nil {
		return Heads{}, err
	}
	out := Heads{make(reference.Heads, qs.heads), make(reference.Heads, qs.heads)}
	err = parallel(qs.heads, func(h int) error {
		value, err := reference.Attention(q.Value[h:h+1], k.Value[h/perKV:h/perKV+1], v.Value[h/perKV:h/perKV+1], scale, vis)
		if err != nil {
			return err
		}
		s, err := scores(q.head(h), k.head(h/perKV), scale)
		if err != nil {
			return err
		}
		p, err := softmax(s, vis)
		if err != nil {
			return err
		}
		out.Value[h], out.Err[h] = value[0], weighed(p, v.head(h/perKV))
		return nil
	})
	return out, err
}

func checkAttention(q, k, v Heads) (qs shape, perKV int, err error) {
	if qs, err = measure("Attention", "q", q); err != nil {
		return
	}
	ks, err := measure("Attention", "k", k)
	if err != nil {
		return qs, 0, err
	}
	vs, err := measure("Attention", "v", v)
	if err != nil {
		return qs, 0, err
	}
	if qs.dim != ks.dim || ks.heads != vs.heads || ks.rows != vs.rows {
		return qs, 0, &reference.Error{Op: "Attention", Kind: reference.ErrShape,
			Detail: fmt.Sprintf("q %v, k %v and v %v: heads, rows or dim", qs, ks, vs)}
	}
	perKV, err = group("Attention", qs, ks)
	return qs, perKV, err
}
