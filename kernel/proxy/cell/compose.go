package cell

import "strings"

// NoLine marks a line of a composed file that no line of the cell stands behind.
const NoLine = -1

// Compose returns the Go file that gonb makes of the cell's or segment's Go lines, and for each of its lines the line of the cell.
func (t *Text) Compose() (file string, from []int) {
	var b strings.Builder
	write := func(line int, texts ...string) {
		for _, s := range texts {
			b.WriteString(s)
			b.WriteByte('\n')
			from = append(from, line)
		}
	}
	write(NoLine, "package main", "")
	closing := false
	for i, line := range t.Lines {
		trimmed := trimPrefix(line)
		switch {
		case strings.HasPrefix(trimmed, "%main"), strings.HasPrefix(trimmed, "%%"):
			write(i, "func main() {", "\tflag.Parse()")
			closing = true
		case strings.HasPrefix(trimmed, "%exec"):
			_, rest, _ := strings.Cut(trimmed, " ")
			name, _, _ := strings.Cut(rest, " ")
			write(i, "func main() {", "\tflag.Parse()", "\t"+name+"()", "}")
		case t.used[i]:
		case strings.HasPrefix(line, "package"):
		default:
			write(i, line)
		}
	}
	if closing {
		write(NoLine, "", "}")
	}
	return b.String(), from
}
