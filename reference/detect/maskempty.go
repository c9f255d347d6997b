package detect

import (
	"fmt"
	"math"
	"slices"
)

// judgeEmpty looks at what rows hold that see nothing by the mask found, and at rows that hold nothing though they see something.
func (m *masker) judgeEmpty(f *MaskFinding) {
	if f.noBand() {
		return
	}
	low, high := m.assumed(f.Low, f.High)
	conventions := map[Empty]int{}
	lost, where := 0, ""
	for h := range m.heads {
		for row := range m.rows {
			first, last := max(0, low+float64(row)), min(float64(m.keys-1), high+float64(row))
			class := m.class[h][row]
			if m.seesAny(f, h, row, int(first), int(last)) {
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

// assumed is the band that was declared, as far as the one that was found allows it, else the latter.
func (m *masker) assumed(foundLow, foundHigh [2]float64) (low, high float64) {
	low, high = foundLow[1], foundHigh[0]
	if math.IsInf(foundLow[0], -1) {
		low = foundLow[0]
	}
	declaredLow, declaredHigh := m.declared.band()
	if declaredLow >= foundLow[0] && declaredLow <= foundLow[1] {
		low = declaredLow
	}
	if declaredHigh >= foundHigh[0] && declaredHigh <= foundHigh[1] {
		high = declaredHigh
	}
	return low, high
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
		most = max(most, m.score(h, row, col))
	}
	return most-sink < math.Log(m.precision.least())+1
}

// seesAny says whether one of these keys is neither padding nor hidden by what else was declared or found.
func (m *masker) seesAny(f *MaskFinding, h, row, first, last int) bool {
	for col := first; col <= last; col++ {
		if !slices.Contains(f.hidden, col) && !veiled(m.veils, h, row, col) && f.documents.hold(row+m.declared.Diagonal, col) {
			return true
		}
	}
	return false
}
