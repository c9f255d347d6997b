package host

import (
	"math"

	"github.com/attnb/attnb/cudaops"
)

// RoPE turns pair (a, b) by angle t to (a cos t - b sin t, a sin t + b cos t). The sines and cosines of a row serve all
// of its heads.
func (b *Backend) RoPE(dst, src cudaops.View, r cudaops.RoPE) error {
	n := r.Rotary / 2
	const size = 8 // rows a block
	return b.parallel(blocks(src.S, size), func(i int) {
		cos, sin := make([]float32, n), make([]float32, n)
		for s := i * size; s < min((i+1)*size, src.S); s++ {
			angles(cos, sin, r, s)
			for h := range src.H {
				to, from := row(dst, h, s), row(src, h, s)
				turn(to, from, cos, sin, r.Convention)
				copy(to[r.Rotary:], from[r.Rotary:])
			}
		}
	})
}

// angles fills in the cosines and sines of a row.
func angles(cos, sin []float32, r cudaops.RoPE, row int) {
	position := r.Offset + row
	if r.Positions != nil {
		position = r.Positions[row]
	}
	for i, f := range r.InvFreq {
		if r.Angle == cudaops.AngleFloat32 {
			s, c := math.Sincos(float64(float32(position) * float32(f)))
			cos[i], sin[i] = float32(c)*float32(r.Magnitude), float32(s)*float32(r.Magnitude)
			continue
		}
		s, c := math.Sincos(float64(position) * f)
		cos[i], sin[i] = float32(c*r.Magnitude), float32(s*r.Magnitude)
	}
}

func turn(to, from, cos, sin []float32, c cudaops.Convention) {
	n := len(cos)
	if c == cudaops.Interleaved {
		for i := range n {
			x, y := from[2*i], from[2*i+1]
			to[2*i], to[2*i+1] = x*cos[i]-y*sin[i], x*sin[i]+y*cos[i]
		}
		return
	}
	for i := range n {
		x, y := from[i], from[i+n]
		to[i], to[i+n] = x*cos[i]-y*sin[i], x*sin[i]+y*cos[i]
	}
}
