// Package host is the backend of [cudaops] on the processor's cores, for machines without a GPU: in vectors of 8 or 16 floats where the
// processor has them, in plain Go where not ([Kernels]).
//
// Work is cut into blocks of a fixed size, which the workers take one after the other. No result depends on which worker
// takes a block or on how many there are, so the same inputs give the same bits at any worker count; nor does a row's depend on
// the rows that it is computed with. Every op is done when its call returns: nothing is queued.
package host

import (
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/attnb/attnb/cudaops"
)

// Options configure a backend. Each zero value is a sound default.
type Options struct {
	Workers int   // goroutines an op uses; 0: one a core
	Memory  int64 // bytes that the arrays may take together; 0: what the machine has, where it tells
	Kernels Kernels
}

// Backend implements [cudaops.Backend], [cudaops.Interrupter], [cudaops.Progresser] and [cudaops.Addressable].
type Backend struct {
	workers int
	kernels *kernels
	tiles   tiles
	budget  int64
	inUse   int64
	spare   spare
	scratch []float32   // of a decode
	stop    atomic.Bool // the running op was interrupted
	busy    atomic.Bool

	job     atomic.Pointer[job] // the running op
	helpers atomic.Int64        // goroutines that work with the op's
}

// New makes a backend.
func New(o Options) *Backend {
	b := &Backend{workers: o.Workers, kernels: o.Kernels.table(), budget: o.Memory}
	if b.workers <= 0 {
		b.workers = runtime.GOMAXPROCS(0)
	}
	if b.budget <= 0 {
		b.budget = physicalMemory()
	}
	return b
}

// block is the memory of the backend.
type block struct{ data []float32 }

// Len is the number of elements.
func (m *block) Len() int { return len(m.data) }

func data(m cudaops.Memory) []float32 { return m.(*block).data }

// Info describes the processor.
func (b *Backend) Info() cudaops.Info {
	return cudaops.Info{
		Backend:     "host",
		Device:      fmt.Sprintf("%s, %d workers, %s", processor(), b.workers, b.kernels.name),
		MemoryTotal: b.budget,
	}
}

// Alloc returns n elements.
func (b *Backend) Alloc(n int) (cudaops.Memory, error) {
	bytes := 4 * int64(n)
	if b.budget > 0 && bytes > b.budget-b.inUse {
		return nil, fmt.Errorf("%w: budget of %d bytes", cudaops.ErrOutOfMemory, b.budget)
	}
	elements := b.spare.take(n)
	if elements == nil {
		var err error
		if elements, err = makeElements(n); err != nil {
			return nil, err
		}
	}
	b.inUse += bytes
	return &block{data: elements}, nil
}

// makeElements turns the run-time panic of a length that no address space holds into an error. A length that fits there
// but not in the machine's memory cannot be caught: that is what the budget is for.
func makeElements(n int) (elements []float32, err error) {
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("%w: %d elements are more than an array can have", cudaops.ErrOutOfMemory, n)
		}
	}()
	return make([]float32, n), nil
}

// Free gives m back.
func (b *Backend) Free(m cudaops.Memory) {
	blk := m.(*block)
	b.inUse -= 4 * int64(len(blk.data))
	b.spare.give(blk.data)
	blk.data = nil
}

// InUse is the number of bytes allocated and not freed.
func (b *Backend) InUse() int64 { return b.inUse }

// Elements is the memory itself.
func (b *Backend) Elements(m cudaops.Memory) []float32 { return data(m) }

// Upload copies src to dst.
func (b *Backend) Upload(dst cudaops.Memory, offset int, src []float32) error {
	copy(data(dst)[offset:offset+len(src)], src)
	return nil
}

// Download copies src to dst.
func (b *Backend) Download(dst []float32, src cudaops.Memory, offset int) error {
	copy(dst, data(src)[offset:offset+len(dst)])
	return nil
}

// Sync has nothing to wait for.
func (b *Backend) Sync() error { return nil }

// Close has nothing to give back that the garbage collector does not.
func (b *Backend) Close() error { return nil }
