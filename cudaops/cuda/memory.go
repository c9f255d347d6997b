//go:build cuda

package cuda

import (
	"fmt"

	"github.com/attnb/attnb/cudaops"
	"gorgonia.org/cu"
)

// block is the memory of the backend.
type block struct {
	p pointer
	n int
}

// Len is the number of elements.
func (m *block) Len() int { return m.n }

// address of element offset.
func address(m cudaops.Memory, offset int) pointer { return m.(*block).p + pointer(4*offset) }

// Alloc returns n elements from the stream-ordered pool.
func (b *Backend) Alloc(n int) (cudaops.Memory, error) {
	p, err := b.alloc(4 * int64(n))
	if err != nil {
		return nil, err
	}
	return &block{p: p, n: n}, nil
}

func (b *Backend) alloc(bytes int64) (p pointer, err error) {
	if b.quota > 0 && bytes > b.quota-b.inUse {
		return 0, fmt.Errorf("%w: %d bytes asked for, %d of the allowed %d in use", cudaops.ErrOutOfMemory, bytes, b.inUse, b.quota)
	}
	err = b.do("Alloc", func() error {
		p, err = memAlloc(bytes, b.stream)
		if code(err) != int(cu.OutOfMemory) {
			return err
		}
		// What was freed may still wait for its stream, or lie in the pool in pieces.
		if err := b.stream.Synchronize(); err != nil {
			return err
		}
		if err := b.pool.trim(); err != nil {
			return err
		}
		if p, err = memAlloc(bytes, b.stream); code(err) == int(cu.OutOfMemory) {
			return fmt.Errorf("%w: %d bytes asked for, %d of the GPU's %d in use", cudaops.ErrOutOfMemory, bytes, b.inUse, b.gpu.total)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	b.blocks[p] = bytes
	b.inUse += bytes
	b.largest = max(b.largest, bytes)
	return p, nil
}

// Free gives m back, in the order of the stream.
func (b *Backend) Free(m cudaops.Memory) { b.free(m.(*block).p) }

func (b *Backend) free(p pointer) {
	bytes, ok := b.blocks[p]
	if !ok {
		return // the backend was closed
	}
	delete(b.blocks, p)
	b.inUse -= bytes
	// An error here is one of earlier work: do keeps it, and the next read returns it.
	_ = b.do("Free", func() error { return memFree(p, b.stream) })
}

// Trim gives the memory that the pool keeps back to the driver, for other processes.
func (b *Backend) Trim() error { return b.do("Trim", b.pool.trim) }

// InUse is the number of bytes allocated and not freed.
func (b *Backend) InUse() int64 { return b.inUse }
