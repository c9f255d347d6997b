package proxy

import (
	"fmt"
	"html"
	"sync"
	"time"

	"github.com/attnb/attnb/kernel/wire"
)

const (
	barAfter = time.Second // what takes longer is worth a bar
	barEvery = 250 * time.Millisecond
)

// bar shows what a cell waits for, in one display that is updated in place and taken away at the end. Only a page has it:
// a program would store it, and a terminal cannot update.
type bar struct {
	e    *execution
	page bool

	mu      sync.Mutex
	outputs bool // the cell has put something out
	shown   bool
	below   bool // there is output above the bar, so that the cell's output cannot be cleared to take it away
	serial  int
}

func newBar(e *execution) *bar {
	return &bar{e: e, page: e.stdin && e.cellID() != ""}
}

// watch shows what w says until the returned function is called.
func (b *bar) watch(w *waits) (end func()) {
	if !b.page {
		return func() {}
	}
	stop := make(chan struct{})
	go func() {
		// Nobody waits for this goroutine: the device process may not answer.
		defer w.close()
		for {
			select {
			case <-stop:
				return
			case <-time.After(barEvery):
				b.draw(stop, w.look())
			}
		}
	}()
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		close(stop)
		b.remove(false)
	}
}

// draw shows one state.
func (b *bar) draw(stop <-chan struct{}, w waiting) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case isClosed(stop):
	case w.what == "" || w.elapsed < barAfter:
		b.remove(false)
	case b.shown:
		b.publish("update_display_data", barData(w))
	default:
		b.serial++
		b.shown, b.below = true, b.outputs
		b.publish("display_data", barData(w))
	}
}

// publish sends the display. The lock is held.
func (b *bar) publish(kind string, data map[string]any) {
	b.e.k.publish(kind, b.e.req.msg, map[string]any{"data": data, "metadata": map[string]any{},
		"transient": map[string]any{"display_id": fmt.Sprintf("attnb-bar-%s-%d", b.e.req.msg.Header.MsgID, b.serial)}})
}

// remove takes the bar away; output says that the cell's own output follows at once. The lock is held.
func (b *bar) remove(output bool) {
	if !b.shown {
		return
	}
	b.shown = false
	if b.below {
		b.publish("update_display_data", map[string]any{}) // shows as nothing
		return
	}
	b.e.k.publish("clear_output", b.e.req.msg, map[string]any{"wait": output})
}

// publish puts out something of the cell. A bar that stood there before it goes.
func (e *execution) publish(kind string, content any) {
	b := e.bar
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.below {
		b.remove(true)
	}
	b.outputs = true
	e.k.publish(kind, e.req.msg, content)
}

// barData is a bar and the same in words.
func barData(w waiting) map[string]any {
	words := fmt.Sprintf("%s, %.0f s", w.what, w.elapsed.Seconds())
	value := ""
	if w.done > 0 {
		words = fmt.Sprintf("%s, %.0f%%, %.0f s", w.what, 100*w.done, w.elapsed.Seconds())
		value = fmt.Sprintf(` value="%.3f"`, w.done)
	}
	return map[string]any{"text/plain": words,
		"text/html": fmt.Sprintf(`<progress%s style="width: 20em"></progress> %s`, value, html.EscapeString(words))}
}

// waiting is what a cell waits for. An empty one is nothing that can be told.
type waiting struct {
	what    string
	done    float64 // fraction; 0 where that is not known
	elapsed time.Duration
}

// waits finds out what a segment with a Go program waits for: the build, then whatever the device runs. It has a
// connection of its own, since the other may be waiting too.
type waits struct {
	s     *sink
	began time.Time
	conn  *wire.Conn
}

func (w *waits) look() waiting {
	w.s.mu.Lock()
	started, exited := w.s.started, w.s.exited
	w.s.mu.Unlock()
	switch {
	case exited:
		return waiting{}
	case !started:
		return waiting{what: "building the cell", elapsed: time.Since(w.began)}
	}
	if w.conn == nil {
		conn, err := w.s.e.k.device.dial()
		if err != nil {
			return waiting{}
		}
		w.conn = conn
	}
	st, err := w.conn.Status()
	if err != nil {
		w.close()
		return waiting{}
	}
	return waiting{st.Running, st.Done, time.Duration(st.RunningFor) * time.Millisecond}
}

func (w *waits) close() {
	if w.conn != nil {
		w.conn.Close()
		w.conn = nil
	}
}
