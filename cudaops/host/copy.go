package host

import (
	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/plan"
)

// Copy runs the copies of a plan.
func (b *Backend) Copy(dst, src cudaops.Memory, copies []plan.PitchedCopy) error {
	to, from := data(dst), data(src)
	return b.parallel(len(copies), func(i int) {
		c := copies[i]
		for r := range c.Height {
			d, s := c.DstOffset+r*c.DstPitch, c.SrcOffset+r*c.SrcPitch
			copy(to[d:d+c.Width], from[s:s+c.Width])
		}
	})
}

// Gather copies each src view to the dst view of the same index.
func (b *Backend) Gather(dst, src []cudaops.View) error {
	for i, to := range dst {
		from := src[i]
		if err := b.eachRow(to, func(h, s int) { copy(row(to, h, s), row(from, h, s)) }); err != nil {
			return err
		}
	}
	return nil
}

// Add writes a + b.
func (b *Backend) Add(dst, x, y cudaops.View) error {
	return b.eachRow(dst, func(h, s int) {
		to, p, q := row(dst, h, s), row(x, h, s), row(y, h, s)
		for i := range to {
			to[i] = p[i] + q[i]
		}
	})
}
