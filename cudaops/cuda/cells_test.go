//go:build cuda

package cuda

import (
	"fmt"
	"testing"

	"github.com/attnb/attnb/cudaops"
)

// Launches take every column once and in order, within what scratch memory is allowed, and a launch of one column is the least.
func TestPlanPool(t *testing.T) {
	b := &Backend{gpu: gpu{sms: 132}}
	for _, limit := range []int64{1, 1 << 20, cellScratch} {
		b.cellScratch = limit
		for _, c := range [][4]int{{131072, 131072, 512, 512}, {131072, 131072, 131072, 1}, {100, 131072, 100, 131072}, {1, 1 << 20, 1, 1}, {4097, 5000, 7, 33}, {70, 90, 70, 90}} {
			for _, heads := range [][2]int{{1, 1}, {32, 8}} {
				for _, fast := range []bool{false, true} {
					t.Run(fmt.Sprint(limit, c, heads, fast), func(t *testing.T) {
						q, k := cudaops.View{H: heads[0], S: c[0], D: 128}, cudaops.View{H: heads[1], S: c[1], D: 128}
						p := b.planPool(cudaops.View{H: heads[0], S: c[2], D: c[3]}, q, k, fast)
						if p.start(0) != 0 || p.start(p.columns) != c[1] {
							t.Errorf("%+v: columns from %d to %d", p, p.start(0), p.start(p.columns))
						}
						widest := 0
						for at := 0; at < p.columns; at += p.chunk {
							from, to := p.start(at), p.start(min(at+p.chunk, p.columns))
							if from >= to || to-from > p.keys {
								t.Fatalf("%+v: a launch of keys %d to %d", p, from, to)
							}
							widest = max(widest, to-from)
						}
						if rows := p.rows; rows.group*rows.parts < ceil(c[0], c[2]) || rows.group > max(1, c[0]/c[2]) {
							t.Errorf("%d rows in %d: %+v", c[0], c[2], rows)
						}
						if p.bytes > limit+limit/8 && (p.chunk > 1 || p.heads > 1) {
							t.Errorf("%+v takes %d bytes of %d", p, p.bytes, limit)
						}
					})
				}
			}
		}
	}
}

// The picture of one long head takes no allocation of 64 MB.
func TestPlanLong(t *testing.T) {
	b := &Backend{gpu: gpu{sms: 132}, cellScratch: cellScratch}
	q := cudaops.View{H: 1, S: 131072, D: 128}
	for _, fast := range []bool{false, true} {
		pool := b.planPool(cudaops.View{H: 1, S: 512, D: 512}, q, q, fast)
		lse := b.planLSE(q, q, fast)
		if pool.bytes > 64e6 || lse.bytes > 64e6 {
			t.Errorf("tensor cores %v: Pool takes %d bytes, LSE %d", fast, pool.bytes, lse.bytes)
		}
		t.Logf("tensor cores %v: Pool %+v, LSE %+v", fast, pool, lse)
	}
}

// What a kernel asks of shared memory is there.
func TestCellsShared(t *testing.T) {
	for panels := 1; panels*panelCols <= cellMax; panels++ {
		if n := cellsShared(panels); n > 227<<10-fixedShared {
			t.Errorf("%d panels take %d bytes", panels, n)
		}
	}
}
