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
func turned(x []float32, position int) []float64 {
	n := len(x) / 2
	y := make([]float64, len(x))
	for i := range n {
		sin, cos := math.Sincos(float64(position) * math.Pow(10000, -2*float64(i)/float64(len(x))))
		a, b := float64(x[i]), float64(x[i+n])
		y[i], y[i+n] = a*cos-b*sin, b*cos+a*sin
	}
	return y
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
