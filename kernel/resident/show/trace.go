package show

import (
	"fmt"
	"slices"
	"strings"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/resident/chain"
	"github.com/attnb/attnb/kernel/resident/figure"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/viz"
)

// traced refuses what is no query of one head on its way to the context, and returns the head.
func traced(r wire.Request, scored, valued store.Operand, s, v store.View) (head int, err error) {
	switch {
	case scored.Quantity != store.Scores:
		return 0, unfit("scores", "these are no scores: attn.Scores makes them")
	case len(valued.Shape) < 2 || len(valued.Shape) > 3:
		return 0, unfit("v", "not rows of values for each head")
	case s.D != v.S:
		return 0, unfit("", "%d values for %d keys", v.S, s.D)
	case s.H%v.H != 0:
		return 0, unfit("", "%d heads are not a multiple of %d KV heads", s.H, v.H)
	case r.Draw.Query < 0 || r.Draw.Query >= s.S:
		return 0, unfit("scores", "query %d is not within 0 to %d", r.Draw.Query, s.S-1)
	case r.Draw.Heads == nil && s.H > 1:
		return 0, unfit("scores", "one query of one head: pick it with OnlyHead(i)")
	case len(r.Labels) > 0 && len(r.Labels) != s.D:
		return 0, unfit("", "%d tokens for %d keys", len(r.Labels), s.D)
	}
	heads, err := headsAsked(s, r.Draw.Heads)
	if err != nil {
		return 0, err
	}
	return heads[0], nil
}

func drawTrace(c *store.Client, r wire.Request, in []store.Operand, _ []*store.Node) (viz.Drawable, error) {
	s, v := store.ViewOf(in[0].Meta), store.ViewOf(in[1].Meta)
	head, err := traced(r, in[0], in[1], s, v)
	if err != nil {
		return nil, err
	}
	query := r.Draw.Query
	j := chain.NewJob(c.Device, wire.OpSoftmax)
	defer j.Done()
	mask := chain.SoftmaxMask(r.Params, in[0].Meta)
	all, allowed, err := j.Variant(r.Params, in[0].Carry, in[2:], s.H, s.D)
	if err != nil {
		return nil, err
	}
	if err := fitting(all, mask, s.H, s.S, s.D); err != nil {
		return nil, err
	}
	q := figure.Query{Dim: v.D}
	q.From, q.To = mask.Interval(query, s.D)
	if !allowed.None() {
		q.Allowed = func(key int) bool { return allowed.Sees(head, query, key) }
	}
	rowOf := func(b *cudaops.Buffer) (*cudaops.Buffer, error) {
		h, rows, _ := b.Shape()
		one, err := j.Keep(b.Head(min(head, h-1)))
		if err != nil {
			return nil, err
		}
		at := min(query, rows-1)
		return j.Keep(one.Rows(at, at+1))
	}
	row, err := rowOf(in[0].Buf) // of scores
	if err != nil {
		return nil, err
	}
	one := cudaops.Variant{Softcap: all.Softcap}
	if all.Slopes != nil {
		one.Slopes = all.Slopes[head : head+1]
	}
	for _, x := range []struct {
		from *cudaops.Buffer
		to   **cudaops.Buffer
	}{{all.Bias, &one.Bias}, {all.Allowed, &one.Allowed}} {
		if x.from == nil {
			continue
		}
		if *x.to, err = rowOf(x.from); err != nil {
			return nil, err
		}
	}
	if all.Sinks != nil {
		if one.Sinks, err = j.Keep(all.Sinks.Columns(head, head+1)); err != nil {
			return nil, err
		}
	}
	p, _, err := c.Device.SoftmaxVariant(row, chain.Shifted(mask, query), one) // as the device makes them
	if p, err = j.Keep(p, err); err != nil {
		return nil, err
	}
	values, err := j.Heads("v", in[1])
	if err == nil {
		values, err = j.Keep(values.Head(head / (s.H / v.H)))
	}
	if err != nil {
		return nil, err
	}
	for _, get := range []struct {
		from *cudaops.Buffer
		to   *[]float32
	}{{row, &q.Scores}, {p, &q.Probabilities}, {values, &q.Values}} {
		if *get.to, err = c.Device.Download(get.from); err != nil {
			return nil, err
		}
	}
	if one.Softcap != 0 || one.Slopes != nil || one.Bias != nil {
		var bias []float32
		if one.Bias != nil {
			if bias, err = c.Device.Download(one.Bias); err != nil {
				return nil, err
			}
		}
		q.By = strings.TrimPrefix(chain.VariantWords(r.Params, in[0].Carry), ", ")
		q.Changed = changedRow(q.Scores, one, bias, query+mask.Diagonal)
	}
	title := r.Text
	if title == "" {
		if title = fmt.Sprintf("query %d", query); s.Panel(head) != "" {
			title = s.Panel(head) + ", " + title
		}
		if len(r.Labels) > 0 && s.S <= s.D {
			title += fmt.Sprintf(" “%s”", r.Labels[s.D-s.S+query])
		}
	}
	return figure.Trace(title, q, slices.Clone(r.Labels)), nil
}

// changedRow is a row of scores as a variant of one head changes them before the softmax. own is the row's own column.
func changedRow(scores []float32, v cudaops.Variant, bias []float32, own int) []float32 {
	out := make([]float32, len(scores))
	slope := 0.0
	if v.Slopes != nil {
		slope = v.Slopes[0]
	}
	for i, s := range scores {
		x := 0.0
		if bias != nil {
			x = float64(bias[i])
		}
		out[i] = float32(changedScore(float64(s), v.Softcap, x, slope, i-own))
	}
	return out
}
