package host

import (
	"sync"
	"sync/atomic"

	"github.com/attnb/attnb/cudaops"
)

// phase is work(0), ..., work(n-1), each once, on the workers. Calls must not depend on one another.
type phase struct {
	n    int
	work func(i int)
}

// parallel runs one phase.
func (b *Backend) parallel(n int, work func(i int)) error { return b.phases(phase{n, work}) }

// phases runs phases one after the other. Between two calls of one it looks whether the op was interrupted.
func (b *Backend) phases(all ...phase) error {
	b.stop.Store(false)
	b.busy.Store(true)
	defer b.busy.Store(false)
	now := &progress{}
	for _, p := range all {
		now.all += p.n
	}
	b.progress.Store(now)
	defer b.progress.Store(nil)
	for _, p := range all {
		var next atomic.Int64
		loop := func() {
			for !b.stop.Load() {
				i := int(next.Add(1)) - 1
				if i >= p.n {
					return
				}
				now.begun.Add(1)
				p.work(i)
			}
		}
		var wg sync.WaitGroup
		for range min(b.workers, p.n) - 1 {
			wg.Go(loop)
		}
		loop()
		wg.Wait()
	}
	if b.stop.Load() {
		return cudaops.ErrInterrupted
	}
	return nil
}

// progress counts the pieces of work of an op that were begun.
type progress struct {
	begun atomic.Int64
	all   int
}

// Progress is the share of the running op's pieces that were begun.
func (b *Backend) Progress() float64 {
	p := b.progress.Load()
	if p == nil || p.all == 0 {
		return 0
	}
	return min(float64(p.begun.Load())/float64(p.all), 1)
}

// Interrupt makes the op that runs now fail. A block of work that has begun is finished first.
func (b *Backend) Interrupt() {
	if b.busy.Load() {
		b.stop.Store(true)
	}
}

// blocks is the number of blocks of size that cover n.
func blocks(n, size int) int { return (n + size - 1) / size }

// rows counts the rows of a view over all heads; row finds one of them.
func rows(v cudaops.View) int { return v.H * v.S }

// row is row s of head h.
func row(v cudaops.View, h, s int) []float32 {
	at := v.Offset + h*v.HeadStride + s*v.RowStride
	return data(v.Mem)[at : at+v.D : at+v.D]
}

// eachRow calls work for every row (h, s) of views of v's shape, in blocks of about 16k elements.
func (b *Backend) eachRow(v cudaops.View, work func(h, s int)) error {
	size := max(1, 16384/v.D)
	n := rows(v)
	return b.parallel(blocks(n, size), func(i int) {
		for r := i * size; r < min((i+1)*size, n); r++ {
			work(r/v.S, r%v.S)
		}
	})
}
