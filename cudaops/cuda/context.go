//go:build cuda

package cuda

import (
	"fmt"

	"github.com/attnb/attnb/cudaops"
)

var (
	contextRows    = []int{16, 64} // of a block's tile
	contextColumns = []int{64, 128}
)

func contextName(rows, columns int) string { return fmt.Sprintf("context_%d_%d", rows, columns) }

// Context writes p v.
func (b *Backend) Context(dst, p, v cudaops.View) error {
	c := contextParams{
		p: viewOf(p), v: viewOf(v), out: viewOf(dst),
		s: uint32(p.S), t: uint32(p.D), d: uint32(v.D), group: uint32(p.H / v.H),
	}
	if aligned(dims{p.H, p.S, p.D}, &c.p) {
		c.vec |= 1
	}
	if aligned(dims{v.H, v.S, v.D}, &c.v) && aligned(dims{dst.H, dst.S, dst.D}, &c.out) {
		c.vec |= 2
	}
	rows, columns := contextRows[1], contextColumns[1]
	if p.S <= 3*contextRows[0] {
		rows = contextRows[0]
	}
	if v.D <= contextColumns[0] {
		columns = contextColumns[0]
	}
	g := grid{ceil(p.S, rows), ceil(v.D, columns), p.H}
	return b.queue("Context", func() error { return launch(b, contextName(rows, columns), g, blockThreads, 0, &c) })
}
