package proxy

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/attnb/attnb/kernel/proxy/cell"
	"github.com/attnb/attnb/kernel/proxy/jupyter"
)

// lookupLimit is how long gonb may take for a completion or for help. After that it hangs, and is replaced.
const lookupLimit = 15 * time.Second

// commands are what may begin a line that is not Go, for completion.
var commands = []string{"%%", "%%bash", "%%script", "%%sh", "%%writefile", "%args", "%autoget", "%capture", "%cd", "%clear", "%device",
	"%env", "%exec", "%free", "%goflags", "%goworkfix", "%help", "%list", "%main", "%noautoget", "%remove", "%reset", "%restore", "%save",
	"%tensors", "%test", "%track", "%untrack", "%version", "%wasm", "%with_inputs", "%with_password"}

type lookup struct {
	Code   string `json:"code"`
	Cursor int    `json:"cursor_pos"`
	Detail int    `json:"detail_level"`
}

// complete answers a request for completions.
func (k *Kernel) complete(r *request) {
	var c lookup
	if err := json.Unmarshal(r.msg.Content, &c); err != nil {
		k.reply(r, "complete_reply", failure("BadRequest", err.Error()))
		return
	}
	matches, replaced := k.completions(c)
	k.reply(r, "complete_reply", map[string]any{"status": "ok", "matches": matches,
		"cursor_start": max(c.Cursor-replaced, 0), "cursor_end": c.Cursor, "metadata": map[string]any{}})
}

// completions returns what may stand at the cursor, and how many characters before it that replaces.
func (k *Kernel) completions(c lookup) (matches []string, replaced int) {
	matches = []string{}
	t := cell.Parse(c.Code)
	at := t.At(c.Code, c.Cursor)
	before := t.Lines[at.Line][:at.Column]
	if strings.HasPrefix(before, "%") {
		for _, name := range commands {
			if strings.HasPrefix(name, before) {
				matches = append(matches, name)
			}
		}
		return matches, len([]rune(before))
	}
	if !t.IsGo() || t.IsCommand(at.Line) || t.Check(ownNames) != nil || !k.ready() {
		return matches, 0
	}
	code, position := t.Lookup(at)
	reply, ok := k.ask("complete_request", map[string]any{"code": code, "cursor_pos": position})
	if !ok {
		return matches, 0
	}
	var found struct {
		Matches []string `json:"matches"`
		Start   int      `json:"cursor_start"`
		End     int      `json:"cursor_end"`
	}
	if err := json.Unmarshal(reply.Content, &found); err != nil || len(found.Matches) == 0 {
		return matches, 0
	}
	replaced = t.Replaced(at, found.End-found.Start)
	return beginning(found.Matches, string([]rune(before)[len([]rune(before))-replaced:])), replaced
}

// beginning keeps the matches that begin with what was typed, where there are any: gopls also finds what merely
// contains its letters.
func beginning(matches []string, typed string) []string {
	var kept []string
	for _, m := range matches {
		if len(m) >= len(typed) && strings.EqualFold(m[:len(typed)], typed) {
			kept = append(kept, m)
		}
	}
	if len(kept) == 0 {
		return matches
	}
	return kept
}

// inspect answers a request for help.
func (k *Kernel) inspect(r *request) {
	var c lookup
	if err := json.Unmarshal(r.msg.Content, &c); err != nil {
		k.reply(r, "inspect_reply", failure("BadRequest", err.Error()))
		return
	}
	data := k.help(c)
	k.reply(r, "inspect_reply", map[string]any{"status": "ok", "found": len(data) > 0, "data": data, "metadata": map[string]any{}})
}

func (k *Kernel) help(c lookup) map[string]any {
	none := map[string]any{}
	t := cell.Parse(c.Code)
	at, ok := t.Identifier(t.At(c.Code, c.Cursor))
	if !ok || !t.IsGo() || t.Check(ownNames) != nil || !k.ready() {
		return none
	}
	code, position := t.Lookup(at)
	reply, ok := k.ask("inspect_request", map[string]any{"code": code, "cursor_pos": position, "detail_level": min(max(c.Detail, 0), 1)})
	if !ok {
		return none
	}
	var found struct {
		Found bool           `json:"found"`
		Data  map[string]any `json:"data"`
	}
	if err := json.Unmarshal(reply.Content, &found); err != nil || !found.Found {
		return none
	}
	if markdown, ok := found.Data["text/markdown"].(string); ok && found.Data["text/plain"] == nil {
		found.Data["text/plain"] = plain(markdown)
	}
	return found.Data
}

// plain takes the fences out of markdown.
func plain(markdown string) string {
	var b strings.Builder
	for line := range strings.Lines(markdown) {
		if !strings.HasPrefix(line, "```") {
			b.WriteString(line)
		}
	}
	return strings.TrimSpace(b.String())
}

// ask sends gonb a request that concerns no cell.
func (k *Kernel) ask(kind string, content any) (*jupyter.Message, bool) {
	g := k.gonb
	limit := time.AfterFunc(lookupLimit, func() {
		k.log.Error("gonb hangs", "request", kind)
		g.end()
	})
	defer limit.Stop()
	reply, err := g.do(kind, content, func(*jupyter.Message) {}, nil)
	return reply, err == nil
}
