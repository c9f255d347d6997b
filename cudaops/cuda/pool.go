//go:build cuda

package cuda

import (
	"fmt"

	"github.com/attnb/attnb/cudaops"
)

// LSE is the second result of a prefill over the keys as values; the first goes to an array that is given back.
func (b *Backend) LSE(dst, q, k cudaops.View, scale float32, m cudaops.Mask) error {
	context, err := b.Alloc(q.H * q.S * q.D)
	if err != nil {
		return err
	}
	defer b.Free(context)
	out := cudaops.View{Mem: context, H: q.H, S: q.S, D: q.D, HeadStride: q.S * q.D, RowStride: q.D}
	return b.Prefill(out, dst, q, k, k, scale, m)
}

// Pool has no kernel.
func (b *Backend) Pool(dst, q, k, lse cudaops.View, scale float32, m cudaops.Mask, by cudaops.Reduce) error {
	return &cudaops.UnsupportedError{Op: "Pool", Err: fmt.Errorf("pooled views on a GPU: %w", cudaops.ErrUnsupported)}
}
