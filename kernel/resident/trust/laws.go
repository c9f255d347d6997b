package trust

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/detect"
)

// law is the outcome of an invariant.
func law(of string, l detect.Check) Outcome {
	var o Outcome
	o.Pass, o.Sentence = l.Pass, l.String()
	if !l.Pass {
		o.Faults = append(o.Faults, found(detect.Faults{{Kind: detect.Kind(l.Name), Detail: l.String()}}, "").Faults...)
	}
	o.fact("worst", l.Worst)
	o.fact("floor", l.Floor)
	o.words("where", l.Where)
	o.report(of)
	o.Picture = lawPicture(of, l)
	return o
}

func normsKept(_ context.Context, c Case) (Outcome, error) {
	p, err := c.precision()
	if err != nil {
		return Outcome{}, err
	}
	if c.RoPE == nil {
		return Outcome{}, errors.New("needs the rotation that was applied")
	}
	l, err := detect.NormsKept(c.tensor("before"), c.tensor("after"), c.RoPE.Rotary, c.RoPE.Magnitude, p)
	if err != nil {
		return Outcome{}, err
	}
	return law("NormsKept", l), nil
}

func rowsSum(_ context.Context, c Case) (Outcome, error) {
	p, err := c.precision()
	if err != nil {
		return Outcome{}, err
	}
	l, err := detect.RowsSum(c.tensor("p"), c.number("sink") != 0, p)
	if err != nil {
		return Outcome{}, err
	}
	return law("RowsSum", l), nil
}

func noFuture(_ context.Context, c Case) (Outcome, error) {
	x := c.tensor("p")
	rows, keys := x[0].Dims()
	rule, err := c.rule(len(x), rows, keys)
	if err != nil {
		return Outcome{}, err
	}
	l, err := detect.NoFuture(x, rule.Diagonal)
	if err != nil {
		return Outcome{}, err
	}
	return law("NoFuture", l), nil
}

// Bounds of a question about a function.
const (
	maxProbe      = 1 << 22 // cells of its queries and keys, and of its scores
	maxProbeCalls = 4096
)

// geometry is what a function is asked with. Settings that are 0 or absent have a size at which every law says something.
func (c Case) geometry() (detect.Geometry, error) {
	g := detect.Geometry{Heads: 4, KVHeads: 2, Rows: 7, Keys: 11, Dim: 16}
	asked := false
	for i, to := range []*int{&g.Heads, &g.KVHeads, &g.Rows, &g.Keys, &g.Dim} {
		n := c.numbers("geometry")
		if i < len(n) && n[i] != 0 {
			if n[i] < 1 || n[i] > maxProbe {
				return g, fmt.Errorf("a size of %g", n[i])
			}
			*to = int(n[i])
			asked = asked || i == 0
		} else if asked && i == 1 {
			g.KVHeads = g.Heads
		}
	}
	if g.Heads%g.KVHeads != 0 {
		return g, fmt.Errorf("%d heads are not a multiple of %d KV heads", g.Heads, g.KVHeads)
	}
	if float64(g.Heads)*float64(g.Rows+g.Keys)*float64(g.Dim) > maxProbe || float64(g.Heads)*float64(g.Rows)*float64(g.Keys) > maxProbe {
		return g, fmt.Errorf("%d heads of %d rows, %d keys and %d dims are more than it asks with: %d cells", g.Heads, g.Rows, g.Keys, g.Dim, maxProbe)
	}
	if g.Keys/g.Dim > maxProbeCalls {
		return g, fmt.Errorf("%d keys of dim %d take more than %d calls", g.Keys, g.Dim, maxProbeCalls)
	}
	return g, nil
}

// attention is the function in question.
func (c Case) attention() detect.Attention {
	return func(q, k, v reference.Heads) (reference.Heads, error) {
		return c.Call([]reference.Heads{q, k, v}, nil)
	}
}

