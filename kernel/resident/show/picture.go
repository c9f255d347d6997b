package show

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/viz"
)

// maxPanels bounds the small multiples of one picture: beyond it none is legible.
const maxPanels = 256

// Heatmap draws values, in the order of a.
func Heatmap(a store.View, title string, kind viz.Kind, values []float32, tokens []string) (viz.Heatmap, error) {
	if a.H > maxPanels {
		return viz.Heatmap{}, fmt.Errorf("%d matrices are more than %d: pick one with Head(i) or Batch(i)", a.H, maxPanels)
	}
	rows, cols, err := a.Labels(tokens)
	if err != nil {
		return viz.Heatmap{}, err
	}
	hm := viz.Heatmap{Title: title, Kind: kind, RowAxis: a.RowAxisName(), ColAxis: a.ColAxisName(), RowLabels: rows, ColLabels: cols}
	var seen [][2]int // by row, once for all heads: a picture asks for each cell
	if a.Hides() {
		seen = a.Mask.Intervals(a.S, a.D)
	}
	for i := range a.H {
		m := viz.Matrix{Name: a.Panel(i), Rows: a.S, Cols: a.D, Values: values[i*a.S*a.D : (i+1)*a.S*a.D]}
		switch {
		case seen == nil:
		case a.Allowed.None():
			m.Hidden = func(row, col int) bool { return col < seen[row][0] || col >= seen[row][1] }
		default:
			m.Hidden = func(row, col int) bool {
				return col < seen[row][0] || col >= seen[row][1] || !a.Allowed.Sees(i, row, col)
			}
		}
		hm.Matrices = append(hm.Matrices, m)
	}
	return hm, nil
}

// kindOf is how values of a quantity are coloured.
func kindOf(q store.Quantity) viz.Kind {
	switch q {
	case store.Scores:
		return viz.Scores
	case store.Probabilities:
		return viz.Probabilities
	}
	return viz.Signed
}

// kindOn is the kind on a linear or a logarithmic scale.
func kindOn(q store.Quantity, log bool) (viz.Kind, error) {
	switch {
	case !log:
		return kindOf(q), nil
	case q != store.Probabilities:
		return 0, errors.New("a logarithmic scale is for probabilities, which these values are not")
	}
	return viz.LogProbabilities, nil
}

// Bundle renders a picture with its text.
func Bundle(d viz.Drawable, more string) (wire.Display, error) {
	p, err := d.Picture()
	if err != nil {
		return wire.Display{}, err
	}
	return display(p, more)
}

// display is a picture with its text.
func display(p viz.Picture, more string) (wire.Display, error) {
	alt := p.Alt + more
	metadata, err := json.Marshal(map[string]any{
		"image/png": map[string]any{"width": p.Width, "height": p.Height, "alt": alt},
	})
	if err != nil {
		return wire.Display{}, err
	}
	return wire.Display{
		Parts:    []wire.Part{{MIME: "image/png", Data: p.PNG}, {MIME: "text/plain", Data: []byte(alt)}},
		Metadata: metadata,
	}, nil
}

// beside is a picture with its text, and what a page that runs scripts or knows styles makes of it.
func beside(html string, h viz.Heatmap, more string) (wire.Display, error) {
	d, err := Bundle(h, more)
	if err == nil {
		d.Parts = append([]wire.Part{{MIME: "text/html", Data: []byte(html)}}, d.Parts...)
	}
	return d, err
}

// seeNothing tells of rows without a visible column.
func seeNothing(rows int) string {
	if rows == 0 {
		return ""
	}
	return fmt.Sprintf(" %d rows see nothing.", rows)
}

// Picture shows a tensor, a matrix a head.
func (g *Gallery) Picture(c *store.Client, r wire.Request) (wire.Answer, error) {
	name := "Heatmap"
	if r.Style == wire.StyleHTML {
		name = "Interactive"
	}
	if len(r.IDs) != 1 {
		return wire.Answer{}, wire.Errorf(wire.BadRequest, "%s: %d tensors", name, len(r.IDs))
	}
	in, nodes, inputs, done, err := c.Use(name, r.IDs, []string{"x"})
	if err != nil {
		return wire.Answer{}, err
	}
	defer done()
	refuse := func(err error) (wire.Answer, error) {
		var bad *viz.InputError
		var large *viz.TooLargeError
		switch {
		case errors.As(err, &bad):
			err = errors.New(bad.Reason)
		case errors.As(err, &large) && r.Style == wire.StyleGallery:
			err = fmt.Errorf("%d panels of %d x %d to enlarge do not fit an output of 1 MB: pick one with Head(i)", large.Matrices, large.Rows, large.Cols)
		case errors.As(err, &large):
			err = fmt.Errorf("%d of %d x %d is too much to show cell by cell: use Heatmap, or pick a head and rows", large.Matrices, large.Rows, large.Cols)
		}
		return wire.Answer{}, wire.Errorf(wire.BadInput, "%s: %v%s", name, err, store.About(nil, inputs))
	}
	x := in[0]
	title := r.Text
	if title == "" {
		c.Store.Lock()
		title = nodes[0].Title()
		c.Store.Unlock()
	}
	a := store.ViewOf(x.Meta)
	if _, _, err := a.Labels(r.Labels); err != nil {
		return refuse(err)
	}
	data, err := store.Fetch(c.Device, x)
	if err != nil {
		return wire.Answer{}, store.Explain(name, err, inputs)
	}
	kind, err := kindOn(x.Quantity, r.Log)
	if err != nil {
		return refuse(err)
	}
	hm, err := Heatmap(a, title, kind, data, r.Labels)
	if err != nil {
		return refuse(err)
	}
	if r.Draw != nil && r.Draw.Statistics {
		if err := noteStatistics(a, &hm, data); err != nil {
			return refuse(err)
		}
	}
	var d wire.Display
	switch r.Style {
	case wire.StyleGallery:
		var html string
		if html, err = hm.Gallery(); err == nil {
			d, err = beside(html, hm, seeNothing(x.Empty))
		}
	case wire.StyleHTML:
		var html string
		html, err = hm.HTML()
		var large *viz.TooLargeError
		if errors.As(err, &large) && !x.Swapped() {
			return g.Map(c, zoomOf(r, x.Meta))
		}
		if err == nil {
			d, err = beside(html, hm, seeNothing(x.Empty))
		}
	case wire.StylePNG:
		d, err = Bundle(hm, seeNothing(x.Empty))
	default:
		err = fmt.Errorf("unknown style %d", r.Style)
	}
	if err != nil {
		return refuse(err)
	}
	id, err := g.Put(d)
	return wire.Answer{DisplayID: id}, err
}
