package show

import (
	"math"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/plan"
	"github.com/attnb/attnb/kernel/resident/chain"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/viz"
)

// The cells of a picture or tile, each way.
const (
	usualSide = 512
	maxSide   = 2048
)

// mapView is a part of a map, as it is shown: its heads, its window, and how many cells that is pooled into.
type mapView struct {
	quantity   store.Quantity
	reduce     cudaops.Reduce
	heads      []int
	rows, cols viz.Span // the window
	look       sight    // of the window
	h, w       int      // cells
	cells      int      // asked for, the larger way
	live       bool
}

// view checks settings against the map.
func (m *attentionMap) view(s wire.Map) (v mapView, err error) {
	if v.quantity, err = m.quantityOf(s.Quantity); err != nil {
		return v, err
	}
	if s.Reduce > wire.ReduceMagnitude || s.Reduce == wire.ReduceMagnitude && m.x == nil {
		return v, bad(nil, "unknown reduction %d", s.Reduce)
	}
	v.reduce, v.live = cudaops.Reduce(s.Reduce), s.Live
	for _, h := range s.Heads {
		if h < 0 || h >= m.heads {
			return v, bad(nil, "head %d is not within 0 to %d", h, m.heads-1)
		}
		v.heads = append(v.heads, h)
	}
	if v.heads == nil {
		for h := range m.heads {
			v.heads = append(v.heads, h)
		}
	}
	if v.rows, err = window("queries", s.Queries, m.s); err != nil {
		return v, err
	}
	if v.cols, err = window("keys", s.Keys, m.t); err != nil {
		return v, err
	}
	v.look = m.sight.within(v.rows, v.cols)
	v.h, v.w = s.Rows, s.Cols
	if v.h == 0 {
		v.h = usualSide
	}
	if v.w == 0 {
		v.w = usualSide
	}
	if v.h < 0 || v.w < 0 {
		return v, bad(nil, "a size of %d x %d cells, must be 1 to %d", v.h, v.w, maxSide)
	}
	v.cells = max(v.h, v.w)
	v.h, v.w = min(v.h, v.rows.To-v.rows.From), min(v.w, v.cols.To-v.cols.From)
	return v, nil
}

// window is a range of n rows or columns; none is all of them.
func window(what string, of []int, n int) (viz.Span, error) {
	switch {
	case len(of) == 0:
		return viz.Span{From: 0, To: n}, nil
	case len(of) != 2:
		return viz.Span{}, bad(nil, "%d numbers for a range of %s", len(of), what)
	case of[0] >= of[1]:
		return viz.Span{}, bad(nil, "%s %d to %d are none", what, of[0], of[1])
	case of[0] < 0 || of[1] > n:
		return viz.Span{}, bad(nil, "%s %d to %d are not within 0 to %d", what, of[0], of[1], n)
	}
	return viz.Span{From: of[0], To: of[1]}, nil
}

// fit limits the cells to the room that there is.
func (v *mapView) fit(side int) { v.h, v.w = min(v.h, side), min(v.w, side) }

// empty is the number of rows, of all heads shown, that see nothing.
func (v mapView) empty() int {
	if v.look.allowed.None() {
		return len(v.heads) * v.look.empty(0)
	}
	n := 0
	for _, h := range v.heads {
		n += v.look.empty(h)
	}
	return n
}

// whole says that the window has all queries of the map.
func (v mapView) whole(m *attentionMap) bool { return v.rows.To-v.rows.From == m.s }

// Tile makes one tile of a live map.
func (g *Gallery) Tile(c *store.Client, r wire.Request) (a wire.Answer, down []float32, err error) {
	if r.Map == nil {
		return a, nil, wire.Errorf(wire.BadRequest, "Map: no settings")
	}
	m, err := g.maps.get(r.Number)
	if err != nil {
		return a, nil, err
	}
	r.Map.Live = true
	v, err := m.view(*r.Map)
	if err == nil && len(v.heads) != 1 {
		err = bad(nil, "a tile is of one head, not %d", len(v.heads))
	}
	if err == nil && v.cells > maxSide {
		err = bad(nil, "a size of %d cells, must be 1 to %d", v.cells, maxSide)
	}
	if err != nil {
		return a, nil, m.explain(err)
	}
	t, err := m.tile(c, v, v.heads[0], 0, 1)
	if err != nil {
		return a, nil, m.explain(err)
	}
	a.Tile = &t
	return a, t.Values, nil
}

