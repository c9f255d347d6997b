package judge

import (
	"fmt"
	"math"
	"strings"

	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/reference/parity"
)

// maxWorst bounds the worst cells that a report lists after the first.
const maxWorst = 4

// write puts what was measured into a report: got are the compared cells, arranged as a, and allowed is what a cell's limit is called.
func (j judged) write(b *strings.Builder, a store.View, got []float32, allowed string) {
	r := j.report
	fmt.Fprintf(b, "  max abs %.3g, max rel %.3g, max ULP %.4g\n", r.MaxAbs, r.MaxRel, r.MaxULP)
	fmt.Fprintf(b, "  %s\n", j.wordsL2())
	var classes []string
	masked := hidden(a, len(got))
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
	if pattern := pattern(a, j.failed); pattern != "" {
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
func hidden(a store.View, n int) int {
	if !a.Hides() || a.Quantity != store.Probabilities {
		return 0
	}
	hidden := 0
	for i := 0; i < n; i += a.D {
		m, row, _ := a.Place(i)
		lo, hi := a.Mask.Interval(row, a.D)
		hidden += a.D - (hi - lo)
		for col := lo; col < hi && !a.Allowed.None(); col++ {
			if !a.Allowed.Sees(m, row, col) {
				hidden++
			}
		}
	}
	return hidden
}

// pattern says along which axes failed cells, by flat index, are confined: "head 2; query 5 to 8"; empty where they are everywhere, or few.
func pattern(a store.View, failed []int) string {
	if len(failed) < 4 || a.Sampled != nil {
		return ""
	}
	sizes := []int{a.H, a.S, a.D}
	seen := [3][]bool{make([]bool, a.H), make([]bool, a.S), make([]bool, a.D)}
	for _, i := range failed {
		m, row, col := a.Place(i)
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
		name := [3]func(int) string{a.Panel, func(i int) string { return fmt.Sprintf("%s %d", a.RowAxisName(), i) },
			func(i int) string { return fmt.Sprintf("%s %d", a.ColAxisName(), i) }}[axis]
		switch {
		case len(indices) == 1:
			words = append(words, name(first)+" alone")
		case step == 1:
			words = append(words, fmt.Sprintf("%s to %d alone", name(first), end))
		case step > 1 && len(indices) > 2 && end+step >= sizes[axis]:
			words = append(words, fmt.Sprintf("every %s from %s on", ordinal(step), name(first)))
		case step > 1 && len(indices) > 2:
			words = append(words, fmt.Sprintf("every %s from %s to %d", ordinal(step), name(first), end))
		case len(failed) >= byChance*sizes[axis]:
			if list := runs(indices); len(list) <= runsListed {
				words = append(words, strings.TrimSuffix(name(first), fmt.Sprint(first))+strings.Join(list, ", ")+" alone")
			}
		}
	}
	return strings.Join(words, "; ")
}

const (
	byChance   = 10 // cells for each index of an axis: were they strewn at random, none would be without one (e^-10)
	runsListed = 8
)

// runs says which indices, ascending, those are: "1", "3 to 4".
func runs(indices []int) []string {
	var list []string
	for i := 0; i < len(indices); {
		from := i
		for i++; i < len(indices) && indices[i] == indices[i-1]+1; i++ {
		}
		if i-from == 1 {
			list = append(list, fmt.Sprint(indices[from]))
		} else {
			list = append(list, fmt.Sprintf("%d to %d", indices[from], indices[i-1]))
		}
	}
	return list
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
