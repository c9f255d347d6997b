package reference

import "gonum.org/v1/gonum/mat"

// Visible says whether a row (query) sees a column (key). Nil: every row sees every column.
type Visible func(row, col int) bool

// Causal lets row r see the columns j <= r+diagonal. With S queries and T keys, diagonal T-S aligns the last query with the
// last key (bottom-right: queries behind a cache), 0 the first with the first (top-left).
func Causal(diagonal int) Visible {
	return func(row, col int) bool { return col-row <= diagonal }
}

// Window lets row r see the columns less than n away from its own, r+diagonal, which counts as one of them. Together with
// Causal that is the last n columns up to it (sliding window: Beltagy et al., arXiv:2004.05150; Jiang et al., arXiv:2310.06825).
func Window(diagonal, n int) Visible {
	return func(row, col int) bool { return col-row-diagonal < n && row+diagonal-col < n }
}

// Padded hides the first left and the last right of cols columns from every row.
func Padded(left, right, cols int) Visible {
	return func(_, col int) bool { return col >= left && col < cols-right }
}

// Documents lets row r see the columns of the document that column r+diagonal is in. Documents of the given lengths lie one
// behind the other. A row outside of all sees nothing.
func Documents(diagonal int, lengths []int) Visible {
	var of []int
	for i, n := range lengths {
		for range n {
			of = append(of, i)
		}
	}
	return func(row, col int) bool {
		own := row + diagonal
		return own >= 0 && own < len(of) && col < len(of) && of[col] == of[own]
	}
}

// Allowed lets a row see the columns where m is not 0. One row of m serves all.
func Allowed(m *mat.Dense) Visible {
	rows, _ := m.Dims()
	return func(row, col int) bool { return m.At(min(row, rows-1), col) != 0 }
}

// All lets a row see what every one of them lets it see; nil ones hide nothing.
func All(of ...Visible) Visible {
	var some []Visible
	for _, v := range of {
		if v != nil {
			some = append(some, v)
		}
	}
	switch len(some) {
	case 0:
		return nil
	case 1:
		return some[0]
	}
	return func(row, col int) bool {
		for _, v := range some {
			if !v(row, col) {
				return false
			}
		}
		return true
	}
}

func (v Visible) sees(row, col int) bool { return v == nil || v(row, col) }
