package chain

import (
	"fmt"
	"math"
	"time"

	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
)

// Budget is what Check, Compare and Audit may take to compute a chain again in float64 before they look at a sample of its rows.
type Budget struct {
	Cells int           // of the tensor and of everything on the way, each held as value, bound and noise; 0: 2^26
	Work  float64       // multiply-adds; 0: 2^32, some five seconds on two cores
	Time  time.Duration // for a sample; 0: 5 s
}

// Whole is b with the usual bounds in place of zeros.
func (b Budget) Whole() Budget {
	if b.Cells == 0 {
		b.Cells = maxReplayCells
	}
	if b.Work == 0 {
		b.Work = 1 << 32
	}
	if b.Time == 0 {
		b.Time = 5 * time.Second
	}
	return b
}

// LargestStage is the work from which on a step's own values stand in for it, in a sample.
func (b Budget) LargestStage() float64 { return math.Max(1, b.Work/16) }

// heavy says that computing all of it goes beyond the budget.
func (r *Replay) heavy(b Budget) bool {
	cells := 0
	for n := range r.step {
		cells += CellsOf(n)
	}
	for n := range r.start {
		cells += CellsOf(n)
	}
	return cells > b.Cells || r.ahead > b.Work
}

// Plan makes the replay of a tensor: of all of it, or, where that goes beyond the budget, one that rows are asked of.
func Plan(st *store.Store, b Budget, job string, root *store.Node) (*Replay, error) {
	st.Lock()
	defer st.Unlock()
	rep, err := NewReplay(job).Of(root)
	if err != nil || !rep.heavy(b) {
		return rep, err
	}
	rep.release(st)
	rep = NewReplay(job)
	rep.Most = b.LargestStage()
	return rep.Of(root)
}

// Close gives back what the replay held.
func (r *Replay) Close(s *store.Store) {
	s.Lock()
	defer s.Unlock()
	r.release(s)
}

// Sampled says that a replay is asked for rows.
func (r *Replay) Sampled() bool { return r.Most > 0 }

// Notes say what the replay could not reach.
func (r *Replay) Notes() []string {
	var notes []string
	for _, n := range r.stand {
		notes = append(notes, fmt.Sprintf("checked only from %s %s on: %s, which it came from, was freed",
			n.Called(), store.ShapeWords(n.Shape, n.Axes), r.lostUnder(n).Called()))
	}
	for _, n := range r.large {
		notes = append(notes, fmt.Sprintf("checked only from %s %s on, which takes too long to compute again: check it by itself",
			n.Called(), store.ShapeWords(n.Shape, n.Axes)))
	}
	return notes
}

// lostUnder is the freed leaf because of which the values of n stand in.
func (r *Replay) lostUnder(n *store.Node) *store.Node {
	for _, in := range n.In {
		if leaf := r.lost[in]; leaf != nil {
			return leaf
		}
	}
	return n
}

// substitute starts from the values of n where computing this part of it takes too much.
func (r *Replay) substitute(n *store.Node, p Part) {
	if a := r.spare[n]; a != nil && r.start[n] == nil && float64(cellsIn(n, p))*reduction(n) > r.Most {
		r.start[n] = a
		delete(r.spare, n)
		delete(r.step, n)
		r.large = append(r.large, n)
	}
}

// spend refuses a replay that would take too much memory or time.
func (r *Replay) spend(n *store.Node, p Part) error {
	cells := cellsIn(n, p)
	r.cells += cells
	if r.step[n] {
		r.work += float64(cells) * reduction(n)
	}
	if r.cells > maxReplayCells || r.work > maxReplayWork {
		return tooLarge(r.job)
	}
	return nil
}

func tooLarge(job string) error {
	return wire.Errorf(wire.Refused, "%s: the chain is too large to replay whole: take a head or some rows of its leaves first", job)
}

// CellsOf is how many cells n has.
func CellsOf(n *store.Node) int {
	cells := 1
	for _, s := range n.Shape {
		cells *= s
	}
	return cells
}

// cellsIn is how many cells a part has.
func cellsIn(n *store.Node, p Part) int {
	cells := CellsOf(n)
	h, s, _ := store.Fold(n.Shape)
	if p.h >= 0 {
		cells /= h
	}
	if p.s >= 0 {
		cells /= s
	}
	return cells
}

// Effort is roughly how many multiply-adds n takes.
func Effort(n *store.Node) float64 { return float64(CellsOf(n)) * reduction(n) }

// reduction is roughly how many multiply-adds a cell of n takes.
func reduction(n *store.Node) float64 {
	switch n.Op {
	case wire.OpScores, wire.OpLinear, wire.OpContext:
		return float64(store.Last(n.In[0].Shape))
	case wire.OpLayerNorm, wire.OpRMSNorm, wire.OpGELU, wire.OpGELUTanh, wire.OpSiLU:
		return 8 // some sums, or a function
	case wire.OpPrefill, wire.OpDecode:
		return 2 * float64(n.In[1].Rows())
	}
	return 1
}
