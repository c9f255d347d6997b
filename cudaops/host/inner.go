package host

// The inner products of all matrix ops. Each adds up in a fixed order, which depends on the length alone.

// dot is a.b, in four sums that are added up at the end.
func dot(a, b []float32) float32 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float32
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return (s0 + s1) + (s2 + s3)
}

// dot4 is a.b for four b, so that a is read once. Each is two sums, added up at the end.
func dot4(a, b0, b1, b2, b3 []float32) (r0, r1, r2, r3 float32) {
	n := len(a)
	b0, b1, b2, b3 = b0[:n], b1[:n], b2[:n], b3[:n]
	var s00, s01, s10, s11, s20, s21, s30, s31 float32
	i := 0
	for ; i+2 <= n; i += 2 {
		x, y := a[i], a[i+1]
		s00 += x * b0[i]
		s01 += y * b0[i+1]
		s10 += x * b1[i]
		s11 += y * b1[i+1]
		s20 += x * b2[i]
		s21 += y * b2[i+1]
		s30 += x * b3[i]
		s31 += y * b3[i+1]
	}
	if i < n {
		x := a[i]
		s00 += x * b0[i]
		s10 += x * b1[i]
		s20 += x * b2[i]
		s30 += x * b3[i]
	}
	return s00 + s01, s10 + s11, s20 + s21, s30 + s31
}

// axpy4 adds p0*v0 + p1*v1 + p2*v2 + p3*v3 to acc.
func axpy4(acc []float32, p0, p1, p2, p3 float32, v0, v1, v2, v3 []float32) {
	n := len(acc)
	v0, v1, v2, v3 = v0[:n], v1[:n], v2[:n], v3[:n]
	for i := range acc {
		acc[i] += (p0*v0[i] + p1*v1[i]) + (p2*v2[i] + p3*v3[i])
	}
}

// axpy adds p*v to acc.
func axpy(acc []float32, p float32, v []float32) {
	v = v[:len(acc)]
	for i := range acc {
		acc[i] += p * v[i]
	}
}

// products writes scale * x.row(first+j) to out[j], rows being those of head h of m.
func products(out []float32, x []float32, m matrix, first int, scale float32) {
	j := 0
	for ; j+4 <= len(out); j += 4 {
		r0, r1, r2, r3 := dot4(x, m.row(first+j), m.row(first+j+1), m.row(first+j+2), m.row(first+j+3))
		out[j], out[j+1], out[j+2], out[j+3] = scale*r0, scale*r1, scale*r2, scale*r3
	}
	for ; j < len(out); j++ {
		out[j] = scale * dot(x, m.row(first+j))
	}
}

// weighted adds the rows of m from first on, times the weights, to acc.
func weighted(acc []float32, weights []float32, m matrix, first int) {
	j := 0
	for ; j+4 <= len(weights); j += 4 {
		axpy4(acc, weights[j], weights[j+1], weights[j+2], weights[j+3],
			m.row(first+j), m.row(first+j+1), m.row(first+j+2), m.row(first+j+3))
	}
	for ; j < len(weights); j++ {
		axpy(acc, weights[j], m.row(first+j))
	}
}
