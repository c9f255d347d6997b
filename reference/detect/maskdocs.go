package detect

import (
	"fmt"
	"math"
	"slices"
)

// documents are several, one behind the other, of which a row sees that of its own column.
type documents struct{ starts []int }

// hold says whether a column lies in the document of a row's own column. Nil documents are one.
func (d *documents) hold(own, col int) bool {
	return d == nil || d.index(own) == d.index(col)
}

// index is the document that a column lies in; columns before the first start are one more.
func (d *documents) index(col int) int {
	at, is := slices.BinarySearch(d.starts, col)
	if is {
		at++
	}
	return at
}

// fitDocuments asks whether each row sees its own document and, of it, a band. Where the first column that a row sees is not the
// band's, its document begins there.
func (m *masker) fitDocuments(f *MaskFinding, use func(h, row int) bool) bool {
	first := make([]int, m.rows)
	low, high := math.Inf(1), math.Inf(-1)
	for row := range m.rows {
		first[row] = -1
		for h := range m.heads {
			if !use(h, row) {
				continue
			}
			for col, c := range m.shown[h][row] {
				if c != seen {
					continue
				}
				if first[row] < 0 || col < first[row] {
					first[row] = col
				}
				low, high = min(low, float64(col-row)), max(high, float64(col-row))
			}
		}
	}
	d := &documents{}
	for row, at := range first {
		if at >= 0 && (float64(at-row) > low || row == 0) && !slices.Contains(d.starts, at) {
			d.starts = append(d.starts, at)
		}
	}
	slices.Sort(d.starts)
	if len(d.starts) < 2 {
		return false
	}
	for h := range m.heads {
		for row := range m.rows {
			if !use(h, row) || first[row] < 0 {
				continue
			}
			for col, c := range m.shown[h][row] {
				at := float64(col - row)
				inside := at >= low && at <= high && d.hold(row+m.declared.Diagonal, col)
				if c == seen && !inside || c == unseen && inside {
					return false
				}
			}
		}
	}
	f.documents = d
	f.Low, f.High = [2]float64{math.Inf(-1), low}, [2]float64{high, high}
	return true
}

// judgeVeils says what of padding, documents and allowed cells was declared and not done, or done and not declared.
func (m *masker) judgeVeils(f *MaskFinding) {
	lifted := func(k Kind) *veil {
		for _, v := range m.veils {
			if v.kind == k && v.lifted {
				return v
			}
		}
		return nil
	}
	padding, packed := "", ""
	if f.hidden != nil {
		padding = fmt.Sprintf("no row sees keys %v", f.hidden) + m.elsewhere()
	}
	if f.documents != nil {
		packed = fmt.Sprintf("rows see from keys %v on: documents packed into one sequence", f.documents.starts)
	}
	switch v := lifted(PaddedKeys); {
	case v != nil && f.hidden != nil:
		f.Faults = append(f.Faults, Fault{PaddedKeys, fmt.Sprintf("%s; keys %v are seen, declared %d on the left and %d on the right", padding, v.columns, m.declared.PadLeft, m.declared.PadRight), "hide the padding that there is"})
	case v != nil:
		f.Faults = append(f.Faults, Fault{PaddedKeys, fmt.Sprintf("keys %v are padding, and seen: %s", v.columns, v.place), "hide the padding from every row"})
	case f.hidden != nil:
		f.Faults = append(f.Faults, Fault{PaddedKeys, padding, "declare the padding, or take it out"})
	}
	switch v := lifted(PackedDocuments); {
	case v != nil && f.documents != nil:
		f.Faults = append(f.Faults, Fault{PackedDocuments, fmt.Sprintf("%s; declared lengths %v", packed, m.declared.Documents), "count a document's rows from its own first one"})
	case v != nil:
		f.Faults = append(f.Faults, Fault{PackedDocuments, fmt.Sprintf("%s, of another document: lengths %v", v.place, m.declared.Documents), "hide every document but a row's own"})
	case f.documents != nil:
		f.Faults = append(f.Faults, Fault{PackedDocuments, packed, "declare the documents, or take their mask out"})
	}
	if v := lifted(WrongAllowed); v != nil {
		f.Faults = append(f.Faults, Fault{WrongAllowed, v.place + ", which is not allowed", "hide the cells that are not allowed, and no others"})
	}
	f.HiddenKeys = f.hidden
	if f.documents != nil {
		f.Documents = f.documents.starts
	}
	for _, v := range m.veils {
		switch {
		case v.lifted:
		case !v.told:
			f.Undecided = append(f.Undecided, fmt.Sprintf("%s (nothing else would show what they hide)", v.kind))
		case v.kind == PaddedKeys:
			for col := range m.keys {
				if v.hides(0, 0, col) {
					f.HiddenKeys = append(f.HiddenKeys, col)
				}
			}
			slices.Sort(f.HiddenKeys)
		case v.kind == PackedDocuments && f.documents == nil:
			first := 0
			for _, n := range m.declared.Documents {
				f.Documents, first = append(f.Documents, first), first+n
			}
		}
	}
}

// elsewhere names a document that is cut in another place where it would hide the same keys as padding or a window.
func (m *masker) elsewhere() string {
	if m.declared.Documents == nil {
		return ""
	}
	return " (or a document ends elsewhere)"
}

// noBand says that what is hidden was not understood.
func (f MaskFinding) noBand() bool {
	return f.Faults.Has(UnknownMask) || f.Faults.Has(HeadsDiffer) || f.unknown
}
