package proxy

import (
	"encoding/json"
)

// complete answers a request for completions.
func (k *Kernel) complete(r *request) {
	var c struct {
		Code   string `json:"code"`
		Cursor int    `json:"cursor_pos"`
	}
	empty := map[string]any{"status": "ok", "matches": []string{}, "cursor_start": c.Cursor, "cursor_end": c.Cursor, "metadata": map[string]any{}}
	if err := json.Unmarshal(r.msg.Content, &c); err != nil {
		k.reply(r, "complete_reply", failure("BadRequest", err.Error()))
		return
	}
	empty["cursor_start"], empty["cursor_end"] = c.Cursor, c.Cursor
	k.reply(r, "complete_reply", empty)
}

// inspect answers a request for documentation.
func (k *Kernel) inspect(r *request) {
	k.reply(r, "inspect_reply", map[string]any{"status": "ok", "found": false, "data": map[string]any{}, "metadata": map[string]any{}})
}
