package proxy

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/attnb/attnb/kernel/proxy/cell"
)

const (
	// stacksBegin is what a Go program writes first when it is asked for its stacks.
	stacksBegin = "SIGQUIT: quit\n"
	// stacksLimit bounds what is kept of them: main's come first, or second.
	stacksLimit = 256 << 10
	// callsLimit bounds the calls that an interrupted cell's traceback tells.
	callsLimit = 16
)

// stacks takes what an interrupted program writes about its goroutines off its stderr.
type stacks struct {
	begun  bool
	enough bool
	held   string // before they begin: what may be their beginning; then: they
}

// mainStack finds the stack of the goroutine that runs main. An empty line ends it.
var mainStack = regexp.MustCompile(`(?m)^goroutine 1 .*:\n((?:.+\n)*)\n`)

// take returns what is not of the stacks. enough is true once, when main's stack is whole or will not come.
func (s *stacks) take(text string) (other string, enough bool) {
	if s.enough {
		return "", false
	}
	text = s.held + text
	if !s.begun {
		at := strings.Index(text, stacksBegin)
		if at < 0 {
			keep := min(len(text), len(stacksBegin)-1)
			for keep > 0 && !strings.HasPrefix(stacksBegin, text[len(text)-keep:]) {
				keep--
			}
			s.held = text[len(text)-keep:]
			return text[:len(text)-keep], false
		}
		s.begun = true
		other, text = text[:at], text[at:]
	}
	s.held = text
	s.enough = mainStack.MatchString(text) || len(text) > stacksLimit
	return other, s.enough
}

// rest returns what never became stacks.
func (s *stacks) rest() string {
	if s.begun {
		return ""
	}
	text := s.held
	s.held = ""
	return text
}

// whereabouts tells the lines of cells at which main was, the innermost first; nil where that is not known.
func (e *execution) whereabouts(s *stacks) []string {
	if s == nil || !s.begun {
		return nil
	}
	found := mainStack.FindStringSubmatch(s.held + "\n")
	if found == nil {
		return nil
	}
	main := e.k.currentGonb().mainGo()
	var trace []string
	calls := 0
	for _, m := range mainLine.FindAllStringSubmatch(found[1], -1) {
		n, _ := strconv.Atoi(m[1])
		p, ok := e.decls.Locate(main, n, e.sent, e.number)
		if !ok {
			continue
		}
		if calls++; calls > callsLimit {
			continue
		}
		trace = append(trace, callLine(calls, p), "    "+shown(strings.TrimSpace(p.Source)))
	}
	if more := calls - callsLimit; more > 0 {
		trace = append(trace, fmt.Sprintf("... and %d more calls", more))
	}
	return trace
}

func callLine(nth int, p cell.Place) string {
	if nth == 1 {
		return placeLabel(p) + ": interrupted"
	}
	return placeLabel(p) + ": called it"
}
