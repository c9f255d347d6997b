package detect

import (
	"fmt"
	"math"
	"slices"
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
			p := m.p[h].RawRowView(row)
			// A weight is exp(score - rest): the largest weight, which is the least wrong, tells the rest.
			at, most := 0, 0.0
			for col, v := range p {
				if v > most {
					at, most = col, v
				}
			}
			rest := m.curve(m.dots[h][row][at]) - math.Log(most)
			for col, v := range p {
				switch logit := m.curve(m.dots[h][row][col]) - rest; {
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
			if !use(h, row) {
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
	plain := func(h, row int) bool {
		c := m.class[h][row]
		return c != nanRow && c != zeroRow && c != uniformRow
	}
	certain := func(h, row int) bool { return plain(h, row) && m.class[h][row] != firstRow }
	masked := func(h, row int) bool { return certain(h, row) && m.class[h][row] != fullRow }
	declared := func(h, row int) bool {
		c := m.class[h][row]
		return !m.emptyDeclared(row) && c != nanRow && c != zeroRow
	}
	for _, use := range []func(h, row int) bool{declared, plain, certain, masked} {
		if b := m.bandOf(use, nil); !b.mixed && m.emptyElsewhere(b, use) {
			f.Low, f.High = b.low, b.high
			return
		}
	}
	f.Low, f.High = [2]float64{math.Inf(-1), math.Inf(1)}, [2]float64{math.Inf(-1), math.Inf(1)}
	// Keys that nobody sees: padding.
	never := make([]bool, m.keys)
	for col := range m.keys {
		never[col] = true
		for h := range m.heads {
			for row := range m.rows {
				never[col] = never[col] && (m.shown[h][row][col] != seen || !plain(h, row))
			}
		}
	}
	if b := m.bandOf(plain, never); !b.mixed {
		f.Low, f.High = b.low, b.high
		for col, hidden := range never {
			if hidden && m.couldSee(b, col) {
				f.HiddenKeys = append(f.HiddenKeys, col)
			}
		}
		return
	}
	if m.documents(f, plain) {
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

// emptyDeclared says whether the row sees nothing by what was declared.
func (m *masker) emptyDeclared(row int) bool {
	last := row + m.declared.Diagonal
	return m.declared.Causal && (last < 0 || m.declared.Window > 0 && last-m.declared.Window+1 >= m.keys)
}

// emptyElsewhere says whether the rows that a band was not read from see nothing by it, and others were read. Rows of 0 or NaN may
// be lost ones.
func (m *masker) emptyElsewhere(b band, use func(h, row int) bool) bool {
	used := false
	for h := range m.heads {
		for row := range m.rows {
			if use(h, row) {
				used = true
			} else if c := m.class[h][row]; c != zeroRow && c != nanRow {
				first, last := max(0, b.low[1]+float64(row)), min(float64(m.keys-1), b.high[0]+float64(row))
				if math.IsInf(b.low[0], -1) {
					first = 0
				}
				if first <= last {
					return false
				}
			}
		}
	}
	return used
}

// couldSee says whether the band lets some row see the column.
func (m *masker) couldSee(b band, col int) bool {
	for row := range m.rows {
		if at := float64(col - row); at >= b.low[1] && at <= b.high[0] {
			return true
		}
	}
	return false
}

// documents asks whether each row sees from the first column of its document to its own.
func (m *masker) documents(f *MaskFinding, use func(h, row int) bool) bool {
	first, last := make([]int, m.rows), math.Inf(-1)
	var starts []int
	for row := range m.rows {
		first[row] = -1
		for h := range m.heads {
			if !use(h, row) {
				continue
			}
			if at := slices.Index(m.shown[h][row], seen); at >= 0 && (first[row] < 0 || at < first[row]) {
				first[row] = at
			}
			for col, c := range m.shown[h][row] {
				if c == seen {
					last = max(last, float64(col-row))
				}
			}
		}
		if first[row] >= 0 && !slices.Contains(starts, first[row]) {
			starts = append(starts, first[row])
		}
	}
	if !slices.IsSorted(starts) || len(starts) < 2 {
		return false
	}
	for h := range m.heads {
		for row := range m.rows {
			if !use(h, row) || first[row] < 0 {
				continue
			}
			for col, c := range m.shown[h][row] {
				inside := col >= first[row] && float64(col-row) <= last
				if c == seen && !inside || c == unseen && inside {
					return false
				}
			}
		}
	}
	f.Documents = starts
	f.High = [2]float64{last, last}
	return true
}

// judgeBand compares the band with the declared one.
func (m *masker) judgeBand(f *MaskFinding) {
	if f.Faults.Has(UnknownMask) || f.Faults.Has(HeadsDiffer) {
		return
	}
	if f.HiddenKeys != nil {
		f.Faults = append(f.Faults, Fault{PaddedKeys, fmt.Sprintf("no row sees keys %v", f.HiddenKeys), "declare the padding, or take it out"})
	}
	if f.Documents != nil {
		f.Faults = append(f.Faults, Fault{PackedDocuments, fmt.Sprintf("rows see from keys %v on: documents packed into one sequence", f.Documents), "declare the documents, or take their mask out"})
		return
	}
	high, low := math.Inf(1), math.Inf(-1)
	if m.declared.Causal {
		high = float64(m.declared.Diagonal)
		if m.declared.Window > 0 {
			low = high - float64(m.declared.Window) + 1
		}
	}
	// No row shows a col-row outside of these: beyond them all masks are one.
	least, most := float64(-(m.rows - 1)), float64(m.keys-1)
	foundHigh, foundLow := f.High, f.Low
	within := func(x float64, b [2]float64) bool { return x >= b[0] && x <= b[1] }
	highFits := within(high, foundHigh) || high >= most && math.IsInf(foundHigh[1], 1)
	lowFits := within(low, foundLow) || low <= least && math.IsInf(foundLow[0], -1)
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
		f.Faults = append(f.Faults, Fault{WrongWindow, detail, "compare with col > row + diagonal - window"})
	}
	if highFits && m.declared.Causal && foundHigh[0] != foundHigh[1] {
		f.Undecided = append(f.Undecided, "where the mask ends: col-row "+edge(foundHigh))
	}
}

// judgeEmpty looks at what rows hold that see nothing by the mask found, and at rows that hold nothing though they see something.
func (m *masker) judgeEmpty(f *MaskFinding) {
	if f.Faults.Has(UnknownMask) || f.Faults.Has(HeadsDiffer) {
		return
	}
	high, low := f.High[0], f.Low[1]
	if m.declared.Causal { // what was declared stands where the data allows it
		if d := float64(m.declared.Diagonal); d >= f.High[0] && d <= f.High[1] {
			high = d
		}
		if d := float64(m.declared.Diagonal - m.declared.Window + 1); m.declared.Window > 0 && d >= f.Low[0] && d <= f.Low[1] {
			low = d
		}
	} else if math.IsInf(f.High[1], 1) {
		high, low = math.Inf(1), min(low, float64(1-m.rows))
	}
	conventions := map[Empty]int{}
	lost, where := 0, ""
	for h := range m.heads {
		for row := range m.rows {
			first, last := max(0, low+float64(row)), min(float64(m.keys-1), high+float64(row))
			if math.IsInf(f.Low[0], -1) {
				first = 0
			}
			class := m.class[h][row]
			if first <= last && !m.allHidden(f, int(first), int(last)) {
				if class == zeroRow && m.sunk(f, h, row, int(first), int(last)) {
					continue
				}
				if class == zeroRow || class == nanRow || class == uniformRow {
					lost++
					where = fmt.Sprintf("row %d of head %d", row, h)
				}
				continue
			}
			f.EmptyRows++
			if m.flat[h][row] && m.declared.Empty == EmptyUniform {
				class = uniformRow // scores too near one another to tell it from unmasked
			}
			switch class {
			case zeroRow:
				conventions[EmptyZero]++
			case nanRow:
				conventions[EmptyNaN]++
			case uniformRow:
				conventions[EmptyUniform]++
			case firstRow:
				conventions[EmptyFirstKey]++
			default:
				conventions[EmptyUnmasked]++
			}
		}
	}
	if lost > 0 {
		f.Faults = append(f.Faults, Fault{LostRow, fmt.Sprintf("%d rows that see keys hold 0 or NaN or weigh all keys alike, such as %s", lost, where), "look for NaN in q and k, for rows that were skipped, and for large numbers in place of -Inf"})
	}
	for e := EmptyZero; e <= EmptyUnmasked; e++ {
		if conventions[e] == 0 {
			continue
		}
		f.Empty = e
		if e != m.declared.Empty {
			f.Faults = append(f.Faults, Fault{WrongEmptyRow, fmt.Sprintf("%d rows that see nothing hold %v, declared %v", conventions[e], e, m.declared.Empty), "write what is declared where a row sees no key"})
		}
	}
}

// sunk says whether a sink can take so much that the weights of these keys underflow.
func (m *masker) sunk(f *MaskFinding, h, row, first, last int) bool {
	sink := math.Inf(-1)
	if m.declared.Sinks != nil {
		sink = m.declared.Sinks[h]
	}
	if f.Sinks != nil {
		sink = max(sink, f.Sinks[h])
	}
	most := math.Inf(-1)
	for col := first; col <= last; col++ {
		most = max(most, m.curve(m.dots[h][row][col]))
	}
	return most-sink < math.Log(m.precision.least())+1
}

// allHidden says whether all of these keys are padding.
func (m *masker) allHidden(f *MaskFinding, first, last int) bool {
	for col := first; col <= last; col++ {
		if !slices.Contains(f.HiddenKeys, col) {
			return false
		}
	}
	return true
}
