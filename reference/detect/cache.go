package detect

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/attnb/attnb/reference"
)

// Faults of a cache.
const (
	Hole        Kind = "hole"                    // a slot below the length that was never written
	Overwritten Kind = "overwritten slot"        // a row is gone: another lies where it was
	Misplaced   Kind = "misplaced row"           // a row lies in another slot than its own
	Duplicate   Kind = "row written twice"       // a row lies in several slots
	WrongTurn   Kind = "row at another position" // a key is rotated to a position that is not its slot's
	NeverTurned Kind = "row never rotated"
	TwiceTurned Kind = "row rotated twice"
	WrongLength Kind = "length"
)

// Slot is what one slot of a cache holds.
type Slot struct {
	Row      int  // which of the rows given, -1: none of them
	Position int  // to which it is rotated; its own where no rotation was declared
	Known    bool // Position was told from the numbers: not where a row turns the same at several
	Finite   bool
}

// CacheFinding is what Cache found.
type CacheFinding struct {
	Faults Faults
	Slots  []Slot
}

func (f CacheFinding) String() string {
	if len(f.Faults) == 0 {
		return fmt.Sprintf("all %d slots hold their row", len(f.Slots))
	}
	return f.Faults.String()
}

// Cache looks at what the slots of a cache [KV, T, d] hold: rows [KV, n, d] are all rows that were to be cached, unrotated, in order,
// and slot t is to hold row t. rope says how a key is rotated before it is cached, row t to Position(t); nil for values, and for keys
// that are cached before RoPE. A row is known by the lengths of its pairs, which no rotation changes; its position by the angles.
func Cache(ctx context.Context, rows, cached reference.Heads, rope *reference.RoPE, p Precision) (CacheFinding, error) {
	const op = "Cache"
	rs, err := measure(op, "rows", rows)
	if err != nil {
		return CacheFinding{}, err
	}
	cs, err := measure(op, "the cache", cached)
	if err != nil {
		return CacheFinding{}, err
	}
	if rs.heads != cs.heads || rs.dim != cs.dim {
		return CacheFinding{}, badShape(op, "rows %v and the cache %v differ in heads or dim", rs, cs)
	}
	if rope != nil {
		if err := rope.Validate(rs.rows, rs.dim); err != nil {
			return CacheFinding{}, fmt.Errorf("detect: %s: %w", op, err)
		}
	}
	if largest(rows) == 0 {
		return CacheFinding{}, tooLittle(op, "rows are 0 everywhere; needs rows that differ")
	}
	c := cacher{rows, cached, rs, rope, p, newWatch(ctx)}
	f := CacheFinding{Slots: make([]Slot, cs.rows)}
	for slot := range f.Slots {
		c.watch.at(slot, len(f.Slots))
		f.Slots[slot] = c.slot(slot)
	}
	if err := c.watch.finish(op); err != nil {
		return CacheFinding{}, err
	}
	f.judge(c)
	return f, nil
}

// cacher is one question.
type cacher struct {
	rows, cached reference.Heads
	shape        // of rows
	rope         *reference.RoPE
	precision    Precision
	watch        *watch
}

// slot finds the row that a slot holds: its own if that fits, else the first that does.
func (c cacher) slot(slot int) Slot {
	out := Slot{Row: -1, Finite: true}
	for _, m := range c.cached {
		for _, v := range m.RawRowView(slot) {
			out.Finite = out.Finite && !math.IsNaN(v) && !math.IsInf(v, 0)
		}
	}
	if !out.Finite {
		return out
	}
	candidates := make([]int, 0, c.shape.rows)
	if slot < c.shape.rows {
		candidates = append(candidates, slot)
	}
	for row := range c.shape.rows {
		if row != slot {
			candidates = append(candidates, row)
		}
	}
	for _, row := range candidates {
		if c.watch.stopped() {
			break
		}
		if position, known, ok := c.holds(slot, row); ok {
			out.Row, out.Position, out.Known = row, position, known
			return out
		}
	}
	return out
}

