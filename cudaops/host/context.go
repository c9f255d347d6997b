package host

import "github.com/attnb/attnb/cudaops"

// Context writes p.v. The keys are read block by block for a block of queries; each block is added up apart, so that a long
// sum is no less accurate than a short one.
func (b *Backend) Context(dst, p, v cudaops.View) error {
	group := p.H / v.H
	return b.blockwise(p, func(h, from, to int) {
		values := head(v, h/group)
		for s := from; s < to; s++ {
			clear(row(dst, h, s))
		}
		part := make([]float32, v.D)
		for first := 0; first < v.S; first += keyBlock {
			for s := from; s < to; s++ {
				clear(part)
				weighted0(part, row(p, h, s)[first:min(first+keyBlock, v.S)], values, first)
				axpy(row(dst, h, s), 1, part)
			}
		}
	})
}

// weighted0 is weighted without the rows whose weight is 0: 0 times NaN is NaN.
func weighted0(acc []float32, weights []float32, m matrix, first int) {
	from := 0
	for j := range weights {
		if weights[j] == 0 {
			weighted(acc, weights[from:j], m, first+from)
			from = j + 1
		}
	}
	weighted(acc, weights[from:], m, first+from)
}
