package judge

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/resident/chain"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/resident/trust"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference/detect"
)

// rung is a cell of scores or of a context, by what it is computed from.
type rung struct {
	q, k, v *store.Node // v nil: a score
	params  wire.Params // of the scores
	mask    cudaops.Mask
	weighs  *store.Node // what makes weights of the scores
	carry   store.Carried
}

// rungOf finds queries, keys and values behind a tensor.
func rungOf(n *store.Node) (rung, error) {
	for n.Op == wire.OpAxes {
		n = n.In[0]
	}
	switch n.Op {
	case wire.OpScores:
		return rung{q: n.In[0], k: n.In[1], params: n.Params}, nil
	case wire.OpPrefill:
		return rung{n.In[0], n.In[1], n.In[2], n.Params, chain.MaskOf(n.Params, n.In[0].Rows(), n.In[1].Rows()), n, store.Carried{}}, nil
	case wire.OpDecode:
		return rung{n.In[0], n.In[1], n.In[2], n.Params, chain.DecodeMask(n.Params, n.In[1].Rows()), n, store.Carried{}}, nil
	case wire.OpContext:
		p := n.In[0]
		if p.Op == wire.OpSoftmax && p.In[0].Op == wire.OpScores {
			s := p.In[0]
			return rung{s.In[0], s.In[1], n.In[1], s.Params, chain.SoftmaxMask(p.Params, s.Meta), p, s.Carry}, nil
		}
	}
	return rung{}, errors.New("needs a tensor of Scores, Context, Prefill or Decode: a score or an element of the context")
}

// ladder computes one cell in every number format.
func (j *Judge) ladder(r wire.Request) (wire.Answer, error) {
	const name = "Ladder"
	if len(r.IDs) != 1 {
		return wire.Answer{}, wire.Errorf(wire.BadRequest, "%s: %d tensors", name, len(r.IDs))
	}
	in, nodes, inputs, done, err := j.Use(name, r.IDs, []string{"x"})
	if err != nil {
		return wire.Answer{}, err
	}
	defer done()
	at, off := []int{0, 0, 0}, math.NaN()
	for _, s := range r.Question.Settings {
		switch {
		case s.Name == "cell" && len(s.Numbers) == 3:
			for i, n := range s.Numbers {
				at[i] = int(n)
			}
		case s.Name == "off" && len(s.Numbers) == 1:
			off = s.Numbers[0]
		}
	}
	x, root := store.ViewOf(in[0].Meta), nodes[0]
	if len(x.Shape) > 3 || at[0] < 0 || at[0] >= x.H || at[1] < 0 || at[1] >= x.S || at[2] < 0 || at[2] >= x.D {
		return wire.Answer{}, wire.Errorf(wire.BadInput, "%s: head %d, row %d, column %d is no cell of it%s", name, at[0], at[1], at[2], store.About(nil, inputs))
	}
	g, err := rungOf(root)
	if err != nil {
		return wire.Answer{}, refusedAs(name, err, inputs)
	}
	rep, err := chain.Plan(j.Store, j.budget, name, root)
	if err != nil {
		return wire.Answer{}, err
	}
	defer rep.Close(j.Store)
	cell, err := j.cell(rep, g, at)
	if err != nil {
		return wire.Answer{}, store.Explain(name, err, inputs)
	}
	rungs, err := detect.Ladder(cell)
	if err != nil {
		return wire.Answer{}, refusedAs(name, err, inputs)
	}
	truth, err := rep.EvalPart(j.Ctx, j.Device, root, chain.Row(at[0], at[1]).Turned(root.Meta))
	if err != nil {
		return wire.Answer{}, store.Explain(name, err, inputs)
	}
	values, err := store.Fetch(j.Device, in[0])
	if err != nil {
		return wire.Answer{}, store.Explain(name, err, inputs)
	}
	i, want := (at[0]*x.S+at[1])*x.D+at[2], truth.Rounding()
	return j.finish(ladderOutcome(rungs, x.Where(i, nil), values[i], want.Value[at[2]], want.Bound[at[2]], off))
}

