package detect

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/mat"
)

// Faults of a layout.
const (
	WrongLayout    Kind = "layout"                 // fused otherwise than declared
	WrongOrder     Kind = "order of q, k and v"    // the same layout with q, k and v exchanged
	DimMajorHeads  Kind = "dim-major heads"        // element 0 of all heads first
	PermutedHead   Kind = "elements within a head" // halves laid out as pairs, or pairs as halves: weights converted for another RoPE
	TiledKV        Kind = "tiled KV heads"         // query head h took KV head h mod KV
	WrongMerge     Kind = "merge"                  // heads not side by side
	UnknownLayout  Kind = "no layout fits"
	layoutRowLimit      = 32 // rows looked at: a wrong column is wrong in the first rows too
)

// Fused declares what fused rows should be.
type Fused struct {
	Layout              reference.Layout
	Heads, KVHeads, Dim int // KVHeads 0 means Heads
	Precision           Precision
}

// Parts are the tensors that rows should come apart into: those that are known, the others nil. K and V may have KVHeads
// heads, or Heads when they were expanded for grouped queries.
type Parts struct {
	Q, K, V reference.Heads
	Context reference.Heads // causal attention of what the rows hold: [H, S, d]
	Merged  *mat.Dense      // the same with its heads merged: [S, H d]
	Scale   float64         // of the scores behind Context and Merged; 0 means 1/sqrt(d)
	RoPE    *reference.RoPE // turns q and k before that attention; nil: none
}

// LayoutCandidate is a hypothesis and how far it is from what was expected.
type LayoutCandidate struct {
	Arrangement
	Residual float64 // relative L2 error over all parts that were given
}

// LayoutFinding is what Layout found.
type LayoutFinding struct {
	Faults Faults            // nil where the declared layout fits
	Fits   []LayoutCandidate // every hypothesis within the floor, least departure from the declaration first: a tie if several
	Ranked []LayoutCandidate // all hypotheses, best first
	Floor  float64           // relative L2 error that counts as rounding
	Margin float64           // residual of the best hypothesis that does not fit, over the floor; +Inf where all fit
}

// Tie says whether several hypotheses give these numbers.
func (f LayoutFinding) Tie() bool { return len(f.Fits) > 1 }

// Layout ranks every hypothesis of how rows [S, (H+2 KV) d] hold q, k and v by its residual against the parts that are known:
// GPT-2, NeoX, grouped and sharded layouts, each order of q, k and v, head-major and dim-major, elements within a head
// permuted as for the other pairing of RoPE, KV heads tiled, heads merged without transposing. It looks at the first 32 rows: where a
// column is wrong, it is wrong in every row.
func Layout(ctx context.Context, rows *mat.Dense, declared Fused, want Parts) (LayoutFinding, error) {
	const op = "Layout"
	if declared.KVHeads == 0 {
		declared.KVHeads = declared.Heads
	}
	// Split knows what fits together; NeoX is Grouped with a group of one, and refuses others.
	if _, _, _, err := reference.Split(rows, declared.Layout, declared.Heads, declared.KVHeads, declared.Dim); err != nil {
		return LayoutFinding{}, fmt.Errorf("detect: %s: %w", op, err)
	}
	count, _ := rows.Dims()
	if err := want.check(op, count, declared); err != nil {
		return LayoutFinding{}, err
	}
	hypotheses := arrangements(declared, want)
	f := LayoutFinding{Floor: declared.Precision.floor(), Margin: math.Inf(1)}
	if want.Context != nil || want.Merged != nil {
		f.Floor *= 8 // softmax and two products more
	}
	right := declaredArrangement(declared)
	l := layouter{rows: rows, declared: declared, want: want}
	w := newWatch(ctx)
	for i, a := range hypotheses {
		if !w.at(i, len(hypotheses)) {
			return LayoutFinding{}, w.finish(op)
		}
		residual, err := l.residual(a)
		if err != nil {
			return LayoutFinding{}, fmt.Errorf("detect: %s: %w", op, err)
		}
		f.Ranked = append(f.Ranked, LayoutCandidate{a, residual})
	}
	slices.SortStableFunc(f.Ranked, func(a, b LayoutCandidate) int { return cmp.Compare(nanLast(a.Residual), nanLast(b.Residual)) })
	for _, c := range f.Ranked {
		if c.Residual <= f.Floor {
			f.Fits = append(f.Fits, c)
		} else {
			f.Margin = c.Residual / f.Floor
			break
		}
	}
	slices.SortStableFunc(f.Fits, func(a, b LayoutCandidate) int {
		return cmp.Compare(a.faults(right, declared).weight(), b.faults(right, declared).weight())
	})
	if len(f.Fits) == 0 {
		best := f.Ranked[0]
		f.Faults = Faults{{Kind: UnknownLayout, Detail: fmt.Sprintf("the nearest of %d hypotheses, %v, is off by %.2g (rounding: %.2g)",
			len(f.Ranked), best.Arrangement, best.Residual, f.Floor)}}
		return f, nil
	}
	f.Faults = f.Fits[0].faults(right, declared)
	return f, nil
}

