package proxy

import (
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/attnb/attnb/kernel/proxy/jupyter"
)

// mergeLimit is how much text one stream message may hold after neighbours were joined.
const mergeLimit = 64 << 10

// inbox is the queue of publications between the goroutine that takes them from gonb, as fast as they come, and the one
// that works on them. Neighbouring pieces of one stream leave it as one message, so that many small writes cost the
// clients little.
type inbox struct {
	codec       *jupyter.Codec
	full, empty func() // called when the bytes that wait pass highMark, and when they fall below lowMark again

	mu     sync.Mutex
	change *sync.Cond
	queue  [][][]byte
	bytes  int
	over   bool // full was called, and empty not since
	busy   bool // the taken message is being worked on
	closed bool
}

func newInbox(codec *jupyter.Codec, full, empty func()) *inbox {
	b := &inbox{codec: codec, full: full, empty: empty}
	b.change = sync.NewCond(&b.mu)
	return b
}

func size(frames [][]byte) int {
	n := 0
	for _, f := range frames {
		n += len(f)
	}
	return n
}

func (b *inbox) put(frames [][]byte) {
	b.mu.Lock()
	b.queue = append(b.queue, frames)
	b.bytes += size(frames)
	b.change.Broadcast()
	full := b.bytes > highMark && !b.over
	b.over = b.over || full
	b.mu.Unlock()
	if full {
		b.full()
	}
}

// take waits for a message; done must follow when it was dealt with.
func (b *inbox) take() (*jupyter.Message, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		for len(b.queue) == 0 && !b.closed {
			b.change.Wait()
		}
		if len(b.queue) == 0 {
			return nil, false
		}
		m, err := b.codec.Parse(b.queue[0])
		b.pop()
		if err == nil { // gonb's own messages are well formed
			b.busy = true
			b.merge(m)
			return m, true
		}
	}
}

// merge joins the pieces of the same stream that follow m to it.
func (b *inbox) merge(m *jupyter.Message) {
	s, ok := streamOf(m)
	if !ok || isExitNote(s.Text) {
		return
	}
	var text strings.Builder
	text.WriteString(s.Text)
	joined := false
	for len(b.queue) > 0 && text.Len() < mergeLimit {
		next, err := b.codec.Parse(b.queue[0])
		if err != nil || string(next.Parent) != string(m.Parent) {
			break
		}
		t, ok := streamOf(next)
		if !ok || t.Name != s.Name || isExitNote(t.Text) {
			break
		}
		text.WriteString(t.Text)
		b.pop()
		joined = true
	}
	if !joined {
		return
	}
	s.Text = text.String()
	if content, err := json.Marshal(s); err == nil {
		m.Content = content
	}
}

func (b *inbox) pop() {
	b.bytes -= size(b.queue[0])
	b.queue[0] = nil
	b.queue = b.queue[1:]
}

func (b *inbox) done() {
	b.mu.Lock()
	b.busy = false
	b.change.Broadcast()
	empty := b.over && b.bytes < lowMark
	if empty {
		b.over = false
	}
	b.mu.Unlock()
	if empty {
		b.empty()
	}
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
