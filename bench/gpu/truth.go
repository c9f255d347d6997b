//go:build cuda

package main

import (
	"math"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/plan"
)

// The ops in float64, for one row.

func widen(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

func dot(x, y []float32) (sum float64) {
	for i := range x {
		sum += float64(x[i]) * float64(y[i])
	}
	return sum
}

// turned is a row after RoPE over all of it, half-split, base 10000.
func turned(x []float32, position int) []float64 { return turnedWide(widen(x), position) }

func turnedWide(x []float64, position int) []float64 {
	n := len(x) / 2
	y := make([]float64, len(x))
	for i := range n {
		sin, cos := math.Sincos(float64(position) * math.Pow(10000, -2*float64(i)/float64(len(x))))
		a, b := x[i], x[i+n]
		y[i], y[i+n] = a*cos-b*sin, b*cos+a*sin
	}
	return y
}

// times is x w^T for n rows of weights.
func times(x []float64, w []float32, n int) []float64 {
	y := make([]float64, n)
	parallel(n, func(from, to int) {
		for i := from; i < to; i++ {
			var s [4]float64
			for j, v := range w[i*len(x):][:len(x)] {
				s[j&3] += x[j] * float64(v)
			}
			y[i] = s[0] + s[1] + (s[2] + s[3])
		}
	})
	return y
}

// attentionWide is one query over all of some keys and values.
func attentionWide(q []float64, k, v [][]float64, scale float64) []float64 {
	p := make([]float64, len(k))
	for j := range p {
		for i, x := range q {
			p[j] += scale * x * k[j][i]
		}
	}
	softmax(p, len(p))
	out := make([]float64, len(q))
	for j, w := range p {
		for i, x := range v[j] {
			out[i] += w * x
		}
	}
	return out
}

// softmax replaces a row by its softmax over the first n columns.
func softmax(x []float64, n int) []float64 {
	most := math.Inf(-1)
	for _, v := range x[:n] {
		most = max(most, v)
	}
	sum := 0.0
	for i := range x {
		if i >= n {
			x[i] = 0
			continue
		}
		x[i] = math.Exp(x[i] - most)
		sum += x[i]
	}
	for i := range x {
		x[i] /= sum
	}
	return x
}

// attention is one query over the first n keys.
func attention(q, k, v []float32, scale float64, n int) []float64 {
	d := len(q)
	p := make([]float64, n)
	for j := range p {
		p[j] = scale * dot(q, k[j*d:][:d])
	}
	softmax(p, n)
	out := make([]float64, d)
	for j, w := range p {
		for i, x := range v[j*d:][:d] {
			out[i] += w * float64(x)
		}
	}
	return out
}

// split is what a GPT-2 layer does with its fused rows.
func split(d *cudaops.Device, x *cudaops.Buffer) ([]*cudaops.Buffer, error) {
	q, k, v, err := d.SplitHeads(x, plan.GPT2, heads, heads, headDim)
	return []*cudaops.Buffer{q, k, v}, err
}

func dropAll(bufs []*cudaops.Buffer, err error) error {
	if err != nil {
		return err
	}
	for _, b := range bufs {
		if err := b.Release(); err != nil {
			return err
		}
	}
	return nil
}
