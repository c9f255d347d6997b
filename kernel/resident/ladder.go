package resident

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/resident/trust"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference/detect"
)

// rung is a cell of scores or of a context, by what it is computed from.
type rung struct {
	q, k, v *node // v nil: a score
	params  wire.Params
	mask    cudaops.Mask
}

// rungOf finds queries, keys and values behind a tensor.
func rungOf(n *node) (rung, error) {
	for n.op == wire.OpAxes {
		n = n.in[0]
	}
	switch n.op {
	case wire.OpScores:
		return rung{q: n.in[0], k: n.in[1], params: n.params}, nil
	case wire.OpPrefill:
		return rung{n.in[0], n.in[1], n.in[2], n.params, maskOf(n.params, n.in[0].rows(), n.in[1].rows())}.plain(n.params, carried{})
	case wire.OpDecode:
		return rung{n.in[0], n.in[1], n.in[2], n.params, decodeMask(n.params, n.in[1].rows())}.plain(n.params, carried{})
	case wire.OpContext:
		p := n.in[0]
		if p.op == wire.OpSoftmax && p.in[0].op == wire.OpScores {
			s := p.in[0]
			return rung{s.in[0], s.in[1], n.in[1], s.params, softmaxMask(p.params, s.meta)}.plain(p.params, s.carry)
		}
	}
	return rung{}, errors.New("needs a tensor of Scores, Context, Prefill or Decode: a score or an element of the context")
}

// plain refuses scores that are changed before the softmax, which no rung computes. Masks are no matter.
func (g rung) plain(p wire.Params, c carried) (rung, error) {
	if !plainVariant(p, c, cudaops.Mask{}) {
		return g, errors.New("its rungs know no softcap, ALiBi, bias, allowed cells or sinks: take a tensor without")
	}
	return g, nil
}

// ladder computes one cell in every number format.
func (c *conn) ladder(r wire.Request) (wire.Answer, error) {
	const name = "Ladder"
	if len(r.IDs) != 1 {
		return wire.Answer{}, wire.Errorf(wire.BadRequest, "%s: %d tensors", name, len(r.IDs))
	}
	in, nodes, inputs, done, err := c.use(name, r.IDs, []string{"x"})
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
	x, root := arrange(in[0].meta), nodes[0]
	if len(x.shape) > 3 || at[0] < 0 || at[0] >= x.h || at[1] < 0 || at[1] >= x.s || at[2] < 0 || at[2] >= x.d {
		return wire.Answer{}, wire.Errorf(wire.BadInput, "%s: head %d, row %d, column %d is no cell of it%s", name, at[0], at[1], at[2], about(nil, inputs))
	}
	g, err := rungOf(root)
	if err != nil {
		return wire.Answer{}, refusedAs(name, err, inputs)
	}
	rep, err := c.plan(name, root)
	if err != nil {
		return wire.Answer{}, err
	}
	defer c.over(rep)
	cell, err := c.cell(rep, g, at)
	if err != nil {
		return wire.Answer{}, explain(name, err, inputs)
	}
	rungs, err := detect.Ladder(cell)
	if err != nil {
		return wire.Answer{}, refusedAs(name, err, inputs)
	}
	truth, err := rep.evalPart(c.ctx, c.d, root, part{at[0], at[1]}.turned(root.meta))
	if err != nil {
		return wire.Answer{}, explain(name, err, inputs)
	}
	values, err := fetch(c.d, in[0])
	if err != nil {
		return wire.Answer{}, explain(name, err, inputs)
	}
	i := (at[0]*x.s+at[1])*x.d + at[2]
	return c.finish(ladderOutcome(rungs, x.where(i, nil), values[i], flat(truth.Value)[at[2]], flat(truth.Err)[at[2]], off))
}

// cell is what the ladder computes: rows before RoPE where both queries and keys come from it.
func (c *conn) cell(rep *replay, g rung, at []int) (detect.Cell, error) {
	h, row := at[0], at[1]
	cell := detect.Cell{Column: at[2], Scale: scale(g.params, last(g.q.shape))}
	q, k := g.q, g.k
	if q.op == wire.OpRoPE && k.op == wire.OpRoPE && sameTurn(q.params, k.params) {
		keys, query := referenceRoPE(k.params), referenceRoPE(q.params)
		cell.RoPE, cell.QueryPosition = &keys, query.Position(row)
		q, k = q.in[0], k.in[0]
	}
	kv := h / max(1, headsIn(g.q.meta)/max(1, headsIn(g.k.meta)))
	rows := func(n *node, p part) (*mat.Dense, error) {
		t, err := rep.evalPart(c.ctx, c.d, n, p.turned(n.meta))
		if err != nil {
			return nil, err
		}
		hs, err := headsOf(t)
		if err != nil {
			return nil, err
		}
		return dense(hs.Value[0]), nil
	}
	query, err := rows(q, part{h, row})
	if err != nil {
		return cell, err
	}
	cell.Query = mat.Row(nil, 0, query)
	if cell.Keys, err = rows(k, part{kv, -1}); err != nil {
		return cell, err
	}
	if g.v != nil {
		if cell.Values, err = rows(g.v, part{kv, -1}); err != nil {
			return cell, err
		}
		keys, _ := cell.Keys.Dims()
		if sees := visible(g.mask, keys); sees != nil {
			cell.Visible = func(key int) bool { return sees(row, key) }
		}
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
	o.Facts = append(o.Facts, wire.Fact{Name: "place", Words: []string{place}}, wire.Fact{Name: "error", Numbers: []float64{err, bound}})
	return o
}
