package widgets

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pages records what is sent to the front ends.
type pages struct {
	mu   sync.Mutex
	sent []Message
}

func (p *pages) Send(m Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, m)
}

// take returns what was sent since the last call.
func (p *pages) take() []Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	sent := p.sent
	p.sent = nil
	return sent
}

// count is how many messages there are to take.
func (p *pages) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.sent)
}

// decoded is content as a page reads it.
func decoded(t *testing.T, m Message) map[string]any {
	t.Helper()
	text, err := json.Marshal(m.Content)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out
}

// from is a message of a page.
func from(kind, id, data string, buffers ...[]byte) Message {
	return Message{Type: kind, Parent: json.RawMessage(`{"msg_id":"of-the-page"}`),
		Content: json.RawMessage(fmt.Sprintf(`{"comm_id":%q,"data":%s}`, id, data)), Buffers: buffers}
}

func start(t *testing.T) (*Manager, *pages) {
	t.Helper()
	p := &pages{}
	m := New(p, nil, nil)
	t.Cleanup(m.Close)
	return m, p
}

func open(t *testing.T, m *Manager, k Kind) *Model {
	t.Helper()
	x, err := m.Open(json.RawMessage(`{"msg_id":"of-the-cell"}`), k)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// The one message that came, with its content compared.
func expect(t *testing.T, p *pages, kind, parent, content string, buffers ...[]byte) {
	t.Helper()
	sent := p.take()
	if len(sent) != 1 {
		t.Fatalf("%d messages, want one: %+v", len(sent), sent)
	}
	m := sent[0]
	if m.Type != kind || string(m.Parent) != parent {
		t.Errorf("%s with parent %s, want %s with %s", m.Type, m.Parent, kind, parent)
	}
	if diff := cmp.Diff(object(t, content), decoded(t, m)); diff != "" {
		t.Errorf("content (-want +sent):\n%s", diff)
	}
	if len(m.Buffers) != len(buffers) {
		t.Fatalf("%d buffers, want %d", len(m.Buffers), len(buffers))
	}
	for i := range buffers {
		if !bytes.Equal(m.Buffers[i], buffers[i]) {
			t.Errorf("buffer %d is %q, want %q", i, m.Buffers[i], buffers[i])
		}
	}
}

const (
	ofPage = `{"msg_id":"of-the-page"}`
	ofCell = `{"msg_id":"of-the-cell"}`
)

// The messages of ipywidgets 8.1.9 for the same calls, without the entries that stand at the front end's own defaults.
func TestOpenSetCustomClose(t *testing.T) {
	m, p := start(t)
	x := open(t, m, IntSlider(3, -64, 64, 1, State{"description": "offset", "layout": "IPY_MODEL_l"}))
	if sent := p.take(); len(sent) != 1 || fmt.Sprint(sent[0].Metadata) != "map[version:2.1.0]" {
		t.Fatalf("sent %+v", sent)
	} else {
		p.Send(sent[0])
	}
	expect(t, p, "comm_open", ofCell, `{"comm_id":"`+x.ID()+`","target_name":"jupyter.widget","data":{"buffer_paths":[],"state":{
		"_model_module":"@jupyter-widgets/controls","_model_module_version":"2.0.0","_model_name":"IntSliderModel",
		"_view_module":"@jupyter-widgets/controls","_view_module_version":"2.0.0","_view_name":"IntSliderView",
		"continuous_update":true,"description":"offset","layout":"IPY_MODEL_l","max":64,"min":-64,"step":1,"readout":true,
		"readout_format":"d","value":3}}}`)

	if err := x.Set(json.RawMessage(ofPage), State{"value": 5}); err != nil {
		t.Fatal(err)
	}
	expect(t, p, "comm_msg", ofPage, `{"comm_id":"`+x.ID()+`","data":{"method":"update","state":{"value":5},"buffer_paths":[]}}`)

	if err := x.Custom(nil, map[string]any{"tile": 3}, [][]byte{{1, 2}}); err != nil {
		t.Fatal(err)
	}
	expect(t, p, "comm_msg", "", `{"comm_id":"`+x.ID()+`","data":{"method":"custom","content":{"tile":3}}}`, []byte{1, 2})

	x.Close()
	expect(t, p, "comm_close", "", `{"comm_id":"`+x.ID()+`","data":{}}`)
	x.Close()
	if err := x.Set(nil, State{"value": 1}); !errors.Is(err, ErrClosed) {
		t.Errorf("Set after Close: %v", err)
	}
	if err := x.Custom(nil, nil, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("Custom after Close: %v", err)
	}
	if sent := p.take(); len(sent) != 0 || m.bytes != 0 {
		t.Errorf("after Close: %d bytes, sent %+v", m.bytes, sent)
	}
}

// What a page changes is echoed with its own header as the parent, and told to who asked for changes.
func TestUpdateOfAPage(t *testing.T) {
	m, p := start(t)
	x := open(t, m, Dropdown([]string{"a", "b"}, 0, nil))
	p.take()
	var changes []State
	x.OnChange(func(changed State, parent json.RawMessage) {
		if string(parent) != ofPage || x.Get("index") != changed["index"] {
			t.Errorf("parent %s, index %v of %v", parent, x.Get("index"), changed)
		}
		changes = append(changes, changed)
	})
	m.Handle(from("comm_msg", x.ID(), `{"method":"update","state":{"index":1,"nonsense":2,"_model_name":"Evil"},"buffer_paths":[]}`))
	expect(t, p, "comm_msg", ofPage, `{"comm_id":"`+x.ID()+`","data":{"method":"echo_update","state":{"index":1},"buffer_paths":[]}}`)
	if len(changes) != 1 || len(changes[0]) != 1 || changes[0]["index"] != 1.0 {
		t.Errorf("changes %v", changes)
	}
	if x.Get("_model_name") != "DropdownModel" || x.Get("nonsense") != nil {
		t.Error("a page changed what is not its own")
	}

	// The code of a module is ours.
	any := open(t, m, Any("test", "export default {}", "", State{"points": []any{nil}, "raw": []byte{}}))
	p.take()
	m.Handle(from("comm_msg", any.ID(), `{"method":"update","state":{"_esm":"alert(1)","_css":"x"},"buffer_paths":[]}`))
	if sent := p.take(); len(sent) != 0 || any.Get("_esm") != "export default {}" {
		t.Errorf("sent %v, the module is %v", sent, any.Get("_esm"))
	}
	m.Handle(from("comm_msg", any.ID(), `{"method":"update","state":{"points":[{},3]},"buffer_paths":[["points",0,"x"],["raw"]]}`, []byte("XX"), []byte("YYY")))
	expect(t, p, "comm_msg", ofPage, `{"comm_id":"`+any.ID()+`","data":{"method":"echo_update","state":{"points":[{},3]},"buffer_paths":[["points",0,"x"],["raw"]]}}`,
		[]byte("XX"), []byte("YYY"))
	if got := any.Get("raw"); !bytes.Equal(got.([]byte), []byte("YYY")) {
		t.Errorf("raw is %v", got)
	}
}

func TestCustomOfAPage(t *testing.T) {
	m, p := start(t)
	x := open(t, m, Label("", nil))
	p.take()
	m.Handle(from("comm_msg", x.ID(), `{"method":"custom","content":{"event":"click"}}`)) // nobody listens
	var got string
	x.OnCustom(func(content json.RawMessage, buffers [][]byte, parent json.RawMessage) {
		got = fmt.Sprintf("%s %q %s", content, buffers, parent)
	})
	m.Handle(from("comm_msg", x.ID(), `{"method":"custom","content":{"event":"click"}}`, []byte("b")))
	if want := `{"event":"click"} ["b"] ` + ofPage; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if sent := p.take(); len(sent) != 0 {
		t.Errorf("sent %+v", sent)
	}
}

// A page that was loaded anew asks for all states over the control comm, an old one for each.
func TestStatesForAReload(t *testing.T) {
	m, p := start(t)
	picture := open(t, m, Image("png", []byte("\x89PNG"), nil))
	box := open(t, m, HBox([]*Model{picture}, nil))
	if err := picture.Set(nil, State{"width": "40"}); err != nil {
		t.Fatal(err)
	}
	p.take()
	imageState := `{"_model_module":"@jupyter-widgets/controls","_model_module_version":"2.0.0","_model_name":"ImageModel",
		"_view_module":"@jupyter-widgets/controls","_view_module_version":"2.0.0","_view_name":"ImageView","format":"png","height":"","width":"40"}`
	boxState := `{"_model_module":"@jupyter-widgets/controls","_model_module_version":"2.0.0","_model_name":"HBoxModel",
		"_view_module":"@jupyter-widgets/controls","_view_module_version":"2.0.0","_view_name":"HBoxView","box_style":"","children":["IPY_MODEL_` + picture.ID() + `"]}`

	m.Handle(Message{Type: "comm_open", Parent: json.RawMessage(ofPage), Metadata: json.RawMessage(`{"version":"1.0.0"}`),
		Content: json.RawMessage(`{"comm_id":"control","target_name":"jupyter.widget.control","data":{}}`)})
	m.Handle(from("comm_msg", "control", `{"method":"request_states"}`))
	entry := func(name, state string) string {
		return `{"model_name":"` + name + `","model_module":"@jupyter-widgets/controls","model_module_version":"2.0.0","state":` + state + `}`
	}
	expect(t, p, "comm_msg", ofPage, `{"comm_id":"control","data":{"method":"update_states","buffer_paths":[["`+picture.ID()+`","state","value"]],"states":{"`+
		picture.ID()+`":`+entry("ImageModel", imageState)+`,"`+box.ID()+`":`+entry("HBoxModel", boxState)+`}}}`, []byte("\x89PNG"))

	m.Handle(from("comm_msg", picture.ID(), `{"method":"request_state"}`))
	expect(t, p, "comm_msg", ofPage, `{"comm_id":"`+picture.ID()+`","data":{"method":"update","buffer_paths":[["value"]],"state":`+imageState+`}}`, []byte("\x89PNG"))

	if diff := cmp.Diff(map[string]any{"control": map[string]any{"target_name": "jupyter.widget.control"}}, m.Info("jupyter.widget.control")); diff != "" {
		t.Error(diff)
	}
	if all, widgets, others := m.Info(""), m.Info("jupyter.widget"), m.Info("x"); len(all) != 3 || len(widgets) != 2 || widgets[box.ID()] == nil || len(others) != 0 {
		t.Errorf("comms: all %v, widgets %v, others %v", all, widgets, others)
	}
	m.Handle(from("comm_close", "control", `{}`))
	m.Handle(from("comm_close", box.ID(), `{}`))
	if comms := m.Info(""); len(comms) != 1 || comms[picture.ID()] == nil {
		t.Errorf("comms after closing: %v", comms)
	}
	if sent := p.take(); len(sent) != 0 {
		t.Errorf("sent %+v", sent)
	}
}

// What makes no sense changes nothing and is not answered; a comm that nobody here takes is closed.
func TestHostileMessages(t *testing.T) {
	m, p := start(t)
	x := open(t, m, Any("test", "", "", State{"list": []any{1, 2}, "value": 1}))
	p.take()
	deep := strings.Repeat("[", 20000) + strings.Repeat("]", 20000)
	for _, in := range []Message{
		{},
		{Type: "comm_msg"},
		{Type: "comm_msg", Content: json.RawMessage(`[]`)},
		{Type: "comm_msg", Content: "no JSON"},
		{Type: "comm_msg", Content: json.RawMessage(`{"data":{"method":"update"}}`)},
		{Type: "comm_msg", Content: json.RawMessage(`{"comm_id":"` + x.ID() + `"}`)},
		from("comm_msg", "nobody", `{"method":"update","state":{"value":2}}`),
		from("comm_msg", x.ID(), `3`),
		from("comm_msg", x.ID(), `{"method":"format_disk"}`),
		from("comm_msg", x.ID(), `{"method":"update"}`),
		from("comm_msg", x.ID(), `{"method":"update","state":3}`),
		from("comm_msg", x.ID(), `{"method":"update","state":{"value":`+deep+`}}`),
		from("comm_msg", x.ID(), `{"method":"update","state":{"value":2},"buffer_paths":[["value"]]}`),
		from("comm_msg", x.ID(), `{"method":"update","state":{"value":2},"buffer_paths":[[]]}`, []byte("x")),
		from("comm_msg", x.ID(), `{"method":"update","state":{"value":2},"buffer_paths":[["value","x"]]}`, []byte("x")),
		from("comm_msg", x.ID(), `{"method":"update","state":{"list":[1]},"buffer_paths":[["list",1]]}`, []byte("x")),
		from("comm_msg", x.ID(), `{"method":"update","state":{"list":[1]},"buffer_paths":[["list",-1]]}`, []byte("x")),
		from("comm_msg", x.ID(), `{"method":"update","state":{"list":[1]},"buffer_paths":[["list",0.5]]}`, []byte("x")),
		from("comm_msg", x.ID(), `{"method":"update","state":{"list":[1]},"buffer_paths":[["list","0"]]}`, []byte("x")),
		from("comm_msg", x.ID(), `{"method":"update","state":{"value":2},"buffer_paths":[[3]]}`, []byte("x")),
		from("comm_msg", x.ID(), `{"method":"update","state":{"value":2}}`, make([]byte, maxIncoming)),
		from("comm_close", "nobody", `{}`),
	} {
		m.Handle(in)
		if sent := p.take(); len(sent) != 0 {
			t.Errorf("%s %.100s: sent %+v", in.Type, in.Content, sent)
		}
	}
	if x.Get("value") != 1 {
		t.Errorf("value is %v", x.Get("value"))
	}
	for _, target := range []string{"jupyter.widget", "elsewhere", ""} {
		m.Handle(Message{Type: "comm_open", Parent: json.RawMessage(ofPage), Content: json.RawMessage(`{"comm_id":"c","target_name":"` + target + `","data":{}}`)})
		expect(t, p, "comm_close", ofPage, `{"comm_id":"c","data":{}}`)
	}
}

func TestLimits(t *testing.T) {
	m, p := start(t)
	if _, err := m.Open(nil, Image("png", make([]byte, maxState), nil)); !errors.Is(err, ErrFull) {
		t.Errorf("too large a state: %v", err)
	}
	x := open(t, m, Image("png", nil, nil))
	if err := x.Set(nil, State{"value": make([]byte, maxState)}); !errors.Is(err, ErrFull) {
		t.Errorf("too large an update: %v", err)
	}
	before := m.bytes
	for range 3 { // replacing does not add up
		if err := x.Set(nil, State{"value": make([]byte, maxState/2)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Set(nil, State{"value": []byte{}}); err != nil || m.bytes != before {
		t.Errorf("%d bytes, %d before; %v", m.bytes, before, err)
	}
	for range maxModels - 1 {
		open(t, m, Label("", nil))
	}
	if _, err := m.Open(nil, Label("", nil)); !errors.Is(err, ErrFull) {
		t.Errorf("too many models: %v", err)
	}
	for i := range 2 * maxPages {
		m.Handle(Message{Type: "comm_open", Content: json.RawMessage(fmt.Sprintf(`{"comm_id":"c%d","target_name":"jupyter.widget.control"}`, i))})
	}
	if n := len(m.Info("jupyter.widget.control")); n != maxPages {
		t.Errorf("%d control comms, want %d", n, maxPages)
	}
	m.Close()
	if _, err := m.Open(nil, Label("", nil)); !errors.Is(err, ErrClosed) {
		t.Errorf("Open after Close: %v", err)
	}
	p.take()
}

func FuzzHandle(f *testing.F) {
	f.Add("comm_msg", `{"comm_id":"ID","data":{"method":"update","state":{"value":2,"list":[{}]},"buffer_paths":[["list",0,"x"],["value"]]}}`, []byte("x"))
	f.Add("comm_open", `{"comm_id":"c","target_name":"jupyter.widget.control"}`, []byte{})
	f.Add("comm_msg", `{"comm_id":"ID","data":{"method":"custom","content":[]}}`, []byte{})
	f.Fuzz(func(t *testing.T, kind, content string, buffer []byte) {
		p := &pages{}
		m := New(p, nil, nil)
		x, err := m.Open(nil, Any("test", "", "", State{"list": []any{1, 2}, "value": 1}))
		if err != nil {
			t.Fatal(err)
		}
		m.Handle(Message{Type: kind, Content: json.RawMessage(strings.ReplaceAll(content, "ID", x.ID())), Buffers: [][]byte{buffer, buffer}})
		for _, out := range p.take() {
			if _, err := json.Marshal(out.Content); err != nil {
				t.Fatalf("%s %s: answered what is no JSON: %v", kind, content, err)
			}
		}
	})
}
