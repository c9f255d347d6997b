package widgets

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/attnb/attnb/kernel/wire"
)

// device answers runs with the settings as the picture. A run waits for a token of gate, where there is one.
type device struct {
	gate chan error

	mu        sync.Mutex
	runs      [][]wire.Control
	released  []int
	tiles     []wire.Map
	tileFails error
}

func (d *device) Rerun(id int, settings []wire.Control) (wire.Display, error) {
	d.mu.Lock()
	d.runs = append(d.runs, settings)
	d.mu.Unlock()
	if d.gate != nil {
		if err := <-d.gate; err != nil {
			return wire.Display{}, err
		}
	}
	return shown(fmt.Sprint(id, settings)), nil
}

func (d *device) Release(id int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.released = append(d.released, id)
	return nil
}

// Tile has 1 in its first cell, 2 in the next; a row sees as many cells as its number. What scores are is told by their sign.
func (d *device) Tile(id int, m wire.Map) (wire.Tile, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tiles = append(d.tiles, m)
	if d.tileFails != nil {
		return wire.Tile{}, d.tileFails
	}
	t := wire.Tile{Head: m.Heads[0], Rows: m.Rows, Cols: m.Cols, Queries: m.Queries, Keys: m.Keys}
	for i := range m.Rows * m.Cols {
		v := float32(i + 1)
		if m.Quantity == wire.QuantityScores {
			v = -v
		}
		t.Values = append(t.Values, v)
	}
	for i := range m.Rows {
		t.Hidden = append(t.Hidden, i*m.Cols+min(i, m.Cols), (i+1)*m.Cols)
	}
	return t, nil
}

func (d *device) counts() (runs, released int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.runs), len(d.released)
}

func shown(text string, controls ...wire.Control) wire.Display {
	return wire.Display{
		Parts:       []wire.Part{{MIME: "image/png", Data: []byte(text)}, {MIME: "text/plain", Data: []byte(`alt of "</script>` + text)}},
		Metadata:    []byte(`{"image/png":{"width":320,"height":200}}`),
		Exploration: &wire.Exploration{ID: 7, Controls: controls},
	}
}

var offset = wire.Control{Name: "offset", Label: "query offset", From: -64, To: 64, Step: 1}

// eventually waits for something that another goroutine does.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never: " + what)
		}
	}
}

// explored opens a picture and finds its models.
func explored(t *testing.T, d *device, controls ...wire.Control) (m *Manager, p *pages, picture *Model, sliders []*Model) {
	t.Helper()
	p = &pages{}
	m = New(p, d, nil)
	t.Cleanup(m.Close)
	id, page, err := m.Explore(json.RawMessage(ofCell), "one", shown("first", controls...))
	if err != nil {
		t.Fatal(err)
	}
	opened := map[string]bool{}
	for _, message := range p.take() {
		content := decoded(t, message)
		if message.Type != "comm_open" || string(message.Parent) != ofCell {
			t.Fatalf("sent %+v", message)
		}
		opened["IPY_MODEL_"+content["comm_id"].(string)] = true
		// A page can only look up what was opened before.
		state := content["data"].(map[string]any)["state"].(map[string]any)
		for _, name := range []string{"layout", "style"} {
			if ref, ok := state[name].(string); ok && !opened[ref] {
				t.Errorf("%v refers to a %s that is not open yet", state["_model_name"], name)
			}
		}
		if children, ok := state["children"].([]any); ok {
			for _, child := range children {
				if !opened[child.(string)] {
					t.Errorf("%v refers to a child that is not open yet", state["_model_name"])
				}
			}
		}
	}
	if m.models[id].state["_model_name"] != "HBoxModel" {
		t.Fatalf("the view is of %v", m.models[id].state)
	}
	e := m.explored[0]
	name, _ := e.picture.state["still"].(string)
	for _, want := range []string{`data-attnb-still="` + name + `"`, `const id = "` + name + `";`, `alt="` + html.EscapeString(e.picture.state["alt"].(string)) + `"`,
		base64.StdEncoding.EncodeToString(e.picture.state["png"].([]byte))} {
		if len(name) != 32 || !strings.Contains(page, want) {
			t.Errorf("still %q: no %s in %.300s", name, want, page)
		}
	}
	return m, p, e.picture, e.sliders
}

func move(m *Manager, x *Model, entry string, to float64) {
	m.Handle(from("comm_msg", x.ID(), fmt.Sprintf(`{"method":"update","state":{%q:%g},"buffer_paths":[]}`, entry, to)))
}

