package resident

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/viz"
)

// maxPanels bounds the small multiples of one picture: beyond it none is legible.
const maxPanels = 256

// arranged is a tensor as a picture or a report shows it: one matrix a head, heads first.
type arranged struct {
	meta
	h, s, d int
	rows    []int // the rows that are looked at, of all matrices; nil: all
}

// arrange is the order in which the buffer of x, seen by head, is downloaded.
func arrange(m meta) arranged {
	if len(m.shape) == 3 && m.swapped() {
		m.shape = []int{m.shape[1], m.shape[0], m.shape[2]}
		m.axes = []string{m.axes[1], m.axes[0], m.axes[2]}
	}
	a := arranged{meta: m}
	a.h, a.s, a.d = fold(m.shape)
	return a
}

// fetch downloads a tensor in the order that arrange describes.
func fetch(d *cudaops.Device, x operand) ([]float32, error) {
	buf := x.buf
	if len(x.shape) == 3 && x.swapped() {
		t, err := buf.Transpose()
		if err != nil {
			return nil, err
		}
		defer t.Release()
		buf = t
	}
	return d.Download(buf)
}

// rowAxisName and colAxisName name what a matrix runs over.
func (a arranged) rowAxisName() string {
	if len(a.axes) < 2 {
		return "row"
	}
	return a.axes[len(a.axes)-2]
}

func (a arranged) colAxisName() string { return a.axes[len(a.axes)-1] }

// place is the matrix, row and column of a flat index into what is looked at.
func (a arranged) place(i int) (matrix, row, col int) {
	row, col = i/a.d, i%a.d
	if a.rows != nil {
		row = a.rows[row]
	}
	return row / a.s, row % a.s, col
}

// panel names matrix i: "head 2", "batch 0, head 2".
func (a arranged) panel(i int) string {
	lead := max(0, len(a.shape)-2)
	words := make([]string, lead)
	for k := lead - 1; k >= 0; k-- {
		words[k] = fmt.Sprintf("%s %d", singular(a.axes[k]), i%a.shape[k])
		i /= a.shape[k]
	}
	return strings.Join(words, ", ")
}

// labels gives the token labels of rows and columns. Tokens belong to query, key and seq. Queries behind a cache are the
// last of the tokens: their first one stands where the mask says.
func (a arranged) labels(tokens []string) (rows, cols []string, err error) {
	if len(tokens) == 0 {
		return nil, nil, nil
	}
	for _, side := range []struct {
		axis string
		n    int
		to   *[]string
	}{{a.rowAxisName(), a.s, &rows}, {a.colAxisName(), a.d, &cols}} {
		if side.axis != "query" && side.axis != "key" && side.axis != "seq" {
			continue
		}
		first := 0
		if side.axis == "query" && a.mask.Causal && len(tokens) > side.n {
			first = a.mask.Diagonal
		}
		if first >= 0 && first <= len(tokens)-side.n && (first > 0 || len(tokens) == side.n) {
			*side.to = tokens[first : first+side.n]
		}
	}
	if rows == nil && cols == nil {
		return nil, nil, fmt.Errorf("%d tokens fit none of the axes query, key and seq", len(tokens))
	}
	return rows, cols, nil
}

// heatmap draws values, in the order of a.
func (a arranged) heatmap(title string, kind viz.Kind, values []float32, tokens []string) (viz.Heatmap, error) {
	if a.h > maxPanels {
		return viz.Heatmap{}, fmt.Errorf("%d matrices are more than %d: pick one with Head(i) or Batch(i)", a.h, maxPanels)
	}
	rows, cols, err := a.labels(tokens)
	if err != nil {
		return viz.Heatmap{}, err
	}
	hm := viz.Heatmap{Title: title, Kind: kind, RowAxis: a.rowAxisName(), ColAxis: a.colAxisName(), RowLabels: rows, ColLabels: cols}
	for i := range a.h {
		m := viz.Matrix{Name: a.panel(i), Rows: a.s, Cols: a.d, Values: values[i*a.s*a.d : (i+1)*a.s*a.d]}
		if a.hides() {
			m.Hidden = func(row, col int) bool { return !a.sees(i, row, col) }
		}
		hm.Matrices = append(hm.Matrices, m)
	}
	return hm, nil
}

func (q quantity) kind() viz.Kind {
	switch q {
	case scores:
		return viz.Scores
	case probabilities:
		return viz.Probabilities
	}
	return viz.Signed
}

// kindOn is the kind on a linear or a logarithmic scale.
func (q quantity) kindOn(log bool) (viz.Kind, error) {
	switch {
	case !log:
		return q.kind(), nil
	case q != probabilities:
		return 0, errors.New("a logarithmic scale is for probabilities, which these values are not")
	}
	return viz.LogProbabilities, nil
}

// bundle renders a picture with its text.
func bundle(d viz.Drawable, more string) (wire.Display, error) {
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

// seeNothing tells of rows without a visible column.
func seeNothing(rows int) string {
	if rows == 0 {
		return ""
	}
	return fmt.Sprintf(" %d rows see nothing.", rows)
}

func (c *conn) picture(r wire.Request) (wire.Answer, error) {
	name := "Heatmap"
	if r.Style == wire.StyleHTML {
		name = "Interactive"
	}
	if len(r.IDs) != 1 {
		return wire.Answer{}, wire.Errorf(wire.BadRequest, "%s: %d tensors", name, len(r.IDs))
	}
	in, nodes, inputs, done, err := c.use(name, r.IDs, []string{"x"})
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
		return wire.Answer{}, wire.Errorf(wire.BadInput, "%s: %v%s", name, err, about(nil, inputs))
	}
	x := in[0]
	title := r.Text
	if title == "" {
		c.s.store.mu.Lock()
		title = nodes[0].title()
		c.s.store.unlock()
	}
	a := arrange(x.meta)
	if _, _, err := a.labels(r.Labels); err != nil {
		return refuse(err)
	}
	data, err := fetch(c.d, x)
	if err != nil {
		return wire.Answer{}, explain(name, err, inputs)
	}
	kind, err := x.quantity.kindOn(r.Log)
	if err != nil {
		return refuse(err)
	}
	hm, err := a.heatmap(title, kind, data, r.Labels)
	if err != nil {
		return refuse(err)
	}
	if r.Draw != nil && r.Draw.Statistics {
		if err := a.note(&hm, data); err != nil {
			return refuse(err)
		}
	}
	var d wire.Display
	switch r.Style {
	case wire.StyleGallery:
		var html string
		if html, err = hm.Gallery(); err == nil {
			if d, err = bundle(hm, seeNothing(x.empty)); err == nil {
				d.Parts = append([]wire.Part{{MIME: "text/html", Data: []byte(html)}}, d.Parts...)
			}
		}
	case wire.StyleHTML:
		var html string
		html, err = hm.HTML()
		var large *viz.TooLargeError
		if errors.As(err, &large) && !x.swapped() {
			return c.drawMap(zoomOf(r, x.meta))
		}
		if err == nil {
			d = wire.Display{Parts: []wire.Part{{MIME: "text/html", Data: []byte(html)}, {MIME: "text/plain", Data: []byte(hm.Alt() + seeNothing(x.empty))}}}
		}
	case wire.StylePNG:
		d, err = bundle(hm, seeNothing(x.empty))
	default:
		err = fmt.Errorf("unknown style %d", r.Style)
	}
	if err != nil {
		return refuse(err)
	}
	id, err := c.s.displays.put(d)
	return wire.Answer{DisplayID: id}, err
}
