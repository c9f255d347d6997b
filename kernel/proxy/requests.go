package proxy

import (
	"encoding/json"
	"runtime"
	"strings"

	"github.com/attnb/attnb/kernel/proxy/cell"
	"github.com/attnb/attnb/kernel/proxy/jupyter"
	"github.com/attnb/attnb/kernel/proxy/zmtp"
)

// receiveShell queues what takes gonb, and answers the rest at once, also while a cell runs.
func (k *Kernel) receiveShell(s *zmtp.Server, from string, frames [][]byte) {
	r, ok := k.parse(s, from, frames)
	if !ok {
		return
	}
	switch r.msg.Header.Type {
	case "execute_request", "complete_request", "inspect_request":
		k.queue.add(r)
	default:
		k.atOnce(r)
	}
}

// receiveControl is for requests that must not wait.
func (k *Kernel) receiveControl(s *zmtp.Server, from string, frames [][]byte) {
	if r, ok := k.parse(s, from, frames); ok {
		k.atOnce(r)
	}
}

// receiveStdin passes a client's input on to the program that asked for it.
func (k *Kernel) receiveStdin(s *zmtp.Server, from string, frames [][]byte) {
	r, ok := k.parse(s, from, frames)
	if !ok || r.msg.Header.Type != "input_reply" {
		return
	}
	k.mu.Lock()
	e := k.running
	k.mu.Unlock()
	if e != nil && e.req.from == from {
		e.input(r.msg)
	}
}

// atOnce answers a request between its status messages. A client that shows the kernel's state by the newest one must
// not take a running cell for finished, so that cell's state is said again.
func (k *Kernel) atOnce(r *request) {
	k.publish("status", r.msg, status("busy"))
	defer func() {
		k.publish("status", r.msg, status("idle"))
		k.mu.Lock()
		e := k.running
		k.mu.Unlock()
		if e != nil {
			e.sayBusy()
		}
	}()
	switch t := r.msg.Header.Type; t {
	case "kernel_info_request":
		k.reply(r, "kernel_info_reply", k.kernelInfo())
	case "is_complete_request":
		k.reply(r, "is_complete_reply", isComplete(r.msg))
	case "comm_info_request":
		k.reply(r, "comm_info_reply", k.commInfo(r.msg))
	case "history_request":
		k.reply(r, "history_reply", k.answerHistory(r.msg))
	case "interrupt_request":
		k.interrupt()
		k.reply(r, "interrupt_reply", map[string]any{"status": "ok"})
	case "shutdown_request":
		var c struct {
			Restart bool `json:"restart"`
		}
		_ = json.Unmarshal(r.msg.Content, &c) // anything else means false
		answer := map[string]any{"status": "ok", "restart": c.Restart}
		k.publish("shutdown_reply", r.msg, answer)
		k.reply(r, "shutdown_reply", answer)
		k.shutdown()
	case "comm_open", "comm_msg", "comm_close":
		k.comm(r)
	default:
		k.log.Warn("unknown request", "type", t)
		if name, ok := strings.CutSuffix(t, "_request"); ok {
			k.reply(r, name+"_reply", failure("UnknownRequest", "this kernel does not know "+t))
		}
	}
}

func failure(name, value string) map[string]any {
	return map[string]any{"status": "error", "ename": name, "evalue": value, "traceback": []string{name + ": " + value}}
}

func (k *Kernel) kernelInfo() map[string]any {
	return map[string]any{
		"status":                 "ok",
		"protocol_version":       jupyter.ProtocolVersion,
		"implementation":         "attnb",
		"implementation_version": k.opts.Version,
		"banner":                 "attnb " + k.opts.Version + ": attention in Go notebooks, on GoNB",
		"debugger":               false,
		"supported_features":     []string{},
		"language_info": map[string]any{
			"name":            "go",
			"version":         strings.TrimPrefix(runtime.Version(), "go"),
			"mimetype":        "text/x-go",
			"file_extension":  ".go",
			"pygments_lexer":  "go",
			"codemirror_mode": "go",
		},
		"help_links": []map[string]string{
			{"text": "Go", "url": "https://go.dev/doc/"},
			{"text": "GoNB", "url": "https://github.com/janpfeifer/gonb"},
			{"text": "attnb", "url": "https://github.com/attnb/attnb"},
		},
	}
}

func isComplete(m *jupyter.Message) map[string]any {
	var c struct {
		Code string `json:"code"`
	}
	_ = json.Unmarshal(m.Content, &c)
	state, indent := cell.IsComplete(c.Code)
	answer := map[string]any{"status": state}
	if state == "incomplete" {
		answer["indent"] = indent
	}
	return answer
}
