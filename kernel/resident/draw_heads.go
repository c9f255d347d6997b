package resident

import (
	"errors"
	"fmt"

	"github.com/attnb/attnb/kernel/resident/figure"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/viz"
)

// rowsOf are the heads of attention values as package figure takes them.
func (a arranged) rowsOf(values []float32) []figure.Rows {
	out := make([]figure.Rows, a.h)
	for i := range out {
		out[i] = figure.Rows{Queries: a.s, Keys: a.d, Values: values[i*a.s*a.d : (i+1)*a.s*a.d]}
		if a.mask.Hides() {
			out[i].Seen = func(q int) (from, to int) { return a.mask.Interval(q, a.d) }
			out[i].Position = func(q int) int { return q + a.mask.Diagonal }
		}
	}
	return out
}

// probabilitiesOf downloads a tensor of probabilities by head.
func (c *conn) probabilitiesOf(arg string, x operand) (arranged, []figure.Rows, error) {
	a := arrange(x.meta)
	switch {
	case x.quantity == scores:
		return a, nil, unfit(arg, "scores are no probabilities: take their Softmax")
	case len(a.shape) < 2 || a.swapped():
		return a, nil, unfit(arg, "not a matrix of queries and keys for each head")
	}
	data, err := fetch(c.d, x)
	if err != nil {
		return a, nil, err
	}
	rows := a.rowsOf(data)
	for _, r := range rows {
		if err := r.Probable(); err != nil {
			return a, nil, unfit(arg, "%v", err)
		}
	}
	return a, rows, nil
}

func drawLayers(c *conn, r wire.Request, in []operand, _ []*node) (viz.Drawable, error) {
	var layers [][]figure.Statistics
	for i, x := range in {
		taskOf(c.ctx).step(float64(i)/float64(len(in)), float64(i+1)/float64(len(in)))
		_, rows, err := c.probabilitiesOf(fmt.Sprintf("layer %d", i), x)
		if err != nil {
			return nil, err
		}
		var heads []figure.Statistics
		for _, head := range rows {
			heads = append(heads, figure.Measure(head))
		}
		layers = append(layers, heads)
	}
	return plainly(figure.Layers(r.Text, layers, figure.Quantity(r.Draw.Statistic)))
}

func drawDecoding(c *conn, r wire.Request, in []operand, _ []*node) (viz.Drawable, error) {
	kind := viz.Probabilities
	if r.Log {
		kind = viz.LogProbabilities
	}
	var steps [][]figure.Rows
	var names []string
	for i, x := range in {
		arg := fmt.Sprintf("step %d", i)
		a, rows, err := c.probabilitiesOf(arg, x)
		if err != nil {
			return nil, err
		}
		heads, err := a.heads(r.Draw.Heads)
		if err != nil {
			return nil, unfit(arg, "%v", err)
		}
		var picked []figure.Rows
		for _, h := range heads {
			if picked = append(picked, rows[h]); i == 0 {
				names = append(names, a.panel(h))
			}
		}
		steps = append(steps, picked)
	}
	title := r.Text
	if title == "" {
		title = fmt.Sprintf("probabilities of %d steps", len(in))
		if len(in) == 1 {
			title = "probabilities of 1 step"
		}
	}
	hm, err := figure.Decoding(title, kind, steps, names)
	if err != nil {
		return nil, unfit("", "%v", err)
	}
	if n := len(r.Labels); n > 0 {
		rows, keys := hm.Matrices[0].Rows, hm.Matrices[0].Cols
		if n != keys {
			return nil, unfit("", "%d tokens for %d keys", n, keys)
		}
		hm.ColLabels = r.Labels
		if rows <= keys {
			hm.RowLabels = r.Labels[keys-rows:]
		}
	}
	return hm, nil
}

// note puts the statistics of each head beside its panel.
func (a arranged) note(hm *viz.Heatmap, values []float32) error {
	switch {
	case a.quantity == scores:
		return errors.New("statistics are of probabilities, which scores are not: take their Softmax")
	case len(a.shape) < 2 || a.swapped():
		return errors.New("statistics are of a matrix of queries and keys for each head")
	}
	for i, head := range a.rowsOf(values) {
		if err := head.Probable(); err != nil {
			return err
		}
		hm.Matrices[i].Notes = figure.Measure(head).Notes()
	}
	return nil
}
