package reference

import "gonum.org/v1/gonum/mat"

// Append puts rows behind old in each head: old [KV, T, d], rows [KV, n, d], result [KV, T+n, d]. A cache begins as a copy
// of its first rows: old may be nil.
func Append(old, rows Heads) (Heads, error) {
	rs, err := measure("Append", "rows", rows)
	if err != nil {
		return nil, err
	}
	os := shape{rs.heads, 0, rs.dim}
	if old != nil {
		if os, err = measure("Append", "old", old); err != nil {
			return nil, err
		}
	}
	if os.heads != rs.heads || os.dim != rs.dim {
		return nil, badShape("Append", "old %v and rows %v differ in heads or dim", os, rs)
	}
	out := zeros(shape{rs.heads, os.rows + rs.rows, rs.dim})
	for h := range out {
		if old != nil {
			out[h].Copy(old[h])
		}
		out[h].Slice(os.rows, os.rows+rs.rows, 0, rs.dim).(*mat.Dense).Copy(rows[h])
	}
	return out, nil
}
