package widgets

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/attnb/attnb/kernel/wire"
)

// Limits of what a page may ask of a zooming picture.
const (
	maxZoomed   = 64  // pictures that are live; the oldest is let go when there is one more
	maxAsked    = 16  // requests of one picture that wait
	maxTileSide = 512 // cells of a tile, each way
)

//go:embed zoom.js
var zoomModule string

// zoomed supplies one picture with tiles, one at a time, in the order in which pages ask.
type zoomed struct {
	m      *Manager
	shown  *wire.LiveMap
	cell   string // that opened it
	opened string // header of the message that ran the cell
	model  *Model

	mu      sync.Mutex
	asked   []asked
	running bool
	over    bool
}

// asked is a request of a page.
type asked struct {
	parent json.RawMessage
	tile   tileRequest
}

// tileRequest is the content of a page's message: the cells of a window of one head.
type tileRequest struct {
	Type string `json:"type"`
	Seq  int    `json:"seq"`
	Head int    `json:"head"`
	Rows []int  `json:"rows"` // from, up to but without
	Cols []int  `json:"cols"`
	H    int    `json:"h"`
	W    int    `json:"w"`
	Both bool   `json:"both"` // scores and probabilities too
}

// Zoom opens the model by which the pages supply the picture of a live map with finer cells. The map is released when a page closes
// the model, when the cell that opened it runs again, when there are too many, and when this fails. cell is the page's
// ID of the cell; empty: unknown.
func (m *Manager) Zoom(parent json.RawMessage, cell string, d wire.Display) error {
	if d.Map == nil {
		return errors.New("the display carries no map")
	}
	z := &zoomed{m: m, shown: d.Map, cell: cell, opened: string(parent)}
	m.mu.Lock()
	var before []*zoomed
	for _, x := range m.zoomed {
		if cell != "" && x.cell == cell && x.opened != z.opened {
			before = append(before, x)
		}
	}
	m.mu.Unlock()
	for _, x := range before { // their pictures are gone from the page
		x.end("Its cell has run again.")
	}
	model, err := m.Open(parent, Any("attnb.Zoom", zoomModule, "", State{"map": strconv.FormatUint(uint64(d.Map.ID), 16)}).withoutView())
	if err != nil {
		z.stop()
		return err
	}
	z.model = model
	model.OnClose(func() { z.end("") })
	model.OnCustom(func(content json.RawMessage, _ [][]byte, parent json.RawMessage) { z.ask(content, parent) })
	m.mu.Lock()
	m.zoomed = append(m.zoomed, z)
	var oldest *zoomed
	if len(m.zoomed) > maxZoomed {
		oldest = m.zoomed[0]
	}
	m.mu.Unlock()
	if oldest != nil {
		oldest.end("Many other pictures came after this one. Finer detail: run the cell again.")
	}
	return nil
}

// withoutView is the model alone.
func (k Kind) withoutView() Kind {
	k.View = ""
	return k
}

// ask queues a request of a page. What makes no sense is left; where too many wait, the oldest is answered with that.
func (z *zoomed) ask(content, parent json.RawMessage) {
	var t tileRequest
	if err := json.Unmarshal(content, &t); err != nil || t.Type != "tile" {
		z.m.log.Warn("a message of a zooming picture", "error", err)
		return
	}
	z.mu.Lock()
	if z.over {
		z.mu.Unlock()
		return
	}
	z.asked = append(z.asked, asked{parent, t})
	var dropped *asked
	if len(z.asked) > maxAsked {
		dropped = &z.asked[0]
		z.asked = slices.Clone(z.asked[1:])
	}
	start := !z.running
	z.running = true
	z.mu.Unlock()
	if dropped != nil {
		z.refuse(*dropped, errors.New("the kernel has more to do than it can"))
	}
	if start {
		go z.run()
	}
}

