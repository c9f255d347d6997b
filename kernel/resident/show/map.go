package show

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/resident/chain"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/viz"
)

// attentionMap is what pictures of attention are made of without its matrix: queries and keys by head, or a matrix that is there.
type attentionMap struct {
	q, k    *cudaops.Buffer // [heads, s, d], [heads/group, t, d]; nil: of a matrix
	x       *cudaops.Buffer // [heads, s, t]
	scale   float64
	mask    cudaops.Mask
	holds   store.Quantity // of x
	heads   int
	s, t    int
	group   int
	panel   func(head int) string
	sight   sight         // of the whole matrix
	words   string        // what a variant does to scores, for a title
	changed *changed      // what is done to scores that devices do not pool; nil: nothing
	axes    []string      // what rows and columns are
	inputs  []store.Input // for errors

	mu   sync.Mutex // of one tile, and of the end
	lse  map[int]*cudaops.Buffer
	done []func() // give back what it holds
	over bool
}

// end gives back what the map holds, once, after a tile that is being made.
func (m *attentionMap) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over {
		return
	}
	m.over = true
	for _, b := range m.lse {
		_ = b.Release() // made here, once
	}
	for _, f := range m.done {
		f()
	}
}

// newMap takes the tensors of a request. The caller ends the map.
func newMap(c *store.Client, r wire.Request) (m *attentionMap, title string, err error) {
	extras := r.Params.Extras
	args := append([]string{"q", "k"}, extras...)
	if len(r.IDs) == 1+len(extras) {
		args = append([]string{"x"}, extras...)
	}
	if len(r.IDs) != len(args) {
		return nil, "", wire.Errorf(wire.BadRequest, "Map: %d tensors, it takes queries and keys or a matrix", len(r.IDs))
	}
	in, nodes, inputs, release, err := c.Use("Map", r.IDs, args)
	if err != nil {
		return nil, "", err
	}
	j := chain.NewJob(c.Device, wire.OpNone)
	m = &attentionMap{inputs: inputs, lse: map[int]*cudaops.Buffer{}, done: []func(){j.Done, release}}
	if args[0] == "x" {
		c.Store.Lock()
		title = nodes[0].Title()
		c.Store.Unlock()
		err = m.ofMatrix(r.Params, in[0])
	} else {
		err = m.ofHeads(c, j, r.Params, in)
	}
	if err != nil {
		m.end()
		return nil, "", m.explain(err)
	}
	return m, title, nil
}

// explain names the map's inputs in an error, by what the user calls them and in their whole shape.
func (m *attentionMap) explain(err error) error { return store.Explain("Map", err, m.inputs) }

// bad refuses input on account of some of the tensors.
func bad(names []string, format string, args ...any) error {
	e := &cudaops.InputError{Op: "Map", Reason: fmt.Sprintf(format, args...)}
	for _, n := range names {
		e.Args = append(e.Args, cudaops.Arg{Name: n})
	}
	return e
}

func (m *attentionMap) ofHeads(c *store.Client, j *chain.Job, p wire.Params, in []store.Operand) (err error) {
	if m.q, err = j.Heads("q", in[0]); err != nil {
		return err
	}
	if m.k, err = j.Heads("k", in[1]); err != nil {
		return err
	}
	var d, kv, kd int
	m.heads, m.s, d = m.q.Shape()
	kv, m.t, kd = m.k.Shape()
	switch {
	case d != kd:
		return bad([]string{"q", "k"}, "head dims %d and %d differ", d, kd)
	case m.heads%kv != 0:
		return bad([]string{"q", "k"}, "%d heads are not a multiple of %d KV heads", m.heads, kv)
	}
	m.group = m.heads / kv
	m.scale, m.mask = chain.Scale(p, d), chain.MaskOf(p, m.s, m.t)
	v, allowed, err := j.Variant(p, store.Carried{}, in[2:], m.heads, m.t)
	if err != nil {
		return err
	}
	if m.changed, err = changedBy(c, j, v, allowed, m.mask, m.heads, m.s, m.t); err != nil {
		return err
	}
	m.sight, m.words = sightOf(m.mask, allowed, m.s, m.t), chain.VariantWords(p, store.Carried{})
	m.panel = func(head int) string { return fmt.Sprintf("head %d", head) }
	m.axes = []string{"query", "key"}
	return nil
}

