package proxy

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/attnb/attnb/kernel/proxy/jupyter"
)

// mergeLimit is how much text one stream message may hold after neighbours were joined.
const mergeLimit = 256 << 10

// inbox is a queue of publications between two goroutines. Neighbouring pieces of one stream leave it as one message,
// so that a storm of small writes costs the clients little.
type inbox struct {
	mu     sync.Mutex
	change *sync.Cond
	queue  []*jupyter.Message
	bytes  int
	busy   bool // the taken message is being worked on
	closed bool
}

func newInbox() *inbox {
	b := &inbox{}
	b.change = sync.NewCond(&b.mu)
	return b
}

func (b *inbox) put(m *jupyter.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = append(b.queue, m)
	b.bytes += len(m.Content)
	b.change.Broadcast()
}

// take waits for a message; done must follow when it was dealt with.
func (b *inbox) take() (*jupyter.Message, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.queue) == 0 && !b.closed {
		b.change.Wait()
	}
	if len(b.queue) == 0 {
		return nil, false
	}
	m := b.pop()
	b.busy = true
	if s, ok := streamOf(m); ok && !isExitNote(s.Text) {
		joined := false
		for len(b.queue) > 0 && len(s.Text) < mergeLimit {
			next, ok := streamOf(b.queue[0])
			if !ok || next.Name != s.Name || isExitNote(next.Text) || string(b.queue[0].Parent) != string(m.Parent) {
				break
			}
			s.Text += next.Text
			b.pop()
			joined = true
		}
		if joined {
			text, err := json.Marshal(s)
			if err == nil {
				m.Content = text
			}
		}
	}
	return m, true
}

func (b *inbox) pop() *jupyter.Message {
	m := b.queue[0]
	b.queue[0] = nil
	b.queue = b.queue[1:]
	b.bytes -= len(m.Content)
	b.change.Broadcast()
	return m
}

func (b *inbox) done() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy = false
	b.change.Broadcast()
}

func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.change.Broadcast()
}

// waitEmpty waits until the queue was closed and all of it dealt with, at most for limit.
func (b *inbox) waitEmpty(limit time.Duration) {
	over := false
	timer := time.AfterFunc(limit, func() {
		b.mu.Lock()
		over = true
		b.change.Broadcast()
		b.mu.Unlock()
	})
	defer timer.Stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	for !over && (!b.closed || len(b.queue) > 0 || b.busy) {
		b.change.Wait()
	}
}

// stream is the content of a stream message.
type stream struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

func streamOf(m *jupyter.Message) (stream, bool) {
	var s stream
	if m.Header.Type != "stream" || json.Unmarshal(m.Content, &s) != nil {
		return s, false
	}
	return s, true
}
