package resident

import (
	"fmt"
	"slices"
	"strings"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/resident/figure"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/viz"
)

// traced refuses what is no query of one head on its way to the context, and returns the head.
func traced(r wire.Request, scored, valued operand, s, v arranged) (head int, err error) {
	switch {
	case scored.quantity != scores:
		return 0, unfit("scores", "these are no scores: attn.Scores makes them")
	case len(valued.shape) < 2 || len(valued.shape) > 3:
		return 0, unfit("v", "not rows of values for each head")
	case s.d != v.s:
		return 0, unfit("", "%d values for %d keys", v.s, s.d)
	case s.h%v.h != 0:
		return 0, unfit("", "%d heads are not a multiple of %d KV heads", s.h, v.h)
	case r.Draw.Query < 0 || r.Draw.Query >= s.s:
		return 0, unfit("scores", "query %d is not within 0 to %d", r.Draw.Query, s.s-1)
	case r.Draw.Heads == nil && s.h > 1:
		return 0, unfit("scores", "one query of one head: pick it with OnlyHead(i)")
	case len(r.Labels) > 0 && len(r.Labels) != s.d:
		return 0, unfit("", "%d tokens for %d keys", len(r.Labels), s.d)
	}
	heads, err := s.heads(r.Draw.Heads)
	if err != nil {
		return 0, err
	}
	return heads[0], nil
}

func drawTrace(c *conn, r wire.Request, in []operand, _ []*node) (viz.Drawable, error) {
	s, v := arrange(in[0].meta), arrange(in[1].meta)
	head, err := traced(r, in[0], in[1], s, v)
	if err != nil {
		return nil, err
	}
	query := r.Draw.Query
	j := &job{d: c.d, op: wire.OpSoftmax}
	defer j.done()
	if !in[0].carry.none() {
		return nil, unfit("scores", "a trace knows masks alone, not %s", strings.TrimPrefix(variantWords(wire.Params{}, in[0].carry), ", "))
	}
	q := figure.Query{Dim: v.d}
	q.From, q.To = s.mask.Interval(query, s.d)
	row, err := j.view(in[0].buf.Head(head))
	if err == nil {
		row, err = j.view(row.Rows(query, query+1))
	}
	if err != nil {
		return nil, err
	}
	p, _, err := c.d.SoftmaxVariant(row, shifted(s.mask, query), cudaops.Variant{}) // as the device makes them
	if p, err = j.view(p, err); err != nil {
		return nil, err
	}
	values, err := j.heads("v", in[1])
	if err == nil {
		values, err = j.view(values.Head(head / (s.h / v.h)))
	}
	if err != nil {
		return nil, err
	}
	for _, get := range []struct {
		from *cudaops.Buffer
		to   *[]float32
	}{{row, &q.Scores}, {p, &q.Probabilities}, {values, &q.Values}} {
		if *get.to, err = c.d.Download(get.from); err != nil {
			return nil, err
		}
	}
	title := r.Text
	if title == "" {
		if title = fmt.Sprintf("query %d", query); s.panel(head) != "" {
			title = s.panel(head) + ", " + title
		}
		if len(r.Labels) > 0 && s.s <= s.d {
			title += fmt.Sprintf(" “%s”", r.Labels[s.d-s.s+query])
		}
	}
	return figure.Trace(title, q, slices.Clone(r.Labels)), nil
}
