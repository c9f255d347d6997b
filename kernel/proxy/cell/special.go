// Package cell reads the text of a notebook cell as gonb does: which lines are commands (% and !), which are Go, what
// the Go lines declare, and where a line of gonb's main.go came from. Where gonb would crash or hang on a text, this
// package finds it first.
package cell

import (
	"fmt"
	"os/user"
	"strings"
)

// Command is a line that begins with % or !, joined with the lines that continue it by a backslash.
type Command struct {
	First, Last int // line indices
	Kind        byte
	Text        string // after the kind, blanks trimmed
}

// Words splits a command as gonb does.
func (c Command) Words() []string { return splitWords(c.Text) }

// Name is the first word of a % command.
func (c Command) Name() string {
	if words := c.Words(); len(words) > 0 {
		return words[0]
	}
	return ""
}

// Text is a cell, taken apart.
type Text struct {
	Lines    []string
	Commands []Command
	used     map[int]bool // lines of commands
	script   []string     // the words of a %%script, %%bash, %%sh or %%writefile line, which takes the whole cell
}

// Refused says why a cell cannot run as it stands. Line counts from 0.
type Refused struct {
	Line int
	Why  string
}

func (r *Refused) Error() string { return r.Why }

// commentPrefix lets commands hide in Go comments.
const commentPrefix = "//gonb:"

func trimPrefix(line string) string { return strings.TrimPrefix(line, commentPrefix) }

// Parse takes a cell apart.
func Parse(code string) *Text {
	t := &Text{Lines: strings.Split(strings.ReplaceAll(code, "\r\n", "\n"), "\n"), used: map[int]bool{}}
	if words := splitWords(trimPrefix(t.Lines[0])); len(words) > 0 {
		switch words[0] {
		case "%%script", "%%bash", "%%sh", "%%writefile":
			t.script = words
			return t
		}
	}
	for i := range t.Lines {
		line := trimPrefix(t.Lines[i])
		if t.used[i] || len(line) < 2 || line[0] != '%' && line[0] != '!' {
			continue
		}
		c := Command{First: i, Kind: line[0]}
		var joined string
		for c.Last = i; c.Last < len(t.Lines); c.Last++ {
			t.used[c.Last] = true
			joined += trimPrefix(t.Lines[c.Last])
			if !strings.HasSuffix(joined, `\`) {
				break
			}
			joined = joined[:len(joined)-1] + " "
		}
		c.Last = min(c.Last, len(t.Lines)-1)
		c.Text = strings.Trim(joined[1:], " \t")
		t.Commands = append(t.Commands, c)
	}
	return t
}

// IsGo reports whether the cell is Go and commands, not a script or a file to write.
func (t *Text) IsGo() bool { return t.script == nil }

// IsCommand reports whether a line belongs to a command.
func (t *Text) IsCommand(line int) bool { return t.used[line] }

// startsMain reports whether gonb makes a main function out of a line.
func startsMain(line string) bool {
	line = trimPrefix(line)
	return strings.HasPrefix(line, "%%") || strings.HasPrefix(line, "%main") || strings.HasPrefix(line, "%exec")
}

// known are gonb's commands. gonb itself takes any other for a note on stderr.
var known = set("%", "main", "args", "test", "exec", "wasm", "widgets", "widgets_hb", "env", "cd", "goflags", "autoget",
	"noautoget", "help", "version", "reset", "ls", "list", "rm", "remove", "with_inputs", "with_password", "track", "untrack",
	"goworkfix", "capture")

func set(names ...string) map[string]bool {
	s := map[string]bool{}
	for _, n := range names {
		s[n] = true
	}
	return s
}

// Check refuses what gonb would crash on, and commands that neither it nor own knows: the names of the kernel's own.
func (t *Text) Check(own map[string]bool) error {
	if !t.IsGo() {
		if t.script[0] == "%%script" && len(t.script) == 1 {
			return &Refused{0, "%%script takes the program to run, as in %%script python3"}
		}
		if t.script[0] == "%%writefile" {
			return checkPaths(0, t.script)
		}
		return nil
	}
	for _, c := range t.Commands {
		if c.Kind != '%' || c.Text == "" {
			continue
		}
		switch name := c.Name(); {
		case !known[name] && !own[name]:
			return &Refused{c.First, fmt.Sprintf("there is no command %%%s; %%help lists those there are", name)}
		case name == "cd", name == "capture", name == "track", name == "untrack":
			if err := checkPaths(c.First, c.Words()); err != nil {
				return err
			}
		}
	}
	first := -1
	for i, line := range t.Lines {
		if startsMain(line) {
			if first >= 0 {
				return &Refused{i, fmt.Sprintf("a cell has one main function: line %d already begins it", first+1)}
			}
			first = i
		}
		if strings.HasPrefix(trimPrefix(line), "%exec") && len(strings.Split(trimPrefix(line), " ")) < 2 {
			return &Refused{i, "%exec takes the name of the function to run, as in %exec train"}
		}
		if at := lineDirective(line); at != "" && !t.used[i] {
			return &Refused{i, at + " directives have no meaning in a cell"}
		}
	}
	return nil
}

// checkPaths refuses the empty path, and the home of a user that is none.
func checkPaths(line int, words []string) error {
	for _, path := range words[1:] {
		if path == "" {
			return &Refused{line, words[0] + ": the path is empty"}
		}
		name, _, _ := strings.Cut(path, "/")
		if len(name) > 1 && name[0] == '~' {
			if _, err := user.Lookup(name[1:]); err != nil {
				return &Refused{line, fmt.Sprintf("%s: there is no user %q", words[0], name[1:])}
			}
		}
	}
	return nil
}

// lineDirective finds the comments by which a Go file claims to be another; gonb looks lines up by them.
func lineDirective(line string) string {
	for _, d := range []string{"//line ", "/*line "} {
		if strings.Contains(line, d) {
			return strings.TrimSpace(d)
		}
	}
	return ""
}

// splitWords splits a command into words, with double quotes and, within them, backslashes.
func splitWords(s string) []string {
	var words []string
	var word strings.Builder
	started, quoted := false, false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case !quoted && (c == ' ' || c == '\t' || c == '\n'):
			if started {
				words = append(words, word.String())
			}
			word.Reset()
			started = false
			continue
		case c == '"':
			quoted, started = !quoted, true
			continue
		case c == '\\' && quoted && i+1 < len(s):
			i++
			c = s[i]
		}
		word.WriteByte(c)
		started = true
	}
	if started {
		words = append(words, word.String())
	}
	return words
}
