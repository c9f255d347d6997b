package detect

import (
	"fmt"
	"math"
)

// look decides for every cell whether it was seen, hidden, or too small to tell.
func (m *masker) look() {
	// What a format keeps as a normal number, with a margin for the error of the exponential, is hidden when it is 0.
	small := math.Log(m.precision.least()) + 1
	m.shown = make([][][]cell, m.heads)
	for h := range m.shown {
		m.shown[h] = make([][]cell, m.rows)
		for row := range m.rows {
			m.shown[h][row] = make([]cell, m.keys)
			if !m.watch.at(h*m.rows+row, m.heads*m.rows) {
				continue
			}
			p := m.p[h].RawRowView(row)
			// A weight is exp(score - rest): the largest weight, which is the least wrong, tells the rest.
			at, most := 0, 0.0
			for col, v := range p {
				if v > most {
					at, most = col, v
				}
			}
			rest := m.score(h, row, at) - math.Log(most)
			for col, v := range p {
				switch logit := m.score(h, row, col) - rest; {
				case v != 0:
					m.shown[h][row][col] = seen
				case most > 0 && logit > small:
					m.shown[h][row][col] = unseen
				}
			}
		}
	}
}

// band is which col-row are visible. mixed says that one col-row is visible in one place and hidden in another, or that
// what is visible has a hole, so that there is no band.
type band struct {
	low, high [2]float64 // bounds of its two ends
	mixed     bool
}

// bandOf reads the band from the rows that use says.
func (m *masker) bandOf(use func(h, row int) bool, skip []bool) band {
	lastSeen, firstSeen := math.Inf(-1), math.Inf(1)
	hidden := map[int]bool{}
	visible := map[int]bool{}
	for h := range m.heads {
		for row := range m.rows {
			if m.watch.stopped() || !use(h, row) {
				continue
			}
			for col, c := range m.shown[h][row] {
				if skip != nil && skip[col] {
					continue
				}
				switch at := col - row; c {
				case seen:
					visible[at] = true
					lastSeen, firstSeen = max(lastSeen, float64(at)), min(firstSeen, float64(at))
				case unseen:
					hidden[at] = true
				}
			}
		}
	}
	b := band{low: [2]float64{math.Inf(-1), firstSeen}, high: [2]float64{lastSeen, math.Inf(1)}}
	for at := range hidden {
		x := float64(at)
		switch {
		case visible[at] || x > firstSeen && x < lastSeen:
			b.mixed = true
		case x > lastSeen:
			b.high[1] = min(b.high[1], x-1)
		case x < firstSeen:
			b.low[0] = max(b.low[0], x+1)
		}
	}
	return b
}

// fitBand finds which columns rows see. Rows that may be empty take no part at first where they would contradict the others.
func (m *masker) fitBand(f *MaskFinding) {
	m.look()
	m.lookThrough()
	plain := func(h, row int) bool {
		c := m.class[h][row]
		return c != nanRow && c != zeroRow && c != uniformRow
	}
	certain := func(h, row int) bool { return plain(h, row) && m.class[h][row] != firstRow }
	masked := func(h, row int) bool { return certain(h, row) && m.class[h][row] != fullRow }
	declared := func(h, row int) bool {
		c := m.class[h][row]
		return !m.empty[h][row] && c != nanRow && c != zeroRow
	}
	for _, use := range []func(h, row int) bool{declared, plain, certain, masked} {
		if b := m.bandOf(use, nil); !b.mixed && m.emptyElsewhere(b, use) {
			f.Low, f.High = b.low, b.high
			return
		}
	}
	f.Low, f.High = [2]float64{math.Inf(-1), math.Inf(1)}, [2]float64{math.Inf(-1), math.Inf(1)}
	never := m.neverSeen(plain)
	if b := m.bandOf(plain, never); !b.mixed {
		f.Low, f.High = b.low, b.high
		for col, hidden := range never {
			if hidden && m.couldSee(b, col) {
				f.hidden = append(f.hidden, col)
			}
		}
		return
	}
	if m.fitDocuments(f, plain) {
		return
	}
	if m.declared.Allowed != nil {
		f.unknown = true
		f.Faults = append(f.Faults, Fault{WrongAllowed, "what is hidden, beside what may be, is no diagonal band, no padded keys and no documents", "hide the cells that are not allowed, and no others"})
		return
	}
	for h := range m.heads {
		if m.bandOf(func(head, row int) bool { return head == h && plain(head, row) }, nil).mixed {
			f.Faults = append(f.Faults, Fault{UnknownMask, "what is hidden is no diagonal band, no padded keys and no documents", "look at the picture of the mask"})
			return
		}
	}
	f.Faults = append(f.Faults, Fault{HeadsDiffer, "each head's mask is a band, but not the same one", "give every head the same mask, or declare them one by one"})
}