func (m *attentionMap) ofMatrix(p wire.Params, x store.Operand) error {
	if p.Mask != wire.MaskDefault || p.Scale != 0 || !chain.PlainVariant(p, store.Carried{}, chain.MaskOf(p, 1, 1)) {
		return bad(nil, "a matrix has its mask and its scale: they are options of Scores and Softmax")
	}
	if len(x.Shape) < 2 || x.Swapped() {
		return bad(nil, "not a matrix of rows and columns for each head")
	}
	a := store.ViewOf(x.Meta)
	m.x, m.mask, m.holds = x.Buf, a.Mask, a.Quantity
	m.heads, m.s, m.t, m.panel = a.H, a.S, a.D, a.Panel
	m.axes = []string{a.RowAxisName(), a.ColAxisName()}
	m.sight = sightOf(m.mask, x.Allowed, m.s, m.t)
	return nil
}

// quantityOf is what a picture of the map shows.
func (m *attentionMap) quantityOf(asked wire.Quantity) (store.Quantity, error) {
	want := map[wire.Quantity]store.Quantity{wire.QuantityProbabilities: store.Probabilities, wire.QuantityScores: store.Scores}[asked]
	switch {
	case asked > wire.QuantityScores:
		return 0, bad(nil, "unknown quantity %d", asked)
	case m.x == nil && want == store.Values:
		return store.Probabilities, nil
	case m.x == nil || want == store.Values || want == m.holds:
		if want == store.Values {
			want = m.holds
		}
		return want, nil
	case want == store.Scores:
		return 0, bad(nil, "the matrix does not hold scores")
	}
	return 0, bad(nil, "the matrix does not hold probabilities: take its Softmax")
}

// Map makes a labelled picture.
func (g *Gallery) Map(c *store.Client, r wire.Request) (wire.Answer, error) {
	if r.Map == nil {
		return wire.Answer{}, wire.Errorf(wire.BadRequest, "Map: no settings")
	}
	m, title, err := newMap(c, r)
	if err != nil {
		return wire.Answer{}, err
	}
	live := false
	defer func() {
		if !live {
			m.end()
		}
	}()
	v, err := m.view(*r.Map)
	if err == nil && v.cells > maxSide {
		err = bad(nil, "a size of %d cells, must be 1 to %d", v.cells, maxSide)
	}
	if err == nil && len(v.heads) > maxPanels {
		err = bad(nil, "%d heads are more than %d: pick one with OnlyHead(i)", len(v.heads), maxPanels)
	}
	if err != nil {
		return wire.Answer{}, m.explain(err)
	}
	kind, err := kindOn(v.quantity, r.Log)
	if err != nil {
		return wire.Answer{}, m.explain(bad(nil, "%v", err))
	}
	v.fit(viz.PanelSide(len(v.heads)))
	z := viz.Zoom{Rows: m.s, Cols: m.t, By: reduceWords[v.reduce], Index: v.heads, Both: m.q != nil, Call: m.call(r), OneHead: m.heads > 1}
	z.Heatmap = viz.Heatmap{Title: r.Text, Kind: kind, RowAxis: m.axes[0], ColAxis: m.axes[1], RowSpan: v.rows, ColSpan: v.cols, Pooling: z.By}
	if z.By == "" {
		z.Pooling = "value of the largest magnitude"
	}
	if z.Title == "" {
		z.Title = m.title(v, title)
	}
	if err := m.tokens(&z, v, r.Labels); err != nil {
		return wire.Answer{}, m.explain(err)
	}
	if err := m.panels(c, v, &z); err != nil {
		return wire.Answer{}, m.explain(err)
	}
	var held *wire.LiveMap
	if live = r.Map.Live; live {
		held = &wire.LiveMap{Heads: m.heads, Queries: m.s, Keys: m.t, Quantity: wireQuantity[v.quantity], Causal: m.mask.Causal, Shown: *r.Map}
		if m.mask.Causal {
			held.Diagonal = m.mask.Diagonal
		}
		held.ID = g.maps.add(m)
		z.ID = supplyID(held.ID)
	}
	d, err := v.fitting(z, seeNothing(v.empty()))
	var id string
	if err == nil {
		d.Map = held
		id, err = g.Put(d)
	}
	if err == nil {
		return wire.Answer{DisplayID: id}, nil
	}
	if held != nil {
		g.maps.end(held.ID)
	}
	var refused *viz.InputError
	if errors.As(err, &refused) {
		err = bad(nil, "%s", refused.Reason)
	}
	return wire.Answer{}, m.explain(err)
}

