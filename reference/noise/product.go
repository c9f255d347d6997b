package noise

import (
	"math"

	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/mat"
)

// places is how often a sum is looked at on its way.
const places = 8

// multiply is x y of one head. With the terms t_k = x_k y_k, of which n are not 0, and the partial sums S_k, the variance is
//
//	sum (x_k^2 Vy_k + Vx_k y_k^2 + Vx_k Vy_k)  from the inputs
//	u^2 sum t_k^2                              n products
//	u^2 sum S_k^2                              n sums
//	4 u^2 S_n^2                                a scale, a division, the sum of the weights: roundings of the result
//
// The partial sums depend on the order and on the blocks in which an implementation adds up. Taken are those in order, after each
// eighth of the terms; what they do in between, or in another order, is as far as a sum of the t_k in random order moves:
// n sum t_k^2 in all.
func multiply(x, y cells) cells {
	xv, yv := tamed(x.value), tamed(y.value)
	rows, n := xv.Dims()
	_, cols := yv.Dims()
	value, passed, part := mat.NewDense(rows, cols, nil), mat.NewDense(rows, cols, nil), mat.NewDense(rows, cols, nil)
	terms := make([]float64, rows)
	step := (n + places - 1) / places
	for from := 0; from < n; from += step {
		to := min(from+step, n)
		part.Mul(xv.Slice(0, rows, from, to), yv.Slice(from, to, 0, cols))
		for row := range rows {
			here := nonzero(xv.RawRowView(row)[from:to])
			terms[row] += here
			sum, by, s := value.RawRowView(row), part.RawRowView(row), passed.RawRowView(row)
			for i := range sum {
				sum[i] += by[i]
				s[i] += here * sum[i] * sum[i]
			}
		}
	}
	variance := spread(cells{xv, tamed(x.variance)}, cells{yv, tamed(y.variance)}, terms)
	for row := range rows {
		v, s, sum := variance.RawRowView(row), passed.RawRowView(row), value.RawRowView(row)
		for i := range v {
			v[i] += u*u*(s[i]+4*sum[i]*sum[i]) + terms[row]*tiny*tiny
		}
	}
	return cells{value, variance}
}

// spread is the part of the variance that is itself a product: (c X^2 + Vx) Y^2 + (X^2 + Vx) Vy, c = u^2 (n + 1) of each row.
func spread(x, y cells, terms []float64) *mat.Dense {
	left, right := squared(x.value), squared(y.value)
	rows, _ := left.Dims()
	out := new(mat.Dense)
	if mat.Max(y.variance) > 0 {
		both := new(mat.Dense)
		both.Add(left, x.variance)
		out.Mul(both, y.variance)
	}
	for row := range rows {
		c := u * u * (terms[row] + 1)
		squares := left.RawRowView(row)
		for i := range squares {
			squares[i] *= c
		}
	}
	left.Add(left, x.variance)
	own := new(mat.Dense)
	own.Mul(left, right)
	if out.IsEmpty() {
		return own
	}
	out.Add(out, own)
	return out
}

// tamed is m, or a copy with 0 for what is not finite.
func tamed(m *mat.Dense) *mat.Dense {
	if finite(m) {
		return m
	}
	out := mat.DenseCopyOf(m)
	out.Apply(func(_, _ int, v float64) float64 {
		if v-v != 0 {
			return 0
		}
		return v
	}, out)
	return out
}

func finite(m *mat.Dense) bool {
	sum := 0.0
	for row := range m.RawMatrix().Rows {
		for _, v := range m.RawRowView(row) {
			sum += v - v
		}
	}
	return sum == 0
}

func squared(m *mat.Dense) *mat.Dense {
	out := new(mat.Dense)
	out.MulElem(m, m)
	return out
}

func nonzero(x []float64) float64 {
	n := 0
	for _, v := range x {
		if v != 0 {
			n++
		}
	}
	return float64(n)
}

func (x cells) turned() cells {
	return cells{mat.DenseCopyOf(x.value.T()), mat.DenseCopyOf(x.variance.T())}
}

// Linear is the variance of [reference.Linear]: x [1, S, in], w [1, out, in], b [1, 1, out] or none.
func Linear(x, w, b Heads) (reference.Heads, error) {
	xh, xs, xd, err := x.shape("Linear", "x")
	if err != nil {
		return nil, err
	}
	wh, ws, wd, err := w.shape("Linear", "w")
	if err != nil {
		return nil, err
	}
	if xh != 1 || wh != 1 || xd != wd {
		return nil, unfit("Linear", [3]int{xh, xs, xd}, [3]int{wh, ws, wd})
	}
	out := multiply(x.head(0), w.head(0).turned())
	if len(b.Value) == 0 {
		return reference.Heads{out.variance}, nil
	}
	bh, bs, bd, err := b.shape("Linear", "b")
	if err != nil {
		return nil, err
	}
	if bh != 1 || bs != 1 || bd != ws {
		return nil, unfit("Linear", [3]int{wh, ws, wd}, [3]int{bh, bs, bd})
	}
	bias, off := b.Value[0].RawRowView(0), b.Var[0].RawRowView(0)
	for row := range xs {
		sum, v := out.value.RawRowView(row), out.variance.RawRowView(row)
		for i := range v {
			v[i] += off[i] + u*u*(sum[i]+bias[i])*(sum[i]+bias[i])
		}
	}
	return reference.Heads{out.variance}, nil
}

