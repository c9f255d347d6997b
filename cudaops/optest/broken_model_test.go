package optest

import (
	"math"
	"testing"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/host"
)

// modelling is a backend with a fault in what a model has beside its attention.
type modelling struct {
	cudaops.Backend
	embedding func(b cudaops.Backend, dst, table cudaops.View, tokens []int) error
	norm      func(b cudaops.Backend, dst, x, w, bias cudaops.View, n cudaops.Norm) error
	activate  func(b cudaops.Backend, dst, src cudaops.View, a cudaops.Activation) error
	multiply  func(b cudaops.Backend, dst, x, y cudaops.View) error
}

func (f modelling) Embedding(dst, table cudaops.View, tokens []int) error {
	if f.embedding != nil {
		return f.embedding(f.Backend, dst, table, tokens)
	}
	return f.Backend.Embedding(dst, table, tokens)
}

func (f modelling) Norm(dst, x, w, bias cudaops.View, n cudaops.Norm) error {
	if f.norm != nil {
		return f.norm(f.Backend, dst, x, w, bias, n)
	}
	return f.Backend.Norm(dst, x, w, bias, n)
}

func (f modelling) Activate(dst, src cudaops.View, a cudaops.Activation) error {
	if f.activate != nil {
		return f.activate(f.Backend, dst, src, a)
	}
	return f.Backend.Activate(dst, src, a)
}

func (f modelling) Multiply(dst, x, y cudaops.View) error {
	if f.multiply != nil {
		return f.multiply(f.Backend, dst, x, y)
	}
	return f.Backend.Multiply(dst, x, y)
}

// otherNorm is Norm with other arguments.
func otherNorm(change func(w, bias *cudaops.View, n *cudaops.Norm)) modelling {
	return modelling{norm: func(b cudaops.Backend, dst, x, w, bias cudaops.View, n cudaops.Norm) error {
		change(&w, &bias, &n)
		return b.Norm(dst, x, w, bias, n)
	}}
}

// otherActivation takes is for was.
func otherActivation(was, is cudaops.Activation) modelling {
	return modelling{activate: func(b cudaops.Backend, dst, src cudaops.View, a cudaops.Activation) error {
		if a == was {
			a = is
		}
		return b.Activate(dst, src, a)
	}}
}

var modelFaults = map[string]modelling{
	"embedding counts tokens from 1": {embedding: func(b cudaops.Backend, dst, table cudaops.View, tokens []int) error {
		moved := make([]int, len(tokens))
		for i, token := range tokens {
			moved[i] = max(0, token-1)
		}
		return b.Embedding(dst, table, moved)
	}},
	"embedding reads rows as if they touched": {embedding: func(b cudaops.Backend, dst, table cudaops.View, tokens []int) error {
		table.RowStride = table.D
		return b.Embedding(dst, table, tokens)
	}},
	"norm forgets the weight": otherNorm(func(w, _ *cudaops.View, _ *cudaops.Norm) { w.Mem = nil }),
	"norm forgets the bias":   otherNorm(func(_, b *cudaops.View, _ *cudaops.Norm) { b.Mem = nil }),
	"norm forgets the offset": otherNorm(func(w, _ *cudaops.View, _ *cudaops.Norm) { w.Offset = 0 }),
	"norm forgets the mean":   otherNorm(func(_, _ *cudaops.View, n *cudaops.Norm) { n.Centred = false }),
	"norm takes a mean away":  otherNorm(func(_, _ *cudaops.View, n *cudaops.Norm) { n.Centred = true }),
	"norm has an eps its own": otherNorm(func(_, _ *cudaops.View, n *cudaops.Norm) { n.Epsilon = 1e-5 }),
	"norm doubles its eps":    otherNorm(func(_, _ *cudaops.View, n *cudaops.Norm) { n.Epsilon *= 2 }),
	"norm takes 10 bits of it": {norm: func(b cudaops.Backend, dst, x, w, bias cudaops.View, n cudaops.Norm) error {
		return rounded(b, x, 10, func(x cudaops.View) error { return b.Norm(dst, x, w, bias, n) })
	}},
	"norm by n - 1": {norm: func(b cudaops.Backend, dst, x, w, bias cudaops.View, n cudaops.Norm) error {
		by := float32(math.Sqrt(max(1, float64(x.D-1)) / float64(x.D)))
		return changed(b, dst, b.Norm(dst, x, w, bias, n), func(y float32) float32 { return y * by })
	}},
	"norm hides NaN": {norm: func(b cudaops.Backend, dst, x, w, bias cudaops.View, n cudaops.Norm) error {
		return changed(b, dst, b.Norm(dst, x, w, bias, n), func(y float32) float32 {
			if y != y {
				return 0
			}
			return y
		})
	}},
	"gelu is its approximation":  otherActivation(cudaops.GELU, cudaops.GELUTanh),
	"the approximation is gelu":  otherActivation(cudaops.GELUTanh, cudaops.GELU),
	"silu is gelu":               otherActivation(cudaops.SiLU, cudaops.GELU),
	"an activation saturates":    {activate: saturating},
	"multiply squares the first": {multiply: func(b cudaops.Backend, dst, x, _ cudaops.View) error { return b.Multiply(dst, x, x) }},
	"multiply adds":              {multiply: func(b cudaops.Backend, dst, x, y cudaops.View) error { return b.Add(dst, x, y) }},
}

// saturating takes what is over 6 for 6.
func saturating(b cudaops.Backend, dst, src cudaops.View, a cudaops.Activation) error {
	return changed(b, dst, b.Activate(dst, src, a), func(y float32) float32 { return min(y, 6) })
}

func TestSuiteFailsBrokenModels(t *testing.T) {
	for name, fault := range modelFaults {
		t.Run(name, func(t *testing.T) {
			fault.Backend = host.New(host.Options{})
			d := poisoned(cudaops.NewDevice(fault))
			failed := 0
			for _, c := range modelCases() {
				c.truth = c.expect
				for _, p := range placements {
					if c.check(d, p) != nil {
						failed++
						break
					}
				}
			}
			if failed == 0 {
				t.Error("passes the suite")
			}
			t.Logf("fails %d cases", failed)
		})
	}
}
