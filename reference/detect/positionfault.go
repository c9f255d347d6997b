package detect

import (
	"fmt"
	"slices"
)

// positionFaults are the ways to name how positions depart from the declared ones: one list of faults for each name that fits. declared
// frequencies say that nothing else explains the angles, so that names such as "not rotated" may be used.
func (d detective) positionFaults(found []int, plain bool) []Faults {
	want := d.declaredPositions()
	if slices.Equal(found, want) {
		return []Faults{nil}
	}
	var out []Faults
	add := func(k Kind, detail, fix string) { out = append(out, Faults{{k, detail, fix}}) }
	zeros := !slices.ContainsFunc(found, func(p int) bool { return p != 0 })
	if zeros && plain {
		add(NotRotated, "after is before", "rotate it, or, if it was, its rows were all at position 0")
	}
	shift := found[0] - want[0]
	shifted, doubled, restarted, reversed := true, true, true, true
	for row := range found {
		shifted = shifted && found[row] == want[row]+shift
		doubled = doubled && found[row] == 2*want[row]
		restarted = restarted && found[row] == want[row]+row+found[0]-want[0]
		reversed = reversed && found[row] == -want[row]
	}
	if shifted {
		add(WrongOffset, fmt.Sprintf("the first row is at position %d, declared %d (%s)", found[0], want[0], d.shift(found[0], want[0])),
			"the offset is the number of rows before this block")
	}
	if doubled {
		add(RotatedTwice, "every row is at twice its position", "cache keys either before RoPE and rotate at use, or after it, never both")
	}
	if restarted && !doubled && d.rows > 1 {
		add(RotatedTwice, fmt.Sprintf("rows step by two positions, from %d: rotated again by another count", found[0]), "cache keys either before RoPE and rotate at use, or after it, never both")
	}
	if reversed {
		add(Backwards, "every row is at minus its position", "exchange the sign of the sine")
	}
	if same := slices.Max(found) == slices.Min(found); same && d.rows > 1 {
		add(SamePosition, fmt.Sprintf("all %d rows are at position %d", len(found), found[0]), "slice the table of cosines from the offset on, one row for each row")
	}
	if len(out) == 0 {
		add(WrongPositions, fmt.Sprintf("rows are at %v, declared %v%s", ramp(found), ramp(want), d.pattern(found)), "give each row its own position")
	}
	return out
}

// shift says what a wrong offset looks like.
func (d detective) shift(found, want int) string {
	switch {
	case found == want+1 || found == want-1:
		return "off by one"
	case found == 0:
		return "restarted: the rows before were not counted"
	case found == 2*want:
		return "counted twice"
	case found == d.heads:
		return "the number of heads, not of rows"
	case found == want+d.rows:
		return "the block's own rows were counted too"
	case found == want-d.rows:
		return "the block's own rows were left out"
	}
	return fmt.Sprintf("off by %+d", found-want)
}

// pattern says where positions of their own come from.
func (d detective) pattern(found []int) string {
	pads := 0
	for pads < len(found)-1 && found[pads+1] == found[0] {
		pads++
	}
	if pads > 0 && found[len(found)-1] > found[0] {
		return fmt.Sprintf(": the first %d look like left padding", pads)
	}
	for row := 1; row < len(found); row++ {
		if found[row] != found[row-1]+1 {
			return fmt.Sprintf(": they leave the count at row %d", row)
		}
	}
	if d.declared.Positions != nil {
		return ": they ignore the padding"
	}
	return ""
}
