//go:build cuda

package cuda

import (
	"fmt"

	"github.com/attnb/attnb/cudaops"
)

// Context refuses: there is no kernel for it.
func (b *Backend) Context(cudaops.View, cudaops.View, cudaops.View) error {
	return fmt.Errorf("Context: %w", cudaops.ErrUnsupported)
}
