package detect

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/attnb/attnb/reference"
)

// Faults of scores, mask and softmax.
const (
	WrongScale      Kind = "scale"
	WrongSoftcap    Kind = "softcap"
	WrongSlopes     Kind = "ALiBi"
	WrongBias       Kind = "bias"
	WrongSink       Kind = "sink"
	WrongSum        Kind = "row sums"
	WrongAlignment  Kind = "alignment of the mask"
	WrongDiagonal   Kind = "diagonal"
	NoCausalMask    Kind = "no causal mask"
	UnexpectedMask  Kind = "a mask that was not declared"
	WrongWindow     Kind = "window"
	PaddedKeys      Kind = "hidden keys"
	PackedDocuments Kind = "documents"
	WrongAllowed    Kind = "cells that are not allowed"
	HeadsDiffer     Kind = "heads have masks of their own"
	WrongEmptyRow   Kind = "rows that see nothing"
	LostRow         Kind = "rows without weight"
	UnknownMask     Kind = "no mask fits"
	UnknownScores   Kind = "no scores fit"
)

// MaskFinding is what Mask found.
type MaskFinding struct {
	Faults     Faults
	Scale      float64    // NaN where no row sees two keys of different score
	Softcap    float64    // 0: none
	Slopes     []float64  // of ALiBi, one a head; nil: none
	Sinks      []float64  // one a head; nil: none
	High, Low  [2]float64 // col-row of the last and the first visible column lies between these two; infinite where nothing is hidden
	EmptyRows  int        // rows, over all heads, that see nothing by this mask
	Empty      Empty      // what they hold
	Undecided  []string   // what the data cannot tell
	Floor      float64    // error of a log-probability that counts as rounding, at most
	HiddenKeys []int      // columns that no row sees, though the band would let it
	Documents  []int      // first columns of packed documents, where there are several
	tiled      bool
	best       fit        // of the scores
	hidden     []int      // HiddenKeys that were not declared
	documents  *documents // not declared; nil: none
	unknown    bool       // no band was found
}

// Mask finds out how probabilities p [H, S, T] came from q [H, S, d] and k [KV, T, d]. Within a row, the logarithms of p differ as
// the scores do: their slope against q.k is the scale, its bending the softcap. What a row's sum lacks from 1 is the sink's.
// Weights of exactly 0 where the scores say otherwise are hidden, and which col-row are hidden is the mask's band. What a declared
// bias or ALiBi adds is taken off first; what padding, documents or cells that are not allowed hide by declaration is no evidence of a band,
// unless a row sees some of it.
func Mask(ctx context.Context, q, k, p reference.Heads, declared Rule, precision Precision) (MaskFinding, error) {
	m, err := newMasker(ctx, "Mask", q, k, p, declared, precision)
	if err != nil {
		return MaskFinding{}, err
	}
	f := MaskFinding{Scale: math.NaN()}
	if h, row, ok := negative(p); ok {
		f.Faults = Faults{{WrongSum, fmt.Sprintf("row %d of head %d holds a negative weight", row, h), "these are no probabilities"}}
		return f, nil
	}
	m.watch.stage(0.2, 0.7)
	m.fitScores(&f)
	m.watch.stage(0.7, 0.9)
	m.fitBand(&f)
	m.watch.stage(0.9, 1)
	m.fitSinks(&f)
	if err := m.watch.finish("Mask"); err != nil {
		return MaskFinding{}, err
	}
	m.judgeScores(&f)
	m.judgeVeils(&f)
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
	watch     *watch
	dots      [][][]float64 // q.k of each cell
	sizes     [][]float64   // largest sum of |q||k| of a row: what its scores round against
	class     [][]rowClass
	flat      [][]bool // all weights alike
	best      fit      // scores from q.k
	known     bool     // best was found, not only declared
	shown     [][][]cell
	veils     []*veil  // of the declaration
	empty     [][]bool // rows that see nothing by declaration
}

type cell int8

const (
	unsure cell = iota // a weight that may have underflowed
	seen               // a weight that is not 0
	unseen             // 0 where the score says otherwise
)

func newMasker(ctx context.Context, op string, q, k, p reference.Heads, declared Rule, precision Precision) (*masker, error) {
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
	}
	if err := declared.check(op, ps); err != nil {
		return nil, err
	}
	if ks.rows < 2 {
		return nil, tooLittle(op, "one key has all the weight, whatever the rule; needs at least two")
	}
	if declared.Scale == 0 {
		declared.Scale = 1 / math.Sqrt(float64(qs.dim))
	}
	m := &masker{q: q, k: k, p: p, shape: qs, keys: ks.rows, declared: declared, precision: precision, watch: newWatch(ctx), veils: declared.veils(ks.rows)}
	m.best = fit{scale: declared.Scale, cap: declared.Softcap, slopes: declared.Slopes, bias: declared.Bias != nil}
	m.declaredEmpty()
	m.watch.stage(0, 0.2)
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
			if !m.watch.at(h*m.rows+row, m.heads*m.rows) {
				continue
			}
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
			m.flat[h][row] = uniform
			switch {
			case nan:
				m.class[h][row] = nanRow
			case zero == len(p):
				m.class[h][row] = zeroRow
			case uniform && m.spread(h, row) > m.noise(m.declared.Scale, m.sizes[h][row]):
				m.class[h][row] = uniformRow
			case positive == 1 && math.Abs(p[0]-1) <= 2*unit:
				m.class[h][row] = firstRow
			case zero == 0:
				m.class[h][row] = fullRow
			}
		}
	}
}

// spread is how far apart the scores of a row are by declaration.
func (m *masker) spread(h, row int) float64 {
	lo, hi := math.Inf(1), math.Inf(-1)
	for col := range m.keys {
		s := m.score(h, row, col)
		lo, hi = min(lo, s), max(hi, s)
	}
	return hi - lo
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
	if f.Slopes != nil {
		scores += fmt.Sprintf(", ALiBi slopes %.4g", f.Slopes)
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
