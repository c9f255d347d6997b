package plan

import "fmt"

// Layout says how the query, key and value heads share one fused row.
type Layout uint8

// The fused layouts. g is the number of query heads a key/value head.
const (
	GPT2    Layout = iota // all query heads, then all key heads, then all value heads
	NeoX                  // for each head its query, key and value; as many key/value heads as query heads
	Grouped               // for each key/value head its g query heads, then its key, then its value
)

func (l Layout) String() string {
	switch l {
	case GPT2:
		return "GPT2"
	case NeoX:
		return "NeoX"
	case Grouped:
		return "Grouped"
	}
	return fmt.Sprintf("Layout(%d)", uint8(l))
}

// Split describes the fused rows of an attention layer: Rows rows of RowLen elements, which hold Heads query heads
// and KVHeads key and value heads of Dim elements each.
type Split struct {
	Layout               Layout
	Rows, Heads, KVHeads int
	Dim                  int
	RowStride            int // elements from row to row; 0 where the rows touch
}

// Piece is one gather of a split, and the head of the output at which its heads begin.
type Piece struct {
	Gather
	FirstHead int
}

// RowLen is the number of elements of one fused row: (Heads + 2*KVHeads) * Dim.
func (s Split) RowLen() (int, error) {
	const what = "split"
	for _, d := range []Dim{{"heads", s.Heads}, {"KV heads", s.KVHeads}} {
		if _, err := Elements(what, d); err != nil {
			return 0, err
		}
	}
	if s.Heads%s.KVHeads != 0 {
		return 0, refuse(what, "%d heads are not a multiple of %d KV heads", s.Heads, s.KVHeads)
	}
	if s.Layout == NeoX && s.Heads != s.KVHeads {
		return 0, refuse(what, "layout NeoX has as many KV heads as heads, not %d and %d: that is Grouped", s.KVHeads, s.Heads)
	}
	if s.Layout > Grouped {
		return 0, refuse(what, "unknown layout %v", s.Layout)
	}
	return Elements(what, Dim{"heads + 2 * KV heads", s.Heads + 2*s.KVHeads}, Dim{"dim", s.Dim})
}

// Pieces returns the gathers of the query, key and value heads. Each is heads-major. Only the queries of a grouped
// layout need more than one: a gather steps by one stride, and there the stride changes from group to group.
func (s Split) Pieces() (q, k, v []Piece, err error) {
	row, err := s.RowLen()
	if err != nil {
		return nil, nil, nil, err
	}
	stride := s.RowStride
	if stride == 0 {
		stride = row
	}
	if stride < row {
		return nil, nil, nil, refuse("split", "row stride %d is below the %d elements of a row", stride, row)
	}
	piece := func(first, heads, offset, headStride int) Piece {
		return Piece{FirstHead: first, Gather: Gather{
			Rows: s.Rows, SrcRowStride: stride, CompOffset: offset, HeadStride: headStride,
			Heads: heads, Dim: s.Dim, HeadsMajor: true,
		}}
	}
	d := s.Dim
	switch s.Layout {
	case GPT2:
		q = []Piece{piece(0, s.Heads, 0, d)}
		k = []Piece{piece(0, s.KVHeads, s.Heads*d, d)}
		v = []Piece{piece(0, s.KVHeads, (s.Heads+s.KVHeads)*d, d)}
	case NeoX:
		q = []Piece{piece(0, s.Heads, 0, 3*d)}
		k = []Piece{piece(0, s.Heads, d, 3*d)}
		v = []Piece{piece(0, s.Heads, 2*d, 3*d)}
	case Grouped:
		g := s.Heads / s.KVHeads
		group := (g + 2) * d
		for i := range s.KVHeads {
			q = append(q, piece(i*g, g, i*group, d))
		}
		k = []Piece{piece(0, s.KVHeads, g*d, group)}
		v = []Piece{piece(0, s.KVHeads, (g+1)*d, group)}
	}
	// One check covers all: the last value head ends where the row ends.
	last := piece(0, 1, row-d, d)
	if _, err := last.SrcLen(); err != nil {
		return nil, nil, nil, err
	}
	if _, err := Elements("split", Dim{"rows", s.Rows}, Dim{"row", row}); err != nil {
		return nil, nil, nil, err
	}
	return q, k, v, nil
}
