package widgets

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/attnb/attnb/kernel/wire"
)

// maxEnded bounds the controls that are kept for pages after their cells have ended.
const maxEnded = 64

// Input is a control that a running cell hears.
type Input struct {
	m       *Manager
	control wire.Control
	cell    string // that opened it
	opened  string // header of the message that ran the cell
	models  []*Model
	slider  *Model
	note    *Model
	root    *Model

	turned chan struct{} // holds one while value is new
	closed chan struct{}
	once   sync.Once

	mu    sync.Mutex
	value float64
}

// OpenInput opens the widgets of a control: a slider over whole numbers, or a list. cell is the page's ID of the cell; empty: unknown. When
// that cell runs again, the controls that it had go.
func (m *Manager) OpenInput(parent json.RawMessage, cell string, c wire.Control) (*Input, error) {
	if err := CheckInput(c); err != nil {
		return nil, err
	}
	in := &Input{m: m, control: c, cell: cell, opened: string(parent), turned: make(chan struct{}, 1), closed: make(chan struct{})}
	if err := in.open(parent); err != nil {
		in.close()
		return nil, err
	}
	m.mu.Lock()
	var before []*Input
	m.ended = slices.DeleteFunc(m.ended, func(x *Input) bool {
		again := cell != "" && x.cell == cell && x.opened != in.opened
		if again {
			before = append(before, x)
		}
		return again
	})
	m.mu.Unlock()
	for _, x := range before { // their views are gone from the page
		x.close()
	}
	return in, nil
}

// CheckInput says what is wrong with a control.
func CheckInput(c wire.Control) error {
	const most = 1 << 53 // whole numbers that a page can tell apart
	whole := func(v float64) bool { return v == math.Trunc(v) && math.Abs(v) <= most }
	switch {
	case c.Options != nil && (!whole(c.Value) || c.Value < 0 || c.Value >= float64(len(c.Options))):
		return fmt.Errorf("%s: option %v of %d", c.Name, c.Value, len(c.Options))
	case c.Options != nil:
		return nil
	case !whole(c.From) || !whole(c.To) || !whole(c.Value) || c.Step != 1:
		return fmt.Errorf("%s: from %v to %v, at %v, is no slider over whole numbers", c.Name, c.From, c.To, c.Value)
	case c.From >= c.To:
		return fmt.Errorf("%s: a slider from %v to %v has no room", c.Name, c.From, c.To)
	case c.Value < c.From || c.Value > c.To:
		return fmt.Errorf("%s: %v is not between %v and %v", c.Name, c.Value, c.From, c.To)
	}
	return nil
}

func (in *Input) open(parent json.RawMessage) error {
	var failed error
	open := func(k Kind) *Model {
		if failed != nil {
			return &Model{}
		}
		x, err := in.m.Open(parent, k)
		if err != nil {
			failed = err
			return &Model{}
		}
		x.OnClose(in.close)
		in.models = append(in.models, x)
		return x
	}
	width := open(Layout(State{"width": "30em", "max_width": "100%"}))
	in.slider = open(kindOf(in.control, width, open(SliderStyle(State{"description_width": "8em"})), open(DescriptionStyle(State{"description_width": "8em"}))))
	in.note = open(Label("", nil))
	in.root = open(HBox([]*Model{in.slider, in.note}, nil))
	if failed == nil {
		in.slider.OnChange(func(changed State, _ json.RawMessage) { in.change(changed) })
	}
	return failed
}

// Root is the model to show.
func (in *Input) Root() *Model { return in.root }

// change notes a value of a page that the control has.
func (in *Input) change(changed State) {
	name, low, high := "value", in.control.From, in.control.To
	if in.control.Options != nil {
		name, low, high = "index", 0, float64(len(in.control.Options)-1)
	}
	value, ok := changed[name].(float64)
	if !ok || value != math.Trunc(value) || value < low || value > high {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.value = value
	select {
	case in.turned <- struct{}{}:
	default: // the one before was not taken yet
	}
}

// Turned receives when there is a new value for [Input.Value], and Closed when a page has closed the control.
func (in *Input) Turned() <-chan struct{} { return in.turned }

// Closed is described at Turned.
func (in *Input) Closed() <-chan struct{} { return in.closed }

// Value is the value to which a page has turned the control last.
func (in *Input) Value() float64 {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.value
}

// End leaves the control on the page, where it can no longer be turned: its cell has ended.
func (in *Input) End() {
	select {
	case <-in.closed:
		return
	default:
	}
	// Closed meanwhile: then there is nothing to tell.
	_ = in.slider.Set(nil, State{"disabled": true})
	_ = in.note.Set(nil, State{"value": "Its cell has ended: run it again."})
	in.m.mu.Lock()
	defer in.m.mu.Unlock()
	in.m.ended = append(in.m.ended, in)
	if len(in.m.ended) > maxEnded { // the oldest stays on pages that show it, and a page that is loaded anew has its text
		for _, x := range in.m.ended[0].models {
			in.m.remove(x)
		}
		in.m.ended = slices.Clone(in.m.ended[1:])
	}
}

// close closes all models: one of them was closed by a page, or the control's cell runs again.
func (in *Input) close() {
	in.once.Do(func() {
		close(in.closed)
		for _, x := range in.models {
			x.Close()
		}
	})
}
