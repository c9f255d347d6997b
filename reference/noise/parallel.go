package noise

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/mat"
)

// eachHead makes the heads of a result on as many goroutines as there are processors.
func eachHead(n int, f func(h int) *mat.Dense) reference.Heads {
	out := make(reference.Heads, n)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for h := int(next.Add(1)) - 1; h < n; h = int(next.Add(1)) - 1 {
				out[h] = f(h)
			}
		})
	}
	workers.Wait()
	return out
}
