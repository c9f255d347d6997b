//go:build cuda

package cuda

import "github.com/attnb/attnb/cudaops"

// Activate writes the activation of each element.
func (b *Backend) Activate(dst, src cudaops.View, a cudaops.Activation) error {
	p := activateParams{dst: viewOf(dst), src: viewOf(src), kind: uint32(a)}
	var l elementwise
	p.extent, l = layOut(dst, &p.dst, &p.src)
	return b.queue("Activate", func() error { return launch(b, "activate"+l.width, l.grid, blockThreads, 0, &p) })
}

// Multiply writes x * y.
func (b *Backend) Multiply(dst, x, y cudaops.View) error {
	p := multiplyParams{dst: viewOf(dst), a: viewOf(x), b: viewOf(y)}
	var l elementwise
	p.extent, l = layOut(dst, &p.dst, &p.a, &p.b)
	return b.queue("Multiply", func() error { return launch(b, "multiply"+l.width, l.grid, blockThreads, 0, &p) })
}

// elementwise is how a kernel that treats every element by itself is launched: by its 4s or its 1s, on which grid.
type elementwise struct {
	width string
	grid  grid
}

// layOut plans such a kernel for views of the dimensions of v, which it may flatten.
func layOut(v cudaops.View, views ...*view) (extent, elementwise) {
	d := flatten(dims{v.H, v.S, v.D}, views...)
	if aligned(d, views...) {
		e, blocks := spread(d, 4, views...)
		return e, elementwise{"4", grid{blocks, 1, 1}}
	}
	e, blocks := spread(d, 1, views...)
	return e, elementwise{"1", grid{blocks, 1, 1}}
}

// Embedding copies row tokens[s] of the table to row s of dst.
func (b *Backend) Embedding(dst, table cudaops.View, tokens []int) error {
	p := embeddingParams{dst: viewOf(dst), table: viewOf(table)}
	rows := make([]uint32, len(tokens))
	for i, token := range tokens {
		rows[i] = uint32(token)
	}
	d := dims{1, dst.S, dst.D}
	name, width := "embedding1", 1
	if aligned(d, &p.dst) && aligned(dims{1, table.S, table.D}, &p.table) {
		name, width = "embedding4", 4
	}
	var blocks int
	p.extent, blocks = spread(d, width, &p.dst)
	return b.queue("Embedding", func() error {
		scratch, err := b.alloc(4 * int64(len(rows)))
		if err != nil {
			return err
		}
		defer b.free(scratch) // behind what is queued
		if err := b.upload(scratch, bytesOf(rows)); err != nil {
			return err
		}
		p.tokens = scratch
		return launch(b, name, grid{blocks, 1, 1}, blockThreads, 0, &p)
	})
}
