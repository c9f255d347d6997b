package proxy

import (
	"strings"
	"testing"
	"time"

	"github.com/attnb/attnb/kernel/proxy/jupyter"
	"github.com/attnb/attnb/kernel/wire"
)

// mapped has the device process draw a matrix of 0, 1, 2, ... as a live map, and returns its marker's ID.
func mapped(t *testing.T, socket string) string {
	t.Helper()
	conn, err := wire.Dial(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	x := make([]float32, 100*100)
	for i := range x {
		x[i] = float32(i)
	}
	a, err := conn.Upload(wire.Request{Kind: wire.KindUpload, Shape: []int{100, 100}, Axes: []string{"query", "key"}}, x)
	if err == nil {
		a, err = conn.Do(wire.Request{Kind: wire.KindMap, IDs: []int{a.Tensors[0].ID}, Map: &wire.Map{Live: true}})
	}
	if err != nil {
		t.Fatal(err)
	}
	return a.DisplayID
}

// A page gets the picture and a model that supplies it, while a cell runs too, with exact cells in a buffer; a program the picture alone.
func TestZoom(t *testing.T) {
	c := startWith(t, "resident")
	socket := strings.TrimSpace(c.run("!echo $" + wire.EnvSocket).stream("stdout"))
	show := func(id string, stdin bool) (model string, html bool) {
		code := `!printf '\033]attnb;%s;display;` + id + `\033\\' "$` + wire.EnvNonce + `"`
		r := c.result(c.send(c.shell, "execute_request", map[string]any{"code": code, "allow_stdin": stdin}), 20*time.Second)
		for _, m := range r.iopub {
			switch {
			case m.Header.Type == "comm_open":
				o := commOf(t, m)
				if o.Data.State["_view_name"] != nil || o.Data.State["map"] == "" || html {
					t.Errorf("the model, before the picture: %v", o)
				}
				model = o.ID
			case m.Header.Type == "display_data":
				html = strings.Contains(string(m.Content), `"text/html"`) && strings.Contains(string(m.Content), `"image/png"`) && !strings.Contains(string(m.Content), viewType)
			}
		}
		return model, html
	}
	if model, html := show(mapped(t, socket), false); model != "" || !html {
		t.Errorf("a program gets model %q, html %v", model, html)
	}
	model, html := show(mapped(t, socket), true)
	if model == "" || !html {
		t.Fatalf("a page gets model %q, html %v", model, html)
	}
	busy := c.execute("!echo begun; sleep 20")
	c.printed(busy, "begun")
	c.send(c.shell, "comm_msg", map[string]any{"comm_id": model, "data": map[string]any{"method": "custom", "content": map[string]any{
		"type": "tile", "seq": 7, "head": 0, "rows": []int{42, 43}, "cols": []int{10, 12}, "h": 1, "w": 2}}})
	var answer *jupyter.Message
	if !c.until(20*time.Second, func() bool {
		for _, m := range c.iopubs {
			if m.Header.Type == "comm_msg" && strings.Contains(string(m.Content), `"seq":7`) {
				answer = m
			}
		}
		return answer != nil
	}) {
		t.Fatal("no tile")
	}
	if c.until(0, func() bool { return c.answer(busy) != nil }) {
		t.Error("the cell had ended before: this proves nothing")
	}
	want := wire.FloatBytes([]float32{4210, 4211})
	if len(answer.Buffers) != 1 || string(answer.Buffers[0]) != string(want) {
		t.Errorf("%s, buffers %v, want %v", answer.Content, answer.Buffers, want)
	}
	c.send(c.control, "interrupt_request", map[string]any{})
	c.result(busy, 10*time.Second)
}