// run answers until nothing waits.
func (z *zoomed) run() {
	for {
		z.mu.Lock()
		if len(z.asked) == 0 || z.over {
			z.running = false
			z.mu.Unlock()
			return
		}
		a := z.asked[0]
		z.asked = z.asked[1:]
		z.mu.Unlock()
		if err := z.answer(a); err != nil {
			z.refuse(a, err)
		}
	}
}

func (z *zoomed) answer(a asked) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("internal fault: %v", p)
		}
	}()
	t := a.tile
	if t.H < 1 || t.H > maxTileSide || t.W < 1 || t.W > maxTileSide || len(t.Rows) != 2 || len(t.Cols) != 2 {
		return fmt.Errorf("a tile of %d x %d cells, must be 1 to %d", t.H, t.W, maxTileSide)
	}
	m := wire.Map{Quantity: z.shown.Shown.Quantity, Reduce: z.shown.Shown.Reduce, Heads: []int{t.Head}, Queries: t.Rows, Keys: t.Cols, Rows: t.H, Cols: t.W}
	tile, err := z.m.device.Tile(z.shown.ID, m)
	if err != nil {
		return err
	}
	if tile.Rows != t.H || tile.Cols != t.W {
		return fmt.Errorf("there are %d x %d cells, not %d x %d", tile.Rows, tile.Cols, t.H, t.W)
	}
	content := map[string]any{"type": "tile", "seq": t.Seq, "hidden": append([]int{}, tile.Hidden...)}
	buffers := [][]byte{wire.FloatBytes(tile.Values)}
	if t.Both {
		scores, probabilities, ok := z.both(m, tile)
		content["both"] = ok
		if ok {
			buffers = append(buffers, scores, probabilities)
		}
	}
	if err := z.model.Custom(a.parent, content, buffers); err != nil && !errors.Is(err, ErrClosed) {
		return err
	}
	return nil
}

// both are the scores and the probabilities of a tile, where the map knows both.
func (z *zoomed) both(m wire.Map, tile wire.Tile) (scores, probabilities []byte, ok bool) {
	other := m
	switch z.shown.Quantity {
	case wire.QuantityProbabilities:
		other.Quantity = wire.QuantityScores
	case wire.QuantityScores:
		other.Quantity = wire.QuantityProbabilities
	default:
		return nil, nil, false
	}
	t, err := z.m.device.Tile(z.shown.ID, other)
	if err != nil { // a matrix holds one of them
		return nil, nil, false
	}
	scores, probabilities = wire.FloatBytes(t.Values), wire.FloatBytes(tile.Values)
	if z.shown.Quantity == wire.QuantityScores {
		scores, probabilities = probabilities, scores
	}
	return scores, probabilities, true
}

func (z *zoomed) refuse(a asked, reason error) {
	err := z.model.Custom(a.parent, map[string]any{"type": "tile", "seq": a.tile.Seq, "error": reason.Error()}, nil)
	if err != nil && !errors.Is(err, ErrClosed) {
		z.m.log.Warn("a zooming picture", "error", err)
	}
}

// stop answers no more, and releases the map. It reports whether this call was the first.
func (z *zoomed) stop() bool {
	z.mu.Lock()
	was := z.over
	z.over = true
	z.asked = nil
	z.mu.Unlock()
	if was {
		return false
	}
	go func() { // it may wait for a tile
		if err := z.m.device.Release(z.shown.ID); err != nil {
			z.m.log.Debug("release of a map", "error", err)
		}
	}()
	return true
}

// end tells the pages why there are no finer cells from now on, and closes the model.
func (z *zoomed) end(why string) {
	if !z.stop() {
		return
	}
	z.m.mu.Lock()
	z.m.zoomed = slices.DeleteFunc(z.m.zoomed, func(x *zoomed) bool { return x == z })
	z.m.mu.Unlock()
	if why != "" {
		_ = z.model.Custom(nil, map[string]any{"type": "end", "why": why}, nil) // closed meanwhile: then nobody listens
	}
	z.model.Close()
}
