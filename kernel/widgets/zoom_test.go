package widgets

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/attnb/attnb/kernel/wire"
)

func mapped(id int) wire.Display {
	return wire.Display{Map: &wire.LiveMap{ID: id, Heads: 2, Queries: 9, Keys: 9, Quantity: wire.QuantityProbabilities,
		Shown: wire.Map{Reduce: wire.ReduceMean, Heads: []int{1}}}}
}

// asks sends a page's request to a model.
func asks(m *Manager, model, content string) {
	m.Handle(from("comm_msg", model, `{"method":"custom","content":`+content+`}`))
}

// zooming opens the supply of a picture and returns its model.
func zooming(t *testing.T, d *device, cell string, id int) (*Manager, *pages, string) {
	t.Helper()
	p := &pages{}
	m := New(p, d, nil)
	t.Cleanup(m.Close)
	if err := m.Zoom(json.RawMessage(ofCell), cell, mapped(id)); err != nil {
		t.Fatal(err)
	}
	return m, p, opened(t, p)
}

// opened is the model that was opened last, which must be one of a zooming picture.
func opened(t *testing.T, p *pages) string {
	t.Helper()
	var content map[string]any
	for _, message := range p.take() {
		if message.Type == "comm_open" {
			content = decoded(t, message)
		}
	}
	if content == nil {
		t.Fatal("no model was opened")
	}
	state := content["data"].(map[string]any)["state"].(map[string]any)
	if state["_view_name"] != nil || state["_model_name"] != "AnyModel" || state["_anywidget_id"] != "attnb.Zoom" {
		t.Errorf("the model is %v", state)
	}
	return content["comm_id"].(string)
}

func TestZoomAnswersTiles(t *testing.T) {
	d := &device{}
	m, p, model := zooming(t, d, "one", -3)
	if got := m.models[model].state["map"]; got != "fffffffffffffffd" {
		t.Errorf("the picture is called %v", got)
	}
	asks(m, model, `{"type":"tile","seq":5,"head":1,"rows":[2,4],"cols":[3,6],"h":2,"w":3,"both":false}`)
	eventually(t, "an answer", func() bool { return p.count() == 1 })
	expect(t, p, "comm_msg", ofPage, `{"comm_id":"`+model+`","data":{"method":"custom","content":{"type":"tile","seq":5,"hidden":[0,3,4,6]}}}`,
		wire.FloatBytes([]float32{1, 2, 3, 4, 5, 6}))
	want := wire.Map{Reduce: wire.ReduceMean, Heads: []int{1}, Queries: []int{2, 4}, Keys: []int{3, 6}, Rows: 2, Cols: 3}
	if got := fmt.Sprint(d.tiles); got != fmt.Sprint([]wire.Map{want}) {
		t.Errorf("asked for %v, want %v", got, want)
	}
	// Scores come before probabilities, whichever the picture shows.
	asks(m, model, `{"type":"tile","seq":6,"head":0,"rows":[0,1],"cols":[0,1],"h":1,"w":1,"both":true}`)
	eventually(t, "an answer", func() bool { return p.count() == 1 })
	one, minus := wire.FloatBytes([]float32{1}), wire.FloatBytes([]float32{-1})
	expect(t, p, "comm_msg", ofPage, `{"comm_id":"`+model+`","data":{"method":"custom","content":{"type":"tile","seq":6,"hidden":[0,1],"both":true}}}`, one, minus, one)
}

