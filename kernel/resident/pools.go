package resident

import (
	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/plan"
)

// pools reduces rows of a matrix into one row of pools, as [cudaops.Device.Pool] defines it.
type pools struct {
	by   cudaops.Reduce
	n, t int // pools, columns
	seen []int
	acc  []float64
}

func newPools(by cudaops.Reduce, n, t int) *pools {
	return &pools{by: by, n: n, t: t, seen: make([]int, n), acc: make([]float64, n)}
}

// add takes in what is visible of a row: its columns from the first on.
func (p *pools) add(row []float32) {
	for j, at := 0, 0; at < len(row); j++ {
		end := min(plan.Edge(j+1, p.t, p.n), len(row))
		acc := p.acc[j]
		if p.seen[j] == 0 && p.by != cudaops.Mean && p.by != cudaops.Sum {
			acc = float64(row[at])
		}
		for _, x := range row[at:end] {
			f := float64(x)
			switch p.by {
			case cudaops.Max:
				acc = max(acc, f) // NaN where one is
			case cudaops.Min:
				acc = min(acc, f)
			default:
				acc += f
			}
		}
		p.acc[j] = acc
		p.seen[j] += end - at
		at = end
	}
}

// finish writes the pools and begins anew.
func (p *pools) finish(out []float32) {
	for j, acc := range p.acc {
		switch {
		case p.seen[j] == 0:
			acc = 0
		case p.by == cudaops.Mean:
			acc /= float64(p.seen[j])
		}
		out[j] = float32(acc)
		p.acc[j], p.seen[j] = 0, 0
	}
}
