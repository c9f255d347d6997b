package host

import "math"

// PoisonFreed has freed arrays of any size filled with NaN and handed out again, until restore is called.
func PoisonFreed() (restore func()) {
	least := spareLeast
	spareLeast = 0
	poison = func(x []float32) {
		for i := range x {
			x[i] = float32(math.NaN())
		}
	}
	return func() { poison, spareLeast = nil, least }
}
