package host

import (
	"math"

	"github.com/attnb/attnb/cudaops"
)

const (
	queryBlock = 32  // queries that share the reading of a block of keys
	keyBlock   = 64  // keys and values of a block, which should stay in the first-level cache
	decodeSpan = 512 // keys of one piece of work of a decode step
)

// matrix is one head of a view.
type matrix struct {
	data        []float32
	dim, stride int
}

func head(v cudaops.View, h int) matrix {
	return matrix{data(v.Mem)[v.Offset+h*v.HeadStride:], v.D, v.RowStride}
}

func (m matrix) row(r int) []float32 { return m.data[r*m.stride : r*m.stride+m.dim] }

// online is a softmax in progress: the weighted sum of the values so far, l the sum of the weights, and m the maximum that
// the weights exp(s - m) are relative to. Milakov and Gimelshein, arXiv 1805.02867.
type online struct {
	m   float32
	l   float32
	acc []float32
}

func (o *online) reset(acc []float32) {
	clear(acc)
	*o = online{m: float32(math.Inf(-1)), acc: acc}
}

// rescale moves the maximum up to m.
func (o *online) rescale(m float32) {
	if m == o.m {
		return
	}
	if o.m != float32(math.Inf(-1)) {
		f := exp(o.m, m)
		o.l *= f
		for i := range o.acc {
			o.acc[i] *= f
		}
	}
	o.m = m
}

// add takes in the scores of keys first, first+1, ... with their values v. scores becomes the weights.
func (o *online) add(scores []float32, v matrix, first int) {
	o.weigh(scores)
	weighted(o.acc, scores, v, first)
}

// weigh is add without the values.
func (o *online) weigh(scores []float32) {
	o.rescale(maximum(o.m, scores))
	var l float32
	for i, s := range scores {
		w := exp(s, o.m)
		scores[i] = w
		l += w
	}
	o.l += l
}

// finish divides by the sum of the weights. Without a key the result is 0.
func (o *online) finish(dst []float32, seen int) {
	if seen == 0 {
		clear(dst)
		return
	}
	for i, a := range o.acc {
		dst[i] = a / o.l
	}
}

// lse is the natural log of the sum of exp(score).
func (o *online) lse() float32 {
	if o.m == float32(math.Inf(1)) {
		return o.m // l is NaN, but no other term counts
	}
	return float32(float64(o.m) + math.Log(float64(o.l)))
}

// Scores writes scale * q.k.
func (b *Backend) Scores(dst, q, k cudaops.View, scale float32) error {
	group := q.H / k.H
	return b.blockwise(q, func(h, from, to int) {
		keys := head(k, h/group)
		for first := 0; first < k.S; first += keyBlock {
			last := min(first+keyBlock, k.S)
			for s := from; s < to; s++ {
				products(row(dst, h, s)[first:last], row(q, h, s), keys, first, scale)
			}
		}
	})
}

// blockwise calls work for each block of queries of each head. Later blocks see more keys under a causal mask: they
// go first, so that no worker is left with a long one at the end.
func (b *Backend) blockwise(q cudaops.View, work func(h, from, to int)) error {
	n := blocks(q.S, queryBlock)
	return b.parallel(n*q.H, func(i int) {
		from := (n - 1 - i/q.H) * queryBlock
		work(i%q.H, from, min(from+queryBlock, q.S))
	})
}

// Prefill reads the keys block by block for a block of queries, and never a key that the query at hand does not see.
func (b *Backend) Prefill(dst, lse, q, k, v cudaops.View, scale float32, mask cudaops.Mask) error {
	group := q.H / k.H
	return b.blockwise(q, func(h, from, to int) {
		keys, values := head(k, h/group), head(v, h/group)
		var states [queryBlock]online
		acc := make([]float32, queryBlock*q.D)
		for i := range states {
			states[i].reset(acc[i*q.D : (i+1)*q.D])
		}
		var scores [keyBlock]float32
		end := mask.Visible(to-1, k.S) // the last query sees most
		for first := 0; first < end; first += keyBlock {
			for s := from; s < to; s++ {
				n := min(mask.Visible(s, k.S)-first, keyBlock)
				if n <= 0 {
					continue
				}
				products(scores[:n], row(q, h, s), keys, first, scale)
				states[s-from].add(scores[:n], values, first)
			}
		}
		for s := from; s < to; s++ {
			o, seen := &states[s-from], mask.Visible(s, k.S)
			o.finish(row(dst, h, s), seen)
			if lse.Mem != nil {
				row(lse, 0, h)[s] = o.lse()
			}
		}
	})
}

// Decode cuts the keys into spans, so that one head with a long cache occupies every core, and joins them in order.
func (b *Backend) Decode(dst, q, k, v cudaops.View, scale float32) error {
	group, spans := q.H/k.H, blocks(k.S, decodeSpan)
	parts := make([]online, q.H*spans)
	acc := make([]float32, len(parts)*q.D)
	err := b.parallel(len(parts), func(i int) {
		h, from := i/spans, i%spans*decodeSpan
		keys, values := head(k, h/group), head(v, h/group)
		o := &parts[i]
		o.reset(acc[i*q.D : (i+1)*q.D])
		var scores [keyBlock]float32
		for first, to := from, min(from+decodeSpan, k.S); first < to; first += keyBlock {
			n := min(keyBlock, to-first)
			products(scores[:n], row(q, h, 0), keys, first, scale)
			o.add(scores[:n], values, first)
		}
	})
	if err != nil {
		return err
	}
	for h := range q.H {
		o := &parts[h*spans]
		for i := range spans - 1 {
			o.join(&parts[h*spans+1+i])
		}
		o.finish(row(dst, h, 0), k.S)
	}
	return nil
}

// join takes in what another softmax has seen.
func (o *online) join(p *online) {
	m := max(o.m, p.m)
	o.rescale(m)
	p.rescale(m)
	o.l += p.l
	axpy(o.acc, 1, p.acc)
}

// Linear writes x w^T + bias.
func (b *Backend) Linear(dst, x, w, bias cudaops.View) error {
	const size = 64 // outputs a block: their weights stay in the cache while the rows pass
	weights := head(w, 0)
	across := blocks(w.S, size)
	return b.parallel(across*blocks(x.S, queryBlock), func(i int) {
		first, from := i%across*size, i/across*queryBlock
		last := min(first+size, w.S)
		for s := from; s < min(from+queryBlock, x.S); s++ {
			to := row(dst, 0, s)[first:last]
			products(to, row(x, 0, s), weights, first, 1)
			if bias.Mem != nil {
				axpy(to, 1, row(bias, 0, 0)[first:last])
			}
		}
	})
}
