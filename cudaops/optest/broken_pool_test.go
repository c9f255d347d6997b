package optest

import (
	"math"

	"github.com/attnb/attnb/cudaops"
)

type (
	lseFunc  func(b cudaops.Backend, dst, q, k cudaops.View, scale float32, m cudaops.Mask) error
	poolFunc func(b cudaops.Backend, dst, q, k, lse cudaops.View, scale float32, m cudaops.Mask, by cudaops.Reduce) error
)

func (f broken) LSE(dst, q, k cudaops.View, scale float32, m cudaops.Mask) error {
	if f.lse != nil {
		return f.lse(f.Backend, dst, q, k, scale, m)
	}
	return f.Backend.LSE(dst, q, k, scale, m)
}

func (f broken) Pool(dst, q, k, lse cudaops.View, scale float32, m cudaops.Mask, by cudaops.Reduce) error {
	if f.pool != nil {
		return f.pool(f.Backend, dst, q, k, lse, scale, m, by)
	}
	return f.Backend.Pool(dst, q, k, lse, scale, m, by)
}

// changed runs f over every element of what an op wrote to a memory of its own.
func changed(b cudaops.Backend, dst cudaops.View, err error, f func(float32) float32) error {
	if err != nil {
		return err
	}
	x := make([]float32, dst.Mem.Len())
	if err := b.Download(x, dst.Mem, 0); err != nil {
		return err
	}
	for i := range x {
		x[i] = f(x[i])
	}
	return b.Upload(dst.Mem, 0, x)
}

func init() {
	lses := map[string]lseFunc{
		"lse to base 2": func(b cudaops.Backend, dst, q, k cudaops.View, scale float32, m cudaops.Mask) error {
			return changed(b, dst, b.LSE(dst, q, k, scale, m), func(x float32) float32 { return x * math.Log2E })
		},
		"lse is the maximum": func(b cudaops.Backend, dst, q, k cudaops.View, scale float32, m cudaops.Mask) error {
			for h := range q.H {
				for s := range q.S {
					x, one := head(q, h), dst
					x.Offset, x.S = x.Offset+s*q.RowStride, 1
					one.H, one.S, one.D, one.Offset = 1, 1, 1, dst.Offset+h*dst.RowStride+s
					if m.Visible(s, k.S) > 0 {
						row := cudaops.Mask{Causal: m.Causal, Diagonal: m.Diagonal + s}
						if err := b.Pool(one, x, head(k, h/(q.H/k.H)), cudaops.View{}, scale, row, cudaops.Max); err != nil {
							return err
						}
					} else if err := b.Upload(dst.Mem, one.Offset, []float32{float32(math.Inf(-1))}); err != nil {
						return err
					}
				}
			}
			return nil
		},
		"lse of an empty row is 0": func(b cudaops.Backend, dst, q, k cudaops.View, scale float32, m cudaops.Mask) error {
			return changed(b, dst, b.LSE(dst, q, k, scale, m), func(x float32) float32 {
				if math.IsInf(float64(x), -1) {
					return 0
				}
				return x
			})
		},
		"lse without the mask": func(b cudaops.Backend, dst, q, k cudaops.View, scale float32, _ cudaops.Mask) error {
			return b.LSE(dst, q, k, scale, cudaops.Mask{})
		},
	}
	pools := map[string]poolFunc{
		"pool leaves out the rows that do not divide": func(b cudaops.Backend, dst, q, k, lse cudaops.View, scale float32, m cudaops.Mask, by cudaops.Reduce) error {
			q.S = q.S / dst.S * dst.S
			return b.Pool(dst, q, k, lse, scale, m, by)
		},
		"pool leaves out the columns that do not divide": func(b cudaops.Backend, dst, q, k, lse cudaops.View, scale float32, m cudaops.Mask, by cudaops.Reduce) error {
			k.S = k.S / dst.D * dst.D
			return b.Pool(dst, q, k, lse, scale, m, by)
		},
		"pool takes hidden cells in": func(b cudaops.Backend, dst, q, k, lse cudaops.View, scale float32, _ cudaops.Mask, by cudaops.Reduce) error {
			return b.Pool(dst, q, k, lse, scale, cudaops.Mask{}, by)
		},
		"pool masks one key more": func(b cudaops.Backend, dst, q, k, lse cudaops.View, scale float32, m cudaops.Mask, by cudaops.Reduce) error {
			m.Diagonal--
			return b.Pool(dst, q, k, lse, scale, m, by)
		},
		"pool tiles the key heads": func(b cudaops.Backend, dst, q, k, lse cudaops.View, scale float32, m cudaops.Mask, by cudaops.Reduce) error {
			for h := range q.H {
				l := lse
				l.Offset, l.S = lse.Offset+h*lse.RowStride, 1
				if err := b.Pool(head(dst, h), head(q, h), head(k, h%k.H), l, scale, m, by); err != nil {
					return err
				}
			}
			return nil
		},
		"pool takes the mean for the sum": func(b cudaops.Backend, dst, q, k, lse cudaops.View, scale float32, m cudaops.Mask, by cudaops.Reduce) error {
			if by == cudaops.Sum {
				by = cudaops.Mean
			}
			return b.Pool(dst, q, k, lse, scale, m, by)
		},
		"pool takes the largest for the smallest": func(b cudaops.Backend, dst, q, k, lse cudaops.View, scale float32, m cudaops.Mask, by cudaops.Reduce) error {
			if by == cudaops.Min {
				by = cudaops.Max
			}
			return b.Pool(dst, q, k, lse, scale, m, by)
		},
		"pool takes scores for probabilities": func(b cudaops.Backend, dst, q, k, _ cudaops.View, scale float32, m cudaops.Mask, by cudaops.Reduce) error {
			return b.Pool(dst, q, k, cudaops.View{}, scale, m, by)
		},
		"pool ignores the offset of the sums": func(b cudaops.Backend, dst, q, k, lse cudaops.View, scale float32, m cudaops.Mask, by cudaops.Reduce) error {
			lse.Offset = 0
			return b.Pool(dst, q, k, lse, scale, m, by)
		},
		"pool shows -Inf where nothing is visible": func(b cudaops.Backend, dst, q, k, lse cudaops.View, scale float32, m cudaops.Mask, by cudaops.Reduce) error {
			return changed(b, dst, b.Pool(dst, q, k, lse, scale, m, by), func(x float32) float32 {
				if x == 0 {
					return float32(math.Inf(-1))
				}
				return x
			})
		},
		"pool hides a NaN": func(b cudaops.Backend, dst, q, k, lse cudaops.View, scale float32, m cudaops.Mask, by cudaops.Reduce) error {
			return changed(b, dst, b.Pool(dst, q, k, lse, scale, m, by), func(x float32) float32 {
				if x != x {
					return 0
				}
				return x
			})
		},
		"pool takes 10 bits of mantissa": func(b cudaops.Backend, dst, q, k, lse cudaops.View, scale float32, m cudaops.Mask, by cudaops.Reduce) error {
			return rounded(b, q, 10, func(q cudaops.View) error { return b.Pool(dst, q, k, lse, scale, m, by) })
		},
	}
	for name, f := range lses {
		faults[name] = broken{lse: f}
	}
	for name, f := range pools {
		faults[name] = broken{pool: f}
	}
}
