package show

import (
	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/plan"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/viz"
)

// sight is what the rows of a window see of its columns.
type sight struct {
	mask       cudaops.Mask  // of the whole matrix
	allowed    store.Allowed // cells of it
	intervals  [][2]int      // of all rows of the matrix, where the mask is not plain
	t          int           // columns of the matrix
	rows, cols viz.Span      // the window
}

// sightOf is that of all of s rows and t columns.
func sightOf(m cudaops.Mask, a store.Allowed, s, t int) sight {
	out := sight{mask: m, allowed: a, t: t, rows: viz.Span{To: s}, cols: viz.Span{To: t}}
	if !m.Plain() {
		out.intervals = m.Intervals(s, t)
	}
	return out
}

// within is the sight of a window.
func (s sight) within(rows, cols viz.Span) sight {
	s.rows, s.cols = rows, cols
	return s
}

// interval is what row i of the window sees, but for cells that are not allowed: its columns from lo up to but without hi.
func (s sight) interval(i int) (lo, hi int) {
	if row := s.rows.From + i; s.intervals != nil {
		lo, hi = s.intervals[row][0], s.intervals[row][1]
	} else {
		hi = s.mask.Visible(row, s.t)
	}
	n := s.cols.To - s.cols.From
	lo, hi = min(max(lo-s.cols.From, 0), n), min(max(hi-s.cols.From, 0), n)
	return lo, max(lo, hi)
}

// cells says which columns of the window row i of matrix h may see within its interval; nil: all.
func (s sight) cells(h, i int) func(col int) bool {
	if s.allowed.None() {
		return nil
	}
	return func(col int) bool { return s.allowed.Sees(h, s.rows.From+i, s.cols.From+col) }
}

// count is the number of cells that rows of the window see of columns of it, from up to but without to.
func (s sight) count(h int, rows, cols viz.Span) int {
	n := 0
	for i := rows.From; i < rows.To; i++ {
		lo, hi := s.interval(i)
		lo, hi = max(lo, cols.From), min(hi, cols.To)
		sees := s.cells(h, i)
		if sees == nil {
			n += max(0, hi-lo)
			continue
		}
		for col := lo; col < hi; col++ {
			if sees(col) {
				n++
			}
		}
	}
	return n
}

// empty is the number of rows of the window that see none of its columns.
func (s sight) empty(h int) int {
	n := 0
	for i := range s.rows.To - s.rows.From {
		if s.count(h, viz.Span{From: i, To: i + 1}, viz.Span{To: s.cols.To - s.cols.From}) == 0 {
			n++
		}
	}
	return n
}

// hidden says which cells of the window, pooled into rows x cols, hold nothing that is seen.
func (s sight) hidden(h, rows, cols int) []bool {
	n, t := s.rows.To-s.rows.From, s.cols.To-s.cols.From
	out := make([]bool, rows*cols)
	for i := range rows {
		line := out[i*cols:][:cols]
		for j := range line {
			line[j] = true
		}
		first, last := plan.Edge(i, n, rows), plan.Edge(i+1, n, rows)
		if s.intervals == nil && s.allowed.None() {
			first = last - 1 // which sees most
		}
		for row := first; row < last; row++ {
			lo, hi := s.interval(row)
			sees := s.cells(h, row)
			if hi == lo {
				continue
			}
			if sees == nil {
				for j := plan.Pool(lo, t, cols); j <= plan.Pool(hi-1, t, cols); j++ {
					line[j] = false
				}
				continue
			}
			for col := lo; col < hi; col++ {
				if sees(col) {
					line[plan.Pool(col, t, cols)] = false
				}
			}
		}
	}
	return out
}

// runs writes which cells are hidden as runs of them, from up to but without to, in the order of the cells.
func runs(hidden []bool) (out []int) {
	for i, is := range hidden {
		if was := i > 0 && hidden[i-1]; is != was {
			out = append(out, i)
		}
	}
	if len(out)%2 == 1 {
		out = append(out, len(hidden))
	}
	return out
}

// unrun is the inverse, of n cells.
func unrun(runs []int, n int) []bool {
	out := make([]bool, n)
	for i := 0; i+1 < len(runs); i += 2 {
		for at := runs[i]; at < runs[i+1]; at++ {
			out[at] = true
		}
	}
	return out
}
