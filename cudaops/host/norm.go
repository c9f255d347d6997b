package host

import (
	"math"

	"github.com/attnb/attnb/cudaops"
)

// Norm takes mean and mean square in float64, where no order of summation matters, and rounds once at the end.
func (b *Backend) Norm(dst, x, w, bias cudaops.View, n cudaops.Norm) error {
	return b.eachRow(dst, func(h, s int) {
		to, from := row(dst, h, s), row(x, h, s)
		size, mean, square := float64(len(from)), 0.0, 0.0
		if n.Centred {
			for _, v := range from {
				mean += float64(v)
			}
			mean /= size
		}
		for _, v := range from {
			d := float64(v) - mean
			square += d * d
		}
		inverse := 1 / math.Sqrt(square/size+float64(n.Epsilon))
		scale, shift := affine(w), affine(bias)
		for i, v := range from {
			y := (float64(v) - mean) * inverse
			if scale != nil {
				y *= float64(scale[i])
			}
			if shift != nil {
				y += float64(shift[i])
			}
			to[i] = float32(y)
		}
	})
}

// affine is the only row of a view, nil where there is none.
func affine(v cudaops.View) []float32 {
	if v.Mem == nil {
		return nil
	}
	return row(v, 0, 0)
}
