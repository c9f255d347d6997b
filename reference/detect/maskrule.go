package detect

import (
	"fmt"
	"math"
	"slices"

	"github.com/attnb/attnb/reference"
)

// Rule declares how probabilities come from q and k.
type Rule struct {
	Scale  float64 // 0 means 1/sqrt(d)
	Causal bool    // row r sees columns up to r+Diagonal
	// Diagonal is the column at which row 0 stands, r+Diagonal that of row r: T-S aligns the last query with the last key. Read
	// with Causal, Window, Documents and Slopes.
	Diagonal          int
	Window            int             // a row sees columns less than Window away from its own, which counts; 0: all
	PadLeft, PadRight int             // of the first and the last columns, how many no row sees
	Documents         []int           // lengths of documents, one behind the other: a row sees that of its own column; nil: one
	Allowed           reference.Heads // [H, S, T], of which one head or one row serves all: hides where it is 0; nil: nothing
	Softcap           float64         // c tanh(s/c) in place of a score s; 0: none
	Bias              reference.Heads // added to the scores, in shape as Allowed; nil: none
	Slopes            []float64       // of ALiBi, one a head: slope times the distance from a row's own column is taken off; nil: none
	Sinks             []float64       // one more logit in each head's denominator; nil: none
	Empty             Empty
}

// Empty is what a row of probabilities holds when no key is visible to it.
type Empty uint8

const (
	EmptyZero     Empty = iota // 0 everywhere: ours, flash-attn's
	EmptyNaN                   // 0/0
	EmptyUniform               // 1/T everywhere: a large negative number in place of -Inf
	EmptyFirstKey              // 1 at key 0
	EmptyUnmasked              // as if nothing were hidden: a negative number that shifts all scores alike
)

func (e Empty) String() string {
	return [...]string{"0", "NaN", "uniform", "all weight on key 0", "as if unmasked"}[e]
}

// fill is a row that sees nothing, where it would hold unmasked if nothing were hidden.
func (e Empty) fill(row, unmasked []float64) {
	for col := range row {
		switch e {
		case EmptyNaN:
			row[col] = math.NaN()
		case EmptyUniform:
			row[col] = 1 / float64(len(row))
		case EmptyFirstKey:
			row[col] = float64(1 - min(col, 1))
		case EmptyUnmasked:
			row[col] = unmasked[col]
		}
	}
}

// check refuses a rule that does not fit p [H, S, T].
func (r Rule) check(op string, p shape) error {
	switch {
	case r.Sinks != nil && len(r.Sinks) != p.heads:
		return badArgument(op, "%d sinks for %d heads", len(r.Sinks), p.heads)
	case r.Slopes != nil && len(r.Slopes) != p.heads:
		return badArgument(op, "%d slopes for %d heads", len(r.Slopes), p.heads)
	case r.Window < 0 || r.Softcap < 0 || math.IsNaN(r.Softcap):
		return badArgument(op, "window %d and softcap %v must not be negative", r.Window, r.Softcap)
	case r.PadLeft < 0 || r.PadRight < 0 || r.PadLeft+r.PadRight > p.dim:
		return badArgument(op, "padding of %d and %d columns does not fit %d", r.PadLeft, r.PadRight, p.dim)
	}
	left := p.dim
	for _, n := range r.Documents {
		if n < 1 || n > left {
			return badArgument(op, "documents of %v do not fill %d columns", r.Documents, p.dim)
		}
		left -= n
	}
	if r.Documents != nil && left != 0 {
		return badArgument(op, "documents of %v do not fill %d columns", r.Documents, p.dim)
	}
	if err := fits(op, "allowed", r.Allowed, p); err != nil {
		return err
	}
	return fits(op, "bias", r.Bias, p)
}

// fits refuses a tensor, unless it is nil, of which no head and no row serves all of p.
func fits(op, name string, x reference.Heads, p shape) error {
	if x == nil {
		return nil
	}
	s, err := measure(op, name, x)
	if err == nil && (s.dim != p.dim || s.rows != 1 && s.rows != p.rows || s.heads != 1 && s.heads != p.heads) {
		err = badShape(op, "%s %v and probabilities %v: columns, and rows and heads or 1", name, s, p)
	}
	return err
}

// of is an element of a tensor of which one head or one row serves all.
func of(x reference.Heads, h, row, col int) float64 {
	m := x[min(h, len(x)-1)]
	rows, _ := m.Dims()
	return m.At(min(row, rows-1), col)
}

// band is which col-row the causal mask and the window show.
func (r Rule) band() (low, high float64) {
	low, high = math.Inf(-1), math.Inf(1)
	own := float64(r.Diagonal)
	if r.Window > 0 {
		low, high = own-float64(r.Window)+1, own+float64(r.Window)-1
	}
	if r.Causal {
		high = own
	}
	return low, high
}

// Head is the rule of one head.
func (r Rule) Head(h int) Rule {
	if r.Allowed != nil {
		at := min(h, len(r.Allowed)-1)
		r.Allowed = r.Allowed[at : at+1]
	}
	if r.Bias != nil {
		at := min(h, len(r.Bias)-1)
		r.Bias = r.Bias[at : at+1]
	}
	if r.Slopes != nil {
		r.Slopes = r.Slopes[h : h+1]
	}
	if r.Sinks != nil {
		r.Sinks = r.Sinks[h : h+1]
	}
	return r
}

