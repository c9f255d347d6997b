package viz

import (
	"fmt"
	"math"
	"math/rand/v2"
)

func causal(row, col int) bool { return col > row }

var sentence = []string{"The", " cat", " sat", " on", " the", " mat", " because", " it", " was", " tired", ".", "\n"}

// attention is causal probabilities that look like a model's: each head prefers near keys and the first one, by its own taste.
func attention(heads, n int) Heatmap {
	h := Heatmap{Title: "Attention probabilities", Kind: Probabilities, RowAxis: "query", ColAxis: "key"}
	for i := range heads {
		g := rand.New(rand.NewPCG(uint64(i), uint64(n)))
		near, first := 3*g.Float64(), 3*g.Float64()
		p := make([]float32, n*n)
		for row := range n {
			e, sum := make([]float64, row+1), 0.0
			for col := range e {
				s := 1.2*g.NormFloat64() - 4*near*float64(row-col)/float64(n)
				if col == 0 {
					s += first
				}
				e[col] = math.Exp(s)
				sum += e[col]
			}
			for col := range e {
				p[row*n+col] = float32(e[col] / sum)
			}
		}
		m := Matrix{Rows: n, Cols: n, Values: p, Hidden: causal}
		if heads > 1 {
			m.Name = fmt.Sprintf("head %d", i)
		}
		h.Matrices = append(h.Matrices, m)
	}
	return h
}

// long is a causal picture of few cells that stand for many, with a share of exact zeros.
func long(k Kind) Heatmap {
	const rows, cols = 64, 96
	h := Heatmap{Title: "Probabilities, largest", Kind: k, RowAxis: "query", ColAxis: "key", RowSpan: Span{0, 4096}, ColSpan: Span{0, 4096}, Pooling: "maximum"}
	g := rand.New(rand.NewPCG(4, 2))
	v := make([]float32, rows*cols)
	for i := range v {
		v[i] = float32(math.Exp(2*g.NormFloat64()-9) * math.Exp(-float64(i/cols*cols/rows-i%cols)/12))
		if g.IntN(40) == 0 {
			v[i] = 0
		}
		v[i] = min(v[i], 1)
	}
	h.Matrices = []Matrix{{Rows: rows, Cols: cols, Values: v, Hidden: func(row, col int) bool { return col*4096/cols > (row+1)*4096/rows-1 }}}
	return h
}

// noise is rows x cols normal values.
func noise(rows, cols int, scale float64) Matrix {
	g := rand.New(rand.NewPCG(uint64(rows), uint64(cols)))
	v := make([]float32, rows*cols)
	for i := range v {
		v[i] = float32(scale * g.NormFloat64())
	}
	return Matrix{Rows: rows, Cols: cols, Values: v}
}

var (
	inf32  = float32(math.Inf(1))
	nan32  = float32(math.NaN())
	minus0 = float32(math.Copysign(0, -1))
)

// odd has one of everything that is not an ordinary value, and labels that try to break out.
func odd() Heatmap {
	return Heatmap{
		Title: `Odd values </script><b>"bold"</b>`, Kind: Signed, RowAxis: "query", ColAxis: "key",
		ColLabels: []string{`</script><script>alert(1)</script>`, `it's "q" \`, "שלום", "🙂 a\u2028b\t\x00\xff"},
		Matrices: []Matrix{{Rows: 3, Cols: 4, Values: []float32{
			1e38, -1e38, nan32, inf32,
			-inf32, 0, minus0, 1e-45,
			3.4e38, 5, 1, 7,
		}, Hidden: func(row, col int) bool { return row == 2 && col == 3 }}},
		Marks: []Mark{{0, 2, 0, "largest"}, {0, 0, 1, "<i>least</i>"}},
	}
}
