package viz

import (
	"fmt"
	"strconv"
)

// Span says which indices of a longer axis the rows, or columns, of a heatmap stand for: From up to but without To. With as many
// rows as indices each stands for one; with fewer they are pooled, and row i of n stands for those from From + floor(i*(To-From)/n)
// up to From + floor((i+1)*(To-From)/n). The zero value: each row stands for itself, from 0.
type Span struct{ From, To int }

// of is the span of n rows.
func (s Span) of(n int) Span {
	if s == (Span{}) {
		return Span{0, n}
	}
	return s
}

func (s Span) len() int { return s.To - s.From }

// edge is where row i of n begins.
func (s Span) edge(i, n int) int { return s.From + i*(s.len()/n) + i*(s.len()%n)/n }

// name is what row i of n stands for: "7", "16–31".
func (s Span) name(i, n int) string {
	from, last := s.edge(i, n), s.edge(i+1, n)-1
	if from == last {
		return strconv.Itoa(from)
	}
	return fmt.Sprintf("%d–%d", from, last)
}

// names are all of them, nil where they are 0, 1, ...
func (s Span) names(n int) []string {
	if s == (Span{}) {
		return nil
	}
	all := make([]string, n)
	for i := range all {
		all[i] = s.name(i, n)
	}
	return all
}

// row is the row, of n, that stands for an index.
func (s Span) row(index, n int) int {
	i := min(int(float64(index-s.From)/float64(s.len())*float64(n)), n-1) // rounded, so a row off at most
	for s.edge(i, n) > index {
		i--
	}
	for s.edge(i+1, n) <= index {
		i++
	}
	return i
}

// per is how many indices a row stands for: "16", "up to 17".
func (s Span) per(n int) string {
	if s.len()%n == 0 {
		return strconv.Itoa(s.len() / n)
	}
	return fmt.Sprintf("up to %d", s.len()/n+1)
}

func (h Heatmap) rowSpan() Span { return h.RowSpan.of(h.rows()) }
func (h Heatmap) colSpan() Span { return h.ColSpan.of(h.cols()) }

// pooled reports whether the cells stand for more than one cell each.
func (h Heatmap) pooled() bool {
	return h.rowSpan().len() > h.rows() || h.colSpan().len() > h.cols()
}

// extent states where the cells come from, if that is not plain from their number: the window and the pooling.
func (h Heatmap) extent(quote func(string) string) []string {
	var parts []string
	r, c := h.rowSpan(), h.colSpan()
	if r.From != 0 || c.From != 0 || h.pooled() {
		parts = append(parts, fmt.Sprintf("%s %d–%d, %s %d–%d", quote(h.rowAxis()), r.From, r.To-1, quote(h.colAxis()), c.From, c.To-1))
	}
	if h.pooled() {
		parts = append(parts, fmt.Sprintf("pooled: each cell is the %s of %s × %s", or(h.Pooling, "value"), r.per(h.rows()), c.per(h.cols())))
	}
	return parts
}

// checkSpans refuses spans that the rows and columns do not fit.
func (h Heatmap) checkSpans() error {
	for _, a := range []struct {
		what   string
		s      Span
		n      int
		labels []string
	}{{"row", h.RowSpan, h.rows(), h.RowLabels}, {"column", h.ColSpan, h.cols(), h.ColLabels}} {
		switch {
		case a.s == (Span{}):
		case a.s.From < 0 || a.s.len() < a.n:
			return &InputError{Title: h.Title, Matrix: -1, Reason: fmt.Sprintf("%d %ss do not stand for the indices from %d up to %d", a.n, a.what, a.s.From, a.s.To)}
		case a.labels != nil && a.s.len() != a.n:
			return &InputError{Title: h.Title, Matrix: -1, Reason: fmt.Sprintf("labels of single %ss, which are pooled", a.what)}
		}
	}
	return nil
}
