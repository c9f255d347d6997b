package proxy

import (
	"encoding/json"
	"strings"

	"github.com/attnb/attnb/kernel/proxy/jupyter"
)

// gonbTarget is the target of the one comm that gonb itself opens in a page, for its own widgets (%widgets).
const gonbTarget = "gonb_comm"

// comm takes a comm message of a client. Those of gonb's own widgets go to gonb, also while a cell runs: it expects
// that. All others are the widgets' own, which close what they do not know, as the protocol asks.
func (k *Kernel) comm(r *request) {
	var c struct {
		ID     string `json:"comm_id"`
		Target string `json:"target_name"`
	}
	if err := json.Unmarshal(r.msg.Content, &c); err != nil || c.ID == "" {
		k.log.Warn("comm message without comm_id")
		return
	}
	k.mu.Lock()
	known := k.gonbComms[c.ID]
	switch r.msg.Header.Type {
	case "comm_open":
		if known = c.Target == gonbTarget; known {
			k.gonbComms[c.ID] = true
		}
	case "comm_close":
		delete(k.gonbComms, c.ID)
	}
	g := k.gonb
	k.mu.Unlock()
	switch {
	case known && g != nil:
		// The header stays, so that what gonb answers names the client's message.
		m := *r.msg
		m.IDs, m.Buffers = nil, nil
		if err := g.shell.Send(g.codec.Frames(&m), true); err != nil {
			k.log.Warn("comm message", "error", err)
		}
	case !known:
		k.widgetMessage(r.msg)
	}
}

// unasked publishes what gonb says that belongs to no cell that runs: answers to its widgets.
func (k *Kernel) unasked(m *jupyter.Message) {
	switch t := m.Header.Type; {
	case strings.HasPrefix(t, "comm_"), t == "display_data", t == "update_display_data":
		parent := &jupyter.Message{Raw: m.Parent}
		k.publish(t, parent, m.Content)
	}
}
