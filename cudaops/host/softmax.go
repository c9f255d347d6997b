package host

import (
	"math"

	"github.com/attnb/attnb/cudaops"
)

// Softmax is exp(x - m) / l over the columns that a row sees, m their maximum and l the sum of the exponentials.
func (b *Backend) Softmax(dst, src cudaops.View, mask cudaops.Mask) error {
	return b.eachRow(dst, func(h, s int) {
		seen := mask.Visible(s, src.D)
		to, from := row(dst, h, s), row(src, h, s)[:seen]
		clear(to[seen:])
		to = to[:seen]
		m := maximum(float32(math.Inf(-1)), from)
		l := 0.0
		for i, x := range from {
			e := exp(x, m)
			to[i] = e
			l += float64(e)
		}
		inv := 1 / l
		for i, e := range to {
			to[i] = float32(float64(e) * inv)
		}
	})
}

// maximum is the largest of m and the values. A NaN is passed over: it shows again in the exponentials.
func maximum(m float32, values []float32) float32 {
	for _, x := range values {
		if x > m {
			m = x
		}
	}
	return m
}

// exp is e^(x-m). Where nothing over -Inf was seen yet, m is taken as 0, so that the -Inf seen count nothing and a
// NaN shows.
func exp(x, m float32) float32 {
	if m == float32(math.Inf(-1)) {
		m = 0
	}
	return float32(math.Exp(float64(x - m)))
}
