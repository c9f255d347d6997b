//go:build cuda

package cuda

import (
	"fmt"

	"github.com/attnb/attnb/cudaops"
)

// softmaxKernel holds rows of up to width columns: a row in lanes threads of a warp, or, where lanes is 0, in a block of
// threads, with the next one in shared memory.
type softmaxKernel struct{ width, threads, lanes int }

var softmaxes = []softmaxKernel{
	{32, blockThreads, 8}, {64, blockThreads, 8}, {128, blockThreads, 8}, {256, blockThreads, 16}, {512, blockThreads, 32}, {1024, blockThreads, 32},
	{width: 2048, threads: 128}, {width: 4096, threads: 256}, {width: 8192, threads: 512}, {width: 16384, threads: 512},
	{width: 32768, threads: 1024},
}

func (s softmaxKernel) name(width int) string { return fmt.Sprintf("softmax%d_%d", width, s.width) }

// Softmax writes the softmax of each row of src over the columns that m shows.
func (b *Backend) Softmax(dst, src cudaops.View, m cudaops.Mask) error {
	p := softmaxParams{
		dst: viewOf(dst), src: viewOf(src), heads: uint32(src.H), rows: uint32(src.S), cols: int64(src.D),
		causal: flag(m.Causal), diagonal: int64(m.Diagonal),
	}
	width := 1
	if aligned(dims{src.H, src.S, src.D}, &p.dst, &p.src) {
		width = 4
	}
	name, g, threads, shared := b.chooseSoftmax(src.H*src.S, src.D, width)
	return b.queue("Softmax", func() error { return launch(b, name, g, threads, shared, &p) })
}

func (b *Backend) chooseSoftmax(rows, cols, width int) (name string, g grid, threads, shared int) {
	for _, s := range softmaxes {
		if cols > s.width {
			continue
		}
		if s.lanes > 0 {
			return s.name(width), grid{ceil(rows, s.threads/s.lanes), 1, 1}, s.threads, 0
		}
		row := 4 * ceil(cols, 4) * 4
		if row > b.gpu.shared {
			break // an older GPU, too small for the row
		}
		return s.name(width), grid{min(rows, b.gpu.sms*b.gpu.resident(s.threads, row)), 1, 1}, s.threads, row
	}
	return fmt.Sprintf("softmax%d_long", width), grid{rows, 1, 1}, 1024, 0
}
