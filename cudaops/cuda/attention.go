//go:build cuda

package cuda

import (
	"fmt"

	"github.com/attnb/attnb/cudaops"
)

// prefillKernel holds query rows of up to dim elements, 16*rows of them a block.
type prefillKernel struct{ dim, rows int }

// prefills are in order of preference for a head dim.
var prefills = []prefillKernel{
	{16, 4}, {32, 4}, {64, 8}, {64, 4}, {96, 4}, {128, 8}, {128, 4}, {128, 2}, {192, 4}, {192, 2}, {256, 4}, {256, 2},
}

func (p prefillKernel) name() string { return fmt.Sprintf("prefill_%d_%d", p.dim, p.rows) }

// shared is the bytes of shared memory that a block takes: queries, weights, and one slice of keys or values, each row
// padded by 4 floats (prefill.cu).
func (p prefillKernel) shared() int {
	const keys = 64
	slice := 16
	for _, s := range []int{64, 32} {
		if p.dim%s == 0 {
			slice = s
			break
		}
	}
	rows := 16 * p.rows
	return 4 * (rows*(p.dim+4) + rows*(keys+4) + keys*(slice+4))
}

// choosePrefill returns the kernel for a head dim on a GPU whose blocks may take so much shared memory. Tall blocks read
// less, but there must be enough of them.
// A forced number of rows overrides that.
func choosePrefill(dim, rows, heads, shared, sms, forced int) (prefillKernel, bool) {
	fallback := prefillKernel{}
	for _, p := range prefills {
		if p.dim < dim || p.shared() > shared || fallback.dim != 0 && p.dim > fallback.dim {
			continue
		}
		fallback = p
		if forced == p.rows || forced == 0 && ceil(rows, 16*p.rows)*heads >= 2*sms {
			break
		}
	}
	return fallback, fallback.dim != 0
}

// Prefill writes softmax(scale * q k^T, m) v.
func (b *Backend) Prefill(dst, lse, q, k, v cudaops.View, scale float32, m cudaops.Mask) error {
	kernel, ok := choosePrefill(q.D, q.S, q.H, b.gpu.shared, b.gpu.sms, b.prefillRows)
	if !ok {
		return headDim("Prefill", q.D)
	}
	p := prefillParams{
		out: viewOf(dst), q: viewOf(q), k: viewOf(k), v: viewOf(v),
		s: uint32(q.S), t: uint32(k.S), d: uint32(q.D), group: uint32(q.H / k.H),
		scale: scale, causal: flag(m.Causal), diagonal: int64(m.Diagonal),
	}
	if lse.Mem != nil {
		p.lse, p.lseStride = address(lse.Mem, lse.Offset), int64(lse.RowStride)
	}
	p.vec = flag(aligned(dims{q.H, q.S, q.D}, &p.q) && aligned(dims{k.H, k.S, k.D}, &p.k, &p.v))
	g := grid{q.H, ceil(q.S, 16*kernel.rows), 1}
	return b.queue("Prefill", func() error {
		if b.halvesPay(q.S, q.D) {
			if done, err := b.prefillHalves(p, q, k, v); done || err != nil {
				return err
			}
		}
		return launch(b, kernel.name(), g, blockThreads, kernel.shared(), &p)
	})
}

// headDim refuses a head dim that no kernel is built for.
func headDim(op string, dim int) error {
	return &cudaops.UnsupportedError{Op: op, Err: fmt.Errorf("head dim %d, more than 256, on a GPU: %w", dim, cudaops.ErrUnsupported)}
}
