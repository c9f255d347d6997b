package viz

import (
	"fmt"
	"image"
	"strings"
)

// entry is one sign of the legend: a class of cells without a value, or a marked cell.
type entry struct {
	class class
	mark  int // number of the mark, from 1; 0: none
	text  string
}

// legend names what the picture shows beside the scale.
func (h Heatmap) legend(s summary, quote func(string) string) []entry {
	var l []entry
	for _, c := range []class{masked, absent, zero, nan, posInf, negInf, hole, rewritten} {
		if s.count[c] > 0 {
			l = append(l, entry{class: c, text: fmt.Sprintf("%s: %s", c.name(), counted(s.count[c], "cell"))})
		}
	}
	for i, m := range h.Marks {
		text := h.where(at{m.Matrix, m.Row, m.Col}, quote)
		if m.Label != "" {
			text = quote(m.Label) + ": " + text
		}
		l = append(l, entry{mark: i + 1, text: text})
	}
	return l
}

// where names a cell by axes and labels: `head 3, query 2 "the", key 0 "cat"`.
func (h Heatmap) where(c at, quote func(string) string) string {
	var b strings.Builder
	if len(h.Matrices) > 1 {
		name := h.Matrices[c.matrix].Name
		if name == "" {
			name = fmt.Sprintf("matrix %d", c.matrix)
		}
		b.WriteString(quote(name) + ", ")
	}
	fmt.Fprintf(&b, "%s %s", quote(h.rowAxis()), h.rowSpan().name(c.row, h.rows()))
	if h.RowLabels != nil {
		fmt.Fprintf(&b, " “%s”", quote(h.RowLabels[c.row]))
	}
	fmt.Fprintf(&b, ", %s %s", quote(h.colAxis()), h.colSpan().name(c.col, h.cols()))
	if h.ColLabels != nil {
		fmt.Fprintf(&b, " “%s”", quote(h.ColLabels[c.col]))
	}
	return b.String()
}

func printedLabel(s string) string { return shown(s, regular().has) }

// subtitle states shape, range and, where it is so, that the picture is pooled.
func (h Heatmap) subtitle(s summary, pool image.Point) []string {
	shape := fmt.Sprintf("%d × %d", h.rows(), h.cols())
	if n := len(h.Matrices); n > 1 {
		shape = fmt.Sprintf("%d panels of %s, one scale", n, shape)
	}
	parts := append([]string{shape}, h.extent(printedLabel)...)
	switch n := s.count[finite]; {
	case n == 0 && s.count[zero] > 0:
		parts = append(parts, "all zero")
	case n == 0:
		parts = append(parts, "no finite value")
	case s.min == s.max:
		parts = append(parts, "all "+number(s.min, 6))
	default:
		parts = append(parts, fmt.Sprintf("%s to %s", number(s.min, 4), number(s.max, 4)))
	}
	if pool != image.Pt(1, 1) {
		pick := "maximum"
		switch h.Kind {
		case Scores, Signed, Steps:
			pick = "largest magnitude"
		case Angles:
			pick = "first"
		}
		parts = append(parts, fmt.Sprintf("pooled: each pixel is the %s of %d × %d cells", pick, pool.Y, pool.X))
	}
	return append(parts, h.said...)
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// swatch and space are the sizes of a legend's entry, in pixels.
const (
	swatch = 26
	space  = 12
)

func (e entry) width() float64 {
	return swatch + space + regular().width(e.text, legendSize) + 2.5*space
}

func wrapEntries(all []entry, room float64) [][]entry {
	var lines [][]entry
	x := 0.0
	for _, e := range all {
		e.text = regular().fit(e.text, legendSize, room-swatch-space)
		if len(lines) == 0 || x+e.width() > room+2.5*space {
			lines, x = append(lines, nil), 0
		}
		lines[len(lines)-1] = append(lines[len(lines)-1], e)
		x += e.width()
	}
	return lines
}
