package resident

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference"
)

func maskFaults() []shipped {
	weights := func(q, k reference.Heads, v reference.Variant, vis reference.Visible) reference.Heads {
		return must(v.Softmax(must(reference.Scores(q, k, 1/math.Sqrt(8))), vis))
	}
	q, k := normals(11, 2, 8, 8), normals(12, 2, 8, 8)
	few, long := normals(13, 2, 2, 8), normals(14, 2, 7, 8)
	short := normals(15, 2, 3, 8)
	none := reference.Variant{}
	of := func(id, name string, q, k reference.Heads, p wire.Params, right, wrong reference.Heads, kind, words string) shipped {
		return shipped{id, name, "mask", p, nil, map[string]reference.Heads{"q": q, "k": k, "p": right}, map[string]reference.Heads{"p": wrong}, kind, words, nil}
	}
	bottom := wire.Params{Mask: wire.MaskCausal}
	steep := each(q, func(_, _ int, v float64) float64 { return 12 * v })
	sink := reference.Heads{mat.NewDense(1, 2, []float64{2, 1})}
	empty := weights(q, short, none, reference.Causal(3-8))
	hold := func(x float64) reference.Heads {
		return each(empty, func(row, col int, v float64) float64 {
			if row < 5 {
				return x
			}
			return v
		})
	}
	window := bottom
	window.Window = 3
	capped := bottom
	capped.Softcap = 50
	sunk := of("A1", "a sink dropped", q, k, bottom, weights(q, k, reference.Variant{Sinks: []float64{2, 1}}, reference.Causal(0)), weights(q, k, none, reference.Causal(0)), "sink", "")
	sunk.right["sinks"] = sink
	padded := bottom
	padded.PadLeft = 3
	pads := weights(q, k, none, reference.All(reference.Causal(0), reference.Padded(3, 0, 8)))
	// -1e4 for padding beside -1e9 for the future: what sees padding alone weighs it as if it were none.
	weighed := weights(q, k, none, func(row, col int) bool { return col <= row && (col >= 3 || row < 3) })
	inverted := weights(q, k, none, func(row, col int) bool { return col > row })
	alibi := bottom
	alibi.ALiBi = true
	slopes := must(reference.ALiBiSlopes(2))
	packed := bottom
	packed.Documents = []int{3, 5}
	documents := weights(q, k, none, reference.All(reference.Causal(0), reference.Documents(0, []int{3, 5})))
	more := normals(33, 2, 5, 8)
	return append(printedMasks(), []shipped{
		of("C1", "another corner where there are more queries than keys", more, short, bottom, weights(more, short, none, reference.Causal(-2)), weights(more, short, none, reference.Causal(0)), "alignment of the mask", ""),
		of("C2", "the history of a chunk masked", few, long, bottom, weights(few, long, none, reference.Causal(5)),
			weights(few, long, none, func(row, col int) bool { return col >= 5 && col-5 <= row }), "hidden keys", "no row sees keys [0 1 2 3 4]"),
		of("N1", "rows that see nothing hold all weight at key 0", q, short, bottom, hold(0), each(hold(0), func(row, col int, v float64) float64 {
			if row < 5 && col == 0 {
				return 1
			}
			return v
		}), "rows that see nothing", "key 0"),
		of("N3", "the least finite number for -Inf", q, short, bottom, hold(0), each(weights(q, short, none, nil), func(row, col int, v float64) float64 {
			if row < 5 {
				return v
			}
			return empty[0].At(row, col)
		}), "rows that see nothing", ""),
		of("N3", "a small negative number for padding beside a large one", q, k, padded, pads, weighed, "rows that see nothing", ""),
		of("N3", "an added mask read as one of booleans", q, k, bottom, weights(q, k, none, reference.Causal(0)), inverted, "no causal mask", ""),
		of("O8", "padding seen", q, k, padded, pads, weights(q, k, none, reference.Causal(0)), "hidden keys", "keys [0 1 2] are padding, and seen"),
		of("", "ALiBi dropped", q, k, alibi, weights(q, k, reference.Variant{Slopes: slopes}, reference.Causal(0)), weights(q, k, none, reference.Causal(0)), "ALiBi", "none, declared slopes"),
		of("", "documents seen across", q, k, packed, documents, weights(q, k, none, reference.Causal(0)), "documents", "of another document"),
		of("C1", "top-left for bottom-right", few, long, bottom, weights(few, long, none, reference.Causal(5)), weights(few, long, none, reference.Causal(0)), "alignment of the mask", "top-left"),
		of("C2", "a prefill behind a cache without a mask", few, long, bottom, weights(few, long, none, reference.Causal(5)), weights(few, long, none, nil), "no causal mask", ""),
		of("C2", "one key too far", q, k, bottom, weights(q, k, none, reference.Causal(0)), weights(q, k, none, reference.Causal(1)), "diagonal", "off by one"),
		of("N1", "rows that see nothing are NaN", q, short, bottom, hold(0), hold(math.NaN()), "rows that see nothing", "NaN"),
		of("N1", "rows that see nothing are uniform", q, short, bottom, hold(0), hold(1./3), "rows that see nothing", "uniform"),
		of("W1", "a window of one more", q, k, window, weights(q, k, none, reference.All(reference.Causal(0), reference.Window(0, 3))),
			weights(q, k, none, reference.All(reference.Causal(0), reference.Window(0, 4))), "window", "off by one"),
		of("T1", "a softcap dropped", steep, k, capped, weights(steep, k, reference.Variant{Softcap: 50}, reference.Causal(0)), weights(steep, k, none, reference.Causal(0)), "softcap", ""),
		of("T1", "a softcap of 0 for all scores 0", q, k, bottom, weights(q, k, none, reference.Causal(0)), weights(each(q, func(int, int, float64) float64 { return 0 }), k, none, reference.Causal(0)), "scale", ""),
		sunk,
	}...)
}

