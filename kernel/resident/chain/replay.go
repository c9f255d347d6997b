package chain

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/resident/store"
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

// Replay evaluates a lineage in float64, or parts of it. It is made with the store's lock held and then runs without.
type Replay struct {
	start map[*store.Node]*store.Array // where the replay starts: leaves, and what stands in for what cannot be replayed
	step  map[*store.Node]bool
	lost  map[*store.Node]*store.Node  // a node that cannot be replayed: the freed leaf because of which
	stand []*store.Node                // steps whose own values stand in, since a leaf of theirs was freed
	spare map[*store.Node]*store.Array // values of steps, to stand in for those that take more than most; nil: none do
	large []*store.Node                // those for which they do
	done  map[whichPart]Truth
	data  map[*store.Node][]float32 // the values of starts of which parts are read
	job   string                    // what it is for, in refusals
	// Rounded: the values where the replay starts are those of the user rounded to f32, and may be off by that.
	Rounded bool
	Quiet   bool    // does not tell how far it is
	Most    float64 // multiply-adds, from which on a step stands for itself; 0: none does
	cells   int
	work    float64 // of the steps so far
	ahead   float64 // of all steps
	behind  float64 // of the steps that are done
}

type whichPart struct {
	n *store.Node
	Part
}

// NewReplay is one for a purpose, as refusals call it. It is given a root by Of, or a start and a step by StartAt and Only.
func NewReplay(job string) *Replay {
	return &Replay{job: job, start: map[*store.Node]*store.Array{}, step: map[*store.Node]bool{}, lost: map[*store.Node]*store.Node{},
		done: map[whichPart]Truth{}, data: map[*store.Node][]float32{}, spare: map[*store.Node]*store.Array{}}
}

// Of looks what can be replayed of root, and holds the arrays that this needs. An error names the leaf that is missing. The store's lock
// is held.
func (r *Replay) Of(root *store.Node) (*Replay, error) {
	if leaf := r.resolve(root, true); leaf != nil {
		return nil, wire.Errorf(wire.Freed, "%s: %s cannot be replayed: its leaf %s %s was freed", r.job, root.Called(), leaf.Called(), store.ShapeWords(leaf.Shape, leaf.Axes))
	}
	for n := range r.step {
		r.ahead += Effort(n)
		if n != root && n.Here() != nil && r.Most > 0 {
			r.spare[n] = n.Here()
		}
	}
	for _, held := range []map[*store.Node]*store.Array{r.start, r.spare} {
		for _, a := range held {
			a.Hold()
		}
	}
	return r, nil
}

// StartAt makes the replay start at n, from these values of it, or, where they are nil, those of its array.
func (r *Replay) StartAt(n *store.Node, a *store.Array, values []float32) {
	if r.start[n] = a; values != nil {
		r.data[n] = values
	}
}

// Only makes n the one step of the replay, whose inputs are where it starts.
func (r *Replay) Only(n *store.Node) { r.step[n] = true }

// Stood is how many steps stand for themselves: those whose leaves were freed, and those that take too long to compute again.
func (r *Replay) Stood() (freed, large int) { return len(r.stand), len(r.large) }

// resolve returns nil where n can be replayed, else the freed leaf that it lacks.
func (r *Replay) resolve(n *store.Node, root bool) *store.Node {
	if leaf, ok := r.lost[n]; ok {
		return leaf
	}
	if r.start[n] != nil || r.step[n] {
		return nil
	}
	if n.Op == wire.OpNone {
		if n.Here() == nil {
			r.lost[n] = n
			return n
		}
		r.start[n] = n.Here()
		return nil
	}
	var missing *store.Node
	for _, in := range n.In {
		if leaf := r.resolve(in, false); leaf != nil && missing == nil {
			missing = leaf
		}
	}
	switch {
	case missing == nil:
		r.step[n] = true
	case !root && n.Here() != nil:
		r.start[n] = n.Here()
		r.stand = append(r.stand, n)
	default:
		r.lost[n] = missing
		return missing
	}
	return nil
}

// release gives back what the replay held. The store's lock is held.
func (r *Replay) release(s *store.Store) {
	for _, held := range []map[*store.Node]*store.Array{r.start, r.spare} {
		for n, a := range held {
			if held[n] = nil; a != nil {
				s.DropArray(a)
			}
		}
	}
}

