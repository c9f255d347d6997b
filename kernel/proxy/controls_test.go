package proxy

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/attnb/attnb/kernel/proxy/jupyter"
	"github.com/attnb/attnb/kernel/wire"
)

// What a program says about its control, and what a page hears of it.
func TestControls(t *testing.T) {
	c := startWith(t, "resident")
	env := strings.Fields(c.run("!echo $" + wire.EnvControls + " $" + wire.EnvNonce).stream("stdout"))
	path, nonce := env[0], env[1]
	gain := wire.Control{Name: "gain", To: 10, Step: 1, Value: 3}
	refused := func(nonce string, control wire.Control, want string) {
		t.Helper()
		var e *wire.Error
		if _, err := wire.OpenInput(path, nonce, control); !errors.As(err, &e) || e.Message != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	refused(nonce, gain, "a control belongs to a cell, and none runs")

	// run starts a cell that takes its time, of a page or of a program.
	run := func(page bool) string {
		id := c.send(c.shell, "execute_request", map[string]any{"code": "!echo begun; sleep 30", "allow_stdin": page})
		c.printed(id, "begun")
		return id
	}
	busy := run(true)
	refused("guess", gain, "not a control of a cell of this kernel")
	refused(nonce, wire.Control{Name: "gain", To: 10, Step: 1, Value: 30}, "gain: 30 is not between 0 and 10")
	in, err := wire.OpenInput(path, nonce, gain)
	if err != nil {
		t.Fatal(err)
	}
	type value struct {
		v   float64
		ok  bool
		err error
	}
	next := func() <-chan value {
		got := make(chan value, 1)
		go func() {
			v, ok, err := in.Next()
			got <- value{v, ok, err}
		}()
		return got
	}
	expect := func(got <-chan value, want value) {
		t.Helper()
		select {
		case g := <-got:
			if g != want {
				t.Errorf("%+v, want %+v", g, want)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("never a value")
		}
	}
	model := func() (slider, note string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, m := range c.iopubs {
			if m.Header.Type == "comm_open" && parentID(m) == busy {
				switch o := commOf(t, m); o.Data.State["_model_name"] {
				case "IntSliderModel":
					slider = o.ID
				case "LabelModel":
					note = o.ID
				}
			}
		}
		return slider, note
	}
	waiting := next()
	var slider, note string
	for range 500 {
		if slider, note = model(); note != "" {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	turn := func(to int) {
		c.send(c.shell, "comm_msg", map[string]any{"comm_id": slider, "data": map[string]any{"method": "update", "state": map[string]any{"value": to}, "buffer_paths": []any{}}})
	}
	turn(7)
	expect(waiting, value{v: 7, ok: true})

	// Its program ends: the page says so.
	ended := func(is func(m *jupyter.Message) bool) bool {
		return c.until(10*time.Second, func() bool {
			for _, m := range c.iopubs {
				if is(m) {
					return true
				}
			}
			return false
		})
	}
	in.Close()
	if !ended(func(m *jupyter.Message) bool {
		return m.Header.Type == "comm_msg" && strings.Contains(string(m.Content), note) && strings.Contains(string(m.Content), "Its cell has ended")
	}) {
		t.Error("never: that the cell has ended")
	}

	// A page closes another one: its program hears that, also while it waits.
	if in, err = wire.OpenInput(path, nonce, gain); err != nil {
		t.Fatal(err)
	}
	waiting = next()
	c.send(c.shell, "comm_close", map[string]any{"comm_id": in.Model, "data": map[string]any{}})
	expect(waiting, value{})
	in.Close()
	c.send(c.control, "interrupt_request", map[string]any{})
	c.result(busy, 10*time.Second)

	// A program that runs cells has nobody who turns.
	busy = run(false)
	if in, err = wire.OpenInput(path, nonce, gain); err != nil || in.Model != "" {
		t.Fatalf("model %q, %v", in.Model, err)
	}
	expect(next(), value{})
	in.Close()
	c.send(c.control, "interrupt_request", map[string]any{})
	c.result(busy, 10*time.Second)
}