// tile pools one head of a view. The task goes from one fraction to another meanwhile.
func (m *attentionMap) tile(c *store.Client, v mapView, head int, from, to float64) (wire.Tile, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over {
		return wire.Tile{}, wire.Errorf(wire.NotFound, "this picture is no longer live: run its cell again")
	}
	t := wire.Tile{Head: head, Rows: v.h, Cols: v.w, Queries: []int{v.rows.From, v.rows.To}, Keys: []int{v.cols.From, v.cols.To}}
	var err error
	switch {
	case m.x != nil:
		t.Values, err = m.ofRows(c, v, head, from, to)
	case m.changed != nil:
		t.Values, err = m.ofVariant(c, v, head, from, to)
	case v.single():
		t.Values, err = m.singles(c, v, head, from, to)
	default:
		t.Values, err = m.pool(c, v, head, from, to)
	}
	if err != nil {
		return wire.Tile{}, err
	}
	hidden := v.look.hidden(head, v.h, v.w)
	t.Hidden = runs(hidden)
	first := true
	for i, x := range t.Values {
		f := float64(x)
		if hidden[i] || math.IsNaN(f) || math.IsInf(f, 0) {
			continue
		}
		if first {
			t.Min, t.Max, first = f, f, false
		}
		t.Min, t.Max = min(t.Min, f), max(t.Max, f)
	}
	return t, nil
}

// single says that each cell of the view is one of the matrix.
func (v mapView) single() bool {
	return v.h == v.rows.To-v.rows.From && v.w == v.cols.To-v.cols.From
}

// singles is a tile of single cells, by the ops whose results a cell downloads, over all keys: what a page reads is what
// [cudaops.Device.Scores] and [cudaops.Device.Softmax] make, to the bit where their rows do not depend on each other. A few rows
// are made at a time, so that no more is there than a chunk.
func (m *attentionMap) singles(c *store.Client, v mapView, head int, from, to float64) ([]float32, error) {
	out := make([]float32, 0, v.h*v.w)
	for at := v.rows.From; at < v.rows.To; {
		last := min(at+max(1, chunk/m.t), v.rows.To)
		part, err := m.rowsOf(c.Device, v, head, viz.Span{From: at, To: last})
		if err != nil {
			return nil, err
		}
		for i := range last - at { // what is masked is 0, as of a pool
			lo, hi := v.look.interval(at + i - v.rows.From)
			clear(part[i*v.w:][:lo])
			clear(part[i*v.w+hi : (i+1)*v.w])
		}
		out = append(out, part...)
		at = last
		store.ProgressOf(c.Ctx).Advance(from + (to-from)*float64(at-v.rows.From)/float64(v.h))
	}
	return out, nil
}

// rowsOf is the window's columns of some rows of scores or probabilities.
func (m *attentionMap) rowsOf(d *cudaops.Device, v mapView, head int, rows viz.Span) ([]float32, error) {
	j := chain.NewJob(d, wire.OpNone)
	defer j.Done()
	q, err := j.Keep(m.q.Head(head))
	if err != nil {
		return nil, err
	}
	if q, err = j.Keep(q.Rows(rows.From, rows.To)); err != nil {
		return nil, err
	}
	k, err := j.Keep(m.k.Head(head / m.group))
	if err != nil {
		return nil, err
	}
	x, err := j.Keep(d.Scores(q, k, m.scale))
	if err != nil {
		return nil, err
	}
	if v.quantity == store.Probabilities {
		p, _, err := d.Softmax(x, chain.Shifted(m.mask, rows.From))
		if x, err = j.Keep(p, err); err != nil {
			return nil, err
		}
	}
	if x, err = j.Keep(x.Columns(v.cols.From, v.cols.To)); err != nil {
		return nil, err
	}
	return d.Download(x)
}

