package show

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/plan"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/viz"
)

// magnitude reduces to the value of the largest magnitude. Devices do not know it: it is for matrices that are there.
const magnitude = cudaops.Min + 1

// detailSide is how many single cells, each way, lie beside a pooled picture: those around its largest value.
const detailSide = 64

// finer is the view in twice as many cells, where there are as many. Its cells are parts of the view's own.
func (v mapView) finer() mapView {
	v.h, v.w = min(2*v.h, v.rows.To-v.rows.From), min(2*v.w, v.cols.To-v.cols.From)
	return v
}

// coarser reduces a tile of v.finer() to one of v.
func (v mapView) coarser(t wire.Tile) wire.Tile {
	if t.Rows == v.h && t.Cols == v.w {
		return t
	}
	out := wire.Tile{Head: t.Head, Rows: v.h, Cols: v.w, Queries: t.Queries, Keys: t.Keys, Values: make([]float32, v.h*v.w), Min: t.Min, Max: t.Max}
	n, m := v.rows.To-v.rows.From, v.cols.To-v.cols.From
	within := func(i, n, coarse, fine int) (from, to int) { // the fine cells of a coarse one
		return plan.Pool(plan.Edge(i, n, coarse), n, fine), plan.Pool(plan.Edge(i+1, n, coarse)-1, n, fine) + 1
	}
	hidden, fine := v.look.hidden(t.Head, v.h, v.w), unrun(t.Hidden, t.Rows*t.Cols)
	out.Hidden = runs(hidden)
	for i := range v.h {
		top, bottom := within(i, n, v.h, t.Rows)
		for j := range v.w {
			if hidden[i*v.w+j] {
				continue
			}
			left, right := within(j, m, v.w, t.Cols)
			one := newPools(v.reduce, 1, 1)
			for y := top; y < bottom; y++ {
				for x := left; x < right; x++ {
					if !fine[y*t.Cols+x] {
						one.take(0, float64(t.Values[y*t.Cols+x]), v.visible(t, y, x))
					}
				}
			}
			one.finish(out.Values[i*v.w+j:][:1])
		}
	}
	return out
}

// visible is the number of cells of the matrix that a mean is taken over; of other reductions it does not matter.
func (v mapView) visible(t wire.Tile, y, x int) int {
	if v.reduce != cudaops.Mean {
		return 1
	}
	n, m := v.rows.To-v.rows.From, v.cols.To-v.cols.From
	return v.look.count(t.Head, viz.Span{From: plan.Edge(y, n, t.Rows), To: plan.Edge(y+1, n, t.Rows)},
		viz.Span{From: plan.Edge(x, m, t.Cols), To: plan.Edge(x+1, m, t.Cols)})
}

// detail is the single cells around the largest value of a pooled tile of the view.
func (m *attentionMap) detail(c *store.Client, v mapView, t wire.Tile) (viz.Part, bool, error) {
	n, k := v.rows.To-v.rows.From, v.cols.To-v.cols.From
	best, at := math.Inf(-1), -1
	hidden := unrun(t.Hidden, len(t.Values))
	for i, x := range t.Values {
		if f := float64(x); !hidden[i] && f > best && !math.IsInf(f, 0) {
			best, at = f, i
		}
	}
	if at < 0 || t.Rows == n && t.Cols == k {
		return viz.Part{}, false, nil
	}
	around := func(cell, n, cells int) viz.Span {
		mid := (plan.Edge(cell, n, cells) + plan.Edge(cell+1, n, cells)) / 2
		from := min(max(mid-detailSide/2, 0), max(n-detailSide, 0))
		return viz.Span{From: from, To: min(from+detailSide, n)}
	}
	rows, cols := around(at/t.Cols, n, t.Rows), around(at%t.Cols, k, t.Cols)
	part := v
	part.rows = viz.Span{From: v.rows.From + rows.From, To: v.rows.From + rows.To}
	part.cols = viz.Span{From: v.cols.From + cols.From, To: v.cols.From + cols.To}
	part.look = m.sight.within(part.rows, part.cols)
	part.h, part.w = rows.To-rows.From, cols.To-cols.From
	d, err := m.tile(c, part, t.Head, 1, 1)
	if err != nil {
		return viz.Part{}, false, err
	}
	return viz.Part{Matrix: panelOf(d), RowSpan: part.rows, ColSpan: part.cols}, true, nil
}

