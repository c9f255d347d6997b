package widgets

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/attnb/attnb/kernel/wire"
)

// Device runs explorations again, and makes tiles of live maps. Its methods may take as long as an op; calls may come from several goroutines.
type Device interface {
	Rerun(id int, settings []wire.Control) (wire.Display, error)
	Tile(id int, m wire.Map) (wire.Tile, error)
	Release(id int) error
}

// maxExplored bounds the pictures that are live; the oldest is let go when there is one more.
const maxExplored = 64

// patience is how long a run may take before the page shows that it waits.
const patience = 150 * time.Millisecond

//go:embed picture.js
var pictureModule string

//go:embed picture.css
var pictureStyle string

// Picture is the anywidget model of a PNG that is replaced in place, with a line of text below it.
func Picture(d wire.Display) (Kind, error) {
	state, err := pictureState(d)
	if err != nil {
		return Kind{}, err
	}
	state["busy"] = false
	state["still"] = newID()
	return Any("attnb.Picture", pictureModule, pictureStyle, state), nil
}

// pictureState is what a display means for the picture's model.
func pictureState(d wire.Display) (State, error) {
	state := State{"alt": "", "note": "", "width": 0, "height": 0, "code": d.Code}
	for _, p := range d.Parts {
		switch p.MIME {
		case "image/png":
			state["png"] = p.Data
		case "text/plain":
			state["alt"] = string(p.Data)
		}
	}
	if state["png"] == nil {
		return nil, errors.New("the display holds no PNG")
	}
	var sizes map[string]struct{ Width, Height int }
	if json.Unmarshal(d.Metadata, &sizes) == nil {
		state["width"], state["height"] = sizes["image/png"].Width, sizes["image/png"].Height
	}
	return state, nil
}

// explorer is a picture, the controls beside it, and the run that a change of one starts. At most one run is under way;
// what changes meanwhile is run afterwards, and of many changes the last.
type explorer struct {
	m       *Manager
	id      int    // of the exploration
	cell    string // that opened it
	opened  string // header of the message that ran the cell
	models  []*Model
	picture *Model
	still   string // HTML
	sliders []*Model

	mu       sync.Mutex
	settings map[string]float64
	parent   json.RawMessage // header of the newest change
	changed  bool            // since the run under way began
	running  bool
	over     bool
}

// Explore opens the widgets of a display that carries an exploration, and returns the ID of the model to show, and HTML to show
// before it: the picture as it is, which hides while a page shows the model. The exploration is released when a page closes the
// widgets, when the cell that opened it runs again, when there are too many, and when this fails. cell is the page's ID of the
// cell; empty: unknown.
func (m *Manager) Explore(parent json.RawMessage, cell string, d wire.Display) (id, html string, err error) {
	if d.Exploration == nil {
		return "", "", errors.New("the display carries no exploration")
	}
	e := &explorer{m: m, id: d.Exploration.ID, cell: cell, opened: string(parent), settings: map[string]float64{}}
	root, err := e.open(parent, d)
	if err != nil {
		e.end()
		return "", "", err
	}
	m.mu.Lock()
	var before []*explorer
	for _, x := range m.explored {
		if cell != "" && x.cell == cell && x.opened != e.opened {
			before = append(before, x)
		}
	}
	m.mu.Unlock()
	for _, x := range before { // their views are gone from the page
		x.end()
	}
	m.mu.Lock()
	var oldest *explorer
	m.explored = append(m.explored, e)
	if len(m.explored) > maxExplored {
		oldest, m.explored = m.explored[0], slices.Clone(m.explored[1:])
	}
	m.mu.Unlock()
	if oldest != nil {
		oldest.retire()
	}
	return root.ID(), e.still, nil
}

// Discard releases the exploration, or the map, of a display that is shown as it is.
func (m *Manager) Discard(d wire.Display) {
	if d.Map != nil {
		z := &zoomed{m: m, shown: d.Map}
		z.stop()
	}
	if d.Exploration != nil {
		e := &explorer{m: m, id: d.Exploration.ID}
		e.stop()
	}
}

// open makes the models: the picture, and beside it the controls.
func (e *explorer) open(parent json.RawMessage, d wire.Display) (*Model, error) {
	var failed error
	open := func(k Kind) *Model {
		if failed != nil {
			return &Model{}
		}
		x, err := e.m.Open(parent, k)
		if err != nil {
			failed = err
			return &Model{}
		}
		x.OnClose(e.end)
		e.models = append(e.models, x)
		return x
	}
	picture, err := Picture(d)
	if err != nil {
		return nil, err
	}
	// Beside the controls, as wide as it is where there is room for that, and above them where a page is narrow.
	wide := picture.State["width"].(int)
	least := min(wide, 480)
	if wide > 1000 { // two pictures side by side want the page's width
		least = wide * 3 / 4
	}
	picture.State["layout"] = open(Layout(State{"flex": fmt.Sprintf("1 1 %dpx", least), "max_width": fmt.Sprintf("%dpx", wide), "min_width": "0"})).Ref()
	e.picture = open(picture)
	e.still = still(picture.State["still"].(string), picture.State)

	width := open(Layout(State{"width": "30em", "max_width": "100%"}))
	sliderStyle := open(SliderStyle(State{"description_width": "8em"}))
	listStyle := open(DescriptionStyle(State{"description_width": "8em"}))
	for _, c := range d.Exploration.Controls {
		e.sliders = append(e.sliders, open(kindOf(c, width, sliderStyle, listStyle)))
	}
	column := open(VBox(e.sliders, State{"layout": open(Layout(State{"padding": "12px 0 0 12px", "flex": "0 1 auto"})).Ref()}))
	root := open(HBox([]*Model{e.picture, column}, State{"layout": open(Layout(State{"flex_flow": "row wrap", "align_items": "flex-start"})).Ref()}))
	if failed != nil {
		return nil, failed
	}
	for i, c := range d.Exploration.Controls {
		e.sliders[i].OnChange(func(changed State, parent json.RawMessage) { e.change(c, changed, parent) })
	}
	return root, nil
}

