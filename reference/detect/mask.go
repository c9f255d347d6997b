package detect

import (
	"fmt"
	"math"
	"strings"

	"github.com/attnb/attnb/reference"
)

// Faults of scores, mask and softmax.
const (
	WrongScale      Kind = "scale"
	WrongSoftcap    Kind = "softcap"
	WrongSink       Kind = "sink"
	WrongSum        Kind = "row sums"
	WrongAlignment  Kind = "alignment of the mask"
	WrongDiagonal   Kind = "diagonal"
	NoCausalMask    Kind = "no causal mask"
	UnexpectedMask  Kind = "a mask that was not declared"
	WrongWindow     Kind = "window"
	PaddedKeys      Kind = "hidden keys"
	PackedDocuments Kind = "documents"
	HeadsDiffer     Kind = "heads have masks of their own"
	WrongEmptyRow   Kind = "rows that see nothing"
	LostRow         Kind = "rows without weight"
	UnknownMask     Kind = "no mask fits"
	UnknownScores   Kind = "no scores fit"
)

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

// Rule declares how probabilities come from q and k.
type Rule struct {
	Scale    float64   // 0 means 1/sqrt(d)
	Causal   bool      // row r sees columns up to r+Diagonal
	Diagonal int       // T-S aligns the last query with the last key
	Window   int       // of those, only the last Window columns; 0: all
	Softcap  float64   // c tanh(s/c) in place of a score s; 0: none
	Sinks    []float64 // one more logit in each head's denominator; nil: none
	Empty    Empty
}

// MaskFinding is what Mask found.
type MaskFinding struct {
	Faults     Faults
	Scale      float64    // NaN where no row sees two keys of different score
	Softcap    float64    // 0: none
	Sinks      []float64  // one a head; nil: none
	High, Low  [2]float64 // col-row of the last and the first visible column lies between these two; infinite where nothing is hidden
	EmptyRows  int        // rows, over all heads, that see nothing by this mask
	Empty      Empty      // what they hold
	Undecided  []string   // what the data cannot tell
	Floor      float64    // error of a log-probability that counts as rounding, at most
	tiled      bool
	HiddenKeys []int // columns that no row sees, though the band would let it
	Documents  []int // first columns of packed documents, where there are several
}

// Mask finds out how probabilities p [H, S, T] came from q [H, S, d] and k [KV, T, d]. Within a row, the logarithms of p differ as
// the scores do: their slope against q.k is the scale, its bending the softcap. What a row's sum lacks from 1 is the sink's.
// Weights of exactly 0 where the scores say otherwise are hidden, and which col-row are hidden is the mask's band.
func Mask(q, k, p reference.Heads, declared Rule, precision Precision) (MaskFinding, error) {
	m, err := newMasker("Mask", q, k, p, declared, precision)
	if err != nil {
		return MaskFinding{}, err
	}
	f := MaskFinding{Scale: math.NaN()}
	if h, row, ok := negative(p); ok {
		f.Faults = Faults{{WrongSum, fmt.Sprintf("row %d of head %d holds a negative weight", row, h), "these are no probabilities"}}
		return f, nil
	}
	m.fitScores(&f)
	m.fitBand(&f)
	m.fitSinks(&f)
	m.judgeScores(&f)
	m.judgeBand(&f)
	m.judgeEmpty(&f)
	m.judgeSinks(&f)
	return f, nil
}

// rowClass is what a row of probabilities looks like, before anything is known.
type rowClass uint8

const (
	normalRow  rowClass = iota
	zeroRow             // 0 everywhere
	nanRow              // a NaN somewhere
	uniformRow          // 1/T everywhere, though scores differ
	firstRow            // 1 at column 0, 0 elsewhere, and more than one column
	fullRow             // no 0
)

// masker is one question.
type masker struct {
	q, k, p   reference.Heads
	shape     // heads, query rows, dim: of q
	keys      int
	declared  Rule
	precision Precision
	dots      [][][]float64 // q.k of each cell
	sizes     [][]float64   // largest sum of |q||k| of a row: what its scores round against
	class     [][]rowClass
	flat      [][]bool                  // all weights alike
	curve     func(dot float64) float64 // fitted: a score from q.k
	known     bool                      // curve is more than the declared one
	shown     [][][]cell
}

type cell int8

const (
	unsure cell = iota // a weight that may have underflowed
	seen               // a weight that is not 0
	unseen             // 0 where the score says otherwise
)