// holds says whether a slot holds a row, and at which position.
func (c cacher) holds(slot, row int) (position int, known, ok bool) {
	if c.rope == nil {
		for h := range c.rows {
			size := 0.0
			for _, v := range c.rows[h].RawRowView(row) {
				size = max(size, math.Abs(v))
			}
			for i, v := range c.rows[h].RawRowView(row) {
				if !(math.Abs(c.cached[h].At(slot, i)-v) <= 2*c.precision.Unit()*size) {
					return 0, false, false
				}
			}
		}
		return slot, false, true
	}
	pairing := HalfSplit
	if c.rope.Interleaved && c.rope.Rotary > 2 {
		pairing = Interleaved
	}
	x, y := slice(c.rows, row, row+1), slice(c.cached, slot, slot+1)
	t, ok := turned(x, y, shape{c.heads, 1, c.dim}, pairing, c.rope.Rotary, c.precision)
	m := c.rope.Magnitude
	if m == 0 {
		m = 1
	}
	unrotated, _ := distance(x, y)
	if unrotated <= 2*c.precision.Unit()*largest(x) {
		return 0, true, true // whatever the magnitude
	}
	if !ok || math.Abs(t.magnitude-m) > 4*slack*c.precision.Unit()*m && math.Abs(t.magnitude-m*m) > 4*slack*c.precision.Unit()*m*m {
		return 0, false, false
	}
	frequency := make([]float64, c.rope.Rotary/2)
	for i := range frequency {
		frequency[i] = c.rope.Frequency(i)
	}
	s := newSolver(frequency, c.precision)
	s.slack = angleSlack // which a cache that was computed elsewhere may have
	own := c.position(row)
	hints := []int{own, 2 * own, own - 1, own + 1, c.position(0) + slot}
	for _, hint := range hints {
		if s.at(float64(hint), t.angle[0], t.known[0]) {
			return hint, slices.Contains(t.known[0], true), true
		}
	}
	s.slack = 0
	if found := s.positions(t.angle[0], t.known[0], own, 1); len(found) == 1 {
		return found[0], true, true
	}
	return 0, false, false
}

// position is that of a row, also of rows behind those given.
func (c cacher) position(row int) int {
	if c.rope.Positions == nil || row < len(c.rope.Positions) {
		return c.rope.Position(row)
	}
	return c.rope.Positions[len(c.rope.Positions)-1] + row - len(c.rope.Positions) + 1
}

// judge names what is wrong with the slots.
func (f *CacheFinding) judge(c cacher) {
	where := map[int][]int{} // slots of each row
	for slot, s := range f.Slots {
		if s.Row >= 0 {
			where[s.Row] = append(where[s.Row], slot)
		}
	}
	add := func(k Kind, fix, format string, args ...any) {
		f.Faults = append(f.Faults, Fault{k, fmt.Sprintf(format, args...), fix})
	}
	if len(f.Slots) != c.shape.rows {
		add(WrongLength, "count the rows that were appended, less those that were trimmed", "%d slots for %d rows", len(f.Slots), c.shape.rows)
	}
	var holes, overwritten, misplaced, wrong, never, twice []string
	for slot, s := range f.Slots {
		switch {
		case s.Row < 0 && !s.Finite:
			holes = append(holes, fmt.Sprintf("%d (not finite)", slot))
		case s.Row < 0:
			holes = append(holes, fmt.Sprint(slot))
		case s.Row != slot && slot < c.shape.rows && len(where[slot]) == 0:
			overwritten = append(overwritten, fmt.Sprintf("%d (holds row %d; row %d is gone)", slot, s.Row, slot))
		case s.Row != slot:
			misplaced = append(misplaced, fmt.Sprintf("%d (holds row %d)", slot, s.Row))
		}
		if s.Row < 0 || c.rope == nil {
			continue
		}
		switch own := c.position(s.Row); {
		case s.Position == own:
		case s.Position == 0:
			never = append(never, fmt.Sprint(slot))
		case s.Position == 2*own:
			twice = append(twice, fmt.Sprint(slot))
		default:
			wrong = append(wrong, fmt.Sprintf("%d (at position %d, its row's is %d)", slot, s.Position, own))
		}
	}
	list := func(k Kind, what []string, fix string) {
		if len(what) > 0 {
			if len(what) > 8 {
				what = append(what[:8:8], fmt.Sprintf("and %d more", len(what)-8))
			}
			add(k, fix, "slots %s", strings.Join(what, ", "))
		}
	}
	list(Hole, holes, "write each row at the length before it; stale data is not 0")
	list(Overwritten, overwritten, "advance the length after each append, by its rows")
	list(Misplaced, misplaced, "write each row at the length before it")
	list(NeverTurned, never, "rotate keys before they are cached, or all of them at use")
	list(TwiceTurned, twice, "rotate a key once: before it is cached or at use")
	list(WrongTurn, wrong, "the position of a key is its slot, from the cache's start on")
	for row := range c.shape.rows {
		if slots := where[row]; len(slots) > 1 {
			add(Duplicate, "write a row once", "row %d lies in slots %v", row, slots)
		}
	}
}