// inputs are those of a step. A run of appends is one step with many inputs.
func (r *Replay) inputs(n *store.Node) []*store.Node {
	if n.Op != wire.OpAppend {
		return n.In
	}
	base, rows := n, []*store.Node(nil)
	for base.Op == wire.OpAppend && r.step[base] {
		rows = append(rows, base.In[1])
		base = base.In[0]
	}
	in := []*store.Node{base}
	for i := len(rows) - 1; i >= 0; i-- {
		in = append(in, rows[i])
	}
	return in
}

// Eval is the float64 value of n and the bound on what an f32 chain may be off by.
func (r *Replay) Eval(ctx context.Context, d *cudaops.Device, n *store.Node) (Truth, error) {
	return r.EvalPart(ctx, d, n, everything)
}

// EvalPart is Eval for a part of n; only what that takes is computed.
func (r *Replay) EvalPart(ctx context.Context, d *cudaops.Device, n *store.Node, p Part) (Truth, error) {
	p = p.of(n.Meta)
	if t, ok := r.done[whichPart{n, p}]; ok {
		return t, nil
	}
	if err := ctx.Err(); err != nil {
		return Truth{}, err
	}
	r.substitute(n, p)
	if err := r.spend(n, p); err != nil {
		return Truth{}, err
	}
	t, err := r.compute(ctx, d, n, p)
	if err == nil {
		r.done[whichPart{n, p}] = t
		if r.step[n] && p == everything && !r.Quiet {
			r.behind += Effort(n)
			store.ProgressOf(ctx).Advance(r.behind / r.ahead)
		}
	}
	return t, err
}

func (r *Replay) compute(ctx context.Context, d *cudaops.Device, n *store.Node, p Part) (Truth, error) {
	if r.start[n] != nil {
		return r.leaf(d, n, p)
	}
	switch {
	case n.Op == wire.OpAppend:
		return r.appended(ctx, d, n, p)
	case n.Op == wire.OpSwap && len(n.Shape) == 2 && p != everything:
		t, err := r.EvalPart(ctx, d, n, everything)
		return cutTruth(t, p), err
	case n.Op == wire.OpEmbedding && r.start[n.In[0]] != nil:
		return r.embedded(d, n, p)
	case (n.Op == wire.OpSplit || n.Op == wire.OpHeads) && p.h >= 0 && p.s < 0:
		return r.headOf(ctx, d, n, p)
	}
	w := needs(n, p)
	var in []Truth
	for i, x := range n.In {
		t, err := r.EvalPart(ctx, d, x, w.in[i])
		if err != nil {
			return Truth{}, err
		}
		in = append(in, t)
	}
	if err := ctx.Err(); err != nil { // the way here was quick, what follows is not
		return Truth{}, err
	}
	t, err := apply(n, w.params, in)
	if err != nil {
		return Truth{}, err
	}
	t = cutTruth(t, Part{w.pick, -1})
	t.Meta = p.cut(n.Meta)
	return t, nil
}

// apply is what the op of n makes of these inputs.
func apply(n *store.Node, p wire.Params, in []Truth) (Truth, error) {
	def := ops[n.Op]
	outs, err := def.replay(p, in)
	if err != nil {
		return Truth{}, fmt.Errorf("replay of %v: %w", n.Op, err)
	}
	spread, err := noiseOf(def, p, in, n.Out)
	if err != nil {
		return Truth{}, fmt.Errorf("noise of %v: %w", n.Op, err)
	}
	return Truth{outs[n.Out], spread, n.Meta}, nil
}

// leaf is a part of where the replay starts.
func (r *Replay) leaf(d *cudaops.Device, n *store.Node, p Part) (Truth, error) {
	data, err := r.fetch(d, n, p == everything)
	if err != nil {
		return Truth{}, err
	}
	return r.begin(partFrom(data, n.Shape, p), p.cut(n.Meta)), nil
}

// begin takes values as the start of a chain.
func (r *Replay) begin(values reference.Heads, m store.Meta) Truth {
	leaf := bound.Leaf(values)
	still := noise.Exact(values)
	if r.Rounded {
		leaf.Err, still = Roundings(values), noise.Rounded(values)
	}
	return Truth{leaf, still.Var, m}
}

