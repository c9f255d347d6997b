//go:build cuda

package cuda

import "github.com/attnb/attnb/cudaops"

const (
	gemmColumns = 128 // of a block's tile
	gemvThreads = 128 // of a block, which makes gemvColumns columns of few rows (gemv.cu)
	gemvColumns = 8
	gemvMost    = 8 // rows
)

// Scores writes scale * q.k.
func (b *Backend) Scores(dst, q, k cudaops.View, scale float32) error {
	return b.queue("Scores", func() error { return b.gemm(dst, q, k, 0, scale) })
}

// Linear writes x w^T + bias.
func (b *Backend) Linear(dst, x, w, bias cudaops.View) error {
	var p pointer
	if bias.Mem != nil {
		p = address(bias.Mem, bias.Offset)
	}
	return b.queue("Linear", func() error { return b.gemm(dst, x, w, p, 1) })
}

// gemm writes alpha * x y^T + bias for every head.
func (b *Backend) gemm(dst, x, y cudaops.View, bias pointer, alpha float32) error {
	p := gemmParams{
		a: viewOf(x), b: viewOf(y), c: viewOf(dst), bias: bias, alpha: alpha,
		m: uint32(x.S), n: uint32(y.S), k: uint32(x.D), group: uint32(x.H / y.H),
	}
	if aligned(dims{x.H, x.S, x.D}, &p.a) && aligned(dims{y.H, y.S, y.D}, &p.b) {
		p.vec |= 1
	}
	if aligned(dims{dst.H, dst.S, dst.D}, &p.c) {
		p.vec |= 2
	}
	if b.gemmPays(x.S, y.S, x.D) {
		if done, err := b.gemmHalves(p, x, y); done || err != nil {
			return err
		}
	}
	if x.S <= gemvMost {
		name, rows := "gemv_4", 4
		if x.S == 1 {
			name, rows = "gemv_1", 1
		}
		return launch(b, name, grid{ceil(y.S, gemvColumns), ceil(x.S, rows), x.H}, gemvThreads, 0, &p)
	}
	name, rows := "gemm_128", 128
	if x.S <= 48 {
		name, rows = "gemm_16", 16
	}
	return launch(b, name, grid{ceil(x.S, rows), ceil(y.S, gemmColumns), x.H}, blockThreads, 0, &p)
}
