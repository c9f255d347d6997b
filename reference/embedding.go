package reference

import "gonum.org/v1/gonum/mat"

// Embedding is the rows of table [V, dim] that tokens name, in their order: [S, dim].
func Embedding(table *mat.Dense, tokens []int) (*mat.Dense, error) {
	ts, err := measure("Embedding", "table", Heads{table})
	if err != nil {
		return nil, err
	}
	if len(tokens) == 0 {
		return nil, badShape("Embedding", "no tokens")
	}
	for i, token := range tokens {
		if token < 0 || token >= ts.rows {
			return nil, badArgument("Embedding", "token %d is %d, the table has %d rows", i, token, ts.rows)
		}
	}
	out := mat.NewDense(len(tokens), ts.dim, nil)
	for i, token := range tokens {
		out.SetRow(i, table.RawRowView(token))
	}
	return out, nil
}
