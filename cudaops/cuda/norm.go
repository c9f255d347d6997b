//go:build cuda

package cuda

import (
	"fmt"
	"math"

	"github.com/attnb/attnb/cudaops"
)

// normLanes are the lanes of a warp that hold a row of up to width columns in registers (norm.cu).
var normLanes = []struct{ width, lanes int }{{128, 8}, {256, 16}, {512, 32}, {1024, 32}}

const normBlock = 8192 // columns that a block holds

func normName(width int) string { return fmt.Sprintf("norm_%d", width) }

// Norm writes the normalised rows of x, times w plus bias.
func (b *Backend) Norm(dst, x, w, bias cudaops.View, n cudaops.Norm) error {
	if x.D > math.MaxInt32 {
		return &cudaops.UnsupportedError{Op: "Norm", Err: fmt.Errorf("rows of %d elements: %w", x.D, cudaops.ErrUnsupported)}
	}
	p := normParams{
		dst: viewOf(dst), x: viewOf(x), heads: uint32(x.H), rows: uint32(x.S), cols: uint32(x.D),
		epsilon: n.Epsilon, centred: flag(n.Centred),
	}
	vec := aligned(dims{x.H, x.S, x.D}, &p.dst, &p.x)
	for _, a := range []struct {
		from cudaops.View
		to   *view
	}{{w, &p.w}, {bias, &p.b}} {
		if a.from.Mem != nil {
			*a.to = viewOf(a.from)
			vec = vec && aligned(dims{1, 1, x.D}, a.to)
		}
	}
	p.vec = flag(vec)
	name, blocks, threads := "norm_long", x.H*x.S, 1024
	if x.D <= normBlock {
		name, threads = "norm_block", blockThreads
	}
	for _, l := range normLanes {
		if x.D <= l.width {
			name, blocks = normName(l.width), ceil(x.H*x.S, blockThreads/l.lanes)
			break
		}
	}
	return b.queue("Norm", func() error { return launch(b, name, grid{blocks, 1, 1}, threads, 0, &p) })
}
