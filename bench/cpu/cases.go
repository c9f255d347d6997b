package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/mat"
)

// array is an input: [h, s, d].
type array struct {
	h, s, d int
	data    []float32
}

// benchCase is an op on given inputs.
type benchCase struct {
	name   string
	op     string
	in     []array
	causal bool
	scale  float64
	flops  float64            // of the product, causal ones counted once
	bytes  float64            // that the op must read and write
	limit  float64            // of the relative L2 error, or 1.2 times PyTorch's where that is more
	need   map[string]float64 // how many times as fast as each way of PyTorch it must be
	all    bool               // measured with all kernels, not with the best alone

	run   func(d *cudaops.Device, in []*cudaops.Buffer) (*cudaops.Buffer, error)
	truth func(in []reference.Heads) (reference.Heads, error)
}

// The fixed figures of docs/tolerances.md.
const (
	attentionLimit = 3e-6
	softmaxLimit   = 1e-6
	linearLimit    = 2e-6
	addLimit       = 6e-8
)

func cases() []benchCase {
	attention := map[string]float64{"unfused": 1, "textbook": 1, "fused": 0.5}
	var all []benchCase
	for _, s := range []int{128, 512, 1024, 2048} {
		c := prefill(12, s, 64, "")
		if c.all = s == 512 || s == 1024; c.all {
			c.need = attention
		}
		all = append(all, c)
	}
	all = append(all, prefill(12, 512, 128, ""))
	for _, kind := range []string{"amp4", "positive", "denormal", "spread"} {
		c := prefill(12, 512, 64, kind)
		c.need = attention
		all = append(all, c)
	}
	for _, t := range []int{1024, 4096, 65536} {
		c := decode(12, t, 64)
		c.need, c.all = map[string]float64{"unfused": 0.7, "textbook": 0.7, "fused": 0.7}, t == 4096
		all = append(all, c)
	}
	for _, causal := range []bool{false, true} {
		c := softmax(12, 512, 512, causal)
		c.need, c.all = map[string]float64{"torch": 0.7}, !causal
		all = append(all, c)
	}
	return append(all, linear(512, 768, 2304), linear(1, 768, 2304), add(12, 1024, 64))
}

// random are normal values, changed to those of a kind: "amp4" four times as large, "positive" absolute, "denormal" with every 17th 2^-130 times
// as large, "spread" with powers of two from 1 to 2^-24 in turn.
func random(r *rand.Rand, kind string, h, s, d int) array {
	x := array{h, s, d, make([]float32, h*s*d)}
	for i := range x.data {
		v := r.NormFloat64()
		switch {
		case kind == "amp4":
			v *= 4
		case kind == "positive":
			v = math.Abs(v)
		case kind == "denormal" && i%17 == 0:
			v = math.Ldexp(v, -130)
		case kind == "spread":
			v = math.Ldexp(v, -(i * 7 % 25))
		}
		x.data[i] = float32(v)
	}
	return x
}

func source(name string) *rand.Rand {
	seed := uint64(0)
	for _, b := range []byte(name) {
		seed = seed*131 + uint64(b)
	}
	return rand.New(rand.NewPCG(seed, 1))
}

// prefill is causal. Of the kinds of input, amp4 is of the queries, positive of the values, the others of all three.
func prefill(h, s, d int, kind string) benchCase {
	c := benchCase{name: fmt.Sprintf("prefill H %d d %d S %d", h, d, s), op: "prefill", causal: true, scale: 1 / math.Sqrt(float64(d)), limit: attentionLimit}
	if kind != "" {
		c.name += ", " + kind
	}
	of := func(amp4, positive bool) string {
		if kind == "amp4" && !amp4 || kind == "positive" && !positive {
			return ""
		}
		return kind
	}
	r := source(c.name)
	c.in = []array{random(r, of(true, false), h, s, d), random(r, of(false, false), h, s, d), random(r, of(false, true), h, s, d)}
	c.flops = 2 * float64(h) * float64(s) * float64(s+1) * float64(d)
	c.run = func(dev *cudaops.Device, in []*cudaops.Buffer) (*cudaops.Buffer, error) {
		res, err := dev.Prefill(in[0], in[1], in[2], cudaops.Attention{Scale: c.scale, Mask: cudaops.Mask{Causal: true}})
		return res.Context, err
	}
	c.truth = func(in []reference.Heads) (reference.Heads, error) {
		return reference.Attention(in[0], in[1], in[2], c.scale, reference.Causal(0))
	}
	return c
}

