package optest

import (
	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/plan"
)

// broken is a backend with a fault that someone could make. Fields that are nil leave the op as it is.
type broken struct {
	cudaops.Backend
	copy    func(b cudaops.Backend, dst, src cudaops.Memory, c []plan.PitchedCopy) error
	gather  func(b cudaops.Backend, dst, src []cudaops.View) error
	rope    func(b cudaops.Backend, dst, src cudaops.View, r cudaops.RoPE) error
	softmax func(b cudaops.Backend, dst, src cudaops.View, m cudaops.Mask) error
	add     func(b cudaops.Backend, dst, x, y cudaops.View) error
	scores  func(b cudaops.Backend, dst, q, k cudaops.View, scale float32) error
	context func(b cudaops.Backend, dst, p, v cudaops.View) error
	prefill func(b cudaops.Backend, dst, lse, q, k, v cudaops.View, scale float32, m cudaops.Mask) error
	decode  func(b cudaops.Backend, dst, q, k, v cudaops.View, scale float32) error
	linear  func(b cudaops.Backend, dst, x, w, bias cudaops.View) error
	lse     lseFunc
	pool    poolFunc
}

func (f broken) Copy(dst, src cudaops.Memory, c []plan.PitchedCopy) error {
	if f.copy != nil {
		return f.copy(f.Backend, dst, src, c)
	}
	return f.Backend.Copy(dst, src, c)
}

func (f broken) Gather(dst, src []cudaops.View) error {
	if f.gather != nil {
		return f.gather(f.Backend, dst, src)
	}
	return f.Backend.Gather(dst, src)
}

func (f broken) RoPE(dst, src cudaops.View, r cudaops.RoPE) error {
	if f.rope != nil {
		return f.rope(f.Backend, dst, src, r)
	}
	return f.Backend.RoPE(dst, src, r)
}

func (f broken) Softmax(dst, src cudaops.View, m cudaops.Mask) error {
	if f.softmax != nil {
		return f.softmax(f.Backend, dst, src, m)
	}
	return f.Backend.Softmax(dst, src, m)
}

func (f broken) Add(dst, x, y cudaops.View) error {
	if f.add != nil {
		return f.add(f.Backend, dst, x, y)
	}
	return f.Backend.Add(dst, x, y)
}

func (f broken) Scores(dst, q, k cudaops.View, scale float32) error {
	if f.scores != nil {
		return f.scores(f.Backend, dst, q, k, scale)
	}
	return f.Backend.Scores(dst, q, k, scale)
}

func (f broken) Context(dst, p, v cudaops.View) error {
	if f.context != nil {
		return f.context(f.Backend, dst, p, v)
	}
	return f.Backend.Context(dst, p, v)
}

func (f broken) Prefill(dst, lse, q, k, v cudaops.View, scale float32, m cudaops.Mask) error {
	if f.prefill != nil {
		return f.prefill(f.Backend, dst, lse, q, k, v, scale, m)
	}
	return f.Backend.Prefill(dst, lse, q, k, v, scale, m)
}

func (f broken) Decode(dst, q, k, v cudaops.View, scale float32) error {
	if f.decode != nil {
		return f.decode(f.Backend, dst, q, k, v, scale)
	}
	return f.Backend.Decode(dst, q, k, v, scale)
}

func (f broken) Linear(dst, x, w, bias cudaops.View) error {
	if f.linear != nil {
		return f.linear(f.Backend, dst, x, w, bias)
	}
	return f.Backend.Linear(dst, x, w, bias)
}
