package host

import (
	"math"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/plan"
)

// LSE is [Backend.Prefill] without the values.
func (b *Backend) LSE(dst, q, k cudaops.View, scale float32, mask cudaops.Mask) error {
	group := q.H / k.H
	return b.blockwise(q, func(h, from, to int) {
		keys := head(k, h/group)
		var states [queryBlock]online
		for i := range states {
			states[i].reset(nil)
		}
		var scores [keyBlock]float32
		end := mask.Visible(to-1, k.S)
		for first := 0; first < end && !b.stop.Load(); first += keyBlock {
			for s := from; s < to; s++ {
				n := min(mask.Visible(s, k.S)-first, keyBlock)
				if n <= 0 {
					continue
				}
				products(scores[:n], row(q, h, s), keys, first, scale)
				states[s-from].weigh(scores[:n])
			}
		}
		for s := from; s < to; s++ {
			row(dst, 0, h)[s] = states[s-from].lse()
		}
	})
}

// pooled is one pool on its way: n cells were seen, sum is theirs for a mean or a sum, else value the largest or smallest.
type pooled struct {
	n     int
	value float32
	sum   float64
}

// piece is the part of a pooled row that one worker makes: the query rows from up to to, into pools of its own.
type piece struct {
	head, row, from, to int
	first               bool // of its pooled row
	pools               []pooled
}

// Pool cuts each pooled row into pieces of at most queryBlock query rows, and joins these in their order. A row of a single piece,
// as in most pictures, is written at once; so what is held beyond the result is at most 1/32 of S times w pools.
func (b *Backend) Pool(dst, q, k, lse cudaops.View, scale float32, mask cudaops.Mask, by cudaops.Reduce) error {
	group := q.H / k.H
	var pieces []piece
	for h := range q.H {
		for i := range dst.S {
			end := plan.Edge(i+1, q.S, dst.S)
			for from, first := plan.Edge(i, q.S, dst.S), true; from < end; first = false {
				to := min(from+queryBlock, end)
				pieces = append(pieces, piece{head: h, row: i, from: from, to: to, first: first})
				from = to
			}
		}
	}
	whole := func(i int) bool { return pieces[i].first && (i+1 == len(pieces) || pieces[i+1].first) }
	err := b.parallel(len(pieces), func(i int) {
		i = len(pieces) - 1 - i // later rows see more keys: first, as in blockwise
		p := &pieces[i]
		p.pools = make([]pooled, dst.D)
		r := reduction{by: by, scale: scale, mask: mask, keys: head(k, p.head/group), t: k.S, stop: b.stop.Load}
		for s := p.from; s < p.to; s++ {
			r.rows = append(r.rows, row(q, p.head, s))
			if lse.Mem != nil {
				r.lse = append(r.lse, sum(row(lse, 0, p.head)[s]))
			}
		}
		r.run(p.pools, p.from)
		if whole(i) {
			finish(row(dst, p.head, p.row), p.pools, by)
			p.pools = nil
		}
	})
	if err != nil {
		return err
	}
	for i, p := range pieces {
		if p.pools == nil {
			continue
		}
		if p.first {
			for j := i + 1; j < len(pieces) && !pieces[j].first; j++ {
				for c := range p.pools {
					p.pools[c].join(pieces[j].pools[c], by)
				}
			}
			finish(row(dst, p.head, p.row), p.pools, by)
		}
	}
	return nil
}

// sum is a row's log of its sum as an exponent takes it: +Inf makes every probability NaN.
func sum(lse float32) float64 {
	if math.IsInf(float64(lse), 1) {
		return math.NaN()
	}
	return float64(lse)
}

// reduction takes the cells of a few query rows into pools.
type reduction struct {
	by    cudaops.Reduce
	scale float32
	mask  cudaops.Mask
	rows  [][]float32
	lse   []float64 // a row each; none: the cells are scores
	keys  matrix
	t     int
	stop  func() bool
}

// run reads the keys block by block for all rows, of which the first is row from of the queries.
func (r *reduction) run(pools []pooled, from int) {
	var scores [keyBlock]float32
	end := r.mask.Visible(from+len(r.rows)-1, r.t) // the last row sees most
	for first := 0; first < end && !r.stop(); first += keyBlock {
		at := plan.Pool(first, r.t, len(pools))
		for i, x := range r.rows {
			n := min(r.mask.Visible(from+i, r.t)-first, keyBlock)
			if n <= 0 {
				continue
			}
			products(scores[:n], x, r.keys, first, r.scale)
			for j, c := at, 0; c < n; j++ {
				to := min(plan.Edge(j+1, r.t, len(pools))-first, n)
				r.take(&pools[j], scores[c:to], i)
				c = to
			}
		}
	}
}

// take adds the scores of one row to a pool.
func (r *reduction) take(p *pooled, scores []float32, i int) {
	switch r.by {
	case cudaops.Mean, cudaops.Sum:
		add := 0.0
		if r.lse == nil {
			for _, s := range scores {
				add += float64(s)
			}
		} else {
			for _, s := range scores {
				add += math.Exp(float64(s) - r.lse[i])
			}
		}
		p.sum += add
	default:
		v := scores[0] // the exponential keeps the order: the extreme score gives the extreme probability
		for _, s := range scores[1:] {
			v = extreme(v, s, r.by)
		}
		if r.lse != nil {
			v = float32(math.Exp(float64(v) - r.lse[i]))
		}
		if p.n > 0 {
			v = extreme(p.value, v, r.by)
		}
		p.value = v
	}
	p.n += len(scores)
}

// extreme is the larger or the smaller of two, NaN where one is.
func extreme(a, b float32, by cudaops.Reduce) float32 {
	if a != a || b != b {
		return float32(math.NaN())
	}
	if by == cudaops.Min {
		return min(a, b)
	}
	return max(a, b)
}

// join takes in what another piece has seen.
func (p *pooled) join(o pooled, by cudaops.Reduce) {
	if p.n > 0 && o.n > 0 {
		p.value = extreme(p.value, o.value, by)
	} else if o.n > 0 {
		p.value = o.value
	}
	p.sum += o.sum
	p.n += o.n
}

// finish writes the results of a pooled row.
func finish(dst []float32, pools []pooled, by cudaops.Reduce) {
	for j, p := range pools {
		switch {
		case p.n == 0:
			dst[j] = 0
		case by == cudaops.Mean:
			dst[j] = float32(p.sum / float64(p.n))
		case by == cudaops.Sum:
			dst[j] = float32(p.sum)
		default:
			dst[j] = p.value
		}
	}
}
