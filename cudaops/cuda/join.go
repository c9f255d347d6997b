//go:build cuda

package cuda

import "github.com/attnb/attnb/cudaops/plan"

// pair is one view to copy, and where to.
type pair struct {
	dst, src view
	d        dims
}

// joinCopies turns the copies of a plan into as few views as their regularity allows: copies of one shape whose offsets
// grow by a constant step are the heads of one view. An append to a cache is one view so, whatever its heads.
func joinCopies(dst, src pointer, copies []plan.PitchedCopy) []pair {
	var pairs []pair
	for i := 0; i < len(copies); {
		c := copies[i]
		n := run(copies[i:])
		p := pair{
			dst: view{dst + pointer(4*c.DstOffset), 0, int64(c.DstPitch)},
			src: view{src + pointer(4*c.SrcOffset), 0, int64(c.SrcPitch)},
			d:   dims{n, c.Height, c.Width},
		}
		if n > 1 {
			p.dst.hs = int64(copies[i+1].DstOffset - c.DstOffset)
			p.src.hs = int64(copies[i+1].SrcOffset - c.SrcOffset)
		}
		pairs = append(pairs, p)
		i += n
	}
	return pairs
}

// run is the number of copies, from the first, that have one shape and a constant step.
func run(copies []plan.PitchedCopy) int {
	n := 1
	for n < len(copies) {
		a, b := copies[n-1], copies[n]
		if a.Width != b.Width || a.Height != b.Height || a.SrcPitch != b.SrcPitch || a.DstPitch != b.DstPitch {
			break
		}
		if n > 1 && (b.SrcOffset-a.SrcOffset != copies[1].SrcOffset-copies[0].SrcOffset ||
			b.DstOffset-a.DstOffset != copies[1].DstOffset-copies[0].DstOffset) {
			break
		}
		n++
	}
	return n
}
