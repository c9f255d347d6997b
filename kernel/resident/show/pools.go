package show

import (
	"math"

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

// add takes in what is visible of a row: its columns from lo on, of those that sees says, where it is not nil.
func (p *pools) add(row []float32, lo int, sees func(col int) bool) {
	for at := lo; at < len(row); {
		j := plan.Pool(at, p.t, p.n)
		end := min(plan.Edge(j+1, p.t, p.n), len(row))
		for ; at < end; at++ {
			if sees == nil || sees(at) {
				p.take(j, float64(row[at]), 1)
			}
		}
	}
}

// take takes in a value that is that of n cells.
func (p *pools) take(j int, f float64, n int) {
	acc := &p.acc[j]
	switch {
	case p.by == cudaops.Mean:
		*acc += f * float64(n)
	case p.by == cudaops.Sum:
		*acc += f
	case p.seen[j] == 0:
		*acc = f
	case p.by == cudaops.Max:
		*acc = max(*acc, f) // NaN where one is
	case p.by == cudaops.Min:
		*acc = min(*acc, f)
	case f != f || math.Abs(f) > math.Abs(*acc): // magnitude
		*acc = f
	}
	p.seen[j] += n
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
