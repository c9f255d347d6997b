//go:build cuda

package cuda

import (
	"fmt"

	"github.com/attnb/attnb/cudaops"
)

// SoftmaxChanged has no kernel.
func (b *Backend) SoftmaxChanged(dst, src cudaops.View, c cudaops.Changes) (int, error) {
	return 0, noVariants("Softmax")
}

// PrefillChanged has no kernel.
func (b *Backend) PrefillChanged(dst, lse, q, k, v cudaops.View, scale float32, c cudaops.Changes) (int, error) {
	return 0, noVariants("Prefill")
}

func noVariants(op string) error {
	return &cudaops.UnsupportedError{Op: op, Err: fmt.Errorf("windows, padding, documents, softcap, biases and sinks on a GPU: %w", cudaops.ErrUnsupported)}
}
