package viz

import (
	"fmt"
	"strconv"
	"strings"
)

// Alt describes the heatmap in plain text: title, shape, range, masked and non-finite cells, and the extreme cells by axes
// and labels. It is the text/plain of an output and the alt text of a picture. What cannot be drawn is said so.
func (h Heatmap) Alt() string {
	if err := h.check(); err != nil {
		return err.Error()
	}
	var s summary
	for i, m := range h.Matrices {
		h.pool(i, m.Rows, m.Cols, &s)
	}
	return h.describe(s)
}

func (h Heatmap) describe(s summary) string {
	var b strings.Builder
	if h.Title != "" {
		fmt.Fprintf(&b, "%s. ", visible(h.Title))
	}
	what := "Heatmap"
	if n := len(h.Matrices); n > 1 {
		what = fmt.Sprintf("%d heatmaps on one scale, each", n)
	}
	fmt.Fprintf(&b, "%s of %d %s x %d %s (%s).", what, h.rows(), visible(h.rowAxis()), h.cols(), visible(h.colAxis()), visible(h.quantity()))
	if parts := h.extent(visible); len(parts) > 0 {
		said := strings.Join(parts, "; ")
		fmt.Fprintf(&b, " %s%s.", strings.ToUpper(said[:1]), said[1:])
	}
	switch n := s.count[finite]; {
	case n == 0 && s.count[zero] > 0:
		b.WriteString(" No value but zero.")
	case n == 0:
		b.WriteString(" No finite value.")
	case s.min == s.max:
		fmt.Fprintf(&b, " All %s.", exact(s.min))
	default:
		fmt.Fprintf(&b, " From %s at %s to %s at %s.", exact(s.min), h.where(s.minAt, visible), exact(s.max), h.where(s.maxAt, visible))
	}
	if n := s.count[masked]; n > 0 {
		fmt.Fprintf(&b, " %d of %d cells masked.", n, len(h.Matrices)*h.rows()*h.cols())
	}
	if n := s.count[absent]; n > 0 {
		fmt.Fprintf(&b, " %s not there.", counted(n, "cell"))
	}
	if n := s.count[zero]; n > 0 && s.count[finite] > 0 {
		fmt.Fprintf(&b, " Zero in %s.", counted(n, "cell"))
	}
	for _, c := range []class{nan, posInf, negInf, hole, rewritten} {
		if n := s.count[c]; n > 0 {
			fmt.Fprintf(&b, " %s in %s, first at %s.", c.name(), counted(n, "cell"), h.where(s.first[c], visible))
		}
	}
	for _, s := range h.said {
		fmt.Fprintf(&b, " %s%s.", strings.ToUpper(visible(s)[:1]), visible(s)[1:])
	}
	b.WriteString(h.noted())
	for _, m := range h.Marks {
		fmt.Fprintf(&b, " Marked: ")
		if m.Label != "" {
			b.WriteString(visible(m.Label) + ", ")
		}
		b.WriteString(h.where(at{m.Matrix, m.Row, m.Col}, visible))
		b.WriteString(" (" + h.Matrices[m.Matrix].says(m.Row, m.Col) + ").")
	}
	return b.String()
}

// maxNoted bounds the matrices whose notes the text gives.
const maxNoted = 64

// noted gives the notes of the matrices.
func (h Heatmap) noted() string {
	var b strings.Builder
	left := 0
	for i, m := range h.Matrices {
		switch {
		case len(m.Notes) == 0:
		case i >= maxNoted:
			left++
		default:
			name := m.Name
			if name == "" {
				name = fmt.Sprintf("matrix %d", i)
			}
			fmt.Fprintf(&b, " %s: %s.", visible(name), visible(strings.Join(m.Notes, ", ")))
		}
	}
	if left > 0 {
		fmt.Fprintf(&b, " And %d more.", left)
	}
	return b.String()
}

// says is a cell's value, or why it has none.
func (m Matrix) says(row, col int) string {
	if c := m.class(row, col); c != finite {
		return c.name()
	}
	return exact(float64(m.Values[row*m.Cols+col]))
}

// exact is an f32 in nine digits, which name it.
func exact(v float64) string { return tidy(strconv.FormatFloat(v, 'g', 9, 64)) }
