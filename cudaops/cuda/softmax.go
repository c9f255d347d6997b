//go:build cuda

package cuda

import (
	"fmt"

	"github.com/attnb/attnb/cudaops"
)

// softmaxKernel holds rows of up to width columns: several in a warp (rows, of lanes threads each), or one in a block of
// threads, with the next ones in shared memory.
type softmaxKernel struct{ width, threads, lanes, rows int }

var softmaxes = []softmaxKernel{
	{32, blockThreads, 8, 8}, {64, blockThreads, 16, 8}, {128, blockThreads, 32, 8},
	{256, blockThreads, 32, 4}, {512, blockThreads, 32, 2}, {1024, blockThreads, 32, 1},
	{width: 2048, threads: 128}, {width: 4096, threads: 256}, {width: 8192, threads: 512}, {width: 16384, threads: 512},
	{width: 32768, threads: 1024},
}

const softmaxStages = 3 // rows in shared memory, at most

func (s softmaxKernel) name(width int) string { return fmt.Sprintf("softmax%d_%d", width, s.width) }

// Softmax writes the softmax of each row of src over the columns that m shows.
func (b *Backend) Softmax(dst, src cudaops.View, m cudaops.Mask) error {
	p := softmaxParams{
		dst: viewOf(dst), src: viewOf(src), heads: uint32(src.H), rows: uint32(src.S), cols: int64(src.D),
		causal: flag(m.Causal), diagonal: int64(m.Diagonal), stride: uint32(ceil(src.D, 4) * 4),
	}
	width := 1
	if aligned(dims{src.H, src.S, src.D}, &p.dst, &p.src) {
		width = 4
	}
	name, g, threads, shared := b.chooseSoftmax(src.H*src.S, src.D, width, &p)
	return b.queue("Softmax", func() error { return launch(b, name, g, threads, shared, &p) })
}

func (b *Backend) chooseSoftmax(rows, cols, width int, p *softmaxParams) (name string, g grid, threads, shared int) {
	for _, s := range softmaxes {
		if cols > s.width {
			continue
		}
		if s.lanes > 0 {
			return s.name(width), grid{ceil(rows, s.rows*s.threads/s.lanes), 1, 1}, s.threads, 0
		}
		row := 4 * int(p.stride)
		stages := min(softmaxStages, b.gpu.shared/row)
		if stages == 0 {
			break // an older GPU, too small for the row
		}
		p.stages = uint32(stages)
		return s.name(width), grid{min(rows, b.gpu.sms*b.gpu.resident(s.threads, stages*row)), 1, 1}, s.threads, stages * row
	}
	return fmt.Sprintf("softmax%d_long", width), grid{rows, 1, 1}, 1024, 0
}
