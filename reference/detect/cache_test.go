package detect

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/attnb/attnb/reference"
)

// cachedBy is a cache of rows, as a program fills it.
func cachedBy(t *testing.T, r random) (rows, cached reference.Heads, rope reference.RoPE) {
	dim := 2 * r.between(2, 8)
	rows = r.heads(r.between(1, 3), r.between(5, 12), dim)
	rope = reference.RoPE{Rotary: 2 * r.between(2, dim/2), Base: pick(r, 1e4, 5e5), Interleaved: r.IntN(2) == 0, Offset: pick(r, 0, 0, 7, 4000)}
	return rows, rotated(t, rows, rope), rope
}

func TestCacheSilent(t *testing.T) {
	for trial := range right(20) {
		r := seeded(40, trial)
		rows, cached, rope := cachedBy(t, r)
		if f := must[CacheFinding](t)(Cache(t.Context(), rows, cached, &rope, Float32)); f.Faults != nil {
			t.Fatalf("trial %d: %+v: %v", trial, rope, f)
		}
		if f := must[CacheFinding](t)(Cache(t.Context(), rows, rows, nil, Float32)); f.Faults != nil {
			t.Fatalf("trial %d: values: %v", trial, f)
		}
	}
}

func TestCachePlanted(t *testing.T) {
	put := func(cached reference.Heads, slot int, from reference.Heads, row int) {
		for h := range cached {
			cached[h].SetRow(slot, from[h].RawRowView(row))
		}
	}
	for _, c := range []struct {
		kind  Kind
		plant func(t *testing.T, r random, rows, cached reference.Heads, rope reference.RoPE) (reference.Heads, int)
	}{
		{Hole, func(t *testing.T, r random, rows, cached reference.Heads, rope reference.RoPE) (reference.Heads, int) {
			slot := r.IntN(countOf(rows))
			stale := r.heads(len(rows), 1, dimOf(rows))
			if r.IntN(3) == 0 {
				stale = zeros(shape{len(rows), 1, dimOf(rows)})
			} else if r.IntN(3) == 0 {
				stale[0].Set(0, 0, math.NaN())
			}
			put(cached, slot, stale, 0)
			return cached, slot
		}},
		{Overwritten, func(t *testing.T, r random, rows, cached reference.Heads, rope reference.RoPE) (reference.Heads, int) {
			slot := r.IntN(countOf(rows) - 1)
			put(cached, slot, cached, slot+1)
			return cached, slot
		}},
		{Misplaced, func(t *testing.T, r random, rows, cached reference.Heads, rope reference.RoPE) (reference.Heads, int) {
			a, b := copied(cached), r.IntN(countOf(rows)-1)
			put(a, b, cached, b+1)
			put(a, b+1, cached, b)
			return a, b
		}},
		{NeverTurned, func(t *testing.T, r random, rows, cached reference.Heads, rope reference.RoPE) (reference.Heads, int) {
			slot := r.between(1, countOf(rows)-1)
			put(cached, slot, rows, slot)
			return cached, slot
		}},
		{TwiceTurned, func(t *testing.T, r random, rows, cached reference.Heads, rope reference.RoPE) (reference.Heads, int) {
			slot := r.between(1, countOf(rows)-1)
			put(cached, slot, rotated(t, cached, rope), slot)
			return cached, slot
		}},
		{WrongTurn, func(t *testing.T, r random, rows, cached reference.Heads, rope reference.RoPE) (reference.Heads, int) {
			slot := r.between(2, countOf(rows)-1)
			own := rope.Offset + slot
			rope.Offset += pick(r, 1, -1, 5, 100)
			if p := rope.Offset + slot; p == 2*own || p == 0 {
				rope.Offset++ // not one of the faults above
			}
			put(cached, slot, rotated(t, rows, rope), slot)
			return cached, slot
		}},
		{WrongLength, func(t *testing.T, r random, rows, cached reference.Heads, rope reference.RoPE) (reference.Heads, int) {
			return slice(cached, 0, countOf(cached)-1), 0
		}},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			var found rate
			for trial := range planted(20) {
				r := seeded(41, trial)
				rows, cached, rope := cachedBy(t, r)
				cached, slot := c.plant(t, r, rows, cached, rope)
				f := must[CacheFinding](t)(Cache(t.Context(), rows, cached, &rope, Float32))
				// The fault by its name, and nothing else but what follows from it.
				others := slices.ContainsFunc(f.Faults, func(o Fault) bool {
					return o.Kind != c.kind && o.Kind != Duplicate
				})
				found.count(f.Faults.Has(c.kind) && !others, "trial %d slot %d %+v: %v", trial, slot, rope, f)
			}
			found.atLeast(t, 0.95)
		})
	}
}

