//go:build !cuda

package cuda

import "github.com/attnb/attnb/cudaops"

// Built reports whether this program holds the backend.
const Built = false

// Open fails: this program was built without the tag cuda.
func Open(ordinal int, o Options) (cudaops.Backend, error) {
	return nil, unavailable("this program was built without GPU support (build tag cuda)")
}
