package reference

import "gonum.org/v1/gonum/mat"

// Linear is x w^T + b: x [S, in], w [out, in] (a row of weights an output), b [1, out] or nil for none; result [S, out].
func Linear(x, w, b *mat.Dense) (*mat.Dense, error) {
	xs, err := measure("Linear", "x", Heads{x})
	if err != nil {
		return nil, err
	}
	ws, err := measure("Linear", "w", Heads{w})
	if err != nil {
		return nil, err
	}
	if xs.dim != ws.dim {
		return nil, badShape("Linear", "x [%d, %d] and w [%d, %d] differ in inputs", xs.rows, xs.dim, ws.rows, ws.dim)
	}
	out := mat.NewDense(xs.rows, ws.rows, nil)
	out.Mul(x, w.T())
	if b == nil {
		return out, nil
	}
	bs, err := measure("Linear", "b", Heads{b})
	if err != nil {
		return nil, err
	}
	if bs.rows != 1 || bs.dim != ws.rows {
		return nil, badShape("Linear", "b is [%d, %d], want [1, %d]", bs.rows, bs.dim, ws.rows)
	}
	for row := range xs.rows {
		for j, bias := range b.RawRowView(0) {
			out.Set(row, j, out.At(row, j)+bias)
		}
	}
	return out, nil
}
