package bound

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
)

// parallel calls f(0) to f(n-1) from as many goroutines as there are processors. No head depends on another, so the result is
// the same for any number of them.
func parallel(n int, f func(i int) error) error {
	errs := make([]error, n)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				errs[i] = f(i)
			}
		})
	}
	workers.Wait()
	return errors.Join(errs...)
}
