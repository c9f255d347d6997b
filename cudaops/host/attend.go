package host

import (
	"math"
	"sync/atomic"

	"github.com/attnb/attnb/cudaops"
)

// attention is a prefill, a decode step or the sums of one: what every worker reads.
type attention struct {
	dst, lse, q, k, v cudaops.View // dst and v, or lse, may have no memory
	scale             float32
	changes           cudaops.Changes
	shown             [][2]int // the interval of keys that each row sees
	empty             atomic.Int64
}

func newAttention(dst, lse, q, k, v cudaops.View, scale float32, c cudaops.Changes) *attention {
	return &attention{dst: dst, lse: lse, q: q, k: k, v: v, scale: scale, changes: c, shown: c.Mask.Intervals(q.S, k.S)}
}

// keys and values are those of a query head.
func (a *attention) keys(h int) matrix { return head(a.k, h/(a.q.H/a.k.H)) }

func (a *attention) values(h int) matrix {
	if a.v.Mem == nil {
		return matrix{}
	}
	return head(a.v, h/(a.q.H/a.k.H))
}

// Prefill reads the keys block by block for a block of queries, and never a block that none of these sees.
func (b *Backend) Prefill(dst, lse, q, k, v cudaops.View, scale float32, mask cudaops.Mask) error {
	return b.attend(newAttention(dst, lse, q, k, v, scale, cudaops.Changes{Mask: mask}))
}

// PrefillChanged is Prefill with scores that change on their way.
func (b *Backend) PrefillChanged(dst, lse, q, k, v cudaops.View, scale float32, c cudaops.Changes) (int, error) {
	a := newAttention(dst, lse, q, k, v, scale, c)
	err := b.attend(a)
	return int(a.empty.Load()), err
}

// LSE is [Backend.Prefill] without the values.
func (b *Backend) LSE(dst, q, k cudaops.View, scale float32, mask cudaops.Mask) error {
	return b.attend(newAttention(cudaops.View{}, dst, q, k, cudaops.View{}, scale, cudaops.Changes{Mask: mask}))
}

// Decode is [Backend.Prefill] of one row, to the bit.
func (b *Backend) Decode(dst, q, k, v cudaops.View, scale float32) error {
	return b.attend(newAttention(dst, cudaops.View{}, q, k, v, scale, cudaops.Changes{}))
}

func (b *Backend) attend(a *attention) error {
	if a.q.S == 1 {
		return b.attendRow(a)
	}
	return b.blockwise(a.q, func(h, from, to int) {
		t := b.tiles.take(b.kernels, a.q.D)
		defer b.tiles.give(t)
		w := newAttending(a, t, h, from, to)
		for first := w.first; first < w.end; first += tileKeys {
			if b.stop.Load() {
				return
			}
			w.block(first)
		}
		if dim := w.valueRows.dim; dim > 0 {
			t.turn(head(a.dst, h).from(from), a.dst.RowStride, t.acc, tileRows, dim, to-from)
		}
		for i := range w.rows {
			a.finish(b.kernels, &w.rows[i], h, from+i, t.m[i], t.l[i])
		}
	})
}

// attending is a block of queries of a head on its way: a softmax in progress in each lane of a tile. acc is the weighted sum of the values so
// far, l the sum of the weights, and m the maximum that the weights exp(s - m) are relative to. Milakov and Gimelshein, arXiv 1805.02867.
type attending struct {
	a *attention
	*tile
	keyRows, valueRows matrix
	rows               []changed
	seen               [tileRows / strip]struct{ most, all [2]int } // keys that a lane of a strip sees, and that every lane sees
	first, end         int                                          // keys that any lane sees, from the begin of a block
}

func newAttending(a *attention, t *tile, h, from, to int) *attending {
	n := to - from
	w := &attending{a: a, tile: t, keyRows: a.keys(h), valueRows: a.values(h), rows: make([]changed, n), first: a.k.S}
	t.pack(head(a.q, h), from, n, 0, a.q.D)
	for i := range t.m {
		t.m[i], t.l[i] = lowest, 0
	}
	clear(t.acc[:w.valueRows.dim*tileRows])
	for i := range w.seen {
		w.seen[i].most[0], w.seen[i].all[1] = a.k.S, a.k.S
	}
	for i := range w.rows {
		r := changedRow(a.changes, a.shown, h, from+i)
		w.rows[i] = r
		s := &w.seen[i/strip]
		if r.hi > 0 {
			s.most[0], s.most[1] = min(s.most[0], r.lo), max(s.most[1], r.hi)
			w.first, w.end = min(w.first, r.lo), max(w.end, r.hi)
		}
		if r.allowed != nil {
			r.hi = 0 // any cell may be hidden
		}
		s.all[0], s.all[1] = max(s.all[0], r.lo), min(s.all[1], r.hi)
	}
	w.first &^= tileKeys - 1
	return w
}