// neverSeen says which columns no row sees, though a score says that one should: padding.
func (m *masker) neverSeen(use func(h, row int) bool) []bool {
	never := make([]bool, m.keys)
	for col := range never {
		hidden, shown := false, false
		for h := range m.heads {
			for row := range m.rows {
				if use(h, row) {
					hidden = hidden || m.shown[h][row][col] == unseen
					shown = shown || m.shown[h][row][col] == seen
				}
			}
		}
		never[col] = hidden && !shown
	}
	return never
}

// emptyElsewhere says whether the rows that a band was not read from see nothing by it, and others were read, unless all are empty by
// declaration. Rows of 0 or NaN may be lost ones.
func (m *masker) emptyElsewhere(b band, use func(h, row int) bool) bool {
	used, empty := false, true
	low, high := m.assumed(b.low, b.high)
	for h := range m.heads {
		for row := range m.rows {
			empty = empty && m.empty[h][row]
			if use(h, row) {
				used = true
			} else if c := m.class[h][row]; c != zeroRow && c != nanRow {
				first, last := max(0, low+float64(row)), min(float64(m.keys-1), high+float64(row))
				for col := int(first); col <= int(last); col++ {
					if !veiled(m.veils, h, row, col) {
						return false
					}
				}
			}
		}
	}
	return used || empty
}

// couldSee says whether the band lets some row see the column.
func (m *masker) couldSee(b band, col int) bool {
	low, high := m.assumed(b.low, b.high)
	for row := range m.rows {
		if at := float64(col - row); at >= low && at <= high {
			return true
		}
	}
	return false
}

// judgeBand compares the band with the declared one.
func (m *masker) judgeBand(f *MaskFinding) {
	if f.noBand() {
		return
	}
	if f.documents != nil {
		return
	}
	low, high := m.declared.band()
	// No row shows a col-row outside of these: beyond them all masks are one.
	least, most := float64(-(m.rows - 1)), float64(m.keys-1)
	foundHigh, foundLow := f.High, f.Low
	within := func(x float64, b [2]float64) bool { return x >= b[0] && x <= b[1] }
	highFits := within(high, foundHigh) || high >= most && math.IsInf(foundHigh[1], 1)
	lowFits := within(low, foundLow) || low <= least && math.IsInf(foundLow[0], -1)
	if m.declared.Window > 0 && !m.declared.Causal {
		if !highFits || !lowFits {
			f.Faults = append(f.Faults, Fault{WrongWindow, fmt.Sprintf("rows see col-row %s, declared %v to %v", span(foundLow, foundHigh), low, high) + m.elsewhere(), "compare |col - row - diagonal| < window"})
		}
		return
	}
	offset := m.keys - m.rows
	if !highFits {
		switch open := math.IsInf(foundHigh[1], 1); {
		case open && m.declared.Causal && foundHigh[0] >= most:
			f.Faults = append(f.Faults, Fault{NoCausalMask, "rows see the future", "hide the columns behind row + diagonal"})
		case !m.declared.Causal:
			f.Faults = append(f.Faults, Fault{UnexpectedMask, "rows see up to col-row " + edge(foundHigh), "declare the mask, or take it out"})
		case within(0, foundHigh) && m.declared.Diagonal == offset && offset != 0:
			f.Faults = append(f.Faults, Fault{WrongAlignment, fmt.Sprintf("top-left: row r sees keys up to r, not r%+d", offset), "align the last query with the last key: diagonal T-S"})
		case within(float64(offset), foundHigh) && m.declared.Diagonal == 0:
			f.Faults = append(f.Faults, Fault{WrongAlignment, fmt.Sprintf("bottom-right: row r sees keys up to r%+d, not r", offset), "align the first query with the first key: diagonal 0"})
		default:
			detail := fmt.Sprintf("rows see up to col-row %v, declared %v", foundHigh[0], high)
			if within(high-1, foundHigh) || within(high+1, foundHigh) {
				detail += " (off by one)"
			}
			f.Faults = append(f.Faults, Fault{WrongDiagonal, detail, "compare with col <= row + diagonal"})
		}
	}
	switch {
	case lowFits:
	case !highFits && m.declared.Window > 0 && within(foundHigh[0]-float64(m.declared.Window)+1, foundLow):
		// The window moved with the diagonal.
	case math.IsInf(foundLow[0], -1):
		f.Faults = append(f.Faults, Fault{WrongWindow, fmt.Sprintf("none, declared %d", m.declared.Window), "hide the columns before the window"})
	default:
		width := foundHigh[0] - foundLow[1] + 1
		detail := fmt.Sprintf("%v keys, declared %d", width, m.declared.Window)
		if m.declared.Window == 0 {
			detail = fmt.Sprintf("%v keys, none declared", width)
		} else if within(low-1, foundLow) || within(low+1, foundLow) {
			detail += " (off by one: a window counts the query itself)"
		}
		detail += m.elsewhere()
		f.Faults = append(f.Faults, Fault{WrongWindow, detail, "compare with col > row + diagonal - window"})
	}
	if highFits && m.declared.Causal && foundHigh[0] != foundHigh[1] {
		f.Undecided = append(f.Undecided, "where the mask ends: col-row "+edge(foundHigh))
	}
}
