package proxy

import (
	"encoding/json"
	"time"

	"github.com/attnb/attnb/kernel/proxy/jupyter"
)

// promptTime is how long a program that may ask for input runs before the client is asked, as gonb does for shell lines:
// whether a program waits for input cannot be seen.
const promptTime = 200 * time.Millisecond

// settleTime is how long after a request of gonb's an answer may reach it: it sends the request first and only then notes who waits
// for the answer, and forgets one that comes between.
const settleTime = 100 * time.Millisecond

// inputKind says what a program finds on its stdin.
type inputKind uint8

const (
	noInput inputKind = iota
	plainInput
	hiddenInput
)

// inputKind is what the cell's own program may ask for: nothing without %with_inputs or %with_password.
func (e *execution) inputKind() inputKind {
	kind := noInput
	for _, c := range e.sent.Commands {
		switch {
		case c.Kind != '%' || !e.stdin:
		case c.Name() == "with_inputs":
			kind = plainInput
		case c.Name() == "with_password":
			kind = hiddenInput
		}
	}
	return kind
}

// askInput asks the client for line after line until the program ends.
func (p *program) askInput(hidden bool) {
	e := p.out.e
	lines := make(chan string, 1)
	e.setAnswered(func(line string) {
		select {
		case lines <- line:
		default: // nobody asked
		}
	})
	defer e.setAnswered(nil)
	for {
		select {
		case <-p.ended:
			return
		case <-time.After(promptTime):
		}
		e.sendInputRequest(map[string]any{"prompt": " ", "password": hidden})
		select {
		case <-p.ended:
			return
		case line := <-lines:
			if _, err := p.stdin.WriteString(line + "\n"); err != nil {
				return // it reads no more
			}
		}
	}
}

// setAnswered says who gets the client's answers; nil: gonb.
func (e *execution) setAnswered(f func(line string)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answered = f
}

// ask passes an input request of gonb on to the client that sent the cell.
func (e *execution) ask(m *jupyter.Message) {
	e.mu.Lock()
	e.asked = time.Now()
	e.mu.Unlock()
	e.sendInputRequest(m.Content)
}

func (e *execution) sendInputRequest(content any) {
	q := e.k.codec.New("input_request", e.req.msg, content)
	q.IDs = e.req.msg.IDs
	if err := e.k.front.stdin.Send(e.req.from, e.k.codec.Frames(q)); err != nil {
		e.k.log.Warn("no stdin connection to ask for input", "error", err)
	}
}

// input passes a client's answer on to who asked.
func (e *execution) input(m *jupyter.Message) {
	var c struct {
		Value string `json:"value"`
	}
	if err := json.Unmarshal(m.Content, &c); err != nil {
		e.k.log.Warn("input reply", "error", err)
		return
	}
	e.mu.Lock()
	answered, asked := e.answered, e.asked
	e.mu.Unlock()
	if answered != nil {
		answered(c.Value)
		return
	}
	g := e.k.currentGonb()
	time.AfterFunc(settleTime-time.Since(asked), func() {
		_ = g.stdin.Send(g.codec.Frames(g.codec.New("input_reply", nil, c)), true)
	})
}
