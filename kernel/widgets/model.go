package widgets

import (
	"encoding/json"
	"fmt"
	"maps"
)

// protocolVersion is that of the messages; pages refuse another major version.
const protocolVersion = "2.1.0"

// State is the state of a model by name. Values are what encoding/json encodes, lists as []any, and []byte, which travels as a binary
// buffer. A value that was handed over is not changed afterwards.
type State map[string]any

// Kind says which class on the page a model is of, and its first state.
type Kind struct {
	Model, View     string // "IntSliderModel", "IntSliderView"; a model without a view has none
	Module, Version string // npm package and semver range
	ViewModule      string // empty: Module
	State           State
}

// names are the entries of the state that tell the page what the model is.
func (k Kind) names() State {
	view := k.ViewModule
	if view == "" {
		view = k.Module
	}
	names := State{"_model_name": k.Model, "_model_module": k.Module, "_model_module_version": k.Version,
		"_view_name": k.View, "_view_module": view, "_view_module_version": k.Version}
	if k.View == "" {
		names["_view_name"] = nil
	}
	return names
}

// Model is one widget.
type Model struct {
	m  *Manager
	id string

	// Under the manager's lock.
	state State
	bytes int

	// Set before the model's ID is known to anyone.
	onChange func(changed State, parent json.RawMessage)
	onCustom func(content json.RawMessage, buffers [][]byte, parent json.RawMessage)
	onClose  func()
}

// ID is the model's ID, for a widget view.
func (x *Model) ID() string { return x.id }

// Ref is how the state of another model refers to this one.
func (x *Model) Ref() string { return "IPY_MODEL_" + x.id }

// Get returns a value of the state; what a page sent is decoded JSON.
func (x *Model) Get(name string) any {
	x.m.mu.Lock()
	defer x.m.mu.Unlock()
	return x.state[name]
}

// OnChange calls f with what a page has changed, after the state has it. parent is the header of the page's message.
func (x *Model) OnChange(f func(changed State, parent json.RawMessage)) {
	x.m.mu.Lock()
	defer x.m.mu.Unlock()
	x.onChange = f
}

// OnCustom calls f with custom messages of a page.
func (x *Model) OnCustom(f func(content json.RawMessage, buffers [][]byte, parent json.RawMessage)) {
	x.m.mu.Lock()
	defer x.m.mu.Unlock()
	x.onCustom = f
}

// OnClose calls f when a page has closed the model.
func (x *Model) OnClose(f func()) {
	x.m.mu.Lock()
	defer x.m.mu.Unlock()
	x.onClose = f
}

// Set changes values and tells the pages.
func (x *Model) Set(parent json.RawMessage, values State) error {
	x.m.mu.Lock()
	defer x.m.mu.Unlock()
	if err := x.put(values); err != nil {
		return err
	}
	x.tell(parent, "update", values)
	return nil
}

// put changes the state, within the limits. The lock is held.
func (x *Model) put(values State) error {
	if x.m.models[x.id] != x {
		return ErrClosed
	}
	n := x.bytes
	for name, value := range values {
		if old, ok := x.state[name]; ok {
			n -= len(name) + size(old)
		}
		n += len(name) + size(value)
	}
	if n > maxState || x.m.bytes-x.bytes+n > maxStates {
		return fmt.Errorf("%w: %d bytes of state", ErrFull, n)
	}
	x.m.bytes += n - x.bytes
	x.bytes = n
	maps.Copy(x.state, values)
	return nil
}

// tell sends state. The lock is held.
func (x *Model) tell(parent json.RawMessage, method string, values State) {
	state, paths, buffers := split(values)
	x.m.send.Send(Message{Type: "comm_msg", Parent: parent, Buffers: buffers, Content: map[string]any{"comm_id": x.id,
		"data": map[string]any{"method": method, "state": state, "buffer_paths": paths}}})
}

// Custom sends a custom message to the pages.
func (x *Model) Custom(parent json.RawMessage, content any, buffers [][]byte) error {
	x.m.mu.Lock()
	defer x.m.mu.Unlock()
	if x.m.models[x.id] != x {
		return ErrClosed
	}
	x.m.send.Send(Message{Type: "comm_msg", Parent: parent, Buffers: buffers, Content: map[string]any{"comm_id": x.id,
		"data": map[string]any{"method": "custom", "content": content}}})
	return nil
}

// Close ends the model and its views.
func (x *Model) Close() {
	x.m.mu.Lock()
	defer x.m.mu.Unlock()
	if x.m.models[x.id] == x {
		x.m.remove(x)
		x.m.send.Send(Message{Type: "comm_close", Content: map[string]any{"comm_id": x.id, "data": map[string]any{}}})
	}
}

// receive takes a message of a page.
func (x *Model) receive(in Message, d data) error {
	switch d.Method {
	case "update":
		return x.update(in, d)
	case "request_state":
		x.m.mu.Lock()
		defer x.m.mu.Unlock()
		x.tell(in.Parent, "update", x.state)
	case "custom":
		x.m.mu.Lock()
		f := x.onCustom
		x.m.mu.Unlock()
		if f != nil {
			f(d.Custom, in.Buffers, in.Parent)
		}
	default:
		return fmt.Errorf("method %.40q", d.Method)
	}
	return nil
}

// update takes changes of a page, of names that the model has. The echo tells the other pages, and the page itself that
// its change has arrived: until then it ignores other values.
func (x *Model) update(in Message, d data) error {
	if err := join(d.State, d.Paths, in.Buffers); err != nil {
		return err
	}
	x.m.mu.Lock()
	changed := State{}
	for name, value := range d.State {
		if _, ok := x.state[name]; ok && !fixed[name] {
			changed[name] = value
		}
	}
	err := x.put(changed)
	f := x.onChange
	if err == nil && len(changed) > 0 {
		x.tell(in.Parent, "echo_update", changed)
	}
	x.m.mu.Unlock()
	if err == nil && len(changed) > 0 && f != nil {
		f(changed, in.Parent)
	}
	return err
}

// fixed are names that no page may change: what the model is, and the code that it runs.
var fixed = map[string]bool{"_model_name": true, "_model_module": true, "_model_module_version": true,
	"_view_name": true, "_view_module": true, "_view_module_version": true, "_esm": true, "_css": true, "_anywidget_id": true}
