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
