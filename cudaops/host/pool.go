package host

import (
	"math"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/plan"
)

// pooled is one pool on its way: n cells were seen, sum is theirs for a mean or a sum, else value the largest or smallest.
type pooled struct {
	n     int
	value float32
	sum   float64
}

// piece is what one worker makes of a head: the query rows from up to to, which are at most those of a tile, into pools of its own, for each
// of count pooled rows.
type piece struct {
	head, row, count, from, to int
	first                      bool // of its pooled row
	pools                      []pooled
}

// pieces cut a head into whole pooled rows, as many as fit in a tile, and those that do not fit into several.
func pieces(h, rows, pooledRows int) (all []piece) {
	edge := func(i int) int { return plan.Edge(i, rows, pooledRows) }
	for i := 0; i < pooledRows; {
		p := piece{head: h, row: i, count: 1, from: edge(i), to: edge(i + 1), first: true}
		for i++; i < pooledRows && edge(i+1)-p.from <= tileRows; i++ {
			p.count, p.to = p.count+1, edge(i+1)
		}
		for end := p.to; p.from < end; p.from, p.first = p.to, false {
			p.to = min(p.from+tileRows, end)
			all = append(all, p)
		}
	}
	return all
}

// Pool makes pieces, and joins those of one pooled row in their order. A pooled row of a single piece, as in most
// pictures, is written at once; so what is held beyond the result is at most 1/64 of S times w pools.
func (b *Backend) Pool(dst, q, k, lse cudaops.View, scale float32, mask cudaops.Mask, by cudaops.Reduce) error {
	group := q.H / k.H
	var all []piece
	for h := range q.H {
		all = append(all, pieces(h, q.S, dst.S)...)
	}
	whole := func(i int) bool { return all[i].first && (i+1 == len(all) || all[i+1].first) }
	err := b.parallel(len(all), func(i int) {
		i = len(all) - 1 - i // later rows see more keys: first, as in blockwise
		p := &all[i]
		t := b.tiles.take(b.kernels, q.D)
		defer b.tiles.give(t)
		t.pack(head(q, p.head), p.from, p.to-p.from, 0, q.D)
		p.pools = make([]pooled, p.count*dst.D)
		r := reduction{tile: t, piece: p, by: by, scale: scale, mask: mask, keys: head(k, p.head/group), t: k.S, w: dst.D, ends: []int{p.to - p.from}}
		if p.count > 1 {
			r.ends = r.ends[:0]
			for j := range p.count {
				r.ends = append(r.ends, plan.Edge(p.row+j+1, q.S, dst.S)-p.from)
			}
		}
		if lse.Mem != nil {
			r.lse = make([]float32, tileRows)
			for j, x := range row(lse, 0, p.head)[p.from:p.to] {
				r.lse[j] = exponent(x)
			}
		}
		r.run(b.stop.Load)
		if whole(i) {
			for j := range p.count {
				finish(row(dst, p.head, p.row+j), p.pools[j*dst.D:(j+1)*dst.D], by)
			}
			p.pools = nil
		}
	})
	if err != nil {
		return err
	}
	for i, p := range all {
		if p.pools == nil || !p.first {
			continue
		}
		for j := i + 1; j < len(all) && !all[j].first; j++ {
			for c := range p.pools {
				p.pools[c].join(all[j].pools[c], by)
			}
		}
		finish(row(dst, p.head, p.row), p.pools, by)
	}
	return nil
}

// exponent is a row's log of its sum as an exponent takes it: +Inf makes every probability NaN.
func exponent(lse float32) float32 {
	if math.IsInf(float64(lse), 1) {
		return float32(math.NaN())
	}
	return lse
}

// reduction takes the cells of a piece into its pools.
type reduction struct {
	*tile
	*piece
	by    cudaops.Reduce
	scale float32
	mask  cudaops.Mask
	lse   []float32 // a lane each; none: the cells are scores
	keys  matrix
	t, w  int   // keys, and pools that they become
	ends  []int // of the pooled rows, in lanes
}

// run reads the keys block by block for all rows.
func (r *reduction) run(stop func() bool) {
	n := r.piece.to - r.from
	end := r.mask.Visible(r.piece.to-1, r.t) // the last row sees most
	for first := 0; first < end && !stop(); first += tileKeys {
		last := min(first+tileKeys, end)
		r.eachStrip(n, func(k *stripKernels, lane int) {
			k.products(r.s[lane:], r.q[lane:], r.keys.from(first), r.keys.stride, last-first, r.keys.dim, r.scale)
		})
		for at, j := first, plan.Pool(first, r.t, r.w); at < last; j++ {
			to := min(plan.Edge(j+1, r.t, r.w), last)
			if r.lse != nil && (r.by == cudaops.Mean || r.by == cudaops.Sum) {
				r.weigh(at-first, first, to-first)
			}
			lane := 0
			for i, end := range r.ends {
				// The first row that sees key at; each one after it sees at least as much.
				for lane < end && r.mask.Visible(r.from+lane, r.t) <= at {
					lane++
				}
				if lane < end {
					r.take(&r.pools[i*r.w+j], at-first, first, to-first, lane, end)
				}
				lane = end
			}
			at = to
		}
	}
}

// visible is how many keys from first on a lane sees, at most most.
func (r *reduction) visible(lane, first, most int) int {
	return min(r.mask.Visible(r.from+lane, r.t)-first, most)
}

// weigh adds up, in each lane, the probabilities of the keys from at up to to of the block that begins at first. Hidden ones are e^-Inf.
func (r *reduction) weigh(at, first, to int) {
	n := r.piece.to - r.from
	for i := range n {
		seen := r.visible(i, first, to)
		if seen == to {
			break // so do all that follow
		}
		for j := max(seen, at); j < to; j++ {
			r.s[j*tileRows+i] = lowest
		}
	}
	r.eachStrip(n, func(k *stripKernels, lane int) {
		k.exponentials(r.sum[lane:], r.s[at*tileRows+lane:], r.lse[lane:], to-at)
	})
}

// take adds the keys from at up to to of the block that begins at first, in the lanes from lane up to end, to a pool.
func (r *reduction) take(p *pooled, at, first, to, lane, end int) {
	switch {
	case r.by == cudaops.Max || r.by == cudaops.Min:
		for i := lane; i < end; i++ {
			v := r.s[at*tileRows+i] // the exponential keeps the order: the extreme score gives the extreme probability
			n := r.visible(i, first, to)
			for j := at + 1; j < n; j++ {
				v = extreme(v, r.s[j*tileRows+i], r.by)
			}
			if r.lse != nil {
				v = exp32(v - r.lse[i])
			}
			if p.n > 0 {
				v = extreme(p.value, v, r.by)
			}
			p.value = v
			p.n += n - at
		}
	case r.lse != nil:
		p.add(r.sum[lane:end])
		for i := lane; i < end; i++ {
			p.n += r.visible(i, first, to) - at
		}
	default:
		for j := at; j < to; j++ {
			for lane < end && r.visible(lane, first, to) <= j {
				lane++
			}
			p.add(r.s[j*tileRows+lane : j*tileRows+end])
			p.n += end - lane
		}
	}
}

// add adds to the sum.
func (p *pooled) add(x []float32) {
	a, b := 0.0, 0.0
	for len(x) >= 2 {
		a += float64(x[0])
		b += float64(x[1])
		x = x[2:]
	}
	for _, v := range x {
		a += float64(v)
	}
	p.sum += a + b
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
