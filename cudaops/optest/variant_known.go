package optest

import (
	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/bound"
	"gonum.org/v1/gonum/mat"
)

// knownVariants are small inputs with the values that the cases of public reports have.
func knownVariants() []testCase {
	row := func(x ...float32) tensor { return tensor{1, 1, len(x), x} }
	known := func(name string, x tensor, v variant, want []float64, within float64) testCase {
		c := softmaxVariantCase("variant/"+name, x, v)
		c.want = func([]bound.Heads) ([]bound.Heads, error) {
			value, off := mat.NewDense(x.s, x.d, want), mat.NewDense(x.s, x.d, nil)
			off.Apply(func(i, j int, _ float64) float64 {
				if value.At(i, j) == 0 {
					return 0 // hidden: exact
				}
				return within
			}, off)
			return truth(bound.Heads{Value: reference.Heads{value}, Err: reference.Heads{off}}, nil)
		}
		return c
	}
	rows := tensor{1, 2, 5, []float32{1, 2, 3, 4, 5, 5, 4, 3, 2, 1}}
	window := fill(1, 7, 7, func(int) float64 { return 0 })
	seen := make([]float64, 49)
	for r := range 7 {
		for j := max(0, r-2); j <= r; j++ { // window 3: row 5 sees 3, 4 and 5
			seen[r*7+j] = 1 / float64(min(r+1, 3))
		}
	}
	return []testCase{
		known("bottom-right of 2 x 5", rows, variant{mask: cudaops.Mask{Causal: true, Diagonal: 3, Window: 5}},
			[]float64{.032059, .087144, .236883, .643914, 0, .636409, .234122, .086129, .031685, .011656}, 1e-6),
		known("top-left of 2 x 5", rows, variant{mask: cudaops.Mask{Causal: true, Window: 5}},
			[]float64{1, 0, 0, 0, 0, .731059, .268941, 0, 0, 0}, 1e-6),
		known("softcap 50", row(0, 60, 100), variant{softcap: 50}, []float64{1.1592e-21, .001473, .998527}, 1e-6),
		known("sink 2", row(1, 2, 3), variant{sinks: row(2)}, []float64{.072329, .196612, .534447}, 1e-6),
		known("a row of four is masked", fill(1, 4, 2, func(i int) float64 { return float64(i) }), variant{allowed: tensor{1, 4, 2, []float32{1, 1, 0, 0, 1, 1, 1, 1}}},
			[]float64{.268941, .731059, 0, 0, .268941, .731059, .268941, .731059}, 1e-6),
		known("window 3", window, variant{mask: cudaops.Mask{Causal: true, Window: 3}}, seen, 1e-7),
	}
}
