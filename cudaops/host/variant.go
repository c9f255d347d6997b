package host

import (
	"math"
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

// changes says whether scores that the row sees are to be changed.
func (r *changed) changes() bool { return r.cap != 0 || r.bias != nil || r.slope != 0 }

// empty says whether the row sees nothing.
func (r *changed) empty() bool {
	_, _, ok := r.next(0, r.hi)
	return !ok
}

// change gives the scores of the columns from first on what they are to be.
func (r *changed) change(scores []float32, first int) {
	if !r.changes() {
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

// apply changes the scores of the columns from first on, and hides those that the row does not see.
func (r *changed) apply(scores []float32, first int) {
	end, at := first+len(scores), first
	for from, to, ok := r.next(first, end); ok; from, to, ok = r.next(to, end) {
		hide(scores[at-first : from-first])
		r.change(scores[from-first:to-first], from)
		at = to
	}
	hide(scores[at-first:])
}

func hide(scores []float32) {
	for i := range scores {
		scores[i] = lowest
	}
}

// weighted makes sum the weighted sum of the values that the row sees, from row first of them on.
func (r *changed) weighted(k *kernels, sum, weights []float32, values matrix, first int) {
	clear(sum)
	end := first + len(weights)
	for from, to, ok := r.next(first, end); ok; from, to, ok = r.next(to, end) {
		k.addWeighted(sum, weights[from-first:to-first], values.from(from), values.stride)
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
		if r.empty() {
			empty.Add(1)
			return
		}
		m := b.kernels.maximumRow(r.sink, lowest)
		for first, last, ok := r.next(0, src.D); ok; first, last, ok = r.next(last, src.D) {
			copy(to[first:last], from[first:last])
			r.change(to[first:last], first)
			m = b.kernels.maximumRow(to[first:last], m)
		}
		l := 0.0
		for _, x := range r.sink {
			l = float64(exp32(x - above0(m)))
		}
		for first, last, ok := r.next(0, src.D); ok; first, last, ok = r.next(last, src.D) {
			l += b.exponentials(to[first:last], to[first:last], m)
		}
		for first, last, ok := r.next(0, src.D); ok; first, last, ok = r.next(last, src.D) {
			b.kernels.scaleRow(to[first:last], to[first:last], float32(1/l))
		}
	})
	return int(empty.Load()), err
}
