package optest

import (
	"fmt"
	"math"
	"strings"

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
	return append(all, lowestCases()...)
}

// lowestCases have scores of -Inf that are seen: whole blocks of keys before the first finite one, and nothing else.
func lowestCases() []testCase {
	lowest := float32(math.Inf(-1))
	n := dims{2, 1, 3, 300, 8}
	var all []testCase
	for _, keys := range []int{1, 64, 130, n.t - 2, n.t} {
		name := fmt.Sprintf("masked/prefill %v scores -Inf at the first %d keys", n, keys)
		q, k, v := n.random(name, 1)
		for h := range q.h {
			for s := range q.s {
				*q.at(h, s, 0) = 1
			}
		}
		for t := range keys {
			*k.at(0, t, 0) = lowest
		}
		m := cudaops.Mask{Causal: true, Diagonal: n.t - n.s}
		all = append(all, prefillCase(name, q, k, v, cudaops.Attention{Scale: n.scale(), Mask: m}))
		one := tensor{q.h, 1, q.d, append(q.data[:q.d:q.d], q.data[q.s*q.d:(q.s+1)*q.d]...)}
		all = append(all, decodeCase(strings.Replace(name, "prefill", "decode", 1), one, k, v, n.scale()))
	}
	x := normal(source("lowest"), 1, 1, 3, 70)
	for i := range x.d {
		*x.at(0, 1, i) = lowest
		if i < 66 {
			*x.at(0, 2, i) = lowest
		}
	}
	return append(all, softmaxCase("masked/softmax -Inf in whole rows", x, cudaops.Mask{}))
}