// pool is a tile of queries and keys.
func (m *attentionMap) pool(c *store.Client, v mapView, head int, from, to float64) ([]float32, error) {
	j := chain.NewJob(c.Device, wire.OpNone)
	defer j.Done()
	progress := store.ProgressOf(c.Ctx)
	part := func(b *cudaops.Buffer, h int, rows viz.Span) (*cudaops.Buffer, error) {
		one, err := j.Keep(b.Head(h))
		if err != nil {
			return nil, err
		}
		return j.Keep(one.Rows(rows.From, rows.To))
	}
	q, err := part(m.q, head, v.rows)
	if err != nil {
		return nil, err
	}
	k, err := part(m.k, head/m.group, v.cols)
	if err != nil {
		return nil, err
	}
	var lse *cudaops.Buffer
	if v.quantity == store.Probabilities {
		mid := (from + to) / 2
		progress.Step(from, mid)
		if lse, err = m.sums(j, v, head, q); err != nil {
			return nil, err
		}
		from = mid
	}
	progress.Step(from, to)
	p, err := j.Keep(c.Device.Pool(q, k, lse, cudaops.Pooling{Scale: m.scale, Mask: chain.Shifted(m.mask, v.rows.From-v.cols.From), Reduce: v.reduce, Rows: v.h, Cols: v.w}))
	if err != nil {
		return nil, err
	}
	return c.Device.Download(p)
}

// sums is the log of the sums of the window's rows, over all keys. A map that is live, or a view of all rows, has them for
// all rows of the head from then on.
func (m *attentionMap) sums(j *chain.Job, v mapView, head int, q *cudaops.Buffer) (*cudaops.Buffer, error) {
	lse := m.lse[head]
	if lse == nil {
		k, err := j.Keep(m.k.Head(head / m.group))
		if err != nil {
			return nil, err
		}
		if !v.live && !v.whole(m) {
			return j.Keep(j.D.LSE(q, k, m.scale, chain.Shifted(m.mask, v.rows.From)))
		}
		all, err := j.Keep(m.q.Head(head))
		if err != nil {
			return nil, err
		}
		if lse, err = j.D.LSE(all, k, m.scale, m.mask); err != nil {
			return nil, err
		}
		m.lse[head] = lse
	}
	return j.Keep(lse.Columns(v.rows.From, v.rows.To))
}

// chunk is up to how many elements of a matrix are fetched at a time.
const chunk = 4 << 20

// ofRows is a tile of a matrix that is there, fetched a few rows at a time.
func (m *attentionMap) ofRows(c *store.Client, v mapView, head int, from, to float64) ([]float32, error) {
	j := chain.NewJob(c.Device, wire.OpNone)
	defer j.Done()
	one, err := j.Keep(m.x.Head(head))
	if err != nil {
		return nil, err
	}
	if one, err = j.Keep(one.Columns(v.cols.From, v.cols.To)); err != nil {
		return nil, err
	}
	n, t := v.rows.To-v.rows.From, v.cols.To-v.cols.From
	out := make([]float32, v.h*v.w)
	pools := newPools(v.reduce, v.w, t)
	for at := 0; at < n; {
		last := min(at+max(1, chunk/t), n)
		rows, err := j.Keep(one.Rows(v.rows.From+at, v.rows.From+last))
		if err != nil {
			return nil, err
		}
		data, err := c.Device.Download(rows)
		if err != nil {
			return nil, err
		}
		for ; at < last; at++ {
			lo, hi := v.look.interval(at)
			pools.add(data[:hi], lo, v.look.cells(head, at))
			data = data[t:]
			if i := plan.Pool(at, n, v.h); plan.Edge(i+1, n, v.h) == at+1 {
				pools.finish(out[i*v.w:][:v.w])
			}
		}
		store.ProgressOf(c.Ctx).Advance(from + (to-from)*float64(at)/float64(n))
	}
	return out, nil
}
