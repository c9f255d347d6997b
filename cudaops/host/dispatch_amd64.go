package host

import "golang.org/x/sys/cpu"

//go:generate go -C avogen run . -out ../kernels_amd64.s -stubs ../kernels_amd64.go -pkg host

// available is what the processor has, the best last.
var available = func() []*kernels {
	all := []*kernels{plain}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		all = append(all, avx2)
		if cpu.X86.HasAVX512F {
			all = append(all, avx512)
		}
	}
	return all
}()

var (
	avx2   = &kernels{"avx2", lanes16, lanes16, vectorRows}
	avx512 = &kernels{"avx512", lanes16, lanes64, vectorRows}
)

// The assembly checks no bounds. What it is to reach is checked here, so that a mistake is a panic, not another array's numbers.

// last is the last element of n rows.
func last(n, stride, dim int) int { return (n-1)*stride + dim - 1 }

var lanes16 = stripKernels{
	lanes: 16,
	products: func(out, q, keys []float32, stride, n, dim int, scale float32) {
		_, _, _ = out[last(n, tileRows, 16)], q[last(dim, tileRows, 16)], keys[last(n, stride, dim)]
		products16(&out[0], &q[0], &keys[0], stride, n, dim, scale)
	},
	weighted: func(acc, factor, weights, values []float32, stride, n, dim int) {
		_, _, _, _ = acc[last(dim, tileRows, 16)], factor[15], weights[last(n, tileRows, 16)], values[last(n, stride, dim)]
		weighted16(&acc[0], &factor[0], &weights[0], &values[0], stride, n, dim)
	},
	maximum: func(m, scores []float32, n int) {
		_, _ = m[15], scores[last(n, tileRows, 16)]
		maximum16(&m[0], &scores[0], n)
	},
	exponentials: func(sum, scores, m []float32, n int) {
		_, _, _ = sum[15], scores[last(n, tileRows, 16)], m[15]
		exponentials16(&sum[0], &scores[0], &m[0], n)
	},
}

var lanes64 = stripKernels{
	lanes: 64,
	products: func(out, q, keys []float32, stride, n, dim int, scale float32) {
		_, _, _ = out[last(n, tileRows, 64)], q[last(dim, tileRows, 64)], keys[last(n, stride, dim)]
		products64(&out[0], &q[0], &keys[0], stride, n, dim, scale)
	},
	weighted: func(acc, factor, weights, values []float32, stride, n, dim int) {
		_, _, _, _ = acc[last(dim, tileRows, 64)], factor[63], weights[last(n, tileRows, 64)], values[last(n, stride, dim)]
		weighted64(&acc[0], &factor[0], &weights[0], &values[0], stride, n, dim)
	},
	maximum: func(m, scores []float32, n int) {
		_, _ = m[63], scores[last(n, tileRows, 64)]
		maximum64(&m[0], &scores[0], n)
	},
	exponentials: func(sum, scores, m []float32, n int) {
		_, _, _ = sum[63], scores[last(n, tileRows, 64)], m[63]
		exponentials64(&sum[0], &scores[0], &m[0], n)
	},
}

// vectorRows are of 8 lanes: what a row alone takes is memory, not arithmetic.
var vectorRows = rowKernels{
	dots: func(out, q, keys []float32, stride int, scale float32) {
		if len(out) > 0 {
			_ = keys[last(len(out), stride, len(q))]
			dots(&out[0], &q[0], &keys[0], stride, len(out), len(q), scale)
		}
	},
	addWeighted: func(acc, weights, values []float32, stride int) {
		if len(weights) > 0 && len(acc) > 0 {
			_ = values[last(len(weights), stride, len(acc))]
			addWeighted(&acc[0], &weights[0], &values[0], stride, len(weights), len(acc))
		}
	},
	fold: func(acc, x []float32, factor float32) {
		if len(acc) > 0 {
			fold(&acc[0], &x[:len(acc)][0], len(acc), factor)
		}
	},
	scaleRow: func(dst, src []float32, factor float32) {
		if len(dst) > 0 {
			scaleRow(&dst[0], &src[:len(dst)][0], len(dst), factor)
		}
	},
	maximumRow: func(x []float32, m float32) float32 {
		if len(x) == 0 {
			return m
		}
		return maximumRow(&x[0], len(x), m)
	},
	exponentialsRow: func(dst, src []float32, m float32) float32 {
		if len(dst) == 0 {
			return 0
		}
		return exponentialsRow(&dst[0], &src[:len(dst)][0], len(dst), m)
	},
	finite: func(x []float32, stride, n, dim int) bool {
		if n == 0 {
			return true
		}
		_ = x[last(n, stride, dim)]
		return finite(&x[0], stride, n, dim) == 0
	},
	transpose: func(dst []float32, dstStride int, src []float32, srcStride, rows, columns int) {
		_, _ = dst[last(columns, dstStride, rows)], src[last(rows, srcStride, columns)]
		transpose(&dst[0], dstStride, &src[0], srcStride, rows, columns)
	},
}
