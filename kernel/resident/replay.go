package resident

import (
	"context"
	"fmt"

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

// replay evaluates a lineage in float64, or parts of it. It is made with the store's lock held and then runs without.
type replay struct {
	start map[*node]*array // where the replay starts: leaves, and what stands in for what cannot be replayed
	step  map[*node]bool
	lost  map[*node]*node  // a node that cannot be replayed: the freed leaf because of which
	stand []*node          // steps whose own values stand in, since a leaf of theirs was freed
	spare map[*node]*array // values of steps, to stand in for those that take more than most; nil: none do
	large []*node          // those for which they do
	done  map[whichPart]truth
	data  map[*node][]float32 // the values of starts of which parts are read
	job   string              // what it is for, in refusals
	// rounded: the values where the replay starts are those of the user rounded to f32, and may be off by that.
	rounded bool
	quiet   bool    // does not tell how far it is
	most    float64 // multiply-adds
	cells   int
	work    float64 // of the steps so far
	ahead   float64 // of all steps
	behind  float64 // of the steps that are done
}

type whichPart struct {
	n *node
	part
}

func emptyReplay(job string) *replay {
	return &replay{start: map[*node]*array{}, step: map[*node]bool{}, lost: map[*node]*node{}, done: map[whichPart]truth{}, data: map[*node][]float32{}, spare: map[*node]*array{}, job: job}
}

// newReplay looks what can be replayed of root, and holds the arrays that this needs. err names the leaf that is missing.
func newReplay(root *node) (*replay, error) { return emptyReplay("Check").of(root) }

func (r *replay) of(root *node) (*replay, error) {
	if leaf := r.resolve(root, true); leaf != nil {
		return nil, wire.Errorf(wire.Freed, "%s: %s cannot be replayed: its leaf %s %s was freed", r.job, root.called(), leaf.called(), shapeWords(leaf.shape, leaf.axes))
	}
	for n := range r.step {
		r.ahead += effort(n)
		if n != root && n.live != nil && r.most > 0 {
			r.spare[n] = n.live
		}
	}
	for _, held := range []map[*node]*array{r.start, r.spare} {
		for _, a := range held {
			a.refs++
		}
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
	for _, held := range []map[*node]*array{r.start, r.spare} {
		for n, a := range held {
			if held[n] = nil; a != nil {
				s.dropArray(a)
			}
		}
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
	return r.evalPart(ctx, d, n, everything)
}

// evalPart is eval for a part of n; only what that takes is computed.
func (r *replay) evalPart(ctx context.Context, d *cudaops.Device, n *node, p part) (truth, error) {
	p = p.of(n.meta)
	if t, ok := r.done[whichPart{n, p}]; ok {
		return t, nil
	}
	if err := ctx.Err(); err != nil {
		return truth{}, err
	}
	r.substitute(n, p)
	if err := r.spend(n, p); err != nil {
		return truth{}, err
	}
	t, err := r.compute(ctx, d, n, p)
	if err == nil {
		r.done[whichPart{n, p}] = t
		if r.step[n] && p == everything && !r.quiet {
			r.behind += effort(n)
			taskOf(ctx).advance(r.behind / r.ahead)
		}
	}
	return t, err
}

func (r *replay) compute(ctx context.Context, d *cudaops.Device, n *node, p part) (truth, error) {
	if r.start[n] != nil {
		return r.leaf(d, n, p)
	}
	switch {
	case n.op == wire.OpAppend:
		return r.appended(ctx, d, n, p)
	case n.op == wire.OpSwap && len(n.shape) == 2 && p != everything:
		t, err := r.evalPart(ctx, d, n, everything)
		return cutTruth(t, p), err
	case (n.op == wire.OpSplit || n.op == wire.OpHeads) && p.h >= 0 && p.s < 0:
		return r.headOf(ctx, d, n, p)
	}
	w := needs(n, p)
	var in []truth
	for i, x := range n.in {
		t, err := r.evalPart(ctx, d, x, w.in[i])
		if err != nil {
			return truth{}, err
		}
		in = append(in, t)
	}
	if err := ctx.Err(); err != nil { // the way here was quick, what follows is not
		return truth{}, err
	}
	t, err := apply(n, w.params, in)
	if err != nil {
		return truth{}, err
	}
	t = cutTruth(t, part{w.pick, -1})
	t.meta = n.meta.cut(p)
	return t, nil
}

// apply is what the op of n makes of these inputs.
func apply(n *node, p wire.Params, in []truth) (truth, error) {
	def := ops[n.op]
	outs, err := def.replay(p, in)
	if err != nil {
		return truth{}, fmt.Errorf("replay of %v: %w", n.op, err)
	}
	spread, err := noiseOf(def, p, in, n.out)
	if err != nil {
		return truth{}, fmt.Errorf("noise of %v: %w", n.op, err)
	}
	return truth{outs[n.out], spread, n.meta}, nil
}

// leaf is a part of where the replay starts.
func (r *replay) leaf(d *cudaops.Device, n *node, p part) (truth, error) {
	data, err := r.fetch(d, n, p == everything)
	if err != nil {
		return truth{}, err
	}
	return r.begin(partFrom(data, n.shape, p), n.meta.cut(p)), nil
}

// begin takes values as the start of a chain.
func (r *replay) begin(values reference.Heads, m meta) truth {
	leaf := bound.Leaf(values)
	still := noise.Exact(values)
	if r.rounded {
		leaf.Err, still = roundings(values), noise.Rounded(values)
	}
	return truth{leaf, still.Var, m}
}

// fetch downloads a start, and keeps it where it will be read again.
func (r *replay) fetch(d *cudaops.Device, n *node, once bool) ([]float32, error) {
	if data := r.data[n]; data != nil {
		return data, nil
	}
	data, err := d.Download(r.start[n].buf)
	if err == nil && !once {
		r.data[n] = data
	}
	return data, err
}

// appended joins the rows of a run of appends, or finds the one asked for.
func (r *replay) appended(ctx context.Context, d *cudaops.Device, n *node, p part) (truth, error) {
	at := p.turned(n.meta)
	row := at.s
	var in []truth
	for _, x := range r.inputs(n) {
		if row >= 0 && row >= x.rows() {
			row -= x.rows()
			continue
		}
		t, err := r.evalPart(ctx, d, x, part{at.h, row}.turned(x.meta))
		if err != nil || row >= 0 {
			t.meta = n.meta.cut(p)
			return t, err
		}
		in = append(in, t)
	}
	t, err := apply(n, n.params, in)
	t.meta = n.meta.cut(p)
	return t, err
}

// headOf is a whole head of rows that were taken apart: of the rows, only its columns are computed.
func (r *replay) headOf(ctx context.Context, d *cudaops.Device, n *node, p part) (truth, error) {
	cols, err := headColumns(n, p.h)
	if err != nil {
		return truth{}, err
	}
	t, err := r.columns(ctx, d, n.in[0], cols)
	t.meta = n.meta.cut(p)
	return t, err
}

// columns are some columns of rows [seq, hidden]. Where the rows start a replay, or come from weights, no others are looked at.
func (r *replay) columns(ctx context.Context, d *cudaops.Device, n *node, cols []int) (truth, error) {
	m := meta{shape: []int{n.shape[0], len(cols)}, axes: n.axes}
	switch {
	case r.start[n] != nil:
		data, err := r.fetch(d, n, false)
		if err != nil {
			return truth{}, err
		}
		width := last(n.shape)
		out := mat.NewDense(n.shape[0], len(cols), nil)
		for i := range n.shape[0] {
			for j, c := range cols {
				out.Set(i, j, float64(data[i*width+c]))
			}
		}
		return r.begin(reference.Heads{out}, m), nil
	case n.op == wire.OpLinear:
		x, err := r.evalPart(ctx, d, n.in[0], everything)
		if err != nil {
			return truth{}, err
		}
		in := []truth{x}
		for i, w := range n.in[1:] {
			t, err := r.evalPart(ctx, d, w, everything)
			if err != nil {
				return truth{}, err
			}
			pick := columnsOf
			if i == 0 { // a row of weights makes a column of the result
				pick = rowsOf
			}
			in = append(in, truth{bound.Heads{Value: pick(t.Value, cols), Err: pick(t.Err, cols)}, pick(t.noise, cols), t.meta})
		}
		r.work += float64(n.shape[0]) * float64(len(cols)) * reduction(n)
		return apply(n, n.params, in)
	}
	t, err := r.evalPart(ctx, d, n, everything)
	if err != nil {
		return truth{}, err
	}
	return truth{bound.Heads{Value: columnsOf(t.Value, cols), Err: columnsOf(t.Err, cols)}, columnsOf(t.noise, cols), m}, nil
}

// substitute starts from the values of n where computing this part of it takes too much.
func (r *replay) substitute(n *node, p part) {
	if a := r.spare[n]; a != nil && r.start[n] == nil && float64(cellsIn(n, p))*reduction(n) > r.most {
		r.start[n] = a
		delete(r.spare, n)
		delete(r.step, n)
		r.large = append(r.large, n)
	}
}

// spend refuses a replay that would take too much memory or time.
func (r *replay) spend(n *node, p part) error {
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

func cellsOf(n *node) int {
	cells := 1
	for _, s := range n.shape {
		cells *= s
	}
	return cells
}

// cellsIn is how many cells a part has.
func cellsIn(n *node, p part) int {
	cells := cellsOf(n)
	h, s, _ := fold(n.shape)
	if p.h >= 0 {
		cells /= h
	}
	if p.s >= 0 {
		cells /= s
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
