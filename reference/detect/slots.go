package detect

import "fmt"

// Write is one change of a cache as a program did it: Rows rows written at slot At, the first of them rotated to Position (-1:
// not known). Or, where Trim is set, the length cut back to At.
type Write struct {
	At, Rows, Position int
	Trim               bool
}

// SlotsFinding is what Slots found.
type SlotsFinding struct {
	Faults      Faults
	Length      int   // one behind the last slot written, or what it was trimmed to
	Holes       []int // slots below the length that were not written since the last trim
	Overwritten []int // slots written again without a trim between
}

func (f SlotsFinding) String() string {
	if len(f.Faults) == 0 {
		return fmt.Sprintf("%d slots, each written once, at its position", f.Length)
	}
	return f.Faults.String()
}

// maxSlots bounds the slots that Slots follows.
const maxSlots = 1 << 24

// Slots follows the writes to a cache: which slots were never written, which twice, and where a position is not the slot's. A
// prompt of 9 rows whose next row is written at slot 10 leaves a hole at 9, with the data of an earlier sequence, and is
// rotated one too far; no comparison of values sees the first.
func Slots(writes []Write) (SlotsFinding, error) {
	const op = "Slots"
	if len(writes) == 0 {
		return SlotsFinding{}, tooLittle(op, "needs at least one write")
	}
	var f SlotsFinding
	var written []uint8 // how often, up to twice
	shifted := ""
	for i, w := range writes {
		switch {
		case w.At < 0 || w.Rows < 0 || w.At > maxSlots || w.Rows > maxSlots-w.At:
			return SlotsFinding{}, badArgument(op, "write %d of %d rows at slot %d", i, w.Rows, w.At)
		case w.Trim && w.At > len(written):
			return SlotsFinding{}, badArgument(op, "write %d trims %d slots to %d", i, len(written), w.At)
		case w.Trim:
			written = written[:w.At]
			continue
		case w.Rows == 0:
			return SlotsFinding{}, badArgument(op, "write %d has no rows", i)
		}
		if end := w.At + w.Rows; end > len(written) {
			written = append(written, make([]uint8, end-len(written))...)
		}
		for slot := w.At; slot < w.At+w.Rows; slot++ {
			written[slot] = min(written[slot]+1, 2)
		}
		if w.Position >= 0 && w.Position != w.At && shifted == "" {
			shifted = fmt.Sprintf("write %d puts its first row at slot %d and rotates it to position %d", i, w.At, w.Position)
		}
	}
	f.Length = len(written)
	for slot, times := range written {
		switch times {
		case 0:
			f.Holes = append(f.Holes, slot)
		case 2:
			f.Overwritten = append(f.Overwritten, slot)
		}
	}
	if f.Holes != nil {
		f.Faults = append(f.Faults, Fault{Hole, fmt.Sprintf("slots %s were never written: they hold what was there before", few(f.Holes)), "the length to write at is the number of rows so far"})
	}
	if f.Overwritten != nil {
		f.Faults = append(f.Faults, Fault{Overwritten, fmt.Sprintf("slots %s were written twice without a trim", few(f.Overwritten)), "advance the length after each append, by its rows"})
	}
	if shifted != "" {
		f.Faults = append(f.Faults, Fault{WrongTurn, shifted, "rotate a row to the slot that it goes to"})
	}
	return f, nil
}

// few writes the first of many slots.
func few(slots []int) string {
	if len(slots) > 8 {
		return fmt.Sprintf("%v and %d more", slots[:8], len(slots)-8)
	}
	return fmt.Sprint(slots)
}
