package cudaops

import (
	"errors"
	"fmt"

	"github.com/attnb/attnb/cudaops/plan"
)

// Mask says which columns (keys) a row (query) sees: those that every field of it shows, which is one interval of columns. The
// zero value hides nothing.
type Mask struct {
	Causal bool // row r sees columns j <= r+Diagonal
	// Diagonal is the column at which row 0 stands, r+Diagonal that of row r. T-S aligns the last query with the last key
	// (bottom-right), 0 the first with the first (top-left). Only read with Causal, Window or Documents, and for ALiBi.
	Diagonal int
	// Window: a row sees columns less than Window away from its own, r+Diagonal, which counts: under Causal the last Window
	// columns up to it, else as many on the other side too. 0: none. Window 3 and Diagonal 0: row 5 sees 3, 4 and 5.
	Window int
	// PadLeft and PadRight are how many of the first and of the last columns no row sees (padding).
	PadLeft, PadRight int
	// Documents are the lengths of the documents that are packed, one behind the other, into all columns. A row sees the document that
	// its own column, r+Diagonal, is in; a row that stands outside of all sees nothing. Nil: one document.
	Documents []int
}

// Plain says that the mask is causal at most: every backend's fast paths serve it.
func (m Mask) Plain() bool {
	return m.Window == 0 && m.PadLeft == 0 && m.PadRight == 0 && m.Documents == nil
}

// Hides says that the mask may hide something.
func (m Mask) Hides() bool { return m.Causal || !m.Plain() }

// Sees says whether a row sees a column of cols.
func (m Mask) Sees(row, col, cols int) bool {
	lo, hi := m.Interval(row, cols)
	return col >= lo && col < hi
}

// Interval is what a row sees, of cols columns: those from lo up to but without hi; 0 and 0 where it sees none.
func (m Mask) Interval(row, cols int) (lo, hi int) {
	first, last := m.document(row+m.Diagonal, 0, 0)
	return m.within(row, cols, first, last)
}

// Intervals are those of the rows from 0 on, in one pass over the documents.
func (m Mask) Intervals(rows, cols int) [][2]int {
	all := make([][2]int, rows)
	at, first := 0, 0
	for r := range all {
		own := r + m.Diagonal
		for at < len(m.Documents) && own >= first+m.Documents[at] {
			first, at = first+m.Documents[at], at+1
		}
		from, to := m.document(own, at, first)
		all[r][0], all[r][1] = m.within(r, cols, from, to)
	}
	return all
}

// within is the interval of a row whose document lies from first up to last.
func (m Mask) within(row, cols, first, last int) (lo, hi int) {
	own := row + m.Diagonal
	lo, hi = m.PadLeft, cols-m.PadRight
	if m.Causal {
		hi = min(hi, own+1)
	}
	if m.Window > 0 {
		lo = max(lo, own-m.Window+1)
		if !m.Causal {
			hi = min(hi, own+m.Window)
		}
	}
	if m.Documents != nil {
		lo, hi = max(lo, first), min(hi, last)
	}
	if lo >= hi {
		return 0, 0
	}
	return lo, hi
}

// document is where the document of a column begins, and where it ends; 0 and 0 outside of all. It looks from document at on, which
// begins at start.
func (m Mask) document(col, at, start int) (first, last int) {
	if col < start {
		return 0, 0
	}
	for ; at < len(m.Documents); at++ {
		end := start + m.Documents[at]
		if col < end {
			return start, end
		}
		start = end
	}
	return 0, 0
}

// Visible is the number of columns, of cols, that a row sees under a plain mask: columns 0 up to it.
func (m Mask) Visible(row, cols int) int {
	if !m.Causal {
		return cols
	}
	return min(max(row+m.Diagonal+1, 0), cols)
}

// Empty is the number of rows, of rows, that see nothing of cols columns.
func (m Mask) Empty(rows, cols int) int {
	if m.Plain() {
		if !m.Causal {
			return 0
		}
		return min(max(-m.Diagonal, 0), rows)
	}
	n := 0
	for _, seen := range m.Intervals(rows, cols) {
		if seen[1] == 0 {
			n++
		}
	}
	return n
}

// Pooled is the number of columns, of w that t columns are pooled into, in which row i of h, pooled from s rows, holds
// something visible under a plain mask: columns 0 up to it. Its last row sees most.
func (m Mask) Pooled(i, s, h, t, w int) int {
	seen := m.Visible(plan.Edge(i+1, s, h)-1, t)
	if seen == 0 {
		return 0
	}
	return plan.Pool(seen-1, t, w) + 1
}

// check refuses a mask that does not fit cols columns, or a diagonal so far out that a row or column plus it could overflow.
func (m Mask) check(cols int) error {
	switch {
	case (m.Causal || m.Window != 0 || m.Documents != nil) && (int64(m.Diagonal) > plan.MaxDim || int64(m.Diagonal) < -plan.MaxDim):
		return fmt.Errorf("diagonal %d is not within -%d to %d", m.Diagonal, int64(plan.MaxDim), int64(plan.MaxDim))
	case m.Window < 0 || int64(m.Window) > plan.MaxDim:
		return fmt.Errorf("window %d is not within 1 to %d; 0 is none", m.Window, int64(plan.MaxDim))
	case m.PadLeft < 0 || m.PadRight < 0 || m.PadLeft > cols || m.PadRight > cols-m.PadLeft:
		return fmt.Errorf("padding of %d and %d columns does not fit %d", m.PadLeft, m.PadRight, cols)
	case m.Documents == nil:
		return nil
	}
	left := cols
	for i, n := range m.Documents {
		if n < 1 || n > left {
			return fmt.Errorf("document %d has %d columns, must be 1 to the %d that are left of %d", i, n, left, cols)
		}
		left -= n
	}
	if left > 0 {
		return fmt.Errorf("%d documents leave %d of %d columns", len(m.Documents), left, cols)
	}
	return nil
}

// plain is check for an op that takes plain masks alone.
func (m Mask) plain(cols int) error {
	if !m.Plain() {
		return errors.New("of masks it takes causal ones alone: no window, padding or documents")
	}
	return m.check(cols)
}
