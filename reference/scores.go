package reference

import "gonum.org/v1/gonum/mat"

// Scores is scale * q.k of every query with every key: q [H, S, d], k [KV, T, d], result [H, S, T]. Nothing is hidden:
// visibility is given to [Softmax]. Source: Vaswani et al., arXiv:1706.03762, equation 1, where scale is 1/sqrt(d).
func Scores(q, k Heads, scale float64) (Heads, error) {
	qs, err := measure("Scores", "q", q)
	if err != nil {
		return nil, err
	}
	ks, err := measure("Scores", "k", k)
	if err != nil {
		return nil, err
	}
	if qs.dim != ks.dim {
		return nil, badShape("Scores", "q %v and k %v differ in dim", qs, ks)
	}
	perKV, err := group("Scores", qs, ks, "q", "k")
	if err != nil {
		return nil, err
	}
	out := make(Heads, qs.heads)
	for h := range q {
		s := mat.NewDense(qs.rows, ks.rows, nil)
		s.Mul(q[h], k[h/perKV].T())
		s.Scale(scale, s)
		out[h] = s
	}
	return out, nil
}
