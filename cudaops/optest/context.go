package optest

import (
	"fmt"
	"math"

	"github.com/attnb/attnb/cudaops"
)

// probabilities are rows that sum to 1 over the columns that m shows, and are 0 elsewhere.
func (n dims) probabilities(name string, m cudaops.Mask) tensor {
	p := normal(source(name+" p"), 1, n.h, n.s, n.t)
	for h := range p.h {
		for s := range p.s {
			sum := 0.0
			for j := range p.d {
				*p.at(h, s, j) = float32(math.Exp(float64(*p.at(h, s, j))))
				if j >= m.Visible(s, p.d) {
					*p.at(h, s, j) = 0
				}
				sum += float64(*p.at(h, s, j))
			}
			for j := range m.Visible(s, p.d) {
				*p.at(h, s, j) /= float32(sum)
			}
		}
	}
	return p
}

func contextCases() []testCase {
	var all []testCase
	bottomRight := func(n dims) cudaops.Mask { return cudaops.Mask{Causal: true, Diagonal: n.t - n.s} }
	for _, n := range []dims{
		{1, 1, 1, 1, 1}, {4, 2, 5, 9, 8}, {6, 3, 3, 31, 7}, {3, 1, 33, 65, 16}, {2, 2, 9, 5, 128}, {2, 1, 37, 127, 80},
		{2, 1, 1, 257, 16}, {2, 2, 31, 255, 3}, {1, 1, 3, 513, 64}, {1, 1, 129, 130, 256}, {8, 2, 64, 64, 24}, {1, 1, 2, 1025, 5},
	} {
		for _, m := range []cudaops.Mask{{}, bottomRight(n)} {
			name := fmt.Sprintf("context/%v %s", n, maskName(m))
			_, _, v := n.random(name, 1)
			all = append(all, contextCase(name, n.probabilities(name, m), v))
		}
	}
	n := dims{2, 1, 5, 70, 9}
	_, _, v := n.random("context of any weights", 1)
	all = append(all, contextCase("context/weights of both signs", normal(source("weights"), 30, n.h, n.s, n.t), v))
	return append(all, hiddenValueCases()...)
}

// hiddenValueCases have values that must stay hidden under weights of 0, and show under others: behind a causal mask, and
// in single rows, also under -0.
func hiddenValueCases() []testCase {
	var all []testCase
	for _, bad := range strange {
		for _, n := range []dims{{4, 2, 6, 9, 8}, {2, 1, 40, 150, 16}} {
			for _, seen := range []bool{false, true} {
				name := fmt.Sprintf("masked/context %v %v seen %v", n, bad, seen)
				m := cudaops.Mask{Causal: true, Diagonal: n.t - 2 - n.s} // no row sees the last two keys
				p := n.probabilities(name, m)
				_, _, v := n.random(name, 1)
				from := n.t - 2
				if seen {
					from -= 2
				}
				for h := range v.h {
					for t := from; t < n.t; t++ {
						*v.at(h, t, (h+t)%n.d) = bad
					}
				}
				negative := float32(math.Copysign(0, -1))
				for h := range p.h {
					for s := range p.s {
						*p.at(h, s, 1) = negative
						if s%2 == 0 {
							*p.at(h, s, 3) = 0
						}
					}
				}
				for h := range v.h {
					*v.at(h, 1, n.d-1), *v.at(h, 3, 0) = bad, bad // row 3 shows in every second result
				}
				all = append(all, contextCase(name, p, v))
			}
		}
	}
	return all
}