// cell is what the ladder computes: rows before RoPE where both queries and keys come from it.
func (j *Judge) cell(rep *chain.Replay, g rung, at []int) (detect.Cell, error) {
	h, row := at[0], at[1]
	cell := detect.Cell{Column: at[2], Scale: chain.Scale(g.params, store.Last(g.q.Shape))}
	q, k := g.q, g.k
	if q.Op == wire.OpRoPE && k.Op == wire.OpRoPE && sameTurn(q.Params, k.Params) {
		keys, query := chain.ReferenceRoPE(k.Params), chain.ReferenceRoPE(q.Params)
		cell.RoPE, cell.QueryPosition = &keys, query.Position(row)
		q, k = q.In[0], k.In[0]
	}
	kv := h / max(1, chain.HeadsIn(g.q.Meta)/max(1, chain.HeadsIn(g.k.Meta)))
	rows := func(n *store.Node, p chain.Part) (*mat.Dense, error) {
		t, err := rep.EvalPart(j.Ctx, j.Device, n, p.Turned(n.Meta))
		if err != nil {
			return nil, err
		}
		hs, err := chain.ByHead(t)
		if err != nil {
			return nil, err
		}
		return mat.DenseCopyOf(hs.Value[0]), nil
	}
	query, err := rows(q, chain.Row(h, row))
	if err != nil {
		return cell, err
	}
	cell.Query = mat.Row(nil, 0, query)
	if cell.Keys, err = rows(k, chain.Row(kv, -1)); err != nil {
		return cell, err
	}
	if g.v == nil {
		return cell, nil
	}
	if cell.Values, err = rows(g.v, chain.Row(kv, -1)); err != nil {
		return cell, err
	}
	variant, err := rep.RowVariant(j.Ctx, j.Device, g.weighs, g.carry, g.mask, h, row)
	if err != nil {
		return cell, err
	}
	keys, _ := cell.Keys.Dims()
	masked, allowed := chain.Visible(g.mask, keys), variant.Visible(0, nil)
	cell.Visible = func(key int) bool {
		return (masked == nil || masked(row, key)) && (allowed == nil || allowed(0, key))
	}
	cell.Softcap, cell.Own = variant.Softcap, variant.Diagonal
	if variant.Bias != nil {
		cell.Bias = variant.Bias[0].RawRowView(0)
	}
	if variant.Slopes != nil {
		cell.Slope = variant.Slopes[0]
	}
	if variant.Sinks != nil {
		cell.Sink = &variant.Sinks[0]
	}
	return cell, nil
}

// sameTurn says that two rotations differ in their positions alone.
func sameTurn(a, b wire.Params) bool {
	if a.Rotary != b.Rotary || a.Base != b.Base || a.Interleaved != b.Interleaved || a.Magnitude != b.Magnitude || len(a.InvFreq) != len(b.InvFreq) {
		return false
	}
	for i := range a.InvFreq {
		if a.InvFreq[i] != b.InvFreq[i] {
			return false
		}
	}
	return true
}

// ladderOutcome says where the resident value, and a tolerance, lie on the ladder.
func ladderOutcome(rungs detect.Rungs, where string, got float32, want, bound, off float64) trust.Outcome {
	var o trust.Outcome
	err := math.Abs(float64(got) - want)
	o.Pass = err <= bound
	o.Sentence = fmt.Sprintf("%s: the tensor holds %.9g, off by %.2g of at most %.2g", where, got, err, bound)
	if !o.Pass {
		o.Faults = append(o.Faults, wire.Fault{Kind: "precision", Detail: o.Sentence})
	}
	verdict := "pass"
	if !o.Pass {
		verdict = "FAIL"
	}
	o.Report = fmt.Sprintf("Ladder: %s: %s\n", verdict, o.Sentence)
	for _, r := range rungs {
		o.Report += fmt.Sprintf("  %v\n", r)
		o.Facts = append(o.Facts, wire.Fact{Name: "rung", Words: []string{r.Name}, Numbers: []float64{r.Value, r.Error}})
	}
	if math.IsNaN(off) {
		off = err
	}
	place := rungs.Place(off)
	o.Report += "  " + place + "\n"
	o.Picture = trust.LadderPicture(rungs, off)
	o.Facts = append(o.Facts, wire.Fact{Name: "place", Words: []string{place}}, wire.Fact{Name: "error", Numbers: []float64{err, bound}})
	return o
}
