package reference

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// Context is p v: each row of probabilities p [H, S, T] weighs the rows of v [KV, T, d] into one of the result [H, S, d]. A
// weight of exactly 0 takes no part, so that a hidden value that is NaN stays hidden.
func Context(p, v Heads) (Heads, error) {
	return context("Context", p, v, nil)
}

// context is Context where vis, if not nil, decides what takes part: a visible NaN shows even under a weight that
// underflowed to 0.
func context(op string, p, v Heads, vis Visible) (Heads, error) {
	ps, err := measure(op, "p", p)
	if err != nil {
		return nil, err
	}
	vs, err := measure(op, "v", v)
	if err != nil {
		return nil, err
	}
	if ps.dim != vs.rows {
		return nil, badShape(op, "p %v has %d columns, v %v has %d rows", ps, ps.dim, vs, vs.rows)
	}
	perKV, err := group(op, ps, vs, "p", "v")
	if err != nil {
		return nil, err
	}
	out := make(Heads, ps.heads)
	for h := range p {
		value := v[h/perKV]
		out[h] = mat.NewDense(ps.rows, vs.dim, nil)
		if finite(value) {
			out[h].Mul(p[h], value) // a hidden column adds 0 times a finite value
			continue
		}
		for row := range ps.rows {
			weigh(out[h].RawRowView(row), p[h].RawRowView(row), value, row, vis)
		}
	}
	return out, nil
}

// weigh adds p[j] times row j of v to out for each j that takes part.
func weigh(out, p []float64, v *mat.Dense, row int, vis Visible) {
	for j, weight := range p {
		hidden := vis == nil && weight == 0 || vis != nil && !vis(row, j)
		if hidden {
			continue
		}
		for i, x := range v.RawRowView(j) {
			out[i] += weight * x
		}
	}
}

func finite(m *mat.Dense) bool {
	rows, _ := m.Dims()
	for row := range rows {
		for _, x := range m.RawRowView(row) {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return false
			}
		}
	}
	return true
}