func TestExploreControls(t *testing.T) {
	_, _, picture, sliders := explored(t, &device{}, offset,
		wire.Control{Name: "base", From: 100, To: 1e6, Value: 1e4},
		wire.Control{Name: "pairing", Options: []string{"half-split", "interleaved"}, To: 1, Step: 1, Value: 1})
	for i, want := range []State{
		{"_model_name": "IntSliderModel", "description": "query offset", "min": -64, "max": 64, "step": 1, "value": 0},
		{"_model_name": "FloatLogSliderModel", "description": "base", "min": 2.0, "max": 6.0, "value": 1e4},
		{"_model_name": "DropdownModel", "description": "pairing", "index": 1},
	} {
		for name, value := range want {
			if got := sliders[i].Get(name); got != value {
				t.Errorf("control %d: %s is %v, want %v", i, name, got, value)
			}
		}
	}
	if got := fmt.Sprintf("%s %v %v %v", picture.Get("png"), picture.Get("alt"), picture.Get("width"), picture.Get("height")); got != `first alt of "</script>first 320 200` {
		t.Errorf("picture %s", got)
	}
}

// While one run is under way the values of a drag do not queue up: the last alone is run.
func TestDragRunsTheLatest(t *testing.T) {
	d := &device{gate: make(chan error)}
	m, p, picture, sliders := explored(t, d, offset)
	move(m, sliders[0], "value", 1)
	eventually(t, "a run", func() bool { runs, _ := d.counts(); return runs == 1 }) // under way before the rest
	for v := 2.0; v <= 100; v++ {
		move(m, sliders[0], "value", v)
	}
	if echoes := len(p.take()); echoes < 100 {
		t.Errorf("%d messages for 100 values: each is echoed at once", echoes)
	}
	d.gate <- nil
	d.gate <- nil
	eventually(t, "the last picture", func() bool { return string(picture.Get("png").([]byte)) == "7 [{offset  [] 0 0 0 100 false}]" })
	if runs, _ := d.counts(); runs != 2 {
		t.Errorf("%d runs, want 2", runs)
	}
	eventually(t, "the end of waiting", func() bool { return picture.Get("busy") == false })
}

// A run that fails says so below the picture, which stays; the next one clears it.
func TestRunThatFails(t *testing.T) {
	d := &device{gate: make(chan error, 1)}
	m, _, picture, sliders := explored(t, d, offset)
	d.gate <- errors.New("RoPE: out of range")
	move(m, sliders[0], "value", 3)
	eventually(t, "the note", func() bool { return picture.Get("note") == "RoPE: out of range" })
	if got := string(picture.Get("png").([]byte)); got != "first" {
		t.Errorf("the picture is %q", got)
	}
	d.gate <- nil
	move(m, sliders[0], "value", 4)
	eventually(t, "a picture", func() bool { return picture.Get("note") == "" && string(picture.Get("png").([]byte)) != "first" })
	// What is no number is no setting.
	m.Handle(from("comm_msg", sliders[0].ID(), `{"method":"update","state":{"value":"x"}}`))
	m.Handle(from("comm_msg", sliders[0].ID(), `{"method":"update","state":{"description":"x"}}`))
	if runs, _ := d.counts(); runs != 2 {
		t.Errorf("%d runs, want 2", runs)
	}
}

// A run that takes long is announced, and the announcement taken back, in this order.
func TestSlowRun(t *testing.T) {
	d := &device{gate: make(chan error)}
	m, p, picture, sliders := explored(t, d, offset)
	move(m, sliders[0], "value", 3)
	eventually(t, "busy", func() bool { return picture.Get("busy") == true })
	d.gate <- nil
	eventually(t, "not busy", func() bool { return picture.Get("busy") == false })
	var seen []any
	for _, message := range p.take() {
		state := decoded(t, message)["data"].(map[string]any)["state"].(map[string]any)
		if busy, ok := state["busy"]; ok {
			seen = append(seen, busy)
		}
	}
	if fmt.Sprint(seen) != "[true false]" {
		t.Errorf("busy went %v", seen)
	}
}

