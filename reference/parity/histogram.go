package parity

import "math"

// Bin counts the cells whose error/bound is at most Upper and above the Upper of the bin before it.
type Bin struct {
	Upper float64
	Count int
}

// bins are: exact, one a decade from 1e-6 to 1e3, and the rest. Up to Upper 1 cells pass.
func bins() []Bin {
	out := []Bin{{Upper: 0}}
	for exponent := -6; exponent <= 3; exponent++ {
		out = append(out, Bin{Upper: math.Pow10(exponent)})
	}
	return append(out, Bin{Upper: math.Inf(1)})
}

func count(bins []Bin, ratio float64) {
	for i := range bins {
		if ratio <= bins[i].Upper {
			bins[i].Count++
			return
		}
	}
}