// mostFine is how many cells finer pictures may have together: those of many heads would fill an output with no room left for them.
const mostFine = 4 << 20

// panels computes the matrices of a picture, one a head. Each comes from more cells, which lie beside it, and with it the single cells
// around the largest.
func (m *attentionMap) panels(c *store.Client, v mapView, z *viz.Zoom) error {
	fine := v.finer()
	if len(v.heads)*fine.h*fine.w > mostFine {
		fine = v
	}
	for i, head := range v.heads {
		n := float64(len(v.heads))
		t, err := m.tile(c, fine, head, float64(i)/n, float64(i+1)/n)
		if err != nil {
			return err
		}
		panel := panelOf(v.coarser(t))
		if len(v.heads) > 1 {
			panel.Name = m.panel(head)
		}
		z.Matrices = append(z.Matrices, panel)
		var parts []viz.Part
		if fine.h > v.h || fine.w > v.w {
			parts = append(parts, viz.Part{Matrix: panelOf(t), RowSpan: v.rows, ColSpan: v.cols})
		}
		detail, ok, err := m.detail(c, v, t)
		if err != nil {
			return err
		}
		if ok {
			parts = append(parts, detail)
		}
		z.Finer = append(z.Finer, parts)
	}
	return nil
}

var (
	reduceWords  = [...]string{cudaops.Max: "largest", cudaops.Mean: "mean", cudaops.Sum: "sum", cudaops.Min: "smallest", magnitude: ""}
	wireQuantity = map[store.Quantity]wire.Quantity{store.Probabilities: wire.QuantityProbabilities, store.Scores: wire.QuantityScores}
)

// title is what a picture is called that was given no title.
func (m *attentionMap) title(v mapView, of string) string {
	words := []string{of}
	if of == "" {
		words[0] = "probabilities"
		if v.quantity == store.Scores {
			words[0] = "scores"
		}
		switch {
		case !m.mask.Plain():
			words = append(words, chain.MaskWords(m.mask)+m.words)
		case m.mask.Causal:
			words = append(words, "causal"+m.words)
		case m.words != "":
			words = append(words, strings.TrimPrefix(m.words, ", "))
		}
	}
	if len(v.heads) == 1 && m.heads > 1 {
		words = append(words, m.panel(v.heads[0]))
	}
	return strings.Join(words, ", ")
}

// tokens labels rows and columns that stand for one token each, and all of them where the page zooms in.
func (m *attentionMap) tokens(z *viz.Zoom, v mapView, tokens []string) error {
	if len(tokens) == 0 {
		return nil
	}
	a := store.View{Meta: store.Meta{Axes: m.axes, Mask: m.mask}, S: m.s, D: m.t}
	rows, cols, err := a.Labels(tokens)
	if err != nil {
		return bad(nil, "%v", err)
	}
	z.RowTokens, z.ColTokens = rows, cols
	if rows != nil && v.rows.To-v.rows.From == v.h {
		z.RowLabels = rows[v.rows.From:v.rows.To]
	}
	if cols != nil && v.cols.To-v.cols.From == v.w {
		z.ColLabels = cols[v.cols.From:v.cols.To]
	}
	return nil
}
