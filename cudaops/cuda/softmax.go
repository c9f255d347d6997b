//go:build cuda

package cuda

import (
	"fmt"

	"github.com/attnb/attnb/cudaops"
)

// softmaxKernel keeps rows of up to width columns in the registers of threads threads.
type softmaxKernel struct{ threads, width int }

var softmaxes = []softmaxKernel{
	{32, 128}, {32, 256}, {32, 512}, {32, 1024}, {256, 4096}, {512, 8192}, {512, 16384}, {1024, 32768},
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
	rows := src.H * src.S
	name, g, threads := fmt.Sprintf("softmax%d_long", width), grid{rows, 1, 1}, 1024
	for _, s := range softmaxes {
		if src.D > s.width {
			continue
		}
		name, threads = s.name(width), s.threads
		if threads == 32 { // a warp a row, eight a block
			threads, g.x = 256, ceil(rows, 8)
		}
		break
	}
	return b.queue("Softmax", func() error { return launch(b, name, g, threads, 0, &p) })
}
