package store

import (
	"fmt"
	"strconv"
	"strings"
)

// Quote is s as Go writes a string.
func Quote(s string) string { return strconv.Quote(s) }

// Singular is what one entry along an axis is called.
func Singular(axis string) string {
	if axis == "heads" {
		return "head"
	}
	return axis
}

// ShapeWords is "[heads 4, seq 9, dim 16]".
func ShapeWords(shape []int, axes []string) string {
	var b strings.Builder
	b.WriteByte('[')
	for i, n := range shape {
		if i > 0 {
			b.WriteString(", ")
		}
		if i < len(axes) {
			b.WriteString(axes[i])
			b.WriteByte(' ')
		}
		b.WriteString(strconv.Itoa(n))
	}
	b.WriteByte(']')
	return b.String()
}

// DefaultAxes are the axes of an array that came without.
func DefaultAxes(rank int) []string {
	switch rank {
	case 1:
		return []string{"dim"}
	case 2:
		return []string{"seq", "hidden"}
	case 3:
		return []string{"heads", "seq", "dim"}
	case 4:
		return []string{"batch", "heads", "seq", "dim"}
	}
	axes := make([]string, rank)
	for i := range axes {
		axes[i] = "axis" + strconv.Itoa(i)
	}
	return axes
}

// CheckAxes refuses axes that do not name each dimension once.
func CheckAxes(shape []int, axes []string) error {
	if len(axes) != len(shape) {
		return fmt.Errorf("%d axes (%s) for shape %v", len(axes), strings.Join(axes, " "), shape)
	}
	seen := map[string]bool{}
	for _, a := range axes {
		switch {
		case a == "" || len(a) > 32 || strings.ContainsFunc(a, func(r rune) bool { return r <= ' ' || r == '"' || r == 0x7f }):
			return fmt.Errorf("axis %.40q is not a word", a)
		case seen[a]:
			return fmt.Errorf("axis %q is named twice", a)
		}
		seen[a] = true
	}
	return nil
}

// Nearest returns the known name that a typing error may have turned into name, or nothing.
func Nearest(name string, known []string) string {
	best, at := "", 3
	for _, k := range known {
		d := distance(name, k)
		if d < at || d == at && k < best {
			best, at = k, d
		}
	}
	if at >= len(name) {
		return ""
	}
	return best
}

// distance is the number of single-character edits between a and b (Levenshtein).
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
