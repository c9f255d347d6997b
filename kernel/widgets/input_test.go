package widgets

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/attnb/attnb/kernel/wire"
)

var (
	gain = wire.Control{Name: "gain", From: 0, To: 10, Step: 1, Value: 3}
	mask = wire.Control{Name: "mask", Options: []string{"causal", "full"}}
)

func input(t *testing.T, m *Manager, run int, cell string, c wire.Control) *Input {
	t.Helper()
	in, err := m.OpenInput(json.RawMessage(fmt.Sprintf(`{"msg_id":"%d"}`, run)), cell, c)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// turned takes a value that a page has set, if there is one.
func turned(in *Input) (float64, bool) {
	select {
	case <-in.Turned():
		return in.Value(), true
	default:
		return 0, false
	}
}

func isOver(in *Input) bool {
	select {
	case <-in.Closed():
		return true
	default:
		return false
	}
}

// A cell gets the newest value, once, and nothing that the control does not have.
func TestInputValues(t *testing.T) {
	m, _ := start(t)
	slider, list := input(t, m, 1, "", gain), input(t, m, 1, "", mask)
	if v, ok := turned(slider); ok {
		t.Errorf("%v before anybody turned it", v)
	}
	for to := range 9 {
		move(m, slider.slider, "value", float64(to))
	}
	if v, ok := turned(slider); !ok || v != 8 {
		t.Errorf("after a drag: %v, %v", v, ok)
	}
	if v, ok := turned(slider); ok {
		t.Errorf("%v again", v)
	}
	move(m, slider.slider, "value", 11)
	move(m, slider.slider, "value", -1)
	move(m, slider.slider, "value", 2.5)
	move(m, list.slider, "index", 2)
	m.Handle(from("comm_msg", slider.slider.ID(), `{"method":"update","state":{"value":"7"}}`))
	m.Handle(from("comm_msg", list.slider.ID(), `{"method":"update","state":{"index":null}}`))
	for _, in := range []*Input{slider, list} {
		if v, ok := turned(in); ok {
			t.Errorf("%s: %v, which it does not have", in.control.Name, v)
		}
	}
	move(m, list.slider, "index", 1)
	if v, ok := turned(list); !ok || v != 1 {
		t.Errorf("the list: %v, %v", v, ok)
	}
}

// An ended control stays, disabled, until its cell runs again or there are too many.
func TestInputEnds(t *testing.T) {
	m, p := start(t)
	in := input(t, m, 1, "a", gain)
	each := len(in.models)
	in.End()
	if in.slider.Get("disabled") != true || in.note.Get("value") != "Its cell has ended: run it again." || isOver(in) {
		t.Errorf("disabled %v, note %q", in.slider.Get("disabled"), in.note.Get("value"))
	}
	second := input(t, m, 1, "a", mask) // of the same run
	if n := len(m.Info("")); n != 2*each {
		t.Errorf("%d models, want %d", n, 2*each)
	}
	second.End()
	p.take()
	input(t, m, 2, "a", gain)
	closed := 0
	for _, sent := range p.take() {
		if sent.Type == "comm_close" {
			closed++
		}
	}
	if closed != 2*each || len(m.ended) != 0 || !isOver(in) {
		t.Errorf("the cell runs again: %d models of %d closed, %d kept", closed, 2*each, len(m.ended))
	}
	for i := range maxEnded + 5 {
		input(t, m, 3+i, "", gain).End()
	}
	if n := len(m.Info("")); n != (maxEnded+1)*each || len(m.ended) != maxEnded {
		t.Errorf("%d models, want those of %d ended controls and of one that lives", n, maxEnded)
	}
}

func TestInputClosedByAPage(t *testing.T) {
	m, _ := start(t)
	in := input(t, m, 1, "a", gain)
	m.Handle(from("comm_close", in.note.ID(), `{}`))
	if !isOver(in) {
		t.Error("its cell is not told")
	}
	in.End()
	if n := len(m.Info("")); n != 0 || len(m.ended) != 0 {
		t.Errorf("%d models and %d ended controls are left", n, len(m.ended))
	}
}

func TestInputRefusals(t *testing.T) {
	m, p := start(t)
	with := func(change func(*wire.Control)) wire.Control {
		c := gain
		change(&c)
		return c
	}
	for want, c := range map[string]wire.Control{
		"gain: a slider from 10 to 10 has no room":                        with(func(c *wire.Control) { c.From = 10 }),
		"gain: 11 is not between 0 and 10":                                with(func(c *wire.Control) { c.Value = 11 }),
		"gain: from NaN to 10, at 3, is no slider over whole numbers":     with(func(c *wire.Control) { c.From = math.NaN() }),
		"gain: from 0 to 10, at 0.5, is no slider over whole numbers":     with(func(c *wire.Control) { c.Value = 0.5 }),
		"gain: from 0 to +Inf, at 3, is no slider over whole numbers":     with(func(c *wire.Control) { c.To = math.Inf(1) }),
		"gain: from -1e+300 to 10, at 3, is no slider over whole numbers": with(func(c *wire.Control) { c.From = -1e300 }),
		"mask: option 2 of 2":   {Name: "mask", Options: mask.Options, Value: 2},
		"mask: option NaN of 2": {Name: "mask", Options: mask.Options, Value: math.NaN()},
	} {
		if _, err := m.OpenInput(nil, "", c); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if sent := p.take(); len(sent) > 0 {
		t.Errorf("%d messages for what was refused", len(sent))
	}
	m.Close()
	if _, err := m.OpenInput(nil, "", gain); err == nil {
		t.Error("a manager that was closed opens a control")
	}
}