func newMasker(op string, q, k, p reference.Heads, declared Rule, precision Precision) (*masker, error) {
	qs, err := measure(op, "q", q)
	if err != nil {
		return nil, err
	}
	ks, err := measure(op, "k", k)
	if err != nil {
		return nil, err
	}
	ps, err := measure(op, "probabilities", p)
	if err != nil {
		return nil, err
	}
	switch {
	case qs.dim != ks.dim || qs.heads%ks.heads != 0:
		return nil, badShape(op, "q %v and k %v do not fit together", qs, ks)
	case ps != shape{qs.heads, qs.rows, ks.rows}:
		return nil, badShape(op, "probabilities %v are not [%d, %d, %d]", ps, qs.heads, qs.rows, ks.rows)
	case declared.Sinks != nil && len(declared.Sinks) != qs.heads:
		return nil, badArgument(op, "%d sinks for %d heads", len(declared.Sinks), qs.heads)
	case declared.Window < 0 || declared.Softcap < 0 || math.IsNaN(declared.Softcap):
		return nil, badArgument(op, "window %d and softcap %v must not be negative", declared.Window, declared.Softcap)
	case ks.rows < 2:
		return nil, tooLittle(op, "one key has all the weight, whatever the rule; needs at least two")
	}
	if declared.Scale == 0 {
		declared.Scale = 1 / math.Sqrt(float64(qs.dim))
	}
	m := &masker{q: q, k: k, p: p, shape: qs, keys: ks.rows, declared: declared, precision: precision}
	m.measureDots(func(h int) int { return h / (qs.heads / ks.heads) })
	m.classify()
	return m, nil
}

// measureDots fills q.k, with the KV head that each query head reads.
func (m *masker) measureDots(keyHead func(h int) int) {
	m.dots, m.sizes = make([][][]float64, m.heads), make([][]float64, m.heads)
	for h := range m.dots {
		m.dots[h], m.sizes[h] = make([][]float64, m.rows), make([]float64, m.rows)
		k := m.k[keyHead(h)]
		for row := range m.rows {
			m.dots[h][row] = make([]float64, m.keys)
			q := m.q[h].RawRowView(row)
			for col := range m.keys {
				sum, size := 0.0, 0.0
				for i, x := range k.RawRowView(col) {
					sum, size = sum+q[i]*x, size+math.Abs(q[i]*x)
				}
				m.dots[h][row][col] = sum
				m.sizes[h][row] = max(m.sizes[h][row], size)
			}
		}
	}
}

// classify looks at rows without knowing the scores.
func (m *masker) classify() {
	unit := m.precision.Unit()
	declared := fit{scale: math.Abs(m.declared.Scale), cap: m.declared.Softcap}
	m.class, m.flat = make([][]rowClass, m.heads), make([][]bool, m.heads)
	for h := range m.class {
		m.class[h], m.flat[h] = make([]rowClass, m.rows), make([]bool, m.rows)
		for row := range m.rows {
			p := m.p[h].RawRowView(row)
			zero, nan, positive, uniform := 0, false, 0, true
			for _, v := range p {
				nan = nan || math.IsNaN(v)
				if v == 0 {
					zero++
				} else {
					positive++
				}
				uniform = uniform && math.Abs(v*float64(m.keys)-1) <= 4*unit
			}
			lo, hi := extremes(m.dots[h][row])
			m.flat[h][row] = uniform
			switch {
			case nan:
				m.class[h][row] = nanRow
			case zero == len(p):
				m.class[h][row] = zeroRow
			case uniform && declared.score(hi)-declared.score(lo) > m.noise(m.declared.Scale, m.sizes[h][row]):
				m.class[h][row] = uniformRow
			case positive == 1 && math.Abs(p[0]-1) <= 2*unit:
				m.class[h][row] = firstRow
			case zero == 0:
				m.class[h][row] = fullRow
			}
		}
	}
}

func negative(p reference.Heads) (head, row int, ok bool) {
	for h, m := range p {
		rows, _ := m.Dims()
		for row := range rows {
			if lo, _ := extremes(m.RawRowView(row)); lo < 0 {
				return h, row, true
			}
		}
	}
	return 0, 0, false
}

func extremes(x []float64) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, v := range x {
		lo, hi = min(lo, v), max(hi, v)
	}
	return lo, hi
}

func (f MaskFinding) String() string {
	scores := "scale not told"
	if !math.IsNaN(f.Scale) {
		scores = fmt.Sprintf("scale %.6g", f.Scale)
	}
	if f.Softcap > 0 {
		scores += fmt.Sprintf(", softcap %.6g", f.Softcap)
	}
	if f.Sinks != nil {
		scores += fmt.Sprintf(", sinks %.4g", f.Sinks)
	}
	s := "the declared rule fits"
	if len(f.Faults) > 0 {
		s = f.Faults.String()
	}
	s += " (" + scores + ", col-row " + span(f.Low, f.High) + ")"
	if len(f.Undecided) > 0 {
		s += "; not told: " + strings.Join(f.Undecided, "; ")
	}
	return s
}

// span writes which col-row are visible.
func span(low, high [2]float64) string {
	if math.IsInf(low[0], -1) && math.IsInf(high[1], 1) {
		return "all visible"
	}
	return edge(low) + " to " + edge(high)
}

// edge writes an end of a band that is known to lie between two col-row.
func edge(x [2]float64) string {
	switch {
	case math.IsInf(x[0], 0) || math.IsInf(x[1], 0):
		return "open"
	case x[0] == x[1]:
		return fmt.Sprint(x[0])
	}
	return fmt.Sprintf("%v to %v", x[0], x[1])
}
