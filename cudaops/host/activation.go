package host

import (
	"math"

	"github.com/attnb/attnb/cudaops"
)

// Activate computes each element in float64 and rounds it once.
func (b *Backend) Activate(dst, src cudaops.View, a cudaops.Activation) error {
	f := map[cudaops.Activation]func(x float64) float64{
		cudaops.GELU: gelu, cudaops.GELUTanh: geluTanh, cudaops.SiLU: silu,
	}[a]
	return b.eachRow(dst, func(h, s int) {
		to := row(dst, h, s)
		for i, x := range row(src, h, s) {
			to[i] = float32(f(float64(x)))
		}
	})
}

// gelu takes 1 + erf(z) as erfc(-z), which does not cancel.
func gelu(x float64) float64 { return x / 2 * math.Erfc(-x*math.Sqrt2/2) }

func geluTanh(x float64) float64 {
	return x / 2 * (1 + math.Tanh(math.Sqrt2/math.SqrtPi*(x+0.044715*x*x*x)))
}

func silu(x float64) float64 { return x / (1 + math.Exp(-x)) }

// Multiply writes x * y.
func (b *Backend) Multiply(dst, x, y cudaops.View) error {
	return b.eachRow(dst, func(h, s int) {
		to, p, q := row(dst, h, s), row(x, h, s), row(y, h, s)
		for i := range to {
			to[i] = p[i] * q[i]
		}
	})
}

// Embedding copies row tokens[s] of the table to row s.
func (b *Backend) Embedding(dst, table cudaops.View, tokens []int) error {
	return b.eachRow(dst, func(_, s int) { copy(row(dst, 0, s), row(table, 0, tokens[s])) })
}
