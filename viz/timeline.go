package viz

import (
	"fmt"
	"image"
	"slices"
)

// Timeline is a cache over time: which slot was written at which step, and what each has held since. A row of the picture is a slot,
// a column a step.
//
// A slot has the colour of the position of the row that it holds, and at the step that wrote it, where there is room, the number. A slot
// below the length that was never written is a hole: it holds what was there before. One that is written although it holds a row
// is marked as overwritten at that step.
type Timeline struct {
	Title string
	Steps []Write
	// Labels are what the steps are called. Nil: numbers from 0.
	Labels []string
}

// Write is what one step did to a cache: first, where Trim is set, the length was cut to Length; then slots were written.
type Write struct {
	Trim   bool
	Length int
	Slots  []int
	// Positions are those to which the rows were rotated, one for each slot. Nil in every step: not known, and colours tell the
	// steps.
	Positions []int
}

// maxTimeline bounds slots * steps.
const maxTimeline = 1 << 24

// PNG renders the timeline. The error is an *[InputError].
func (t Timeline) PNG() ([]byte, error) {
	p, err := t.Picture()
	return p.PNG, err
}

// Picture is [Timeline.PNG] and [Timeline.Alt] in one, with the size at which to show it.
func (t Timeline) Picture() (Picture, error) {
	h, err := t.heatmap()
	if err != nil {
		return Picture{}, err
	}
	return h.Picture()
}

// Alt describes the timeline in plain text.
func (t Timeline) Alt() string {
	h, err := t.heatmap()
	if err != nil {
		return err.Error()
	}
	return h.Alt()
}

func (t Timeline) draw() (drawn, error) {
	h, err := t.heatmap()
	if err != nil {
		return drawn{}, err
	}
	return h.draw()
}

// slotCount refuses what is no timeline, and counts its slots.
func (t Timeline) slotCount() (int, error) {
	bad := func(format string, args ...any) (int, error) {
		return 0, &InputError{Title: t.Title, Matrix: -1, Reason: fmt.Sprintf(format, args...), what: "timeline"}
	}
	if len(t.Steps) == 0 {
		return bad("no step to draw")
	}
	if t.Labels != nil && len(t.Labels) != len(t.Steps) {
		return bad("%d labels for %d steps", len(t.Labels), len(t.Steps))
	}
	most := 0
	known := t.Steps[0].Positions != nil || len(t.Steps[0].Slots) == 0
	for i, w := range t.Steps {
		switch {
		case w.Trim && w.Length < 0:
			return bad("step %d trims to %d", i, w.Length)
		case w.Positions != nil && len(w.Positions) != len(w.Slots):
			return bad("step %d has %d positions for %d slots", i, len(w.Positions), len(w.Slots))
		case len(w.Slots) > 0 && (w.Positions != nil) != known && i > 0:
			if slices.ContainsFunc(t.Steps[:i], func(w Write) bool { return len(w.Slots) > 0 }) {
				return bad("step %d: positions are known in some steps and not in others", i)
			}
			known = w.Positions != nil
		}
		for _, slot := range w.Slots {
			if slot < 0 || slot >= maxTimeline {
				return bad("step %d writes slot %d, must be 0 to %d", i, slot, maxTimeline-1)
			}
			most = max(most, slot+1)
		}
	}
	if most == 0 {
		return bad("no step writes a slot")
	}
	if most > maxTimeline/len(t.Steps) {
		return bad("%d slots in %d steps are too many", most, len(t.Steps))
	}
	return most, nil
}

// heatmap plays the steps.
func (t Timeline) heatmap() (Heatmap, error) {
	n, err := t.slotCount()
	if err != nil {
		return Heatmap{}, err
	}
	cols := len(t.Steps)
	m := Matrix{Rows: n, Cols: cols, Values: make([]float32, n*cols), state: make([]class, n*cols)}
	h := Heatmap{Title: t.Title, Kind: slots, RowAxis: "slot", ColAxis: "step", ColLabels: t.Labels}
	holds := make([]class, n) // absent, hole or finite
	value := make([]float32, n)
	fresh := map[[2]int]bool{}
	length, again := 0, 0
	named := false
	for step, w := range t.Steps {
		if w.Trim && w.Length < length {
			for slot := w.Length; slot < length; slot++ {
				holds[slot] = absent
			}
			length = w.Length
		}
		now := map[int]bool{}
		for i, slot := range w.Slots {
			for ; length <= slot; length++ {
				holds[length] = hole
			}
			if holds[slot] == finite {
				now[slot] = true
				again++
			}
			holds[slot], value[slot] = finite, float32(step)
			if w.Positions != nil {
				named, value[slot] = true, float32(w.Positions[i])
			}
			fresh[[2]int{slot, step}] = true
		}
		for slot := range n {
			k := slot*cols + step
			m.Values[k], m.state[k] = value[slot], holds[slot]
			if now[slot] {
				m.state[k] = rewritten
			}
		}
	}
	h.Matrices = []Matrix{m}
	if !named {
		h.Quantity = "step written"
	}
	if _, cell, pool := h.grid(); pool == image.Pt(1, 1) && roomForNumbers(cell) {
		h.said = append(h.said, "a number stands where a slot is written")
	}
	holes := 0
	for _, c := range holds {
		if c == hole {
			holes++
		}
	}
	h.said = append(h.said, fmt.Sprintf("%s and %s at the end", counted(length, "slot"), counted(holes, "hole")), fmt.Sprintf("%s overwritten", counted(again, "row")))
	h.written = func(_, row, col int) string {
		if !fresh[[2]int{row, col}] {
			return ""
		}
		return fmt.Sprintf("%.0f", m.Values[row*cols+col])
	}
	return h, nil
}