// block takes in the keys from first on. Each strip computes the keys that one of its lanes sees, from a multiple of 4 on: the weights are added up
// in four sums ([rowKernels]), of which key j enters sum j%4.
func (w *attending) block(first int) {
	last := min(first+tileKeys, w.a.k.S)
	var spans [tileRows / strip][2]int
	same := true
	for i := range spans[:blocks(len(w.rows), strip)] {
		spans[i][0] = max(w.seen[i].most[0]-first, 0) &^ 3
		spans[i][1] = min(w.seen[i].most[1], last) - first
		same = same && spans[i] == spans[0]
	}
	if same && spans[0][0] < spans[0][1] {
		w.eachStrip(len(w.rows), func(k *stripKernels, lane int) { w.keysOf(k, lane, first, spans[0]) })
		return
	}
	for i, span := range spans {
		if span[0] < span[1] {
			w.keysOf(&w.strip, i*strip, first, span)
		}
	}
}

// keysOf takes in a span of the keys from first on, in the lanes of a kernel.
func (w *attending) keysOf(k *stripKernels, lane, first int, span [2]int) {
	t := w.tile
	n, end := span[1]-span[0], lane+k.lanes
	first += span[0]
	scores := t.s[span[0]*tileRows+lane:]
	k.products(scores, t.q[lane:], w.keyRows.from(first), w.keyRows.stride, n, w.a.q.D, w.a.scale)
	hides := false
	for i := lane; i < min(end, len(w.rows)); i += strip {
		all := w.seen[i/strip].all
		hides = hides || first < all[0] || first+n > all[1]
	}
	if hides || w.rows[lane].changes() {
		for i := lane; i < min(end, len(w.rows)); i++ {
			t.change(&w.rows[i], i, scores[i-lane:], first, n)
		}
	}
	copy(t.base[lane:end], t.m[lane:end])
	k.maximum(t.base[lane:end], scores, n)
	for i := lane; i < end; i++ {
		m := t.base[i]
		t.base[i] = above0(m)
		t.factor[i], t.m[i] = t.m[i]-t.base[i], m
	}
	t.exponentialsRow(t.factor[lane:end], t.factor[lane:end], 0)
	k.exponentials(t.sum[lane:end], scores, t.base[lane:end], n)
	for i := lane; i < end; i++ {
		t.l[i] = t.l[i]*t.factor[i] + t.sum[i]
	}
	if w.valueRows.dim == 0 {
		return
	}
	values := w.valueRows.from(first)
	if hides && !t.finite(values, w.valueRows.stride, n, w.valueRows.dim) {
		for i := lane; i < min(end, len(w.rows)); i++ {
			w.visible(i, scores[i-lane:], first, n)
		}
		return
	}
	k.weighted(t.acc[lane:], t.factor[lane:], scores, values, w.valueRows.stride, n, w.valueRows.dim)
}

// change hides, in a lane, what a row does not see of n keys from first on, and changes the rest.
func (t *tile) change(r *changed, lane int, scores []float32, first, n int) {
	if r.allowed == nil && !r.changes() {
		for j := range n {
			if first+j < r.lo || first+j >= r.hi {
				scores[j*tileRows] = lowest
			}
		}
		return
	}
	row := t.row[:n]
	for j := range row {
		row[j] = scores[j*tileRows]
	}
	r.apply(row, first)
	for j, x := range row {
		scores[j*tileRows] = x
	}
}

// visible adds up the values that the row in a lane sees, and leaves out others even where they are not finite: 0 times these is not 0.
func (w *attending) visible(lane int, weights []float32, first, n int) {
	t := w.tile
	row := t.row[:n]
	for j := range row {
		row[j] = weights[j*tileRows]
	}
	dim := w.valueRows.dim
	both := make([]float32, 2*dim)
	part, acc := both[:dim], both[dim:]
	w.rows[lane].weighted(t.kernels, part, row, w.valueRows, first)
	for i := range acc {
		acc[i] = t.acc[i*tileRows+lane]
	}
	t.fold(acc, part, t.factor[lane])
	for i, x := range acc {
		t.acc[i*tileRows+lane] = x
	}
}

// blockwise calls work for each block of queries of each head. Later blocks see more keys under a causal mask: they
// go first, so that no worker is left with a long one at the end.
func (b *Backend) blockwise(q cudaops.View, work func(h, from, to int)) error {
	n := blocks(q.S, tileRows)
	return b.parallel(n*q.H, func(i int) {
		from := (n - 1 - i/q.H) * tileRows
		work(i%q.H, from, min(from+tileRows, q.S))
	})
}

// finish makes a row of dst, which holds the weighted sum of the values, and its lse of the maximum m and the sum l.
func (a *attention) finish(k *kernels, r *changed, h, s int, m, l float32) {
	factor := float32(1)
	for _, x := range r.sink { // one more column, without a value
		top := max32(m, x)
		factor = exp32(m - above0(top))
		l = l*factor + exp32(x-above0(top))
		m = top
	}
	empty := r.empty()
	if empty {
		a.empty.Add(1)
	}
	if a.lse.Mem != nil {
		to := &row(a.lse, 0, h)[s]
		*to = float32(float64(m) + math.Log(float64(l)))
		if m == float32(math.Inf(1)) {
			*to = m // l is NaN, but no other term counts
		}
	}
	if a.dst.Mem == nil {
		return
	}
	dst := row(a.dst, h, s)
	if empty {
		clear(dst)
		return
	}
	k.scaleRow(dst, dst, factor/l)
}

// max32 is the larger of two; a NaN is passed over.
func max32(m, x float32) float32 {
	if x > m {
		return x
	}
	return m
}
