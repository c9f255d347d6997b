package proxy

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/attnb/attnb/kernel/proxy/cell"
	"github.com/attnb/attnb/kernel/proxy/jupyter"
	"github.com/attnb/attnb/kernel/wire"
)

// maxCell is the size of a cell's text from which on it is refused.
const maxCell = 64 << 20

// settle is how long a failure waits before it aborts the cells behind it: those that a client sent together with the
// failing one are then here.
const settle = 20 * time.Millisecond

// execution is one execute request that the worker works on.
type execution struct {
	k      *Kernel
	req    *request
	number int // execution count; 0 for one that has none
	text   *cell.Text
	sent   *cell.Text         // the segment that gonb works on: the same lines, some of them blank
	decls  *cell.Declarations // of the cells before
	stdin  bool               // the client answers input requests
	pages  []any              // for the client's pager
	bar    *bar

	mu          sync.Mutex
	interrupted bool
	over        bool
	asked       time.Time         // when gonb asked for input last
	answered    func(line string) // gets the client's input; nil: gonb does
}

// problem is how an execution failed, as the protocol tells it.
type problem struct {
	Name      string
	Value     string
	Traceback []string
}

func (p *problem) content() map[string]any {
	return map[string]any{"ename": p.Name, "evalue": p.Value, "traceback": p.Traceback}
}

// execute answers an execute request.
func (k *Kernel) execute(r *request) {
	c := struct {
		Code        string            `json:"code"`
		Silent      bool              `json:"silent"`
		Store       *bool             `json:"store_history"`
		Expressions map[string]string `json:"user_expressions"`
		Stdin       bool              `json:"allow_stdin"`
		Stop        *bool             `json:"stop_on_error"`
	}{}
	err := json.Unmarshal(r.msg.Content, &c)
	store := !c.Silent && (c.Store == nil || *c.Store)
	if store {
		k.count++
	}
	e := &execution{k: k, req: r, decls: k.memory.decls, stdin: c.Stdin}
	e.bar = newBar(e)
	if store {
		e.number = k.count
		k.remember(k.count, c.Code)
	}
	k.mu.Lock()
	k.running = e
	k.mu.Unlock()

	var failed *problem
	began := time.Now()
	switch {
	case err != nil:
		failed = refusal("BadRequest", "the request's content: "+err.Error())
	case !utf8.Valid(r.msg.Content):
		failed = refusal("BadRequest", "the cell is not valid UTF-8")
	case len(c.Code) > maxCell:
		failed = refusal("BadRequest", fmt.Sprintf("the cell has %d bytes, more than %d", len(c.Code), maxCell))
	case !k.ready():
		failed = refusal("GonbError", "gonb ended, and does not start again; the next cell tries once more")
	default:
		if !c.Silent {
			k.publish("execute_input", r.msg, map[string]any{"code": c.Code, "execution_count": k.count})
		}
		k.tellNotices()
		failed = e.run(c.Code)
	}

	e.mu.Lock()
	e.over = true
	e.mu.Unlock()
	k.mu.Lock()
	k.running = nil
	k.mu.Unlock()

	answer := map[string]any{"execution_count": k.count, "user_expressions": expressions(c.Expressions), "payload": append([]any{}, e.pages...)}
	if failed == nil {
		answer["status"] = "ok"
		k.reply(r, "execute_reply", answer)
		return
	}
	k.publish("error", r.msg, failed.content())
	answer["status"] = "error"
	for name, value := range failed.content() {
		answer[name] = value
	}
	if c.Stop == nil || *c.Stop {
		if d := settle - time.Since(began); d > 0 {
			time.Sleep(d)
		}
		defer k.abort(k.queue.takeExecutes())
	}
	k.reply(r, "execute_reply", answer)
}

// abort answers the cells that waited behind one that failed.
func (k *Kernel) abort(waiting []*request) {
	for _, r := range waiting {
		k.publish("status", r.msg, status("busy"))
		answer := failure("Aborted", "an earlier cell failed")
		answer["status"] = "aborted"
		answer["execution_count"] = k.count
		k.reply(r, "execute_reply", answer)
		k.publish("status", r.msg, status("idle"))
	}
}

// expressions answers user expressions: Go has none to evaluate outside of a program.
func expressions(asked map[string]string) map[string]any {
	answers := map[string]any{}
	for name := range asked {
		answers[name] = failure("NotSupported", "user expressions are not supported in Go")
	}
	return answers
}

