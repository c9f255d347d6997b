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
	if !in[0].Carry.None() {
		return nil, unfit("scores", "a trace knows masks alone, not %s", strings.TrimPrefix(chain.VariantWords(wire.Params{}, in[0].Carry), ", "))
	}
	q := figure.Query{Dim: v.D}
	q.From, q.To = s.Mask.Interval(query, s.D)
	row, err := j.Keep(in[0].Buf.Head(head))
	if err == nil {
		row, err = j.Keep(row.Rows(query, query+1))
	}
	if err != nil {
		return nil, err
	}
	p, _, err := c.Device.SoftmaxVariant(row, chain.Shifted(s.Mask, query), cudaops.Variant{}) // as the device makes them
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
