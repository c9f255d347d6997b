package host

import "fmt"

// Kernels are the inner loops of all ops: in plain Go, or in assembly for vectors of 8 or 16 floats. The zero value is the best that the
// processor has. Every one of them passes the conformance suite.
//
// All compute an element in the same order, whatever rows are computed together, so that a row gives the same bits alone and
// among others. avx2 and avx512 give the same bits; plain has no fused multiply-add, and its own.
type Kernels struct{ of *kernels }

// ParseKernels finds kernels by their name: plain, avx2 or avx512. auto and "" are the best that the processor has. Those that
// it cannot run are an error.
func ParseKernels(name string) (Kernels, error) {
	if name == "" || name == "auto" {
		return Kernels{}, nil
	}
	for _, k := range available {
		if k.name == name {
			return Kernels{k}, nil
		}
	}
	return Kernels{}, fmt.Errorf("kernels %q: this processor has auto%s", name, names())
}

// AllKernels are those that the processor can run, the best last.
func AllKernels() []Kernels {
	all := make([]Kernels, len(available))
	for i, k := range available {
		all[i].of = k
	}
	return all
}

// String is the name.
func (k Kernels) String() string { return k.table().name }

func (k Kernels) table() *kernels {
	if k.of == nil {
		return available[len(available)-1]
	}
	return k.of
}

func names() (list string) {
	for _, k := range available {
		list += ", " + k.name
	}
	return list
}

// kernels are one choice of inner loops. Strides and dims count floats. avogen says of each what it computes.
type kernels struct {
	name        string
	strip, wide stripKernels // of 16 lanes of a tile, and of as many as it can
	rowKernels
}

// stripKernels compute some lanes of a [tile]. Slices begin at the first lane.
type stripKernels struct {
	lanes        int
	products     func(out, q, keys []float32, stride, n, dim int, scale float32)
	weighted     func(acc, factor, weights, values []float32, stride, n, dim int)
	maximum      func(m, scores []float32, n int)
	exponentials func(sum, scores, m []float32, n int)
}

// rowKernels compute one row, of any length, none included.
type rowKernels struct {
	dots            func(out, q, keys []float32, stride int, scale float32)
	addWeighted     func(acc, weights, values []float32, stride int)
	fold            func(acc, x []float32, factor float32)
	scaleRow        func(dst, src []float32, factor float32)
	maximumRow      func(x []float32, m float32) float32
	exponentialsRow func(dst, src []float32, m float32) float32
	finite          func(x []float32, stride, n, dim int) bool
	transpose       func(dst []float32, dstStride int, src []float32, srcStride, rows, columns int)
}

// turn copies element (r, c) of src to (c, r) of dst.
func (k *kernels) turn(dst []float32, dstStride int, src []float32, srcStride, rows, columns int) {
	r8, c4 := rows&^7, columns&^3
	if r8 > 0 && c4 > 0 {
		k.transpose(dst, dstStride, src, srcStride, r8, c4)
	}
	for r := range rows {
		from := c4
		if r >= r8 {
			from = 0
		}
		for c := from; c < columns; c++ {
			dst[c*dstStride+r] = src[r*srcStride+c]
		}
	}
}