// Probabilities are those of q [H, S, d] and k [KV, T, d] by the rule, in float64.
func (r Rule) Probabilities(q, k reference.Heads) (reference.Heads, error) {
	const op = "Probabilities"
	qs, err := measure(op, "q", q)
	if err != nil {
		return nil, err
	}
	ks, err := measure(op, "k", k)
	if err != nil {
		return nil, err
	}
	if err := r.check(op, shape{qs.heads, qs.rows, ks.rows}); err != nil {
		return nil, err
	}
	if r.Scale == 0 {
		r.Scale = 1 / math.Sqrt(float64(qs.dim))
	}
	s, err := reference.Scores(q, k, r.Scale)
	if err != nil {
		return nil, fmt.Errorf("detect: %s: %w", op, err)
	}
	v := reference.Variant{Softcap: r.Softcap, Bias: r.Bias, Slopes: r.Slopes, Diagonal: r.Diagonal, Allowed: r.Allowed, Sinks: r.Sinks}
	low, high := r.band()
	alike := r
	alike.Allowed = nil // which the variant knows, head by head
	veils := alike.veils(ks.rows)
	p, err := v.Softmax(s, func(row, col int) bool {
		at := float64(col - row)
		return at >= low && at <= high && !veiled(veils, 0, row, col)
	})
	if err != nil {
		return nil, fmt.Errorf("detect: %s: %w", op, err)
	}
	if r.Empty == EmptyZero {
		return p, nil
	}
	v.Allowed = nil
	unmasked, err := v.Softmax(s, nil)
	if err != nil {
		return nil, fmt.Errorf("detect: %s: %w", op, err)
	}
	m := masker{shape: qs, keys: ks.rows, declared: r, veils: r.veils(ks.rows)}
	m.declaredEmpty()
	for h := range p {
		for row := range qs.rows {
			if m.empty[h][row] {
				r.Empty.fill(p[h].RawRowView(row), unmasked[h].RawRowView(row))
			}
		}
	}
	return p, nil
}

// veil is a part of a declaration that hides cells, but no band: padding, documents, cells that are not allowed.
type veil struct {
	kind  Kind
	hides func(h, row, col int) bool
	// What the data says: lifted where a row sees what should be hidden, as at the place; told where only this veil explains that
	// a cell is hidden.
	lifted, told bool
	place        string
	columns      []int // that some row sees though the veil hides them
}

// veils are those of a declaration over a number of columns.
func (r Rule) veils(columns int) []*veil {
	var out []*veil
	if r.PadLeft > 0 || r.PadRight > 0 {
		sees := reference.Padded(r.PadLeft, r.PadRight, columns)
		out = append(out, &veil{kind: PaddedKeys, hides: func(_, row, col int) bool { return !sees(row, col) }})
	}
	if r.Documents != nil {
		sees := reference.Documents(r.Diagonal, r.Documents)
		out = append(out, &veil{kind: PackedDocuments, hides: func(_, row, col int) bool { return !sees(row, col) }})
	}
	if r.Allowed != nil {
		out = append(out, &veil{kind: WrongAllowed, hides: func(h, row, col int) bool { return of(r.Allowed, h, row, col) == 0 }})
	}
	return out
}

// veiled says whether one of these veils, unless it is lifted, hides a cell.
func veiled(veils []*veil, h, row, col int) bool {
	return slices.ContainsFunc(veils, func(v *veil) bool { return !v.lifted && v.hides(h, row, col) })
}

// lookThrough takes out of the question what the veils of the declaration hide, as long as no row sees it.
func (m *masker) lookThrough() {
	low, high := m.declared.band()
	each := func(visit func(h, row, col int, c cell)) {
		for h := range m.heads {
			for row := range m.rows {
				if c := m.class[h][row]; m.empty[h][row] || c == nanRow || c == zeroRow || c == uniformRow {
					continue
				}
				for col, c := range m.shown[h][row] {
					visit(h, row, col, c)
				}
			}
		}
	}
	for _, v := range m.veils {
		each(func(h, row, col int, c cell) {
			if c != seen || !v.hides(h, row, col) {
				return
			}
			if !v.lifted {
				v.lifted, v.place = true, fmt.Sprintf("row %d of head %d sees key %d", row, h, col)
			}
			if !slices.Contains(v.columns, col) {
				v.columns = append(v.columns, col)
			}
		})
		slices.Sort(v.columns)
	}
	each(func(h, row, col int, c cell) {
		if at := float64(col - row); c != unseen || at < low || at > high {
			return
		}
		var by *veil
		for _, v := range m.veils {
			if !v.lifted && v.hides(h, row, col) {
				if by != nil {
					return // two explain it
				}
				by = v
			}
		}
		if by != nil {
			by.told = true
		}
	})
	for h := range m.heads {
		for row := range m.rows {
			for col := range m.keys {
				if veiled(m.veils, h, row, col) {
					m.shown[h][row][col] = unsure
				}
			}
		}
	}
}

// declaredEmpty says which rows see nothing by all that was declared.
func (m *masker) declaredEmpty() {
	low, high := m.declared.band()
	m.empty = make([][]bool, m.heads)
	for h := range m.empty {
		m.empty[h] = make([]bool, m.rows)
		for row := range m.rows {
			m.empty[h][row] = true
			for col := range m.keys {
				if at := float64(col - row); at >= low && at <= high && !veiled(m.veils, h, row, col) {
					m.empty[h][row] = false
					break
				}
			}
		}
	}
}
