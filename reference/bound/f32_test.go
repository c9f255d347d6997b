package bound_test

import (
	"math"
	"math/rand/v2"

	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/mat"
)

// Plain f32 implementations, each as one might write it, none better than the bounds allow.

// tensor is [heads][row][element] in f32.
type tensor [][][]float32

// arithmetic is one way to compute in f32: the order of sums, the softmax, where the scale goes, and functions that are off.
type arithmetic struct {
	name     string
	sum      func([]float32) float32
	tile     int  // keys of a tile of online softmax; 0: two passes, probabilities stored
	scaleQ   bool // scale q, not q.k
	base2    bool // exponentials to base 2
	flush    bool // denormal results become 0
	careless *rand.Rand
	products []float32 // room for a dot product
}

func arithmetics() []arithmetic {
	out := []arithmetic{
		{name: "in order", sum: forward},
		{name: "backwards, scaled q", sum: backward, scaleQ: true},
		{name: "pairwise, base 2", sum: pairwise, base2: true},
		{name: "lanes", sum: lanes},
		{name: "denormals flushed, scaled q", sum: lanes, scaleQ: true, flush: true},
		{name: "online, a key at a time", sum: forward, tile: 1},
		{name: "online, tiles of 16, base 2", sum: pairwise, tile: 16, base2: true, scaleQ: true},
		{name: "online, tiles of 64, functions 2 ULP off", sum: lanes, tile: 64, careless: rand.New(rand.NewPCG(9, 9))},
	}
	for i := range out {
		out[i].products = make([]float32, 1<<13)
	}
	return out
}

func forward(x []float32) (s float32) {
	for _, v := range x {
		s += v
	}
	return s
}

func backward(x []float32) (s float32) {
	for i := range x {
		s += x[len(x)-1-i]
	}
	return s
}

func pairwise(x []float32) float32 {
	switch n := len(x); n {
	case 0:
		return 0
	case 1:
		return x[0]
	default:
		return pairwise(x[:n/2]) + pairwise(x[n/2:])
	}
}

func lanes(x []float32) float32 {
	var lane [8]float32
	for i, v := range x {
		lane[i%8] += v
	}
	return forward(lane[:])
}

func (a arithmetic) dot(x, y []float32) float32 {
	products := a.products[:len(x)]
	for i := range x {
		products[i] = a.kept(x[i] * y[i])
	}
	return a.sum(products)
}

// kept is x, or 0 where x is denormal and flushed.
func (a arithmetic) kept(x float32) float32 {
	if a.flush && math.Abs(float64(x)) < 0x1p-126 {
		return 0
	}
	return x
}

// off moves a correctly rounded value by up to 2 ULP where the arithmetic is careless; the rounding itself was half of one.
func (a arithmetic) off(x float32) float32 {
	if a.careless == nil || x == 0 || math.IsInf(float64(x), 0) {
		return a.kept(x)
	}
	bits := int32(math.Float32bits(x)) + a.careless.Int32N(3) - 1
	return math.Float32frombits(uint32(bits))
}

// exp is e^x, where x is in units of ln 2 if the arithmetic is to base 2. e^0 is 1.
func (a arithmetic) exp(x float32) float32 {
	switch {
	case x == 0:
		return 1
	case a.base2:
		return a.off(float32(math.Exp2(float64(x))))
	}
	return a.off(float32(math.Exp(float64(x))))
}

func (a arithmetic) scores(q, k tensor, scale float64) tensor {
	factor := float32(scale)
	out := make(tensor, len(q))
	for h := range q {
		out[h] = make([][]float32, len(q[h]))
		for i, row := range q[h] {
			if a.scaleQ {
				row = a.scaled(row, factor)
			}
			out[h][i] = make([]float32, len(k[0]))
			for j, key := range k[h*len(k)/len(q)] {
				s := a.dot(row, key)
				if !a.scaleQ {
					s *= factor
				}
				out[h][i][j] = s
			}
		}
	}
	return out
}

func (a arithmetic) scaled(x []float32, factor float32) []float32 {
	out := make([]float32, len(x))
	for i := range x {
		out[i] = a.kept(x[i] * factor)
	}
	return out
}

// argument is the exponent of s against m.
func (a arithmetic) argument(s, m float32) float32 {
	if a.base2 {
		const log2e = float32(math.Log2E)
		return s*log2e - m*log2e
	}
	return s - m
}

func (a arithmetic) softmax(s tensor, vis reference.Visible) tensor {
	out := make(tensor, len(s))
	for h := range s {
		out[h] = make([][]float32, len(s[h]))
		for i, row := range s[h] {
			p := make([]float32, len(row))
			m := float32(math.Inf(-1))
			for j := range row {
				if vis == nil || vis(i, j) {
					m = max(m, row[j])
				}
			}
			for j := range row {
				if vis == nil || vis(i, j) {
					p[j] = a.exp(a.argument(row[j], m))
				}
			}
			if l := a.sum(p); l != 0 {
				for j := range p {
					p[j] = a.off(p[j] / l)
				}
			}
			out[h][i] = p
		}
	}
	return out
}

