package cell

import (
	"slices"
	"strings"
)

// Segment is a part of a cell that gonb runs by one request. Lines outside of it are blank, so that line numbers stay.
type Segment struct {
	Code  string
	Shell bool     // a shell line or a script, whose exit status comes as a marker
	Line  int      // of the command, where Shell
	Go    bool     // holds Go lines
	Own   *Command // not gonb's: one of the kernel's own commands
	lines []string
}

// Has reports whether a command is in the segment.
func (s Segment) Has(c Command) bool {
	return s.lines != nil && strings.HasPrefix(trimPrefix(s.lines[c.First]), string(c.Kind))
}

// forShell are the commands that matter to the shell line behind them.
var forShell = []string{"env", "cd", "with_inputs", "with_password"}

// Segments splits a cell so that a failing shell line stops it: gonb runs on. Each ! command is a segment, preceded by
// the commands that matter to it; the rest follows as the last segment.
// The kernel's own commands are segments too. report is the shell text that prints the marker of an exit status, given the
// status in $?.
func (t *Text) Segments(report string, own map[string]bool) []Segment {
	if !t.IsGo() {
		return []Segment{{Code: t.scriptCode(report), Shell: t.script[0] != "%%writefile"}}
	}
	var segments []Segment
	rest := append([]string(nil), t.Lines...)
	pending := make([]string, len(t.Lines))
	for _, c := range t.Commands {
		if c.Text == "" { // gonb means to skip it, and crashes
			blank(rest, c)
			continue
		}
		switch c.Kind {
		case '!':
			lines := pending
			pending = make([]string, len(t.Lines))
			asks := slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "%with_") })
			lines[c.First] = "!" + wrap(c.Text, report, asks)
			segments = append(segments, Segment{Code: strings.Join(lines, "\n"), Shell: true, Line: c.First, lines: lines})
			blank(rest, c)
		case '%':
			switch name := c.Name(); {
			case own[name]:
				segments = append(segments, Segment{Own: &c, Line: c.First})
				blank(rest, c)
			case slices.Contains(forShell, name):
				pending[c.First] = "%" + c.Text
				blank(rest, c)
			}
		}
	}
	for i, line := range pending {
		if line != "" {
			rest[i] = line
		}
	}
	hasGo := false
	for i, line := range rest {
		if strings.TrimSpace(line) != "" && !t.used[i] || startsMain(line) {
			hasGo = true
		}
		// gonb drops any line that begins with these letters, taking it for a package clause.
		if strings.HasPrefix(line, "package") && len(line) > 7 && isNameByte(line[7]) {
			rest[i] = " " + line
		}
	}
	code := strings.Join(rest, "\n")
	if strings.TrimSpace(code) != "" || len(segments) == 0 {
		segments = append(segments, Segment{Code: code, Go: hasGo, lines: rest})
	}
	return segments
}

func isNameByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

func blank(lines []string, c Command) {
	for i := c.First; i <= c.Last; i++ {
		lines[i] = ""
	}
}

// userTMPDIR is shell text that gives a command the user's own TMPDIR; gonb has another.
const userTMPDIR = `if [ -n "$ATTNB_USER_TMPDIR" ]; then TMPDIR=$ATTNB_USER_TMPDIR; else unset TMPDIR; fi; unset ATTNB_USER_TMPDIR; `

// wrap makes bash print the marker when it exits. A leading * asks gonb to run the line in its own directory. A command
// that nobody can type to reads the end of its input, not nothing for ever.
func wrap(command, report string, asks bool) string {
	star := ""
	if strings.HasPrefix(command, "*") {
		star, command = "*", command[1:]
	}
	if !asks {
		command = "exec </dev/null; " + command
	}
	return star + userTMPDIR + "trap " + quote(report) + " EXIT; " + command
}

// scriptCode runs a script below sh, which prints the marker when it has ended.
func (t *Text) scriptCode(report string) string {
	lines := append([]string(nil), t.Lines...)
	words := t.script[1:]
	switch t.script[0] {
	case "%%writefile":
		return strings.Join(lines, "\n")
	case "%%bash", "%%sh":
		if len(words) > 0 { // gonb refuses it, and says why
			return strings.Join(lines, "\n")
		}
		words = []string{t.script[0][2:]}
	}
	head := []string{"%%script", "/bin/sh", "-c", userTMPDIR + `"$@"; (exit $?); ` + report, "sh"}
	for i, w := range append(head, words...) {
		if i > 0 {
			w = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(w) + `"`
		}
		if i == 0 {
			lines[0] = w
		} else {
			lines[0] += " " + w
		}
	}
	return strings.Join(lines, "\n")
}

// quote quotes for the shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
