package host

import "github.com/attnb/attnb/cudaops"

// sumSpan is how many exponentials of a row are added up in f32, before the sum goes on in f64.
const sumSpan = 256

// Softmax is exp(x - m) / l over the columns that a row sees, m their maximum and l the sum of the exponentials.
func (b *Backend) Softmax(dst, src cudaops.View, mask cudaops.Mask) error {
	return b.eachRow(dst, func(h, s int) {
		seen := mask.Visible(s, src.D)
		to, from := row(dst, h, s), row(src, h, s)[:seen]
		clear(to[seen:])
		to = to[:seen]
		l := b.exponentials(to, from, b.kernels.maximumRow(from, lowest))
		b.kernels.scaleRow(to, to, float32(1/l))
	})
}

// exponentials writes e^(src-m), and returns their sum.
func (b *Backend) exponentials(dst, src []float32, m float32) float64 {
	l := 0.0
	for at := 0; at < len(dst); at += sumSpan {
		end := min(at+sumSpan, len(dst))
		l += float64(b.kernels.exponentialsRow(dst[at:end], src[at:end], above0(m)))
	}
	return l
}
