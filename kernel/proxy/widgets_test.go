package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/attnb/attnb/kernel/proxy/jupyter"
	"github.com/attnb/attnb/kernel/wire"
)

// explored has the device process prepare a picture with an offset to turn, as a cell's program does, and returns its marker's ID.
func explored(t *testing.T, socket string) string {
	t.Helper()
	conn, err := wire.Dial(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	a, err := conn.Upload(wire.Request{Kind: wire.KindUpload, Shape: []int{3, 4}, Axes: []string{"seq", "dim"}}, []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3})
	if err == nil {
		a, err = conn.Do(wire.Request{Kind: wire.KindRun, Op: wire.OpRoPE, IDs: []int{a.Tensors[0].ID}, Params: wire.Params{Rotary: 4}})
	}
	if err == nil {
		a, err = conn.Do(wire.Request{Kind: wire.KindExplore, IDs: []int{a.Tensors[0].ID}, Controls: []wire.Control{{Name: "offset"}}})
	}
	if err != nil {
		t.Fatal(err)
	}
	return a.DisplayID
}

// comm is what a comm message says.
type comm struct {
	ID     string `json:"comm_id"`
	Target string `json:"target_name"`
	Data   struct {
		Method string         `json:"method"`
		State  map[string]any `json:"state"`
		States map[string]any `json:"states"`
		Paths  [][]any        `json:"buffer_paths"`
	} `json:"data"`
}

func commOf(t *testing.T, m *jupyter.Message) comm {
	t.Helper()
	var c comm
	if err := json.Unmarshal(m.Content, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWidgets(t *testing.T) {
	c := startWith(t, "resident")
	socket := strings.TrimSpace(c.run("!echo $" + wire.EnvSocket).stream("stdout"))
	// show runs a cell that prints the marker of a display.
	show := func(id string, stdin bool) result {
		code := `!printf '\033]attnb;%s;display;` + id + `\033\\' "$` + wire.EnvNonce + `"`
		return c.result(c.send(c.shell, "execute_request", map[string]any{"code": code, "allow_stdin": stdin}), 20*time.Second)
	}
	// A program, which answers no input requests, gets the picture alone.
	for _, m := range show(explored(t, socket), false).iopub {
		if strings.HasPrefix(m.Header.Type, "comm") || strings.Contains(string(m.Content), viewType) {
			t.Errorf("a program is told of a widget: %s %.200s", m.Header.Type, m.Content)
		}
	}

	models, slider, picture, view := map[string]comm{}, "", "", ""
	var displays []string
	r := show(explored(t, socket), true)
	for _, m := range r.iopub {
		switch m.Header.Type {
		case "comm_open":
			o := commOf(t, m)
			if string(m.Metadata) != `{"version":"2.1.0"}` || o.Target != "jupyter.widget" || view != "" {
				t.Errorf("metadata %s, target %s", m.Metadata, o.Target)
			}
			models[o.ID] = o
			switch o.Data.State["_model_name"] {
			case "IntSliderModel":
				slider = o.ID
			case "AnyModel":
				picture = o.ID
				if len(m.Buffers) != 1 || !bytes.HasPrefix(m.Buffers[0], []byte("\x89PNG")) || fmt.Sprint(o.Data.Paths) != "[[png]]" {
					t.Errorf("the picture has %d buffers at %v", len(m.Buffers), o.Data.Paths)
				}
			}
		case "display_data":
			var d struct {
				Data map[string]any `json:"data"`
			}
			if err := json.Unmarshal(m.Content, &d); err != nil {
				t.Fatal(err)
			}
			displays = append(displays, strings.Join(slices.Sorted(maps.Keys(d.Data)), " "))
			if of, ok := d.Data[viewType].(map[string]any); ok {
				view = of["model_id"].(string)
			}
		}
	}
	// What always shows, and then what a page shows instead.
	if want := []string{"image/png text/html text/plain", viewType + " text/plain"}; !slices.Equal(displays, want) {
		t.Errorf("displays %q, want %q", displays, want)
	}
	if models[view].ID == "" || slider == "" || picture == "" {
		t.Fatalf("view %q, slider %q, picture %q of %d models: %s", view, slider, picture, len(models), r.trace())
	}

	// found waits for a comm message after the first from messages.
	found := func(from int, what string, is func(m *jupyter.Message, d comm) bool) {
		t.Helper()
		if !c.until(20*time.Second, func() bool {
			for _, m := range c.iopubs[from:] {
				if m.Header.Type == "comm_msg" && is(m, commOf(t, m)) {
					return true
				}
			}
			return false
		}) {
			t.Fatalf("never: %s", what)
		}
	}
	count := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.iopubs)
	}
	turn := func(to int) string {
		return c.send(c.shell, "comm_msg", map[string]any{"comm_id": slider, "data": map[string]any{"method": "update", "state": map[string]any{"value": to}, "buffer_paths": []any{}}})
	}
	busy := c.execute("!echo begun; sleep 20")
	c.printed(busy, "begun")
	at := count()
	id := turn(5)
	found(at, "the echo", func(m *jupyter.Message, d comm) bool {
		return d.ID == slider && d.Data.Method == "echo_update" && d.Data.State["value"] == 5.0 && parentID(m) == id
	})
	found(at, "the picture, while a cell runs", func(m *jupyter.Message, d comm) bool {
		return d.ID == picture && d.Data.Method == "update" && len(m.Buffers) == 1 && bytes.HasPrefix(m.Buffers[0], []byte("\x89PNG"))
	})
	if c.until(0, func() bool { return c.answer(busy) != nil }) {
		t.Error("the cell had ended before: this proves nothing")
	}
	c.send(c.control, "interrupt_request", map[string]any{})
	c.result(busy, 10*time.Second)

	// A page that was loaded anew.
	at = count()
	c.send(c.shell, "comm_open", map[string]any{"comm_id": "page", "target_name": "jupyter.widget.control", "data": map[string]any{}})
	c.send(c.shell, "comm_msg", map[string]any{"comm_id": "page", "data": map[string]any{"method": "request_states"}})
	found(at, "all states", func(m *jupyter.Message, d comm) bool {
		return d.ID == "page" && d.Data.Method == "update_states" && len(d.Data.States) == len(models) && len(m.Buffers) == 1
	})
	info := c.send(c.shell, "comm_info_request", map[string]any{"target_name": "jupyter.widget"})
	if !c.until(5*time.Second, func() bool {
		return c.answer(info) != nil && strings.Count(string(c.answer(info).Content), "jupyter.widget") == len(models)
	}) {
		t.Error("comm_info does not list the models")
	}

	// Where the device process was lost, the picture says so; what it says until another one is there is the connection's.
	conn, err := wire.Dial(socket)
	if err != nil {
		t.Fatal(err)
	}
	status, err := conn.Status()
	conn.Close()
	if err != nil {
		t.Fatal(err)
	}
	at = count()
	if err := syscall.Kill(status.PID, syscall.SIGKILL); err != nil {
		t.Fatalf("process %d: %v", status.PID, err)
	}
	for value := 6; ; value++ {
		turn(value)
		if c.until(200*time.Millisecond, func() bool {
			for _, m := range c.iopubs[at:] {
				if m.Header.Type == "comm_msg" && strings.Contains(string(m.Content), `"note":"this picture is no longer live: run its cell again"`) {
					return true
				}
			}
			return false
		}) {
			break
		}
		if value > 60 {
			t.Fatal("never: a note that the picture is no longer live")
		}
	}
}
