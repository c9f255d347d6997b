package proxy

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/attnb/attnb/kernel/proxy/cell"
)

// tracebackLimit bounds the lines of a traceback.
const tracebackLimit = 200

func placeLabel(p cell.Place) string {
	if p.Cell == 0 {
		return fmt.Sprintf("cell line %d", p.Line+1)
	}
	return fmt.Sprintf("cell [%d] line %d", p.Cell, p.Line+1)
}

// mainLine finds what gonb and the Go runtime write for a line of main.go, with gonb's own note before it and the
// offset after it.
var mainLine = regexp.MustCompile(`(?: ?\x1b\[7m\[\[ Cell (?:\[-?\d+\] )?Line -?\d+ \]\]\x1b\[0m )?[^\s:"'\x1b]*/gonb_[0-9a-f]+/main(?:_test)?\.go:(\d+)(?::\d+)?(?: \+0x[0-9a-f]+)?`)

// cellLines replaces places in main.go by lines of cells. A place behind which no cell stands loses its directory.
func (e *execution) cellLines(text string) string {
	if !strings.Contains(text, "main") || !mainLine.MatchString(text) {
		return text
	}
	main := e.k.currentGonb().mainGo()
	return mainLine.ReplaceAllStringFunc(text, func(found string) string {
		n, _ := strconv.Atoi(mainLine.FindStringSubmatch(found)[1]) // digits; too many of them are no line
		if p, ok := e.decls.Locate(main, n, e.sent, e.number); ok {
			return placeLabel(p)
		}
		return fmt.Sprintf("main.go:%d", n)
	})
}

// traced is cellLines for a stack trace, with the cell's own line behind each place.
func (e *execution) traced(text string) string {
	main := e.k.currentGonb().mainGo()
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		m := mainLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		n, _ := strconv.Atoi(m[1])
		p, ok := e.decls.Locate(main, n, e.sent, e.number)
		if !ok {
			lines[i] = mainLine.ReplaceAllLiteralString(line, "main.go:"+m[1])
			continue
		}
		lines[i] = mainLine.ReplaceAllLiteralString(line, placeLabel(p)) + ": " + shown(strings.TrimSpace(p.Source))
	}
	return strings.Join(lines, "\n")
}

