package resident

import (
	"fmt"
	"math"
	"strings"

	"github.com/attnb/attnb/reference/parity"
)

// maxWorst bounds the worst cells that a report lists after the first.
const maxWorst = 4

// write puts what was measured into a report: got are the compared cells, arranged as a, and allowed is what a cell's limit is called.
func (j judged) write(b *strings.Builder, a arranged, got []float32, allowed string) {
	r := j.report
	fmt.Fprintf(b, "  max abs %.3g, max rel %.3g, max ULP %.4g\n", r.MaxAbs, r.MaxRel, r.MaxULP)
	fmt.Fprintf(b, "  %s\n", j.wordsL2())
	var classes []string
	masked := a.hidden(len(got))
	for class, n := range r.Counts {
		switch {
		case n == 0:
		case parity.Class(class) == parity.Zero && masked > 0:
			classes = append(classes, fmt.Sprintf("%d zero (masked: %d)", n, masked))
		default:
			classes = append(classes, fmt.Sprintf("%d %v", n, parity.Class(class)))
		}
	}
	fmt.Fprintf(b, "  %s\n", strings.Join(classes, ", "))
	fmt.Fprintf(b, "  error/%s: %s\n", allowed, spread(r.Histogram))
	if pattern := a.pattern(j.failed); pattern != "" {
		fmt.Fprintf(b, "  what failed is structured: %s\n", pattern)
	}
}

// writeWorst lists the cells after the worst.
func (j judged) writeWorst(b *strings.Builder, where func(int) string) {
	for i, c := range j.report.Cells {
		if i == 0 || i > maxWorst || c.Ratio <= 1 {
			continue
		}
		fmt.Fprintf(b, "  then: %s: got %.9g, want %.9g, %.3g times what is allowed\n", where(c.Index), c.Got, c.Want, c.Ratio)
	}
}

// spread is a histogram in one line: how many cells are exact, and how many lie up to each power of ten.
func spread(bins []parity.Bin) string {
	var words []string
	for i, bin := range bins {
		switch {
		case bin.Count == 0:
		case i == 0:
			words = append(words, fmt.Sprintf("exact %d", bin.Count))
		case math.IsInf(bin.Upper, 1):
			words = append(words, fmt.Sprintf("beyond %d", bin.Count))
		default:
			words = append(words, fmt.Sprintf("to %.0e %d", bin.Upper, bin.Count))
		}
	}
	return strings.Join(words, ", ")
}

// hidden is how many of the first n cells that are looked at lie under the mask of probabilities, where they are 0.
func (a arranged) hidden(n int) int {
	if !a.hides() || a.quantity != probabilities {
		return 0
	}
	hidden := 0
	for i := 0; i < n; i += a.d {
		m, row, _ := a.place(i)
		lo, hi := a.mask.Interval(row, a.d)
		hidden += a.d - (hi - lo)
		for col := lo; col < hi && a.allowed.cells != nil; col++ {
			if !a.allowed.sees(m, row, col) {
				hidden++
			}
		}
	}
	return hidden
}

// pattern says along which axes failed cells, by flat index, are confined: "head 2; query 5 to 8"; empty where they are everywhere, or few.
func (a arranged) pattern(failed []int) string {
	if len(failed) < 4 || a.rows != nil {
		return ""
	}
	sizes := []int{a.h, a.s, a.d}
	seen := [3][]bool{make([]bool, a.h), make([]bool, a.s), make([]bool, a.d)}
	for _, i := range failed {
		m, row, col := a.place(i)
		seen[0][m], seen[1][row], seen[2][col] = true, true, true
	}
	var words []string
	for axis, at := range seen {
		var indices []int
		for i, yes := range at {
			if yes {
				indices = append(indices, i)
			}
		}
		if len(indices) == sizes[axis] {
			continue
		}
		first, end := indices[0], indices[len(indices)-1]
		step := 0
		if len(indices) > 1 {
			step = indices[1] - first
		}
		for i := 1; i < len(indices); i++ {
			if indices[i]-indices[i-1] != step {
				step = 0
			}
		}
		name := [3]func(int) string{a.panel, func(i int) string { return fmt.Sprintf("%s %d", a.rowAxisName(), i) },
			func(i int) string { return fmt.Sprintf("%s %d", a.colAxisName(), i) }}[axis]
		switch {
		case len(indices) == 1:
			words = append(words, name(first)+" alone")
		case step == 1:
			words = append(words, fmt.Sprintf("%s to %d alone", name(first), end))
		case step > 1 && len(indices) > 2:
			words = append(words, fmt.Sprintf("every %s from %s on", ordinal(step), name(first)))
		}
	}
	return strings.Join(words, "; ")
}

func ordinal(n int) string {
	switch n {
	case 2:
		return "second"
	case 3:
		return "third"
	}
	return fmt.Sprintf("%dth", n)
}
