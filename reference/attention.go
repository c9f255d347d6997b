package reference

// Attention is softmax(scale q k^T over what is visible) v: q [H, S, d], k and v [KV, T, d], result [H, S, d] (arXiv:1706.03762,
// equation 1). With vis nil and one query row it is a decode step. A row that sees nothing gives 0. A hidden key or value
// never reaches the result, even NaN; a visible one that is NaN shows.
func Attention(q, k, v Heads, scale float64, vis Visible) (Heads, error) {
	ks, err := measure("Attention", "k", k)
	if err != nil {
		return nil, err
	}
	vs, err := measure("Attention", "v", v)
	if err != nil {
		return nil, err
	}
	if ks.heads != vs.heads || ks.rows != vs.rows {
		return nil, badShape("Attention", "k %v and v %v differ in heads or rows", ks, vs)
	}
	s, err := Scores(q, k, scale)
	if err != nil {
		return nil, err
	}
	p, err := Softmax(s, vis)
	if err != nil {
		return nil, err
	}
	if vis == nil {
		vis = func(int, int) bool { return true }
	}
	return context("Attention", p, v, vis)
}
