package widgets

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
)

// Limits of what a manager holds.
const (
	maxModels   = 4096
	maxState    = 32 << 20  // bytes of one model
	maxStates   = 256 << 20 // bytes of all: they go out as one message when a page is loaded
	maxIncoming = 16 << 20  // bytes of a message from a page
	maxPages    = 64        // control comms: one for a moment, at each load of a page
)

// ErrFull means that a limit of the manager would be passed.
var ErrFull = errors.New("too many widgets")

// ErrClosed means that the model was closed.
var ErrClosed = errors.New("the widget was closed")

const (
	targetWidget  = "jupyter.widget"
	targetControl = "jupyter.widget.control"
)

// Message is a message of the comm protocol, in either direction.
type Message struct {
	Type     string          // comm_open, comm_msg, comm_close
	Parent   json.RawMessage // header of the message that it answers; of an incoming one, its own header. Empty: none
	Metadata any
	Content  any // of an incoming one, json.RawMessage
	Buffers  [][]byte
}

// Sender publishes messages to all front ends, in the order of the calls.
type Sender interface {
	Send(Message)
}

// Manager holds the models of one kernel. Its methods may be called from any goroutine.
type Manager struct {
	send   Sender
	device Device
	log    *slog.Logger

	mu       sync.Mutex
	models   map[string]*Model
	bytes    int
	pages    []string // IDs of control comms, oldest first
	explored []*explorer
	zoomed   []*zoomed
	ended    []*Input // of cells that have ended, oldest first
	closed   bool
}

// New returns a manager without models. device may be nil where Explore is not used, log where nothing is to be logged.
func New(send Sender, device Device, log *slog.Logger) *Manager {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Manager{send: send, device: device, log: log, models: map[string]*Model{}}
}

// Open makes models of kinds, in order, and tells the front ends. Later ones may refer to earlier ones by [Model.Ref]. parent is the header of
// the message because of which it happens.
func (m *Manager) Open(parent json.RawMessage, kind Kind) (*Model, error) {
	x := &Model{m: m, id: newID(), state: maps.Clone(kind.State)}
	if x.state == nil {
		x.state = State{}
	}
	for name, value := range kind.names() {
		x.state[name] = value
	}
	n := size(x.state)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return nil, ErrClosed
	case len(m.models) >= maxModels:
		return nil, fmt.Errorf("%w: %d", ErrFull, len(m.models))
	case n > maxState || m.bytes+n > maxStates:
		return nil, fmt.Errorf("%w: %d bytes of state beside %d", ErrFull, n, m.bytes)
	}
	m.models[x.id] = x
	m.bytes += n
	x.bytes = n
	state, paths, buffers := split(x.state)
	m.send.Send(Message{Type: "comm_open", Parent: parent, Metadata: map[string]any{"version": protocolVersion}, Buffers: buffers,
		Content: map[string]any{"comm_id": x.id, "target_name": targetWidget, "data": map[string]any{"state": state, "buffer_paths": paths}}})
	return x, nil
}

// Info answers comm_info: the comms of a target, or all where it is empty.
func (m *Manager) Info(target string) map[string]any {
	m.mu.Lock()
	defer m.mu.Unlock()
	comms := map[string]any{}
	if target == "" || target == targetWidget {
		for id := range m.models {
			comms[id] = map[string]any{"target_name": targetWidget}
		}
	}
	if target == "" || target == targetControl {
		for _, id := range m.pages {
			comms[id] = map[string]any{"target_name": targetControl}
		}
	}
	return comms
}

// content is what an incoming message may hold.
type content struct {
	ID     string          `json:"comm_id"`
	Target string          `json:"target_name"`
	Data   json.RawMessage `json:"data"`
}

// data is the payload of a widget's message.
type data struct {
	Method string          `json:"method"`
	State  map[string]any  `json:"state"`
	Paths  [][]any         `json:"buffer_paths"`
	Custom json.RawMessage `json:"content"`
}

// Handle takes a message from a page. What cannot be understood is logged and left.
func (m *Manager) Handle(in Message) {
	raw, _ := in.Content.(json.RawMessage)
	n := len(raw)
	for _, b := range in.Buffers {
		n += len(b)
	}
	if n > maxIncoming {
		m.log.Warn("a comm message is too large", "bytes", n)
		return
	}
	var c content
	if err := json.Unmarshal(raw, &c); err != nil || c.ID == "" {
		m.log.Warn("a comm message without an ID", "type", in.Type, "error", err)
		return
	}
	var err error
	switch in.Type {
	case "comm_open":
		m.open(in, c)
	case "comm_msg":
		err = m.message(in, c)
	case "comm_close":
		m.forget(c.ID)
	}
	if err != nil {
		m.log.Warn("a comm message", "comm", c.ID, "error", err)
	}
}

// open accepts the control comm alone: pages make no models here.
func (m *Manager) open(in Message, c content) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.Target != targetControl || m.closed {
		m.send.Send(Message{Type: "comm_close", Parent: in.Parent, Content: map[string]any{"comm_id": c.ID, "data": map[string]any{}}})
		return
	}
	m.pages = append(m.pages, c.ID)
	if len(m.pages) > maxPages {
		m.pages = m.pages[1:]
	}
}

func (m *Manager) message(in Message, c content) error {
	var d data
	if len(c.Data) > 0 {
		if err := json.Unmarshal(c.Data, &d); err != nil {
			return err
		}
	}
	m.mu.Lock()
	x, control := m.models[c.ID], slices.Contains(m.pages, c.ID)
	m.mu.Unlock()
	switch {
	case control && d.Method == "request_states":
		m.sendStates(in.Parent, c.ID)
		return nil
	case control:
		return fmt.Errorf("method %.40q of the control comm", d.Method)
	case x == nil: // of a page that a kernel before this one had served
		m.log.Debug("no such widget", "comm", c.ID)
		return nil
	}
	return x.receive(in, d)
}

// sendStates answers a page that was loaded: all models.
func (m *Manager) sendStates(parent json.RawMessage, page string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make(map[string]any, len(m.models))
	for id, x := range m.models {
		all[id] = map[string]any{"model_name": x.state["_model_name"], "model_module": x.state["_model_module"],
			"model_module_version": x.state["_model_module_version"], "state": x.state}
	}
	states, paths, buffers := split(all)
	m.send.Send(Message{Type: "comm_msg", Parent: parent, Buffers: buffers, Content: map[string]any{"comm_id": page,
		"data": map[string]any{"method": "update_states", "states": states, "buffer_paths": paths}}})
}

// forget drops a comm that the page has closed.
func (m *Manager) forget(id string) {
	m.mu.Lock()
	m.pages = slices.DeleteFunc(m.pages, func(page string) bool { return page == id })
	var f func()
	if x := m.models[id]; x != nil {
		m.remove(x)
		f = x.onClose
	}
	m.mu.Unlock()
	if f != nil {
		f()
	}
}

// remove takes x out. The lock is held.
func (m *Manager) remove(x *Model) {
	if m.models[x.id] == x {
		delete(m.models, x.id)
		m.bytes -= x.bytes
	}
}

// Close ends every model without telling the pages: for the end of the kernel and of the device process.
func (m *Manager) Close() {
	m.mu.Lock()
	m.closed = true
	clear(m.models)
	m.bytes = 0
	explored := m.explored
	m.explored, m.zoomed, m.ended = nil, nil, nil
	m.mu.Unlock()
	for _, e := range explored {
		e.halt()
	}
}

func newID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(b[:])
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
