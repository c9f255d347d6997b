package host

import (
	"math"
	"slices"
	"sync/atomic"

	"github.com/attnb/attnb/cudaops"
)

// changed is one row of scores on its way through [cudaops.Changes].
type changed struct {
	lo, hi        int // the interval that the mask shows
	own           int // the row's own column
	cap, slope    float64
	bias, allowed []float32 // of all columns; nil: none
	sink          []float32 // one, or none
}

func changedRow(c cudaops.Changes, seen [][2]int, h, s int) changed {
	r := changed{lo: seen[s][0], hi: seen[s][1], own: s + c.Mask.Diagonal, cap: float64(c.Softcap)}
	if c.Slopes != nil {
		r.slope = float64(c.Slopes[h])
	}
	if c.Bias.Mem != nil {
		r.bias = row(c.Bias, h, s)
	}
	if c.Allowed.Mem != nil {
		r.allowed = row(c.Allowed, h, s)
	}
	if c.Sinks.Mem != nil {
		r.sink = row(c.Sinks, 0, 0)[h : h+1]
	}
	return r
}

// next is the first run of columns that the row sees, none of them hidden, from a column on and before end; false: there is none.
func (r *changed) next(from, end int) (first, last int, ok bool) {
	first, end = max(from, r.lo), min(end, r.hi)
	if r.allowed == nil {
		return first, end, first < end
	}
	for first < end && r.allowed[first] == 0 {
		first++
	}
	for last = first; last < end && r.allowed[last] != 0; {
		last++
	}
	return first, last, first < last
}

// change gives the scores of the columns from first on what they are to be.
func (r *changed) change(scores []float32, first int) {
	if r.cap == 0 && r.bias == nil && r.slope == 0 {
		return
	}
	for i, x := range scores {
		s := float64(x)
		if r.cap != 0 {
			s = r.cap * math.Tanh(s/r.cap)
		}
		if r.bias != nil {
			s += float64(r.bias[first+i])
		}
		if r.slope != 0 {
			s -= r.slope * math.Abs(float64(first+i-r.own))
		}
		scores[i] = float32(s)
	}
}

// SoftmaxChanged is Softmax, run by run of the columns that a row sees.
func (b *Backend) SoftmaxChanged(dst, src cudaops.View, c cudaops.Changes) (int, error) {
	var empty atomic.Int64
	shown := c.Mask.Intervals(src.S, src.D)
	err := b.eachRow(dst, func(h, s int) {
		r := changedRow(c, shown, h, s)
		to, from := row(dst, h, s), row(src, h, s)
		clear(to)
		m, seen := maximum(float32(math.Inf(-1)), r.sink), false
		for first, last, ok := r.next(0, src.D); ok; first, last, ok = r.next(last, src.D) {
			copy(to[first:last], from[first:last])
			r.change(to[first:last], first)
			m, seen = maximum(m, to[first:last]), true
		}
		if !seen {
			empty.Add(1)
			return
		}
		l := 0.0
		for _, x := range r.sink {
			l = float64(exp(x, m))
		}
		for first, last, ok := r.next(0, src.D); ok; first, last, ok = r.next(last, src.D) {
			for i := first; i < last; i++ {
				to[i] = exp(to[i], m)
				l += float64(to[i])
			}
		}
		inv := 1 / l
		for first, last, ok := r.next(0, src.D); ok; first, last, ok = r.next(last, src.D) {
			for i := first; i < last; i++ {
				to[i] = float32(float64(to[i]) * inv)
			}
		}
	})
	return int(empty.Load()), err
}

// PrefillChanged is Prefill, run by run of the columns that a row sees.
func (b *Backend) PrefillChanged(dst, lse, q, k, v cudaops.View, scale float32, c cudaops.Changes) (int, error) {
	group := q.H / k.H
	var empty atomic.Int64
	shown := c.Mask.Intervals(q.S, k.S)
	err := b.blockwise(q, func(h, from, to int) {
		keys, values := head(k, h/group), head(v, h/group)
		var states [queryBlock]online
		var rows [queryBlock]changed
		var seen [queryBlock]int
		acc := make([]float32, queryBlock*q.D)
		first, end := k.S, 0
		for s := from; s < to; s++ {
			i := s - from
			states[i].reset(acc[i*q.D : (i+1)*q.D])
			rows[i] = changedRow(c, shown, h, s)
			if rows[i].hi > 0 {
				first, end = min(first, rows[i].lo), max(end, rows[i].hi)
			}
		}
		var scores [keyBlock]float32
		for ; first < end && !b.stop.Load(); first += keyBlock {
			for s := from; s < to; s++ {
				r := &rows[s-from]
				last := min(first+keyBlock, k.S)
				o := &states[s-from]
				m := o.m
				for at, stop, ok := r.next(first, last); ok; at, stop, ok = r.next(stop, last) {
					x := scores[at-first : stop-first]
					products(x, row(q, h, s), keys, at, scale)
					r.change(x, at)
					m = maximum(m, x)
				}
				o.rescale(m) // once a block, whatever its runs
				for at, stop, ok := r.next(first, last); ok; at, stop, ok = r.next(stop, last) {
					o.add(scores[at-first:stop-first], values, at)
					seen[s-from] += stop - at
				}
			}
		}
		for s := from; s < to; s++ {
			o := &states[s-from]
			if seen[s-from] == 0 {
				empty.Add(1)
			}
			o.weigh(slices.Clone(rows[s-from].sink)) // becomes a weight
			o.finish(row(dst, h, s), seen[s-from])
			if lse.Mem != nil {
				row(lse, 0, h)[s] = o.lse()
			}
		}
	})
	return int(empty.Load()), err
}
