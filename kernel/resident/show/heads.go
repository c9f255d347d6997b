package show

import (
	"errors"
	"fmt"

	"github.com/attnb/attnb/kernel/resident/figure"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/viz"
)

// rowsOf are the heads of attention values as package figure takes them.
func figureRows(a store.View, values []float32) []figure.Rows {
	out := make([]figure.Rows, a.H)
	for i := range out {
		out[i] = figure.Rows{Queries: a.S, Keys: a.D, Values: values[i*a.S*a.D : (i+1)*a.S*a.D]}
		if a.Mask.Hides() {
			out[i].Seen = func(q int) (from, to int) { return a.Mask.Interval(q, a.D) }
			out[i].Position = func(q int) int { return q + a.Mask.Diagonal }
		}
		if !a.Allowed.None() {
			out[i].Allowed = func(q, k int) bool { return a.Allowed.Sees(i, q, k) }
		}
	}
	return out
}

// probabilitiesOf downloads a tensor of probabilities by head.
func probabilitiesOf(c *store.Client, arg string, x store.Operand) (store.View, []figure.Rows, error) {
	a := store.ViewOf(x.Meta)
	switch {
	case x.Quantity == store.Scores:
		return a, nil, unfit(arg, "scores are no probabilities: take their Softmax")
	case len(a.Shape) < 2 || a.Swapped():
		return a, nil, unfit(arg, "not a matrix of queries and keys for each head")
	}
	data, err := store.Fetch(c.Device, x)
	if err != nil {
		return a, nil, err
	}
	rows := figureRows(a, data)
	for _, r := range rows {
		if err := r.Probable(); err != nil {
			return a, nil, unfit(arg, "%v", err)
		}
	}
	return a, rows, nil
}

func drawLayers(c *store.Client, r wire.Request, in []store.Operand, _ []*store.Node) (viz.Drawable, error) {
	var layers [][]figure.Statistics
	for i, x := range in {
		store.ProgressOf(c.Ctx).Step(float64(i)/float64(len(in)), float64(i+1)/float64(len(in)))
		_, rows, err := probabilitiesOf(c, fmt.Sprintf("layer %d", i), x)
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

func drawDecoding(c *store.Client, r wire.Request, in []store.Operand, _ []*store.Node) (viz.Drawable, error) {
	kind := viz.Probabilities
	if r.Log {
		kind = viz.LogProbabilities
	}
	var steps [][]figure.Rows
	var names []string
	for i, x := range in {
		arg := fmt.Sprintf("step %d", i)
		a, rows, err := probabilitiesOf(c, arg, x)
		if err != nil {
			return nil, err
		}
		heads, err := headsAsked(a, r.Draw.Heads)
		if err != nil {
			return nil, unfit(arg, "%v", err)
		}
		var picked []figure.Rows
		for _, h := range heads {
			if picked = append(picked, rows[h]); i == 0 {
				names = append(names, a.Panel(h))
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
func noteStatistics(a store.View, hm *viz.Heatmap, values []float32) error {
	switch {
	case a.Quantity == store.Scores:
		return errors.New("statistics are of probabilities, which scores are not: take their Softmax")
	case len(a.Shape) < 2 || a.Swapped():
		return errors.New("statistics are of a matrix of queries and keys for each head")
	}
	for i, head := range figureRows(a, values) {
		if err := head.Probable(); err != nil {
			return err
		}
		hm.Matrices[i].Notes = figure.Measure(head).Notes()
	}
	return nil
}
