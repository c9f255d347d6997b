package host

import "github.com/attnb/attnb/cudaops"

// ones are the factors of a sum that nothing rescales.
var ones = func() []float32 {
	x := make([]float32, tileRows)
	for i := range x {
		x[i] = 1
	}
	return x
}()

// Context writes p.v, block by block of keys for a block of queries.
func (b *Backend) Context(dst, p, v cudaops.View) error {
	group := p.H / v.H
	return b.blockwise(p, func(h, from, to int) {
		t := b.tiles.take(b.kernels, v.D)
		defer b.tiles.give(t)
		clear(t.acc[:v.D*tileRows])
		weights, values := head(p, h), head(v, h/group)
		for first := 0; first < v.S && !b.stop.Load(); first += tileKeys {
			n := min(tileKeys, v.S-first)
			weighs := false // nothing does above the diagonal of a causal mask
			for s := from; s < to && !weighs; s++ {
				weighs = !zero(row(p, h, s)[first : first+n])
			}
			if !weighs {
				continue
			}
			if !t.finite(values.from(first), values.stride, n, v.D) {
				for s := from; s < to; s++ {
					t.nonzero(s-from, row(p, h, s)[first:first+n], values, first)
				}
				continue
			}
			t.turn(t.s, tileRows, weights.from(from)[first:], weights.stride, to-from, n)
			t.eachStrip(to-from, func(k *stripKernels, lane int) {
				k.weighted(t.acc[lane:], ones, t.s[lane:], values.from(first), values.stride, n, v.D)
			})
		}
		t.turn(head(dst, h).from(from), dst.RowStride, t.acc, tileRows, v.D, to-from)
		for s := from; s < to; s++ {
			t.scaleRow(row(dst, h, s), row(dst, h, s), 1)
		}
	})
}

// zero says whether all elements are.
func zero(x []float32) bool {
	for _, v := range x {
		if v != 0 {
			return false
		}
	}
	return true
}

// nonzero adds, in a lane, values from row first on, without those whose weight is 0: 0 times what is not finite is NaN.
func (t *tile) nonzero(lane int, weights []float32, values matrix, first int) {
	part := make([]float32, values.dim)
	for j, w := range weights {
		if w != 0 {
			t.addWeighted(part, weights[j:j+1], values.from(first+j), values.stride)
		}
	}
	for i, x := range part {
		t.acc[i*tileRows+lane] += x
	}
}
