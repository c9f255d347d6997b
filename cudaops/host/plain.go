package host

import "math"

// plain is Go alone, for processors without vectors that we have assembly for. Each element is computed in the order that the assembly has.
var plain = &kernels{"plain", plainStrip, plainStrip, plainRows}

var plainStrip = stripKernels{
	lanes:        strip,
	products:     plainProducts,
	weighted:     plainWeighted,
	maximum:      plainMaximum,
	exponentials: plainExponentials,
}

var plainRows = rowKernels{
	dots:            plainDots,
	addWeighted:     plainAddWeighted,
	fold:            plainFold,
	scaleRow:        plainScaleRow,
	maximumRow:      plainMaximumRow,
	exponentialsRow: plainExponentialsRow,
	finite:          plainFinite,
	transpose:       plainTranspose,
}

// plainProducts computes two keys and four lanes at once, which is what the registers hold.
func plainProducts(out, q, keys []float32, stride, n, dim int, scale float32) {
	for j := 0; j < n; j += 2 {
		a := keys[j*stride:][:dim]
		b := a // of the last of an odd number twice the same
		if j+1 < n {
			b = keys[(j+1)*stride:][:dim]
		}
		for l := 0; l < strip; l += 4 {
			var a0, a1, a2, a3, b0, b1, b2, b3 float32
			for i, x := range a {
				y, z := b[i], (*[4]float32)(q[i*tileRows+l:])
				a0 += x * z[0]
				a1 += x * z[1]
				a2 += x * z[2]
				a3 += x * z[3]
				b0 += y * z[0]
				b1 += y * z[1]
				b2 += y * z[2]
				b3 += y * z[3]
			}
			if j+1 < n {
				*(*[4]float32)(out[(j+1)*tileRows+l:]) = [4]float32{scale * b0, scale * b1, scale * b2, scale * b3}
			}
			*(*[4]float32)(out[j*tileRows+l:]) = [4]float32{scale * a0, scale * a1, scale * a2, scale * a3}
		}
	}
}

func plainWeighted(acc, factor, weights, values []float32, stride, n, dim int) {
	for i := 0; i < dim; i += 2 {
		second := min(i+1, dim-1)
		for l := 0; l < strip; l += 4 {
			var a0, a1, a2, a3, b0, b1, b2, b3 float32
			for j := range n {
				z := (*[4]float32)(weights[j*tileRows+l:])
				x, y := values[j*stride+i], values[j*stride+second]
				a0 += x * z[0]
				a1 += x * z[1]
				a2 += x * z[2]
				a3 += x * z[3]
				b0 += y * z[0]
				b1 += y * z[1]
				b2 += y * z[2]
				b3 += y * z[3]
			}
			f := (*[4]float32)(factor[l:])
			to := (*[4]float32)(acc[i*tileRows+l:])
			*to = [4]float32{to[0]*f[0] + a0, to[1]*f[1] + a1, to[2]*f[2] + a2, to[3]*f[3] + a3}
			if second > i {
				to = (*[4]float32)(acc[second*tileRows+l:])
				*to = [4]float32{to[0]*f[0] + b0, to[1]*f[1] + b1, to[2]*f[2] + b2, to[3]*f[3] + b3}
			}
		}
	}
}

func plainMaximum(m, scores []float32, n int) {
	m = m[:strip]
	for j := range n {
		for l, x := range scores[j*tileRows:][:strip] {
			if x > m[l] {
				m[l] = x
			}
		}
	}
}

func plainExponentials(sum, scores, m []float32, n int) {
	for l := range strip {
		var s [4]float32
		for j := range n {
			at := &scores[j*tileRows+l]
			*at = exp32(*at - m[l])
			s[j%4] += *at
		}
		sum[l] = (s[0] + s[2]) + (s[1] + s[3])
	}
}

// plainDots computes four keys at once.
func plainDots(out, q, keys []float32, stride int, scale float32) {
	n := len(q)
	j := 0
	for ; j+4 <= len(out); j += 4 {
		a, b, c, d := keys[j*stride:][:n], keys[(j+1)*stride:][:n], keys[(j+2)*stride:][:n], keys[(j+3)*stride:][:n]
		var s0, s1, s2, s3 float32
		for i, x := range q {
			s0 += a[i] * x
			s1 += b[i] * x
			s2 += c[i] * x
			s3 += d[i] * x
		}
		out[j], out[j+1], out[j+2], out[j+3] = scale*s0, scale*s1, scale*s2, scale*s3
	}
	for ; j < len(out); j++ {
		var s float32
		for i, k := range keys[j*stride:][:n] {
			s += k * q[i]
		}
		out[j] = scale * s
	}
}

// plainAddWeighted adds four values to an element before it writes it.
func plainAddWeighted(acc, weights, values []float32, stride int) {
	n := len(acc)
	j := 0
	for ; j+4 <= len(weights); j += 4 {
		a, b, c, d := values[j*stride:][:n], values[(j+1)*stride:][:n], values[(j+2)*stride:][:n], values[(j+3)*stride:][:n]
		w := (*[4]float32)(weights[j:])
		for i, x := range acc {
			x += w[0] * a[i]
			x += w[1] * b[i]
			x += w[2] * c[i]
			x += w[3] * d[i]
			acc[i] = x
		}
	}
	for ; j < len(weights); j++ {
		for i, v := range values[j*stride:][:n] {
			acc[i] += weights[j] * v
		}
	}
}

func plainFold(acc, x []float32, factor float32) {
	x = x[:len(acc)]
	for i, a := range acc {
		acc[i] = a*factor + x[i]
	}
}

func plainScaleRow(dst, src []float32, factor float32) {
	src = src[:len(dst)]
	for i, x := range src {
		dst[i] = x*factor + 0
	}
}

func plainMaximumRow(x []float32, m float32) float32 {
	for _, v := range x {
		if v > m {
			m = v
		}
	}
	return m
}

func plainExponentialsRow(dst, src []float32, m float32) float32 {
	var s [4]float32
	for i, x := range src[:len(dst)] {
		e := exp32(x - m)
		dst[i] = e
		s[i%4] += e
	}
	return (s[0] + s[2]) + (s[1] + s[3])
}

func plainFinite(x []float32, stride, n, dim int) bool {
	for r := range n {
		for _, v := range x[r*stride:][:dim] {
			if math.Float32bits(v)&0x7f800000 == 0x7f800000 {
				return false
			}
		}
	}
	return true
}

func plainTranspose(dst []float32, dstStride int, src []float32, srcStride, rows, columns int) {
	for r := range rows {
		for c, x := range src[r*srcStride:][:columns] {
			dst[c*dstStride+r] = x
		}
	}
}
