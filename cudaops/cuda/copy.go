//go:build cuda

package cuda

import (
	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/plan"
)

// Gather copies each src view to the dst view of the same index. Up to gatherPairs of them go in one launch.
func (b *Backend) Gather(dst, src []cudaops.View) error {
	pairs := make([]pair, len(dst))
	for i, d := range dst {
		pairs[i] = pair{viewOf(d), viewOf(src[i]), dims{d.H, d.S, d.D}}
	}
	return b.queue("Gather", func() error { return b.gather(pairs) })
}

// Copy runs the copies of a plan.
func (b *Backend) Copy(dst, src cudaops.Memory, copies []plan.PitchedCopy) error {
	return b.queue("Copy", func() error { return b.gather(joinCopies(address(dst, 0), address(src, 0), copies)) })
}

func (b *Backend) gather(pairs []pair) error {
	for len(pairs) > 0 {
		n := min(len(pairs), gatherPairs)
		if err := b.gatherOnce(pairs[:n]); err != nil {
			return err
		}
		pairs = pairs[n:]
	}
	return nil
}

func (b *Backend) gatherOnce(pairs []pair) error {
	params := gatherParams{pairs: uint32(len(pairs))}
	name, width := "gather4", 4
	for i := range pairs {
		p := &pairs[i]
		p.d = flatten(p.d, &p.dst, &p.src)
		if !aligned(p.d, &p.dst, &p.src) {
			name, width = "gather1", 1
		}
	}
	most := 0
	for i := range pairs {
		p := &pairs[i]
		e, blocks := spread(p.d, width, &p.dst, &p.src)
		params.pair[i] = pairParams{dst: p.dst, src: p.src, extent: e, blocks: uint32(blocks)}
		most = max(most, blocks)
	}
	return launch(b, name, grid{most * len(pairs), 1, 1}, blockThreads, 0, &params)
}

// Add writes a + b.
func (b *Backend) Add(dst, x, y cudaops.View) error {
	p := addParams{dst: viewOf(dst), a: viewOf(x), b: viewOf(y)}
	d := flatten(dims{dst.H, dst.S, dst.D}, &p.dst, &p.a, &p.b)
	name, width := "add1", 1
	if aligned(d, &p.dst, &p.a, &p.b) {
		name, width = "add4", 4
	}
	var blocks int
	p.extent, blocks = spread(d, width, &p.dst, &p.a, &p.b)
	return b.queue("Add", func() error { return launch(b, name, grid{blocks, 1, 1}, blockThreads, 0, &p) })
}