// printedMasks are scores as they were printed in a report, at scale 1, and the probabilities of six digits beside them.
func printedMasks() []shipped {
	of := func(id, name string, p wire.Params, scores *mat.Dense, v reference.Variant, right, wrong reference.Visible, was reference.Variant, printed []float64, kind string) shipped {
		_, keys := scores.Dims()
		identity := mat.NewDense(keys, keys, nil)
		for i := range keys {
			identity.Set(i, i, 1)
		}
		p.Scale = 1
		q := reference.Heads{scores}
		good, bad := must(v.Softmax(q, right)), must(was.Softmax(q, wrong))
		for i, want := range printed {
			if got := good[0].At(0, i); !(math.Abs(got-want) <= 1e-6) {
				panic(fmt.Sprintf("%s: probability %d is %g, printed %g", name, i, got, want))
			}
		}
		s := shipped{id, name, "mask", p, nil, map[string]reference.Heads{"q": q, "k": {identity}, "p": good}, map[string]reference.Heads{"p": bad}, kind, "", nil}
		if v.Sinks != nil {
			s.right["sinks"] = reference.Heads{mat.NewDense(1, 1, v.Sinks)}
		}
		return s
	}
	none := reference.Variant{}
	two := mat.NewDense(2, 5, []float64{1, 2, 3, 4, 5, 5, 4, 3, 2, 1})
	bottom, top := wire.Params{Mask: wire.MaskCausal}, wire.Params{Mask: wire.MaskDiagonal}
	row := func(x ...float64) *mat.Dense { return mat.NewDense(1, len(x), x) }
	capped := reference.Variant{Softcap: 50}
	return []shipped{
		of("C1", "as printed, top-left", bottom, two, none, reference.Causal(3), reference.Causal(0), none, []float64{.032059, .087144, .236883, .643914, 0}, "alignment of the mask"),
		of("C1", "as printed, bottom-right for top-left", top, two, none, reference.Causal(0), reference.Causal(3), none, []float64{1, 0, 0, 0, 0}, "alignment of the mask"),
		of("C1", "as printed, no mask", bottom, two, none, reference.Causal(3), nil, none, nil, "no causal mask"),
		of("C1", "as printed, a mask where none is declared", wire.Params{}, two, none, nil, reference.Causal(3), none, []float64{.011656, .031685, .086129, .234122, .636409}, "a mask that was not declared"),
		of("T1", "as printed, the softcap dropped", wire.Params{Softcap: 50}, row(0, 60, 100), capped, nil, nil, none, []float64{0, .001473, .998527}, "softcap"),
		of("A1", "as printed, the sink dropped", wire.Params{}, row(1, 2, 3), reference.Variant{Sinks: []float64{2}}, nil, nil, none, []float64{.072329, .196612, .534447}, "sink"),
	}
}