func panelOf(t wire.Tile) viz.Matrix {
	hidden := unrun(t.Hidden, t.Rows*t.Cols)
	return viz.Matrix{Rows: t.Rows, Cols: t.Cols, Values: t.Values, Hidden: func(row, col int) bool { return hidden[row*t.Cols+col] }}
}

// supplyID names a live map on a page.
func supplyID(id int) string { return strconv.FormatUint(uint64(id), 16) }

// fitting is what a page shows of a view, in fewer cells where an output has no room for as many: the picture then says what it is
// pooled to.
func (v mapView) fitting(z viz.Zoom, more string) (wire.Display, error) {
	for {
		d, err := zoomDisplay(z, more)
		var large *viz.TooLargeError
		if !errors.As(err, &large) {
			return d, err
		}
		half := v.halved()
		if half.h == v.h && half.w == v.w {
			return Bundle(z.Heatmap, more)
		}
		for i, p := range z.Matrices {
			t := wire.Tile{Head: v.heads[i], Rows: v.h, Cols: v.w, Values: p.Values, Hidden: runs(v.look.hidden(v.heads[i], v.h, v.w))}
			z.Matrices[i] = panelOf(half.coarser(t))
			z.Matrices[i].Name = p.Name
		}
		if half.h < v.h {
			z.RowLabels = nil
		}
		if half.w < v.w {
			z.ColLabels = nil
		}
		v = half
	}
}

// halved is the view in half as many cells, of which each is some of the view's own whole.
func (v mapView) halved() mapView {
	half := func(cells, n int) int {
		if cells > detailSide && (cells%2 == 0 || cells == n) {
			return (cells + 1) / 2
		}
		return cells
	}
	v.h, v.w = half(v.h, v.rows.To-v.rows.From), half(v.w, v.cols.To-v.cols.From)
	return v
}

// zoomDisplay is what a page shows of a map: the viewer, the PNG and the text.
func zoomDisplay(z viz.Zoom, more string) (wire.Display, error) {
	p, html, err := z.Render()
	if err != nil {
		return wire.Display{}, err
	}
	d, err := display(p, more)
	if err != nil {
		return wire.Display{}, err
	}
	d.Parts = append([]wire.Part{{MIME: "text/html", Data: []byte(html)}}, d.Parts...)
	return d, nil
}

// zoomOf asks for a zooming picture of a matrix that has more cells than a chart.
func zoomOf(r wire.Request, x store.Meta) wire.Request {
	r.Kind, r.Map = wire.KindMap, &wire.Map{Reduce: wire.ReduceMagnitude, Live: true}
	if x.Quantity == store.Probabilities {
		r.Map.Reduce = wire.ReduceMax
	}
	return r
}

// call is the Go line, without its end, that draws the map with the settings of a request.
func (m *attentionMap) call(r wire.Request) string {
	names := append([]string{"q", "k"}, r.Params.Extras...)
	if m.q == nil {
		names = []string{"x"}
	}
	for i, in := range m.inputs {
		if in.Name != "" {
			names[i] = "attn.Get(" + store.Quote(in.Name) + ")"
		}
	}
	words := slices.Clone(names[:len(names)-len(r.Params.Extras)])
	option := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	words = append(words, new(coder).options(wire.OpNone, r.Params, names[len(names)-len(r.Params.Extras):])...)
	if r.Map.Quantity == wire.QuantityScores && m.q != nil {
		option("attn.OfScores")
	}
	if int(r.Map.Reduce) < len(poolOptions) && r.Map.Reduce != wire.ReduceMax {
		option("attn.%s", poolOptions[r.Map.Reduce])
	}
	if r.Log {
		option("attn.Log")
	}
	if r.Map.Rows != 0 && r.Map.Rows == r.Map.Cols {
		option("attn.Size(%d)", r.Map.Rows)
	}
	if r.Text != "" {
		option("attn.Title(%q)", r.Text)
	}
	if m.q == nil {
		return names[0] + ".Map(" + strings.Join(words[1:], ", ")
	}
	return "attn.Map(" + strings.Join(words, ", ")
}

var poolOptions = [...]string{wire.ReduceMax: "PoolMax", wire.ReduceMean: "PoolMean", wire.ReduceSum: "PoolSum", wire.ReduceMin: "PoolMin"}