// weight orders explanations: the more faults, the less likely.
func (f Faults) weight() int { return len(f) }

func nanLast(x float64) float64 {
	if math.IsNaN(x) {
		return math.Inf(1)
	}
	return x
}

// check refuses parts that do not fit the declaration, or none at all.
func (w Parts) check(op string, rows int, d Fused) error {
	given, size := 0, 0.0
	part := func(name string, x reference.Heads, heads ...int) error {
		if x == nil {
			return nil
		}
		s, err := measure(op, name, x)
		if err != nil {
			return err
		}
		if s.rows != rows || s.dim != d.Dim || !slices.Contains(heads, s.heads) {
			return badShape(op, "%s %v is not [%d, %d, %d]", name, s, heads[0], rows, d.Dim)
		}
		given++
		for _, m := range x {
			size = max(size, mat.Norm(m, math.Inf(1)))
		}
		return nil
	}
	for _, err := range []error{
		part("q", w.Q, d.Heads), part("k", w.K, d.KVHeads, d.Heads), part("v", w.V, d.KVHeads, d.Heads),
		part("context", w.Context, d.Heads),
	} {
		if err != nil {
			return err
		}
	}
	if w.Merged != nil {
		if r, c := w.Merged.Dims(); r != rows || c != d.Heads*d.Dim {
			return badShape(op, "merged [%d, %d] is not [%d, %d]", r, c, rows, d.Heads*d.Dim)
		}
		given++
		size = max(size, mat.Norm(w.Merged, math.Inf(1)))
	}
	switch {
	case given == 0:
		return tooLittle(op, "needs at least one of q, k, v, context or merged to compare with")
	case size == 0:
		return tooLittle(op, "what was expected is 0 everywhere; needs at least one row that is not")
	}
	return nil
}

func (f LayoutFinding) String() string {
	var b strings.Builder
	if len(f.Faults) == 0 {
		fmt.Fprintf(&b, "the declared layout fits: off by %.2g (rounding: %.2g)", f.Fits[0].Residual, f.Floor)
	} else {
		b.WriteString(f.Faults.String())
	}
	if len(f.Fits) == 0 {
		return b.String()
	}
	if math.IsInf(f.Margin, 1) {
		b.WriteString("; every hypothesis fits, so these rows decide nothing")
	} else {
		fmt.Fprintf(&b, "; the next hypothesis is off by %.3g times as much as rounding could be", f.Margin)
		if f.Margin < 10 {
			b.WriteString(": not clearly told apart")
		}
	}
	if f.Tie() {
		fmt.Fprintf(&b, "; a tie of %d that give the same numbers:", len(f.Fits))
		for i, c := range f.Fits {
			if i == 6 {
				b.WriteString(" ...")
				break
			}
			fmt.Fprintf(&b, " (%v)", c.Arrangement)
		}
	}
	return b.String()
}
