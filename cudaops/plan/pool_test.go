package plan

import (
	"math"
	"testing"
)

// Every element lies in the pool that Pool names, pools follow each other without a gap, and their sizes differ by 1 at most.
func TestPools(t *testing.T) {
	for _, c := range [][2]int{{1, 1}, {2, 1}, {7, 3}, {257, 64}, {8192, 512}, {511, 256}, {512, 511}, {300, 299}, {100, 100}} {
		n, h := c[0], c[1]
		at := 0
		for i := range h {
			from, to := Edge(i, n, h), Edge(i+1, n, h)
			if from != i*n/h || from != at || to-from < n/h || to-from > n/h+1 {
				t.Fatalf("%d of %d: pool %d is %d to %d", h, n, i, from, to)
			}
			for ; at < to; at++ {
				if got := Pool(at, n, h); got != i {
					t.Fatalf("%d of %d: element %d in pool %d, want %d", h, n, at, got, i)
				}
			}
		}
		if at != n {
			t.Fatalf("%d of %d: the last pool ends at %d", h, n, at)
		}
	}
	const n, h = math.MaxUint32, math.MaxUint32 - 3 // their product is no int
	for _, at := range []int{0, 1, n / 3, n / 2, n - 2, n - 1} {
		if i := Pool(at, n, h); Edge(i, n, h) > at || Edge(i+1, n, h) <= at {
			t.Errorf("element %d in pool %d, %d to %d", at, i, Edge(i, n, h), Edge(i+1, n, h))
		}
	}
}
