package proxy

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/attnb/attnb/kernel/proxy/jupyter"
)

// Limits of what is kept; beyond, the oldest goes.
const (
	historyLimit = 10000    // entries
	historyBytes = 16 << 20 // of their text
)

// entry is one cell of this kernel's life.
type entry struct {
	number int
	code   string
}

func (k *Kernel) remember(number int, code string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.history = append(k.history, entry{number, code})
	k.historySize += len(code)
	for len(k.history) > historyLimit || k.historySize > historyBytes && len(k.history) > 1 {
		k.historySize -= len(k.history[0].code)
		k.history = k.history[1:]
	}
}

// answerHistory knows one session, this one, by the number 0 and by any other that is asked for as the newest.
func (k *Kernel) answerHistory(m *jupyter.Message) map[string]any {
	c := struct {
		Output  bool   `json:"output"`
		Access  string `json:"hist_access_type"`
		Session int    `json:"session"`
		Start   int    `json:"start"`
		Stop    *int   `json:"stop"`
		N       *int   `json:"n"`
		Pattern string `json:"pattern"`
		Unique  bool   `json:"unique"`
	}{}
	if err := json.Unmarshal(m.Content, &c); err != nil {
		return failure("BadRequest", err.Error())
	}
	k.mu.Lock()
	entries := append([]entry(nil), k.history...)
	k.mu.Unlock()

	var found []entry
	switch c.Access {
	case "range":
		for _, e := range entries {
			if c.Session == 0 && e.number >= c.Start && (c.Stop == nil || e.number < *c.Stop) {
				found = append(found, e)
			}
		}
	case "search":
		pattern := glob(c.Pattern)
		newest := map[string]int{}
		for _, e := range entries {
			if !pattern.MatchString(e.code) {
				continue
			}
			newest[e.code] = e.number
			found = append(found, e)
		}
		if c.Unique {
			kept := found[:0]
			for _, e := range found {
				if newest[e.code] == e.number {
					kept = append(kept, e)
				}
			}
			found = kept
		}
	default: // "tail"
		found = entries
	}
	if c.N != nil && c.Access != "range" && *c.N >= 0 && len(found) > *c.N {
		found = found[len(found)-*c.N:]
	}
	rows := make([][]any, 0, len(found))
	for _, e := range found {
		if c.Output {
			rows = append(rows, []any{0, e.number, []any{e.code, nil}})
		} else {
			rows = append(rows, []any{0, e.number, e.code})
		}
	}
	return map[string]any{"status": "ok", "history": rows}
}

// glob makes a regular expression of a pattern in which * stands for any text and ? for any character.
func glob(pattern string) *regexp.Regexp {
	if pattern == "" {
		pattern = "*"
	}
	quoted := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern))
	return regexp.MustCompile(`(?s)^` + quoted + `$`)
}