// A prompt of nine rows whose next row goes to slot 10: slot 9 keeps stale data, and every later key is rotated one too far.
func TestCacheHoleReport(t *testing.T) {
	f := must[SlotsFinding](t)(Slots([]Write{{At: 0, Rows: 9}, {At: 10, Rows: 1, Position: 10}, {At: 11, Rows: 1, Position: 11}, {At: 12, Rows: 1, Position: 12}}))
	if f.Faults.kinds() != string(Hole) || !slices.Equal(f.Holes, []int{9}) || f.Length != 13 {
		t.Error(f)
	}
	f = must[SlotsFinding](t)(Slots([]Write{{At: 0, Rows: 9}, {At: 9, Rows: 1, Position: 9}, {At: 10, Rows: 1, Position: 10}}))
	if f.Faults != nil || f.Length != 11 {
		t.Error(f)
	}
	// In the numbers: row 9 of the sequence lies in slot 10, at position 10.
	r := seeded(42, 0)
	rows := r.heads(2, 12, 8)
	rope := reference.RoPE{Rotary: 8, Base: 1e4}
	good := rotated(t, rows, rope)
	late := rope
	late.Offset = 1
	shifted := rotated(t, rows, late)
	cache := r.heads(2, 13, 8) // stale
	for h := range cache {
		for row := range 12 {
			if row < 9 {
				cache[h].SetRow(row, good[h].RawRowView(row))
			} else {
				cache[h].SetRow(row+1, shifted[h].RawRowView(row))
			}
		}
	}
	found := must[CacheFinding](t)(Cache(t.Context(), rows, cache, &rope, Float32))
	want := `length: 13 slots for 12 rows; count the rows that were appended, less those that were trimmed
hole: slots 9; write each row at the length before it; stale data is not 0
misplaced row: slots 10 (holds row 9), 11 (holds row 10), 12 (holds row 11); write each row at the length before it
row at another position: slots 10 (at position 10, its row's is 9), 11 (at position 11, its row's is 10), 12 (at position 12, its row's is 11); the position of a key is its slot, from the cache's start on`
	if found.String() != want {
		t.Errorf("%v\nwant %s", found, want)
	}
}

func TestSlotsTrimAndRewind(t *testing.T) {
	for _, c := range []struct {
		name   string
		writes []Write
		kinds  string
	}{
		{"rewind", []Write{{At: 0, Rows: 9}, {At: 6, Trim: true}, {At: 6, Rows: 2, Position: 6}}, ""},
		{"rewind without trim", []Write{{At: 0, Rows: 9}, {At: 6, Rows: 2, Position: 6}}, string(Overwritten)},
		{"offset kept after trim", []Write{{At: 0, Rows: 9}, {At: 6, Trim: true}, {At: 9, Rows: 1, Position: 9}}, string(Hole)},
		{"slot right, position counted again", []Write{{At: 0, Rows: 6}, {At: 6, Rows: 1, Position: 12}}, string(WrongTurn)},
		{"overwritten, then trimmed", []Write{{At: 0, Rows: 9}, {At: 8, Rows: 1, Position: -1}, {At: 4, Trim: true}}, ""},
	} {
		if f := must[SlotsFinding](t)(Slots(c.writes)); f.Faults.kinds() != c.kinds {
			t.Errorf("%s: %v", c.name, f)
		}
	}
	for _, bad := range [][]Write{nil, {{At: -1, Rows: 1}}, {{At: 0, Rows: 0}}, {{At: 0, Rows: math.MaxInt}}, {{At: 3, Trim: true}}} {
		if _, err := Slots(bad); err == nil {
			t.Errorf("%v: no error", bad)
		}
	}
}

func TestCacheRefusals(t *testing.T) {
	r := seeded(43, 0)
	x := r.heads(2, 3, 8)
	if _, err := Cache(t.Context(), x, r.heads(2, 3, 6), nil, Float32); !errors.Is(err, reference.ErrShape) {
		t.Error(err)
	}
	if _, err := Cache(t.Context(), zeros(shape{1, 2, 2}), zeros(shape{1, 2, 2}), nil, Float32); !errors.Is(err, ErrTooLittle) {
		t.Error(err)
	}
	if _, err := Cache(t.Context(), x, x, &reference.RoPE{Rotary: 3, Base: 1}, Float32); !errors.Is(err, reference.ErrArgument) {
		t.Error(err)
	}
}
