package resident

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/bound"
	"github.com/attnb/attnb/reference/noise"
)

// Limits of one replay: it runs on one core or two, in float64, and holds value, bound and noise of every step.
const (
	maxReplayCells = 1 << 26 // 1.5 GiB
	maxReplayWork  = 1 << 35 // multiply-adds: a minute or two
)

// replay evaluates a lineage in float64. It is made with the store's lock held and then runs without.
type replay struct {
	start map[*node]*array // where the replay starts: leaves, and what stands in for what was lost
	step  map[*node]bool
	lost  map[*node]*node // a node that cannot be replayed: the freed leaf because of which
	stand []*node         // steps whose own values stand in, since a leaf of theirs was freed
	done  map[*node]truth
	job   string // what it is for, in refusals
	// rounded: the values where the replay starts are those of the user rounded to f32, and may be off by that.
	rounded bool
	cells   int
	work    float64 // of the steps so far
	ahead   float64 // of all steps
	behind  float64 // of the steps that are done
}

// newReplay looks what can be replayed of root, and holds the arrays that this needs. err names the leaf that is missing.
func newReplay(root *node) (*replay, error) {
	r := &replay{start: map[*node]*array{}, step: map[*node]bool{}, lost: map[*node]*node{}, done: map[*node]truth{}, job: "Check"}
	if leaf := r.resolve(root, true); leaf != nil {
		return nil, wire.Errorf(wire.Freed, "Check: %s cannot be replayed: its leaf %s %s was freed", root.called(), leaf.called(), shapeWords(leaf.shape, leaf.axes))
	}
	for _, a := range r.start {
		a.refs++
	}
	for n := range r.step {
		r.ahead += effort(n)
	}
	return r, nil
}

// resolve returns nil where n can be replayed, else the freed leaf that it lacks.
func (r *replay) resolve(n *node, root bool) *node {
	if leaf, ok := r.lost[n]; ok {
		return leaf
	}
	if r.start[n] != nil || r.step[n] {
		return nil
	}
	if n.op == wire.OpNone {
		if n.leaf == nil {
			r.lost[n] = n
			return n
		}
		r.start[n] = n.leaf
		return nil
	}
	var missing *node
	for _, in := range n.in {
		if leaf := r.resolve(in, false); leaf != nil && missing == nil {
			missing = leaf
		}
	}
	switch {
	case missing == nil:
		r.step[n] = true
	case !root && n.live != nil:
		r.start[n] = n.live
		r.stand = append(r.stand, n)
	default:
		r.lost[n] = missing
		return missing
	}
	return nil
}

// release gives back what the replay held. The store's lock is held.
func (r *replay) release(s *store) {
	for _, a := range r.start {
		s.dropArray(a)
	}
}

// inputs are those of a step. A run of appends is one step with many inputs.
func (r *replay) inputs(n *node) []*node {
	if n.op != wire.OpAppend {
		return n.in
	}
	base, rows := n, []*node(nil)
	for base.op == wire.OpAppend && r.step[base] {
		rows = append(rows, base.in[1])
		base = base.in[0]
	}
	in := []*node{base}
	for i := len(rows) - 1; i >= 0; i-- {
		in = append(in, rows[i])
	}
	return in
}

// eval is the float64 value of n and the bound on what an f32 chain may be off by.
func (r *replay) eval(ctx context.Context, d *cudaops.Device, n *node) (truth, error) {
	if t, ok := r.done[n]; ok {
		return t, nil
	}
	if err := ctx.Err(); err != nil {
		return truth{}, err
	}
	if err := r.spend(n); err != nil {
		return truth{}, err
	}
	t, err := r.compute(ctx, d, n)
	if err == nil {
		r.done[n] = t
		if r.step[n] {
			r.behind += effort(n)
			taskOf(ctx).advance(r.behind / r.ahead)
		}
	}
	return t, err
}

func (r *replay) compute(ctx context.Context, d *cudaops.Device, n *node) (truth, error) {
	if a := r.start[n]; a != nil {
		data, err := d.Download(a.buf)
		if err != nil {
			return truth{}, err
		}
		leaf := bound.Leaf(headsFrom(data, n.shape))
		still := noise.Exact(leaf.Value)
		if r.rounded {
			leaf.Err, still = roundings(leaf.Value), noise.Rounded(leaf.Value)
		}
		return truth{leaf, still.Var, n.meta}, nil
	}
	var in []truth
	for _, i := range r.inputs(n) {
		t, err := r.eval(ctx, d, i)
		if err != nil {
			return truth{}, err
		}
		in = append(in, t)
	}
	if err := ctx.Err(); err != nil { // the way here was quick, what follows is not
		return truth{}, err
	}
	def := ops[n.op]
	outs, err := def.replay(n.params, in)
	if err != nil {
		return truth{}, fmt.Errorf("replay of %v: %w", n.op, err)
	}
	spread, err := noiseOf(def, n.params, in, n.out)
	if err != nil {
		return truth{}, fmt.Errorf("noise of %v: %w", n.op, err)
	}
	return truth{outs[n.out], spread, n.meta}, nil
}

// spend refuses a replay that would take too much memory or time.
func (r *replay) spend(n *node) error {
	r.cells += cellsOf(n)
	if r.step[n] {
		r.work += effort(n)
	}
	if r.cells > maxReplayCells || r.work > maxReplayWork {
		return wire.Errorf(wire.Refused, "%s: the chain is too large to replay whole: take a head or some rows of its leaves first", r.job)
	}
	return nil
}

func cellsOf(n *node) int {
	cells := 1
	for _, s := range n.shape {
		cells *= s
	}
	return cells
}

// effort is roughly how many multiply-adds n takes.
func effort(n *node) float64 { return float64(cellsOf(n)) * reduction(n) }

// reduction is roughly how many multiply-adds a cell of n takes.
func reduction(n *node) float64 {
	switch n.op {
	case wire.OpScores, wire.OpLinear, wire.OpContext:
		return float64(last(n.in[0].shape))
	case wire.OpPrefill, wire.OpDecode:
		return 2 * float64(n.in[1].rows())
	}
	return 1
}

// roundings is how far each value may be from the real number that was rounded to it.
func roundings(hs reference.Heads) reference.Heads {
	const u = 0x1p-24
	out := make(reference.Heads, len(hs))
	for i, m := range hs {
		out[i] = dense(m)
		out[i].Apply(func(_, _ int, v float64) float64 { return max(u*math.Abs(v), 0x1p-150) }, m)
	}
	return out
}

// headsFrom is packed data as matrices.
func headsFrom(data []float32, shape []int) reference.Heads {
	h, s, d := fold(shape)
	out := make(reference.Heads, h)
	for i := range out {
		cells := make([]float64, s*d)
		for k, v := range data[i*s*d : (i+1)*s*d] {
			cells[k] = float64(v)
		}
		out[i] = mat.NewDense(s, d, cells)
	}
	return out
}

// flat is the inverse of headsFrom, in float64.
func flat(hs reference.Heads) []float64 {
	var out []float64
	for _, m := range hs {
		rows, _ := m.Dims()
		for i := range rows {
			out = append(out, m.RawRowView(i)...)
		}
	}
	return out
}
