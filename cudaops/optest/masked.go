package optest

import (
	"fmt"
	"math"

	"github.com/attnb/attnb/cudaops"
)

// strange are values that must stay hidden where they are hidden, and show where they are not.
var strange = []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32}

// maskedCases put such values into scores, keys and values.
func maskedCases() []testCase {
	var all []testCase
	for _, bad := range strange {
		// Row r sees r+3 of 9 columns; everything else is bad.
		m := cudaops.Mask{Causal: true, Diagonal: 2}
		name := fmt.Sprintf("masked/softmax %v hidden", bad)
		x := normal(source(name), 2, 2, 5, 9)
		for h := range x.h {
			for s := range x.s {
				for j := s + 3; j < x.d; j++ {
					*x.at(h, s, j) = bad
				}
			}
		}
		all = append(all, softmaxCase(name, x, m))

		name = fmt.Sprintf("masked/softmax %v seen", bad)
		x = normal(source(name), 2, 2, 5, 9)
		*x.at(0, 3, 1), *x.at(1, 0, 0) = bad, bad
		all = append(all, softmaxCase(name, x, m))

		// Six queries; the last two of nine keys, or of many, are seen by none, the two before by the last query or two.
		for _, n := range []dims{{4, 2, 6, 9, 8}, {2, 1, 40, 150, 16}} {
			for _, where := range []string{"keys", "values"} {
				for _, seen := range []bool{false, true} {
					name := fmt.Sprintf("masked/prefill %v %s %v seen %v", n, where, bad, seen)
					if seen && where == "keys" && bad == math.MaxFloat32 {
						continue // an overflowing score: f32 and f64 rightly differ
					}
					q, k, v := n.random(name, 1)
					into, from := k, n.t-2
					if where == "values" {
						into = v
					}
					if seen {
						from -= 2
					}
					for h := range into.h {
						for t := from; t < n.t; t++ {
							*into.at(h, t, (h+t)%n.d) = bad
						}
					}
					a := cudaops.Attention{Scale: n.scale(), Mask: cudaops.Mask{Causal: true, Diagonal: n.t - 2 - n.s}}
					all = append(all, prefillCase(name, q, k, v, a))
				}
			}
		}
	}
	return all
}
