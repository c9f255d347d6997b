package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/attnb/attnb/kernel/proxy/jupyter"
	"github.com/attnb/attnb/kernel/widgets"
	"github.com/attnb/attnb/kernel/wire"
)

// viewType is the MIME type by which a page shows a widget. Pages that know it show nothing else of its bundle, even
// where the widget is gone: what must always show is an output of its own.
const viewType = "application/vnd.jupyter.widget-view+json"

// widgetLink connects the widgets with the pages and with the device process. What they compute has a connection of its own: a
// long run must not hold up what cells show.
type widgetLink struct {
	k *Kernel

	mu     sync.Mutex
	conn   *wire.Conn
	closed bool
}

// Send publishes a widget's message.
func (l *widgetLink) Send(m widgets.Message) {
	var parent *jupyter.Message
	if len(m.Parent) > 0 {
		parent = &jupyter.Message{Raw: m.Parent}
	}
	out := l.k.codec.New(m.Type, parent, m.Content)
	if m.Metadata != nil {
		metadata, err := json.Marshal(m.Metadata)
		if err != nil {
			l.k.log.Error("metadata of a widget", "error", err)
			return
		}
		out.Metadata = metadata
	}
	out.Buffers = m.Buffers
	l.k.publishMessage(out)
}

// Rerun has the device process make a picture again.
func (l *widgetLink) Rerun(id int, settings []wire.Control) (d wire.Display, err error) {
	err = l.do(func(c *wire.Conn) error {
		d, err = c.Rerun(id, settings)
		return err
	})
	return d, err
}

// Tile has the device process compute a part of a map.
func (l *widgetLink) Tile(id int, m wire.Map) (t wire.Tile, err error) {
	err = l.do(func(c *wire.Conn) error {
		t, err = c.Tile(id, m)
		return err
	})
	return t, err
}

// Release lets the device process forget a picture.
func (l *widgetLink) Release(id int) error {
	return l.do(func(c *wire.Conn) error { return c.Release(id) })
}

// do calls f with the connection, and once more with a new one where it was lost.
func (l *widgetLink) do(f func(*wire.Conn) error) error {
	for attempt := 0; ; attempt++ {
		c, err := l.connection()
		if err != nil {
			return err
		}
		err = f(c)
		if _, refused := errorAs[*wire.Error](err); err == nil || refused || attempt > 0 {
			return err
		}
		l.drop(c)
	}
}

func (l *widgetLink) connection() (*wire.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, errors.New("the kernel ends")
	case l.conn != nil:
		return l.conn, nil
	}
	c, err := l.k.device.dial()
	if err != nil {
		return nil, err
	}
	l.conn = c
	return c, nil
}

func (l *widgetLink) drop(c *wire.Conn) {
	c.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == c {
		l.conn = nil
	}
}

// close ends the connection; a run under way fails.
func (l *widgetLink) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.conn != nil {
		l.conn.Close()
		l.conn = nil
	}
}

// widgetMessage hands a comm message of a page to the widgets.
func (k *Kernel) widgetMessage(m *jupyter.Message) {
	k.widgets.Handle(widgets.Message{Type: m.Header.Type, Parent: m.Raw, Content: m.Content, Buffers: m.Buffers})
}

// commInfo answers which comms there are.
func (k *Kernel) commInfo(m *jupyter.Message) map[string]any {
	var c struct {
		Target string `json:"target_name"`
	}
	if err := json.Unmarshal(m.Content, &c); err != nil {
		return failure("BadRequest", err.Error())
	}
	return map[string]any{"status": "ok", "comms": k.widgets.Info(c.Target)}
}

// widgetView opens the widgets of a display, and returns the bundle that shows them, and HTML for the picture's own, before it. A
// client that answers no input requests is a program, as nbconvert is: it gets the picture alone, for there is nobody to turn a
// control, and what it makes of the notebook then shows without widgets.
func (s *sink) widgetView(d wire.Display) (view map[string]any, html string, err error) {
	if !s.e.stdin {
		s.e.k.widgets.Discard(d)
		return nil, "", nil
	}
	id, html, err := s.e.k.widgets.Explore(s.e.req.msg.Raw, s.e.cellID(), d)
	if err != nil {
		return nil, "", fmt.Errorf("a picture has no controls: %w", err)
	}
	return map[string]any{
		viewType:     map[string]any{"version_major": 2, "version_minor": 0, "model_id": id},
		"text/plain": "The controls of this picture need its kernel: run the cell again.",
	}, html, nil
}

// zoom lets the pages zoom into a display's picture as far as the device process has cells. A client that answers no input requests
// gets the picture with what is stored in it.
func (s *sink) zoom(d wire.Display) error {
	if !s.e.stdin {
		s.e.k.widgets.Discard(d)
		return nil
	}
	if err := s.e.k.widgets.Zoom(s.e.req.msg.Raw, s.e.cellID(), d); err != nil {
		return fmt.Errorf("a picture has no finer cells than are stored in it: %w", err)
	}
	return nil
}

// cellID is the page's ID of the cell that runs; empty where the client does not say which it is.
func (e *execution) cellID() string {
	var m struct {
		Cell string `json:"cellId"`
	}
	if err := json.Unmarshal(e.req.msg.Metadata, &m); err != nil {
		return ""
	}
	return m.Cell
}