// ending is the problem of a program or command that ended other than by status 0.
func (s *sink) ending(seg cell.Segment) *problem {
	how := "exit status " + s.exit
	name := "ExitError"
	if sig, ok := strings.CutPrefix(s.exit, "signal "); ok {
		how, name = "killed by "+sig, "Killed"
	}
	if seg.Shell {
		return s.e.atLine("CommandError", seg.Line, how)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.crash == "" {
		return s.e.atLine(name, cell.NoLine, "the program ended: "+how)
	}
	return s.e.crash(s.crash)
}

var runtimeTail = regexp.MustCompile(`(?m)^(?:exit status \d+|\[signal .*\])\n?`)

// crash makes a problem of the report that a Go program leaves when it crashes.
func (e *execution) crash(report string) *problem {
	text := strings.TrimRight(runtimeTail.ReplaceAllString(report, ""), "\n ")
	name, value, _ := strings.Cut(strings.SplitN(text, "\n", 2)[0], ": ")
	if value == "" || name != "panic" && name != "fatal error" {
		name, value = "Crash", strings.SplitN(text, "\n", 2)[0]
	}
	lines := strings.Split(e.traced(text), "\n")
	if len(lines) > tracebackLimit {
		lines = append(lines[:tracebackLimit], fmt.Sprintf("... and %d more lines", len(lines)-tracebackLimit))
	}
	return &problem{name, value, lines}
}

// failure is the problem of a cell that a notebook function stopped.
func (s *sink) failure() *problem {
	trace := s.e.traced(s.message)
	if m := mainLine.FindStringSubmatch(s.placed); m != nil {
		n, _ := strconv.Atoi(m[1])
		if p, ok := s.e.decls.Locate(s.e.k.currentGonb().mainGo(), n, s.e.sent, s.e.number); ok {
			trace = placeLabel(p) + ": " + trace + "\n    " + shown(strings.TrimSpace(p.Source))
		}
	}
	first, _, _ := strings.Cut(s.e.cellLines(s.message), "\n")
	return &problem{"attn", first, strings.Split(trace, "\n")}
}

// A message of the Go tools: file, line, column where there is one, text.
var toolMessage = regexp.MustCompile(`^(?:\S*/)?(?:\./)?main(?:_test)?\.go:(\d+)(?::(\d+))?: (.*)$`)

// explain makes a problem of gonb's error: what the compiler or another tool wrote, or gonb's own words.
func (e *execution) explain(value string) *problem {
	main := e.k.currentGonb().mainGo()
	mainLines := strings.Split(main, "\n")
	var trace []string
	first, count := "", 0
	name := "Error"
	value = strings.TrimPrefix(strings.TrimRight(value, "\n "), "executing special commands in cell: ")
	if head, rest, ok := strings.Cut(value, "\n"); ok && strings.HasPrefix(head, "failed to run ") && strings.TrimSpace(rest) != "" {
		name, value = "GoError", rest
	}
	for _, line := range strings.Split(value, "\n") {
		m := toolMessage.FindStringSubmatch(line)
		if m == nil {
			if strings.HasPrefix(line, "# gonb_") || line == "" || isExitNote(line+"\n") {
				continue
			}
			line = e.cellLines(line)
			trace = append(trace, line)
			if first == "" {
				first = line
			}
			continue
		}
		name = "CompileError"
		n, _ := strconv.Atoi(m[1])
		column, _ := strconv.Atoi(m[2])
		what := m[3]
		p, ok := e.decls.Locate(main, n, e.sent, e.number)
		if !ok {
			trace = append(trace, "generated code: "+what)
		} else {
			trace = append(trace, placeLabel(p)+": "+what, "    "+shown(p.Source))
			if at, ok := caret(p.Source, mainLines, n, column); ok {
				trace = append(trace, "    "+at)
			}
			what = placeLabel(p) + ": " + what
		}
		if h := hint(m[3]); h != "" {
			trace = append(trace, "    "+h)
		}
		if count == 0 {
			first = what
		}
		count++
	}
	if count > 1 {
		first += fmt.Sprintf(" (and %d more)", count-1)
	}
	if first == "" {
		first = "gonb reports an error without a text"
		trace = []string{first}
	}
	return &problem{name, first, trace}
}

const sourceLimit = 200 // characters of a source line in a traceback

// shown makes a source line fit for a traceback: tabs as blanks, control characters visible, not longer than a line.
func shown(source string) string {
	var b strings.Builder
	n := 0
	for _, r := range source {
		if n++; n > sourceLimit {
			b.WriteString(" ...")
			break
		}
		switch {
		case r == '\t':
			b.WriteString("    ")
		case unicode.IsControl(r):
			b.WriteRune(unicode.ReplacementChar)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// caret places a ^ under the column of main.go's line, if that part of it is the same in the cell.
func caret(source string, mainLines []string, line, column int) (string, bool) {
	if line < 1 || line > len(mainLines) || column < 1 || column > len(mainLines[line-1]) {
		return "", false
	}
	rest := mainLines[line-1][column-1:]
	if !strings.HasSuffix(source, rest) || rest == "" {
		return "", false
	}
	before := shown(source[:len(source)-len(rest)])
	return strings.Repeat(" ", len([]rune(before))) + "^", true
}

// hint says what to do about the mistakes that newcomers make most.
func hint(message string) string {
	if name, ok := strings.CutPrefix(message, "declared and not used: "); ok {
		return fmt.Sprintf("Go refuses a variable that nothing uses: use %s, delete it, or write _ = %s", name, name)
	}
	if strings.HasSuffix(message, " imported and not used") {
		return "Go refuses an import that nothing uses: delete it"
	}
	if strings.HasPrefix(message, "expected declaration, found ") {
		return "a cell's statements stand below a line of their own that says %%; above it are imports, and what later cells use: func, type, const, var"
	}
	if name, ok := strings.CutPrefix(message, "undefined: "); ok && !strings.Contains(name, ".") {
		return fmt.Sprintf("%[1]s is not made in this cell, and variables made below %%%% end with theirs: a new one is made by %[1]s := ...; "+
			"a tensor stays by x.Named(%[2]q), and is there again by attn.Get(%[2]q)", name, name)
	}
	if message == "import path must be a string" {
		return `Go imports a package by its path, in double quotes: import "math"`
	}
	if message == "illegal rune literal" || message == "more than one character in rune literal" {
		return `a string stands in double quotes: "text"; single ones hold one character`
	}
	if strings.HasPrefix(message, "illegal types for operand: print") {
		return "fmt.Println prints any value"
	}
	return ""
}