// kindOf is the control on the page.
func kindOf(c wire.Control, width, sliderStyle, listStyle *Model) Kind {
	label := c.Label
	if label == "" {
		label = c.Name
	}
	more := State{"description": label, "layout": width.Ref(), "style": sliderStyle.Ref()}
	switch {
	case c.Options != nil:
		more["style"] = listStyle.Ref()
		return Dropdown(c.Options, int(c.Value), more)
	case c.Step == 0:
		return FloatLogSlider(c.Value, c.From, c.To, more)
	case c.Typed:
		return IntText(int(c.Value), more)
	case c.Step == float64(int(c.Step)):
		return IntSlider(int(c.Value), int(c.From), int(c.To), int(c.Step), more)
	}
	return FloatSlider(c.Value, c.From, c.To, c.Step, more)
}

// change notes a setting of a page, and starts a run where none is under way.
func (e *explorer) change(c wire.Control, changed State, parent json.RawMessage) {
	name := "value"
	if c.Options != nil {
		name = "index"
	}
	value, ok := changed[name].(float64)
	if !ok {
		return // another entry, or no number
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over {
		return
	}
	e.settings[c.Name] = value
	e.parent = parent
	e.changed = true
	if !e.running {
		e.running = true
		go e.run()
	}
}

// run runs until nothing has changed.
func (e *explorer) run() {
	for {
		e.mu.Lock()
		if !e.changed || e.over {
			e.running = false
			e.mu.Unlock()
			return
		}
		e.changed = false
		parent := e.parent
		var settings []wire.Control
		for _, name := range slices.Sorted(maps.Keys(e.settings)) {
			settings = append(settings, wire.Control{Name: name, Value: e.settings[name]})
		}
		e.mu.Unlock()
		e.once(parent, settings)
	}
}

func (e *explorer) once(parent json.RawMessage, settings []wire.Control) {
	var mu sync.Mutex
	done, late := false, false
	waits := time.AfterFunc(patience, func() {
		mu.Lock()
		defer mu.Unlock()
		if late = !done; late {
			e.show(parent, State{"busy": true})
		}
	})
	state, err := e.compute(settings)
	waits.Stop()
	if err != nil {
		state = State{"note": err.Error()}
	}
	mu.Lock()
	defer mu.Unlock()
	done = true
	if late {
		state["busy"] = false
	}
	e.show(parent, state)
}

func (e *explorer) compute(settings []wire.Control) (state State, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("internal fault: %v", p)
		}
	}()
	d, err := e.m.device.Rerun(e.id, settings)
	if err != nil {
		return nil, err
	}
	return pictureState(d)
}

// show tells the pages; a picture that was closed meanwhile shows nothing.
func (e *explorer) show(parent json.RawMessage, state State) {
	if err := e.picture.Set(parent, state); err != nil && !errors.Is(err, ErrClosed) {
		e.m.log.Warn("a picture", "error", err)
	}
}

// halt starts no more runs. It reports whether this call was the first.
func (e *explorer) halt() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	was := e.over
	e.over = true
	return !was
}

// stop halts and releases the exploration.
func (e *explorer) stop() bool {
	if !e.halt() {
		return false
	}
	go func() { // it may wait for the run under way
		if err := e.m.device.Release(e.id); err != nil {
			e.m.log.Debug("release of an exploration", "error", err)
		}
	}()
	return true
}

// end closes all models: one of them was closed by a page.
func (e *explorer) end() {
	if e.stop() {
		e.drop(func(x *Model) { x.Close() })
	}
}

// retire leaves the picture on the page as it is, and says that it follows no more.
func (e *explorer) retire() {
	if !e.stop() {
		return
	}
	e.show(nil, State{"note": "No longer live, since many others came after it: run its cell again.", "busy": false})
	for _, x := range e.sliders {
		_ = x.Set(nil, State{"disabled": true}) // closed meanwhile: then there is nothing to tell
	}
	e.drop(func(x *Model) {
		e.m.mu.Lock()
		defer e.m.mu.Unlock()
		e.m.remove(x)
	})
}

func (e *explorer) drop(close func(*Model)) {
	e.m.mu.Lock()
	e.m.explored = slices.DeleteFunc(e.m.explored, func(x *explorer) bool { return x == e })
	e.m.mu.Unlock()
	for _, x := range e.models {
		close(x)
	}
}