// Scores is the variance of [reference.Scores].
func Scores(q, k Heads, scale float64) (reference.Heads, error) {
	heads, perKV, err := grouped("Scores", q, k)
	if err != nil {
		return nil, err
	}
	return eachHead(heads, func(h int) *mat.Dense { return scores(q.head(h), k.head(h/perKV), scale).variance }), nil
}

func scores(q, k cells, scale float64) cells {
	s := multiply(q, k.turned())
	if !finite(q.value) || !finite(k.value) { // which the variance did without, and the weights must not
		s.value.Mul(q.value, k.value.T())
	}
	s.value.Scale(scale, s.value)
	s.variance.Scale(scale*scale, s.variance)
	return s
}

// Context is the variance of [reference.Context].
func Context(p, v Heads) (reference.Heads, error) {
	ph, ps, pd, err := p.shape("Context", "p")
	if err != nil {
		return nil, err
	}
	vh, vs, vd, err := v.shape("Context", "v")
	if err != nil {
		return nil, err
	}
	if pd != vs || ph%vh != 0 {
		return nil, unfit("Context", [3]int{ph, ps, pd}, [3]int{vh, vs, vd})
	}
	return eachHead(ph, func(h int) *mat.Dense { return multiply(p.head(h), v.head(h/(ph/vh))).variance }), nil
}

// Attention is the variance of [reference.Attention], a head at a time.
func Attention(q, k, v Heads, scale float64, vis reference.Visible) (reference.Heads, error) {
	heads, perKV, err := attends(q, k, v)
	if err != nil {
		return nil, err
	}
	return eachHead(heads, func(h int) *mat.Dense {
		return multiply(softmax(scores(q.head(h), k.head(h/perKV), scale), vis), v.head(h/perKV)).variance
	}), nil
}

// attends measures what goes into an attention.
func attends(q, k, v Heads) (heads, perKV int, err error) {
	heads, perKV, err = grouped("Attention", q, k)
	if err != nil {
		return 0, 0, err
	}
	vh, vs, vd, err := v.shape("Attention", "v")
	if err != nil {
		return 0, 0, err
	}
	if kh, ks, kd, _ := k.shape("Attention", "k"); kh != vh || ks != vs || kd != vd {
		return 0, 0, unfit("Attention", [3]int{kh, ks, kd}, [3]int{vh, vs, vd})
	}
	return heads, perKV, nil
}

// grouped measures q and k, whose heads share KV heads.
func grouped(op string, q, k Heads) (heads, perKV int, err error) {
	qh, qs, qd, err := q.shape(op, "q")
	if err != nil {
		return 0, 0, err
	}
	kh, ks, kd, err := k.shape(op, "k")
	if err != nil {
		return 0, 0, err
	}
	if qd != kd || qh%kh != 0 {
		return 0, 0, unfit(op, [3]int{qh, qs, qd}, [3]int{kh, ks, kd})
	}
	return qh, qh / kh, nil
}

// certain is the largest standard deviation of a score at which a softmax is nearly linear in it.
const certain = 0.1

// Softmax is the variance of [reference.Softmax].
func Softmax(s Heads, vis reference.Visible) (reference.Heads, error) {
	heads, _, _, err := s.shape("Softmax", "s")
	if err != nil {
		return nil, err
	}
	return eachHead(heads, func(h int) *mat.Dense { return softmax(s.head(h), vis).variance }), nil
}

// softmax has, for each visible column j of n, with the largest score m,
//
//	V = p_j^2 (Vs_j + u^2 (s_j^2 + 16 (s_j - m)^2 + 16)  the score, its change of base; the difference, times 4u as in package bound; exp
//	         + sum_k p_k^2 Vs_k + u^2 (n + 16))          the sum of the weights, the division, growths of the maximum
//
// Where a score that counts is not certain, anything from 0 to 1 is possible.
func softmax(s cells, vis reference.Visible) cells {
	p, err := reference.Softmax(reference.Heads{s.value}, vis)
	if err != nil {
		panic(err) // of a matrix that was measured
	}
	rows, cols := s.value.Dims()
	variance := mat.NewDense(rows, cols, nil)
	for row := range rows {
		softmaxRow(variance.RawRowView(row), p[0].RawRowView(row), s.value.RawRowView(row), s.variance.RawRowView(row), row, vis)
	}
	return cells{p[0], variance}
}

func softmaxRow(to, p, s, sv []float64, row int, vis reference.Visible) {
	m, n, shared, worst := math.Inf(-1), 0.0, 0.0, 0.0
	for j := range s {
		if vis == nil || vis(row, j) {
			m, n = max(m, s[j]), n+1
			if s[j]-s[j] == 0 {
				shared += p[j] * p[j] * sv[j]
				worst = max(worst, sv[j])
			}
		}
	}
	for j := range s {
		switch {
		case vis != nil && !vis(row, j) || s[j]-s[j] != 0:
		case worst > certain*certain:
			to[j] = 1
		default:
			below := s[j] - m
			to[j] = p[j]*p[j]*(sv[j]+shared+u*u*(s[j]*s[j]+16*below*below+16+n+16)) + tiny*tiny
		}
	}
}
