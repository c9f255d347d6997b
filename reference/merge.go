package reference

import "gonum.org/v1/gonum/mat"

// Merge lays the heads of each row side by side: x [H, S, d] becomes [S, H d], row s holding x[0][s], x[1][s], ...
func Merge(x Heads) (*mat.Dense, error) {
	in, err := measure("Merge", "x", x)
	if err != nil {
		return nil, err
	}
	out := mat.NewDense(in.rows, in.heads*in.dim, nil)
	for h, head := range x {
		out.Slice(0, in.rows, h*in.dim, (h+1)*in.dim).(*mat.Dense).Copy(head)
	}
	return out, nil
}

// Unmerge undoes Merge: rows [S, H d] become [H, S, d], head h being columns h d to (h+1) d. It takes a projection that is
// not fused apart.
func Unmerge(rows *mat.Dense, heads int) (Heads, error) {
	in, err := measure("Unmerge", "rows", Heads{rows})
	if err != nil {
		return nil, err
	}
	if heads < 1 || in.dim%heads != 0 {
		return nil, badShape("Unmerge", "rows [%d, %d] are not %d heads", in.rows, in.dim, heads)
	}
	dim := in.dim / heads
	out := make(Heads, heads)
	for h := range out {
		out[h] = columns(rows, h*dim, dim)
	}
	return out, nil
}

// Swap exchanges the first two axes: x [A, B, d] becomes [B, A, d] with out[b][a] = x[a][b].
func Swap(x Heads) (Heads, error) {
	in, err := measure("Swap", "x", x)
	if err != nil {
		return nil, err
	}
	out := zeros(shape{in.rows, in.heads, in.dim})
	for b := range out {
		for a := range x {
			out[b].SetRow(a, x[a].RawRowView(b))
		}
	}
	return out, nil
}
