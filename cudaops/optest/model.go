package optest

import (
	"fmt"
	"math"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/bound"
)

// modelCases are what a model has beside its attention: embedding, norms, activations, products.
func modelCases() []testCase {
	var all []testCase
	for _, s := range []struct{ entries, dim, tokens int }{{1, 1, 1}, {5, 7, 3}, {121, 128, 37}, {3, 513, 257}, {577, 4, 1}} {
		name := fmt.Sprintf("embedding/V%d d%d S%d", s.entries, s.dim, s.tokens)
		r := source(name)
		tokens := make([]int, s.tokens)
		for i := range tokens {
			tokens[i] = r.IntN(s.entries)
		}
		tokens[0] = s.entries - 1
		all = append(all, embeddingCase(name, normal(r, 1, 1, s.entries, s.dim), tokens))
	}
	for _, s := range []struct {
		h, s, d  int
		at, size float64 // mean and deviation
		eps      float64
	}{
		{1, 1, 1, 0, 1, 1e-5}, {2, 3, 2, 0, 1, 1e-5}, {1, 37, 127, 0, 1, 1e-5}, {3, 5, 128, 1, 0.1, 1e-6}, {1, 3, 577, -3, 2, 1e-12},
		{2, 2, 1024, 0, 1, 1e-5}, {1, 3, 1025, 0.5, 1, 1e-5}, {1, 9, 4096, 0, 1e-3, 1e-6}, {1, 2, 8192, 2, 1, 1e-5}, {1, 2, 8193, 0, 1, 1e-5},
		{1, 257, 3, 0, 1, 1e-5}, {1, 4, 64, 100, 1e-3, 1e-5}, // a mean far above the deviations
		{2, 3, 40, 0, 1e-20, 1e-6}, {1, 3, 40, 0, 1e15, 1e-5}, {1, 3, 40, 5, 0, 1e-5}, // squares near 0 and far up, rows of one value
	} {
		name := fmt.Sprintf("H%d S%d d%d mean%g size%g eps%g", s.h, s.s, s.d, s.at, s.size, s.eps)
		r := source(name)
		x := fill(s.h, s.s, s.d, func(int) float64 { return s.at + s.size*r.NormFloat64() })
		w, b := normal(r, 1, 1, 1, s.d), normal(r, 1, 1, 1, s.d)
		all = append(all,
			layerNormCase("layernorm/"+name, s.eps, x, w, b), layerNormCase("layernorm/"+name+" no bias", s.eps, x, w),
			layerNormCase("layernorm/"+name+" rows alone", s.eps, x), rmsNormCase("rmsnorm/"+name, s.eps, x, w),
			rmsNormCase("rmsnorm/"+name+" rows alone", s.eps, x))
	}
	x := normal(source("gone"), 1, 1, 3, 9)
	x.data[4], x.data[11] = float32(math.NaN()), float32(math.Inf(1)) // each spoils its own row
	all = append(all, layerNormCase("layernorm/not finite", 1e-5, x), rmsNormCase("rmsnorm/not finite", 1e-5, x))
	for _, s := range [][3]int{{1, 1, 1}, {3, 5, 7}, {2, 256, 4}, {1, 257, 33}, {4, 9, 513}} {
		for _, a := range []cudaops.Activation{cudaops.GELU, cudaops.GELUTanh, cudaops.SiLU} {
			name := fmt.Sprintf("%s/H%d S%d d%d", activationName(a), s[0], s[1], s[2])
			all = append(all, activationCase(name, normal(source(name), 3, s[0], s[1], s[2]), a))
		}
		name := fmt.Sprintf("multiply/H%d S%d d%d", s[0], s[1], s[2])
		r := source(name)
		all = append(all, multiplyCase(name, normal(r, 1, s[0], s[1], s[2]), normal(r, 1e3, s[0], s[1], s[2])))
	}
	// From far below 0 to far above, dense where the functions bend; and what is not finite.
	span := fill(1, 3, 1201, func(i int) float64 { return float64(i-1801) / 16 })
	edges := tensor{1, 1, 12, []float32{
		0, float32(math.Copysign(0, -1)), 1e-45, -1e-38, 1e-20, -1e-20, 1e15, -1e15, 3e38, -3e38, float32(math.Inf(1)), float32(math.NaN()),
	}}
	below := tensor{1, 1, 1, []float32{float32(math.Inf(-1))}}
	for _, a := range []cudaops.Activation{cudaops.GELU, cudaops.GELUTanh, cudaops.SiLU} {
		name := activationName(a)
		all = append(all, activationCase(name+"/range", span, a), activationCase(name+"/edges", edges, a), activationCase(name+"/minus infinity", below, a))
	}
	return all
}

func activationName(a cudaops.Activation) string {
	return map[cudaops.Activation]string{cudaops.GELU: "gelu", cudaops.GELUTanh: "gelutanh", cudaops.SiLU: "silu"}[a]
}

func embeddingCase(name string, table tensor, tokens []int) testCase {
	return testCase{
		name: name,
		in:   []tensor{table},
		do: func(d *cudaops.Device, in []*cudaops.Buffer) ([]*cudaops.Buffer, error) {
			return one(d.Embedding(in[0], tokens))
		},
		want: func(in []bound.Heads) ([]bound.Heads, error) { return truth(bound.Embedding(in[0], tokens)) },
	}
}

// layerNormCase takes x and, where there are such, w and b.
func layerNormCase(name string, eps float64, in ...tensor) testCase {
	return testCase{
		name: name,
		in:   in,
		do: func(d *cudaops.Device, in []*cudaops.Buffer) ([]*cudaops.Buffer, error) {
			in = append(in, nil, nil)
			return one(d.LayerNorm(in[0], in[1], in[2], eps))
		},
		want: func(in []bound.Heads) ([]bound.Heads, error) {
			in = append(in, bound.Heads{}, bound.Heads{})
			return truth(bound.LayerNorm(in[0], in[1], in[2], eps))
		},
	}
}

// rmsNormCase takes x and, where there is one, w.
func rmsNormCase(name string, eps float64, in ...tensor) testCase {
	return testCase{
		name: name,
		in:   in,
		do: func(d *cudaops.Device, in []*cudaops.Buffer) ([]*cudaops.Buffer, error) {
			return one(d.RMSNorm(in[0], append(in, nil)[1], eps))
		},
		want: func(in []bound.Heads) ([]bound.Heads, error) {
			return truth(bound.RMSNorm(in[0], append(in, bound.Heads{})[1], eps))
		},
	}
}

func activationCase(name string, x tensor, a cudaops.Activation) testCase {
	by := map[cudaops.Activation]reference.Activation{
		cudaops.GELU: reference.GELU, cudaops.GELUTanh: reference.GELUTanh, cudaops.SiLU: reference.SiLU,
	}[a]
	return testCase{
		name: name,
		in:   []tensor{x},
		do: func(d *cudaops.Device, in []*cudaops.Buffer) ([]*cudaops.Buffer, error) {
			return one(d.Activate(in[0], a))
		},
		want: func(in []bound.Heads) ([]bound.Heads, error) { return truth(bound.Activate(in[0], by)) },
	}
}

func multiplyCase(name string, a, b tensor) testCase {
	return testCase{
		name: name,
		in:   []tensor{a, b},
		do: func(d *cudaops.Device, in []*cudaops.Buffer) ([]*cudaops.Buffer, error) {
			return one(d.Multiply(in[0], in[1]))
		},
		want: func(in []bound.Heads) ([]bound.Heads, error) { return truth(bound.Multiply(in[0], in[1])) },
	}
}