// A page that closes one of the models closes all and lets go of the tensors; a run under way ends in nothing.
func TestClosedByAPage(t *testing.T) {
	d := &device{gate: make(chan error)}
	m, p, _, sliders := explored(t, d, offset)
	move(m, sliders[0], "value", 3)
	eventually(t, "a run", func() bool { runs, _ := d.counts(); return runs == 1 })
	open := len(m.Info(""))
	p.take()
	m.Handle(from("comm_close", sliders[0].ID(), `{}`))
	m.Handle(from("comm_close", sliders[0].ID(), `{}`))
	if left := len(m.Info("")); left != 0 || m.bytes != 0 || len(m.explored) != 0 {
		t.Errorf("%d models, %d bytes, %d pictures are left", left, m.bytes, len(m.explored))
	}
	sent := p.take()
	for _, message := range sent {
		if message.Type != "comm_close" {
			t.Errorf("sent %+v", message)
		}
	}
	if len(sent) != open-1 {
		t.Errorf("%d models closed, want %d: the page knows of the one it closed", len(sent), open-1)
	}
	d.gate <- nil
	eventually(t, "the release", func() bool { _, released := d.counts(); return released == 1 })
	time.Sleep(2 * time.Millisecond)
	if sent := p.take(); len(sent) != 0 {
		t.Errorf("after the end: %+v", sent)
	}
}

// The oldest of too many pictures stays on its page, says that it is no longer live, and lets go of its tensors.
func TestTooManyPictures(t *testing.T) {
	d := &device{}
	m, p, picture, _ := explored(t, d, offset)
	for range maxExplored {
		p.take()
		if _, _, err := m.Explore(nil, "", shown("more", offset)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the release", func() bool { _, released := d.counts(); return released == 1 })
	noted, disabled := false, false
	for _, message := range p.take() {
		content := decoded(t, message)
		state, _ := content["data"].(map[string]any)["state"].(map[string]any)
		noted = noted || content["comm_id"] == picture.ID() && state["note"] != ""
		disabled = disabled || state["disabled"] == true
		if message.Type == "comm_close" {
			t.Error("the picture was taken off its page")
		}
	}
	if !noted || !disabled {
		t.Errorf("noted %v, its slider disabled %v", noted, disabled)
	}
	if len(m.explored) != maxExplored || picture.Set(nil, State{"note": ""}) == nil {
		t.Errorf("%d pictures, and the oldest may still be live", len(m.explored))
	}
}

// A cell that runs again replaces its pictures; those of the same run stay side by side.
func TestCellThatRunsAgain(t *testing.T) {
	d := &device{}
	m, p, _, _ := explored(t, d, offset)
	each := len(m.Info(""))
	for _, again := range []struct {
		parent, cell string
		pictures     int
	}{{ofCell, "one", 2}, {`{"msg_id":"other"}`, "two", 3}, {`{"msg_id":"again"}`, "one", 2}, {`{"msg_id":"x"}`, "", 3}, {`{"msg_id":"y"}`, "", 4}} {
		if _, _, err := m.Explore(json.RawMessage(again.parent), again.cell, shown("more", offset)); err != nil {
			t.Fatal(err)
		}
		if n := len(m.Info("")); n != again.pictures*each {
			t.Errorf("after %+v: %d models, want %d", again, n, again.pictures*each)
		}
	}
	closed := 0
	for _, message := range p.take() {
		if message.Type == "comm_close" {
			closed++
		}
	}
	if closed != 2*each {
		t.Errorf("%d models closed, want %d", closed, 2*each)
	}
	m.Discard(shown("unseen", offset))
	m.Discard(wire.Display{})
	eventually(t, "three releases", func() bool { _, released := d.counts(); return released == 3 })
}

func TestExploreRefusals(t *testing.T) {
	d := &device{}
	p := &pages{}
	m := New(p, d, nil)
	if _, _, err := m.Explore(nil, "", wire.Display{}); err == nil {
		t.Error("a display without an exploration was taken")
	}
	noPNG := shown("x", offset)
	noPNG.Parts = noPNG.Parts[1:]
	if _, _, err := m.Explore(nil, "", noPNG); err == nil {
		t.Error("a display without a PNG was taken")
	}
	for range maxModels - 3 {
		if _, err := m.Open(nil, Label("", nil)); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := m.Explore(nil, "", shown("x", offset)); !errors.Is(err, ErrFull) {
		t.Errorf("with no room for its models: %v", err)
	}
	if n := len(m.Info("")); n != maxModels-3 {
		t.Errorf("%d models: what was opened before the failure stays", n)
	}
	eventually(t, "two releases", func() bool { _, released := d.counts(); return released == 2 })
	m.Close()
	if _, _, err := m.Explore(nil, "", shown("x", offset)); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