func (a arithmetic) context(p, v tensor) tensor {
	out := make(tensor, len(p))
	for h := range p {
		value := v[h*len(v)/len(p)]
		columns := transposed(value)
		out[h] = make([][]float32, len(p[h]))
		for i, row := range p[h] {
			out[h][i] = make([]float32, len(columns))
			for c, column := range columns {
				out[h][i][c] = a.dot(row, column)
			}
		}
	}
	return out
}

func (a arithmetic) attention(q, k, v tensor, scale float64, vis reference.Visible) tensor {
	s := a.scores(q, k, scale)
	if a.tile == 0 {
		return a.context(a.softmax(s, vis), v)
	}
	out := make(tensor, len(q))
	for h := range q {
		out[h] = make([][]float32, len(q[h]))
		for i := range q[h] {
			out[h][i] = a.online(s[h][i], v[h*len(v)/len(q)], i, vis)
		}
	}
	return out
}

// online is one row of flash attention: a running maximum m, sum l and unnormalised context acc, a tile of keys at a time.
func (a arithmetic) online(s []float32, v [][]float32, row int, vis reference.Visible) []float32 {
	m, l := float32(math.Inf(-1)), float32(0)
	acc := make([]float32, len(v[0]))
	for from := 0; from < len(s); from += a.tile {
		var tile []int
		grown := m
		for j := from; j < min(from+a.tile, len(s)); j++ {
			if vis == nil || vis(row, j) {
				tile = append(tile, j)
				grown = max(grown, s[j])
			}
		}
		if len(tile) == 0 {
			continue
		}
		if l > 0 && grown > m {
			rescale := a.exp(a.argument(m, grown))
			l *= rescale
			acc = a.scaled(acc, rescale)
		}
		m = grown
		w := make([]float32, len(tile))
		for i, j := range tile {
			w[i] = a.exp(a.argument(s[j], m))
		}
		l += a.sum(w)
		for c := range acc {
			column := make([]float32, len(tile))
			for i, j := range tile {
				column[i] = v[j][c]
			}
			acc[c] += a.dot(w, column)
		}
	}
	if l > 0 {
		for c := range acc {
			acc[c] = a.off(acc[c] / l)
		}
	}
	return acc
}

func (a arithmetic) rope(x tensor, r reference.RoPE) tensor {
	out := make(tensor, len(x))
	for h := range x {
		out[h] = make([][]float32, len(x[h]))
		for s := range x[h] {
			out[h][s] = append([]float32(nil), x[h][s]...)
		}
	}
	for s := range x[0] {
		for i := range r.Rotary / 2 {
			p, q := r.Pair(i)
			c64, s64 := r.Turn(s, i)
			for h := range x {
				cos, sin := a.off(float32(c64)), a.off(float32(s64))
				out[h][s][p] = x[h][s][p]*cos - x[h][s][q]*sin
				out[h][s][q] = x[h][s][p]*sin + x[h][s][q]*cos
			}
		}
	}
	return out
}

func (a arithmetic) linear(x, w, b [][]float32) [][]float32 {
	out := make([][]float32, len(x))
	for i := range x {
		out[i] = make([]float32, len(w))
		for j := range w {
			out[i][j] = a.dot(x[i], w[j])
			if b != nil {
				out[i][j] += b[0][j]
			}
		}
	}
	return out
}

func transposed(x [][]float32) [][]float32 {
	out := make([][]float32, len(x[0]))
	for c := range out {
		out[c] = make([]float32, len(x))
		for r := range x {
			out[c][r] = x[r][c]
		}
	}
	return out
}

// normal is a tensor of f32 normal numbers times amplitude.
func normal(r *rand.Rand, heads, rows, dim int, amplitude float64) tensor {
	out := make(tensor, heads)
	for h := range out {
		out[h] = make([][]float32, rows)
		for i := range out[h] {
			out[h][i] = make([]float32, dim)
			for j := range out[h][i] {
				out[h][i][j] = float32(amplitude * r.NormFloat64())
			}
		}
	}
	return out
}

// wide is x in float64.
func wide(x tensor) reference.Heads {
	out := make(reference.Heads, len(x))
	for h := range x {
		out[h] = mat.NewDense(len(x[h]), len(x[h][0]), nil)
		out[h].Apply(func(i, j int, _ float64) float64 { return float64(x[h][i][j]) }, out[h])
	}
	return out
}

// narrow is x rounded to f32.
func narrow(x reference.Heads) tensor {
	out := make(tensor, len(x))
	for h, m := range x {
		rows, dim := m.Dims()
		out[h] = make([][]float32, rows)
		for i := range rows {
			out[h][i] = make([]float32, dim)
			for j := range dim {
				out[h][i][j] = float32(m.At(i, j))
			}
		}
	}
	return out
}

func flat(x tensor) []float32 {
	var out []float32
	for _, head := range x {
		for _, row := range head {
			out = append(out, row...)
		}
	}
	return out
}
