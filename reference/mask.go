package reference

// Visible says whether a row (query) sees a column (key). Nil: every row sees every column.
type Visible func(row, col int) bool

// Causal lets row r see the columns j <= r+diagonal. With S queries and T keys, diagonal T-S aligns the last query with the
// last key (bottom-right: queries behind a cache), 0 the first with the first (top-left).
func Causal(diagonal int) Visible {
	return func(row, col int) bool { return col-row <= diagonal }
}

func (v Visible) sees(row, col int) bool { return v == nil || v(row, col) }