func decode(h, t, d int) benchCase {
	c := benchCase{name: fmt.Sprintf("decode H %d d %d T %d", h, d, t), op: "decode", scale: 1 / math.Sqrt(float64(d)), limit: attentionLimit}
	r := source(c.name)
	c.in = []array{random(r, "", h, 1, d), random(r, "", h, t, d), random(r, "", h, t, d)}
	c.bytes = 8 * float64(h) * float64(t) * float64(d)
	c.run = func(dev *cudaops.Device, in []*cudaops.Buffer) (*cudaops.Buffer, error) {
		return dev.Decode(in[0], in[1], in[2], c.scale)
	}
	c.truth = func(in []reference.Heads) (reference.Heads, error) {
		return reference.Attention(in[0], in[1], in[2], c.scale, nil)
	}
	return c
}

func softmax(h, s, t int, causal bool) benchCase {
	c := benchCase{name: fmt.Sprintf("softmax H %d, %d x %d", h, s, t), op: "softmax", causal: causal, limit: softmaxLimit, bytes: 8 * float64(h*s*t)}
	mask, visible := cudaops.Mask{Causal: causal}, reference.Visible(nil)
	if causal {
		c.name += ", causal"
		visible = reference.Causal(0)
	}
	c.in = []array{random(source(c.name), "amp4", h, s, t)}
	c.run = func(dev *cudaops.Device, in []*cudaops.Buffer) (*cudaops.Buffer, error) {
		y, _, err := dev.Softmax(in[0], mask)
		return y, err
	}
	c.truth = func(in []reference.Heads) (reference.Heads, error) { return reference.Softmax(in[0], visible) }
	return c
}

func linear(s, in, out int) benchCase {
	c := benchCase{name: fmt.Sprintf("linear %d x %d x %d", s, in, out), op: "linear", limit: linearLimit, flops: 2 * float64(s*in*out)}
	r := source(c.name)
	c.in = []array{random(r, "", 1, s, in), random(r, "", 1, out, in)}
	c.run = func(dev *cudaops.Device, in []*cudaops.Buffer) (*cudaops.Buffer, error) {
		return dev.Linear(in[0], in[1], nil)
	}
	c.truth = func(in []reference.Heads) (reference.Heads, error) {
		y, err := reference.Linear(in[0][0], in[1][0], nil)
		return reference.Heads{y}, err
	}
	return c
}

func add(h, s, d int) benchCase {
	c := benchCase{name: fmt.Sprintf("add %d x %d x %d", h, s, d), op: "add", limit: addLimit, bytes: 12 * float64(h*s*d)}
	r := source(c.name)
	c.in = []array{random(r, "", h, s, d), random(r, "", h, s, d)}
	c.run = func(dev *cudaops.Device, in []*cudaops.Buffer) (*cudaops.Buffer, error) { return dev.Add(in[0], in[1]) }
	c.truth = func(in []reference.Heads) (reference.Heads, error) { return reference.Add(in[0], in[1]) }
	return c
}

// heads is an array as package reference takes it.
func (x array) heads() reference.Heads {
	all := make(reference.Heads, x.h)
	for h := range all {
		all[h] = mat.NewDense(x.s, x.d, nil)
		for i, v := range x.data[h*x.s*x.d : (h+1)*x.s*x.d] {
			all[h].Set(i/x.d, i%x.d, float64(v))
		}
	}
	return all
}

// relL2 is the relative L2 error of a result.
func relL2(got []float32, want reference.Heads) float64 {
	var off, size float64
	i := 0
	for _, m := range want {
		rows, columns := m.Dims()
		for r := range rows {
			for c := range columns {
				w := m.At(r, c)
				off += (float64(got[i]) - w) * (float64(got[i]) - w)
				size += w * w
				i++
			}
		}
	}
	return math.Sqrt(off / size)
}