func TestZoomRefuses(t *testing.T) {
	d := &device{tileFails: wire.Errorf(wire.NotFound, "this picture is no longer live: run its cell again")}
	m, p, model := zooming(t, d, "one", 3)
	for content, want := range map[string]string{
		`{"type":"tile","seq":1,"head":0,"rows":[0,1],"cols":[0,1],"h":1,"w":1}`:    "no longer live",
		`{"type":"tile","seq":1,"head":0,"rows":[0,1],"cols":[0,1],"h":0,"w":1}`:    "0 x 1 cells",
		`{"type":"tile","seq":1,"head":0,"rows":[0,1],"cols":[0,1],"h":1,"w":4000}`: "1 x 4000 cells",
		`{"type":"tile","seq":1,"head":0,"rows":[0],"cols":[0,1],"h":1,"w":1}`:      "must be",
		`{"type":"tile","seq":1}`: "0 x 0 cells",
	} {
		asks(m, model, content)
		eventually(t, "an answer to "+content, func() bool { return p.count() == 1 })
		text := fmt.Sprint(decoded(t, p.take()[0]))
		if !strings.Contains(text, want) {
			t.Errorf("%s: %s, want %q", content, text, want)
		}
	}
	for _, content := range []string{`3`, `{}`, `{"type":"fire"}`, `{"type":"tile","rows":"x"}`, `[[]]`} {
		asks(m, model, content)
	}
	if n := p.count(); n != 0 {
		t.Errorf("%d answers to what is no request", n)
	}
}

// A map is released once: when its cell runs again, when a page closes it, and as the oldest of too many.
func TestZoomEnds(t *testing.T) {
	d := &device{}
	m, p, first := zooming(t, d, "one", 1)
	if err := m.Zoom(json.RawMessage(ofCell), "one", mapped(2)); err != nil { // the same run of the cell
		t.Fatal(err)
	}
	second := opened(t, p)
	if _, released := d.counts(); released != 0 {
		t.Fatalf("released %v", d.released)
	}
	if err := m.Zoom(json.RawMessage(`{"msg_id":"again"}`), "one", mapped(3)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both are released", func() bool { _, n := d.counts(); return n == 2 })
	if m.models[first] != nil || m.models[second] != nil {
		t.Error("their models are open")
	}
	why := 0
	for _, message := range p.take() {
		if strings.Contains(fmt.Sprint(decoded(t, message)), "run again") {
			why++
		}
	}
	if why != 2 {
		t.Errorf("%d pages heard why", why)
	}
	for i := range maxZoomed {
		if err := m.Zoom(json.RawMessage(ofCell), "", mapped(10+i)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the oldest is released", func() bool { _, n := d.counts(); return n == 3 })
	last := opened(t, p)
	m.Handle(from("comm_close", last, `{}`))
	m.Handle(from("comm_close", last, `{}`))
	eventually(t, "the closed one is released", func() bool { _, n := d.counts(); return n == 4 })
	if len(m.zoomed) != maxZoomed-1 {
		t.Errorf("%d are live", len(m.zoomed))
	}
	m.Discard(mapped(99))
	eventually(t, "the one that nobody sees is released", func() bool { _, n := d.counts(); return n == 5 })
	if err := m.Zoom(nil, "", wire.Display{}); err == nil {
		t.Error("a display without a map has a supply")
	}
}

func FuzzZoomAsk(f *testing.F) {
	f.Add(`{"type":"tile","seq":5,"head":1,"rows":[2,4],"cols":[3,6],"h":2,"w":3,"both":true}`)
	f.Add(`{"type":"tile","h":1,"w":1,"rows":[-1,1e9],"cols":[0,0]}`)
	f.Fuzz(func(t *testing.T, content string) {
		p, d := &pages{}, &device{}
		m := New(p, d, nil)
		defer m.Close()
		if err := m.Zoom(nil, "", mapped(1)); err != nil {
			t.Fatal(err)
		}
		z := m.zoomed[0]
		z.ask(json.RawMessage(content), nil)
		eventually(t, "an end", func() bool { z.mu.Lock(); defer z.mu.Unlock(); return !z.running })
		for _, out := range p.take() {
			if _, err := json.Marshal(out.Content); err != nil {
				t.Fatalf("%s: answered what is no JSON: %v", content, err)
			}
		}
	})
}