// inputs are random f32 queries, keys and values of the geometry, in the precision of the data.
func inputs(g detect.Geometry, p detect.Precision) (q, k, v reference.Heads) {
	r := rand.New(rand.NewPCG(3, 4))
	normal := func(heads, rows int) reference.Heads {
		out := make(reference.Heads, heads)
		for h := range out {
			out[h] = mat.NewDense(rows, g.Dim, nil)
			out[h].Apply(func(_, _ int, _ float64) float64 { return p.Round(detect.Float32.Round(r.NormFloat64())) }, out[h])
		}
		return out
	}
	return normal(g.Heads, g.Rows), normal(g.KVHeads, g.Keys), normal(g.KVHeads, g.Keys)
}

// asked is what every question about a function begins with.
func (c Case) asked() (detect.Geometry, detect.Precision, error) {
	if c.Call == nil {
		return detect.Geometry{}, 0, errors.New("needs a function")
	}
	g, err := c.geometry()
	if err != nil {
		return g, 0, err
	}
	p, err := c.precision()
	return g, p, err
}

func probe(ctx context.Context, c Case) (Outcome, error) {
	g, p, err := c.asked()
	if err != nil {
		return Outcome{}, err
	}
	rule, err := c.rule(g.Heads, g.Rows, g.Keys)
	if err != nil {
		return Outcome{}, err
	}
	f, err := detect.Probe(ctx, c.attention(), g, rule, p)
	if err != nil {
		return Outcome{}, err
	}
	o := ofMask(f.MaskFinding)
	lines := append([]string{fmt.Sprintf("asked with %d heads, %d KV heads, %d queries, %d keys, dim %d", g.Heads, g.KVHeads, g.Rows, g.Keys, g.Dim)}, maskLines(f.MaskFinding)...)
	o.report("Probe", lines...)
	o.Picture, err = maskPicture(ctx, "Probe", f.Queries, f.Keys, f.Probabilities, rule)
	return o, err
}

func futureUnseen(_ context.Context, c Case) (Outcome, error) {
	g, p, err := c.asked()
	if err != nil {
		return Outcome{}, err
	}
	rule, err := c.rule(g.Heads, g.Rows, g.Keys)
	if err != nil {
		return Outcome{}, err
	}
	q, k, v := inputs(g, p)
	l, err := detect.FutureUnseen(c.attention(), q, k, v, rule.Diagonal)
	if err != nil {
		return Outcome{}, err
	}
	return law("FutureUnseen", l), nil
}

func headsPermute(_ context.Context, c Case) (Outcome, error) {
	g, p, err := c.asked()
	if err != nil {
		return Outcome{}, err
	}
	q, k, v := inputs(g, p)
	l, err := detect.HeadsPermute(c.attention(), q, k, v, c.Params.Scale, p)
	if err != nil {
		return Outcome{}, err
	}
	return law("HeadsPermute", l), nil
}

func prefillIsDecode(_ context.Context, c Case) (Outcome, error) {
	g, p, err := c.asked()
	if err != nil {
		return Outcome{}, err
	}
	chunks := []int{2, 3}
	if n := c.numbers("chunks"); n != nil {
		chunks = nil
		for _, x := range n {
			chunks = append(chunks, int(x))
		}
	}
	q, k, v := inputs(g, p)
	l, err := detect.PrefillIsDecode(c.attention(), q, k, v, chunks, c.Params.Scale, p)
	if err != nil {
		return Outcome{}, err
	}
	return law("PrefillIsDecode", l), nil
}

func relativeOnly(_ context.Context, c Case) (Outcome, error) {
	g, p, err := c.asked()
	if err != nil {
		return Outcome{}, err
	}
	offsets := []int{0, 1, 77, 4096}
	if n := c.numbers("offsets"); n != nil {
		offsets = nil
		for _, x := range n {
			offsets = append(offsets, int(x))
		}
	}
	q, k, _ := inputs(g, p)
	l, err := detect.RelativeOnly(func(x reference.Heads, offset int) (reference.Heads, error) {
		return c.Call([]reference.Heads{x}, []int{offset})
	}, q, k, offsets, p)
	if err != nil {
		return Outcome{}, err
	}
	return law("RelativeOnly", l), nil
}