// fetch downloads a start, and keeps it where it will be read again.
func (r *Replay) fetch(d *cudaops.Device, n *store.Node, once bool) ([]float32, error) {
	if data := r.data[n]; data != nil {
		return data, nil
	}
	data, err := d.Download(r.start[n].Buf)
	if err == nil && !once {
		r.data[n] = data
	}
	return data, err
}

// appended joins the rows of a run of appends, or finds the one asked for.
func (r *Replay) appended(ctx context.Context, d *cudaops.Device, n *store.Node, p Part) (Truth, error) {
	at := p.Turned(n.Meta)
	row := at.s
	var in []Truth
	for _, x := range r.inputs(n) {
		if row >= 0 && row >= x.Rows() {
			row -= x.Rows()
			continue
		}
		t, err := r.EvalPart(ctx, d, x, Part{at.h, row}.Turned(x.Meta))
		if err != nil || row >= 0 {
			t.Meta = p.cut(n.Meta)
			return t, err
		}
		in = append(in, t)
	}
	t, err := apply(n, n.Params, in)
	t.Meta = p.cut(n.Meta)
	return t, err
}

// embedded takes from a table where the replay starts no more than the rows that are asked for.
func (r *Replay) embedded(d *cudaops.Device, n *store.Node, p Part) (Truth, error) {
	data, err := r.fetch(d, n.In[0], false)
	if err != nil {
		return Truth{}, err
	}
	tokens, dim := n.Params.Tokens, store.Last(n.Shape)
	if p.s >= 0 {
		tokens = tokens[p.s : p.s+1]
	}
	rows := make([]float32, 0, len(tokens)*dim)
	for _, token := range tokens {
		rows = append(rows, data[token*dim:(token+1)*dim]...)
	}
	m := p.cut(n.Meta)
	return r.begin(HeadsFrom(rows, m.Shape), m), nil
}

// headOf is a whole head of rows that were taken apart: of the rows, only its columns are computed.
func (r *Replay) headOf(ctx context.Context, d *cudaops.Device, n *store.Node, p Part) (Truth, error) {
	cols, err := headColumns(n, p.h)
	if err != nil {
		return Truth{}, err
	}
	t, err := r.columns(ctx, d, n.In[0], cols)
	t.Meta = p.cut(n.Meta)
	return t, err
}

// columns are some columns of rows [seq, hidden]. Where the rows start a replay, or come from weights, no others are looked at.
func (r *Replay) columns(ctx context.Context, d *cudaops.Device, n *store.Node, cols []int) (Truth, error) {
	m := store.Meta{Shape: []int{n.Shape[0], len(cols)}, Axes: n.Axes}
	switch {
	case r.start[n] != nil:
		data, err := r.fetch(d, n, false)
		if err != nil {
			return Truth{}, err
		}
		width := store.Last(n.Shape)
		out := mat.NewDense(n.Shape[0], len(cols), nil)
		for i := range n.Shape[0] {
			for j, c := range cols {
				out.Set(i, j, float64(data[i*width+c]))
			}
		}
		return r.begin(reference.Heads{out}, m), nil
	case n.Op == wire.OpLinear:
		x, err := r.EvalPart(ctx, d, n.In[0], everything)
		if err != nil {
			return Truth{}, err
		}
		in := []Truth{x}
		for i, w := range n.In[1:] {
			t, err := r.EvalPart(ctx, d, w, everything)
			if err != nil {
				return Truth{}, err
			}
			pick := columnsOf
			if i == 0 { // a row of weights makes a column of the result
				pick = rowsOf
			}
			in = append(in, Truth{bound.Heads{Value: pick(t.Value, cols), Err: pick(t.Err, cols)}, pick(t.noise, cols), t.Meta})
		}
		r.work += float64(n.Shape[0]) * float64(len(cols)) * reduction(n)
		return apply(n, n.Params, in)
	}
	t, err := r.EvalPart(ctx, d, n, everything)
	if err != nil {
		return Truth{}, err
	}
	return Truth{bound.Heads{Value: columnsOf(t.Value, cols), Err: columnsOf(t.Err, cols)}, columnsOf(t.noise, cols), m}, nil
}