func refusal(name, value string) *problem {
	return &problem{name, value, []string{name + ": " + value}}
}

// run runs a cell segment by segment, until one fails.
func (e *execution) run(code string) *problem {
	e.text = cell.Parse(code)
	if err := e.text.Check(ownNames); err != nil {
		if r, ok := errorAs[*cell.Refused](err); ok {
			return e.atLine("CellError", r.Line, r.Why)
		}
		return refusal("CellError", err.Error())
	}
	if strings.TrimSpace(code) == "" {
		return nil
	}
	e.k.device.cell(e.number)
	segments := e.text.Segments(e.report(), ownNames)
	for i, s := range segments {
		if e.isInterrupted() {
			return e.interruption(s, nil)
		}
		var failed *problem
		gone := ""
		if s.Go {
			gone = e.k.removed()
		}
		switch {
		case s.Own != nil:
			failed = e.own(s, i == len(segments)-1)
		case gone != "":
			failed = e.atLine("KernelError", cell.NoLine, gone)
		default:
			failed = e.segment(s)
		}
		if failed != nil {
			return failed
		}
	}
	return nil
}

// report is shell text that prints the marker of how a command ended.
func (e *execution) report() string {
	marker := string(wire.AppendMarker(nil, e.k.nonce, wire.MarkExit, "%s"))
	return `printf '` + strings.ReplaceAll(strings.ReplaceAll(marker, `\`, `\\`), "\x1b", `\033`) + `' "$?"`
}

// segment has gonb run a part of the cell.
func (e *execution) segment(s cell.Segment) *problem {
	out := newSink(e)
	e.sent = cell.Parse(s.Code)
	reply, err := e.request(s, out)
	if err == errGonbIsGone && e.k.ready() {
		reply, err = e.request(s, out)
	}
	out.finish()
	e.uncapture()
	g := e.k.gonb
	if g.unswept = g.unswept || e.isInterrupted(); g.unswept {
		g.sweepBuilds()
	}
	if err != nil {
		said, err := e.k.revive()
		if err != nil {
			return refusal("GonbError", err.Error())
		}
		return e.atLine("GonbError", cell.NoLine, "while gonb worked on this cell, "+said)
	}
	var r struct {
		Status string `json:"status"`
		Value  string `json:"evalue"`
	}
	if err := json.Unmarshal(reply.Content, &r); err != nil {
		return refusal("GonbError", "gonb's reply: "+err.Error())
	}
	if out.started || r.Status == "ok" {
		e.k.memory.learn(e, s, e.k.gonb.mainGo())
	}
	switch {
	case e.isInterrupted():
		return e.interruption(s, &out.stacks)
	case out.failed:
		return out.failure()
	case r.Status != "ok":
		return e.explain(r.Value)
	case out.exited && out.exit != "0":
		return out.ending(s)
	case out.started && !out.exited:
		return e.atLine("Killed", cell.NoLine, "the cell's program was killed: it did not tell how it ended")
	case !out.exited && out.note != "" && s.Shell:
		return e.atLine("CommandError", s.Line, exitNote.FindStringSubmatch(out.note)[1])
	}
	return nil
}

// request sends a segment to gonb. Its program's streams go to out, as does what gonb itself says.
func (e *execution) request(s cell.Segment, out *sink) (*jupyter.Message, error) {
	if s.Go {
		e.k.streams.expect(out)
		defer e.k.streams.expect(nil)
		defer e.bar.watch(&waits{s: out, began: time.Now()})()
	}
	return e.k.gonb.do("execute_request", executeContent(s.Code, e.stdin), out.publication, e.ask)
}

// atLine is a problem with a line of the cell, or with none.
func (e *execution) atLine(name string, line int, what string) *problem {
	if line == cell.NoLine || line >= len(e.text.Lines) {
		return &problem{name, what, []string{e.label() + ": " + what}}
	}
	p := cell.Place{Cell: e.number, Line: line, Source: e.text.Lines[line]}
	return &problem{name, what, []string{placeLabel(p) + ": " + what, "    " + shown(strings.TrimSpace(p.Source))}}
}

func (e *execution) label() string {
	if e.number == 0 {
		return "this cell"
	}
	return fmt.Sprintf("cell [%d]", e.number)
}

// sayBusy repeats the state of the cell that runs.
func (e *execution) sayBusy() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.over {
		e.k.publish("status", e.req.msg, status("busy"))
	}
}
