package resident

import (
	"fmt"
	"math"

	"github.com/attnb/attnb/kernel/resident/chain"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/detect"
	"gonum.org/v1/gonum/mat"
)

func rotationFaults() []shipped {
	half := wire.Params{Rotary: 16}
	at := func(p wire.Params, offset int, positions ...int) wire.Params {
		p.Offset, p.Positions = offset, positions
		return p
	}
	x := normals(1, 12, 6, 16)
	of := func(id, name string, declared, was wire.Params, kind, words string) shipped {
		return shipped{id, name, "rope", declared, nil, map[string]reference.Heads{"before": x, "after": turned(x, declared)},
			map[string]reference.Heads{"after": turned(x, was)}, kind, words, nil}
	}
	llama := func(factor float64) wire.Params {
		return wire.Params{Rotary: 16, Base: 5e5, Scaling: &wire.Scaling{Kind: wire.ScalingLlama3, Factor: factor, Low: 1, High: 4, Trained: 8192}}
	}
	inter := wire.Params{Rotary: 16, Interleaved: true}
	swapped := each(x, func(int, int, float64) float64 { return 0 })
	for h := range x {
		t := turned(x, inter)[h]
		for row := range 6 {
			for i := range 8 {
				swapped[h].Set(row, i, t.At(row, 2*i))
				swapped[h].Set(row, i+8, t.At(row, 2*i+1))
			}
		}
	}
	// Frequencies padded with zeros to the head dim: pairs (i, i+8) for i < 4.
	padded := turned(x, wire.Params{Rotary: 16, InvFreq: []float64{1, 1e-1, 1e-2, 1e-3, 0, 0, 0, 0}})
	quarter := wire.Params{Rotary: 8}
	brain := normals(31, 2, 20, 64)
	in16 := func(r wire.Params) reference.Heads {
		return rounded(turned(rounded(brain, detect.BFloat16), r), detect.BFloat16)
	}
	whole, whole16 := wire.Params{Rotary: 64}, []wire.Fact{{Name: "precision", Words: []string{"bf16"}}}
	over := func(rotary, denominator int) (f []float64) { // frequencies
		for i := range rotary / 2 {
			f = append(f, math.Pow(1e4, -2*float64(i)/float64(denominator)))
		}
		return f
	}
	llama1B := wire.Params{Rotary: 64, Base: 5e5, Scaling: &wire.Scaling{Kind: wire.ScalingLlama3, Factor: 32, Low: 1, High: 4, Trained: 8192}}
	for i, want := range map[int]float64{14: math.Pow(5e5, -28./64), 15: 1.290548e-03, 16: 4.295568e-04, 17: 9.708288e-05, 18: math.Pow(5e5, -36./64) / 32} {
		if got := chain.ReferenceRoPE(llama1B).Frequency(i); !(math.Abs(got-want) <= 1e-6*want) {
			panic(fmt.Sprintf("pair %d turns by %g, want %g", i, got, want))
		}
	}
	divided := wire.Params{Rotary: 64, Base: 5e5, Scaling: &wire.Scaling{Kind: wire.ScalingLinear, Factor: 32}}
	far := at(half, 16000)
	// A fast sine is as far off as an angle of 1e-7 more.
	fast := make([]float64, 8)
	for i, f := range over(16, 16) {
		fast[i] = f * (1 + 1e-7)
	}
	return append(printedRotations(), []shipped{
		{"R4", "pairs for halves in bf16", "rope", whole, whole16, map[string]reference.Heads{"before": rounded(brain, detect.BFloat16), "after": in16(whole)},
			map[string]reference.Heads{"after": in16(wire.Params{Rotary: 64, Interleaved: true})}, "pairing", "", nil},
		of("O5", "the length read from an axis of heads", at(half, 20), at(half, 12), "offset", "number of heads"),
		of("P5", "frequencies over the rotary dims for a model trained with the head dim", wire.Params{Rotary: 8, InvFreq: over(8, 16)}, quarter, "scaling", ""),
		{"S2", "all pairs divided, not the slow ones", "rope", llama1B, nil, map[string]reference.Heads{"before": brain, "after": turned(brain, llama1B)},
			map[string]reference.Heads{"after": turned(brain, divided)}, "scaling", "linear", nil},
		{"S2", "none divided", "rope", llama1B, nil, map[string]reference.Heads{"before": brain, "after": turned(brain, llama1B)},
			map[string]reference.Heads{"after": turned(brain, wire.Params{Rotary: 64, Base: 5e5})}, "scaling", "not scaled", nil},
		of("F1", "a fast sine", far, wire.Params{Rotary: 16, Offset: 16000, InvFreq: fast}, "rounded angles", ""),
		of("R1", "halves for pairs", inter, half, "pairing", "half-split"),
		of("R1", "pairs for halves", half, inter, "pairing", ""),
		{"R3", "evens and odds side by side", "rope", inter, nil, map[string]reference.Heads{"before": x, "after": turned(x, inter)}, map[string]reference.Heads{"after": swapped}, "order of the output", "", nil},
		of("O1", "the cached branch begins at 0", at(half, 4), half, "offset", "restarted"),
		of("O2", "a table kept without its offset", at(half, 3), half, "offset", ""),
		of("O1", "every decoded token at 0", at(half, 40), at(half, 0, 0, 0, 0, 0, 0, 0), "not rotated", "(every row at one position)"),
		of("O3", "the prompt counted again", at(half, 6), at(half, 12), "offset", "counted twice"),
		of("O4", "the length one too long", at(half, 9), at(half, 10), "offset", "off by one"),
		of("O5", "layer 0 counted for the others", at(half, 7), at(half, 8), "offset", "off by one"),
		of("O9", "heads for rows", at(half, 40), at(half, 12), "offset", "number of heads"),
		of("O8", "left padding not counted", at(half, 0, 0, 0, 0, 0, 1, 2), half, "positions", "ignore the padding"),
		of("O8", "positions of another row", at(half, 0, 0, 0, 0, 0, 1, 2), at(half, 0, 0, 0, 1, 2, 3, 4), "positions", ""),
		{"O10", "cached rotated, and again", "rope", at(half, 5), nil, map[string]reference.Heads{"before": x, "after": turned(x, at(half, 5))},
			map[string]reference.Heads{"after": turned(turned(x, at(half, 5)), at(half, 5))}, "rotated twice", "", nil},
		{"D3", "dropped from 24 rows on", "rope", half, nil, map[string]reference.Heads{"before": normals(3, 2, 25, 16), "after": turned(normals(3, 2, 25, 16), half)},
			map[string]reference.Heads{"after": normals(3, 2, 25, 16)}, "not rotated", "", nil},
		{"P1", "padded with zeros to the head dim", "rope", quarter, nil, map[string]reference.Heads{"before": x, "after": turned(x, quarter)}, map[string]reference.Heads{"after": padded}, "stride of pairs", "do not pad", nil},
		of("P2", "all dims for a half", quarter, half, "rotary dims", ""),
		of("P3", "a quarter ignored", wire.Params{Rotary: 4}, half, "rotary dims", ""),
		of("P4", "the head dim for a denominator", quarter, wire.Params{Rotary: 8, InvFreq: []float64{1, math.Pow(1e4, -2./16), math.Pow(1e4, -4./16), math.Pow(1e4, -6./16)}}, "denominator", ""),
		of("S1", "another llama3 factor", llama(32), llama(8), "scaling", ""),
		of("S3", "position scale 2 by default", half, wire.Params{Rotary: 16, Scaling: &wire.Scaling{Kind: wire.ScalingLinear, Factor: 2}}, "scaling", ""),
		of("S3", "dynamic NTK never used", wire.Params{Rotary: 16, Scaling: &wire.Scaling{Kind: wire.ScalingDynamicNTK, Factor: 6, Trained: 2, Length: 6}}, half, "scaling", ""),
		of("F1", "f32 angles far out", at(half, 131000), at(wire.Params{Rotary: 16, Float32Angles: true}, 131000), "rounded angles", ""),
	}...)
}

// printedRotations are one row each, as it was printed in a report: what a reader of a single token can know.
func printedRotations() []shipped {
	x4, x8, count := []float64{1, 2, 3, 4}, []float64{1, 2, 3, 4, 5, 6, 7, 8}, []float64{0, 1, 2, 3, 4, 5, 6, 7}
	row := func(x []float64) reference.Heads { return reference.Heads{mat.NewDense(1, len(x), x)} }
	// exact is what a rotation gives, which must be what was printed.
	exact := func(x []float64, by wire.Params, printed ...float64) reference.Heads {
		y := each(turned(row(x), by), func(_, _ int, v float64) float64 { return float64(float32(v)) })
		for i, want := range printed {
			if got := y[0].At(0, i); !(math.Abs(got-want) <= 2e-6) {
				panic(fmt.Sprintf("element %d of %v is %g, printed %g", i, x, got, want))
			}
		}
		return y
	}
	half1, inter1 := wire.Params{Rotary: 4, Offset: 1}, wire.Params{Rotary: 4, Offset: 1, Interleaved: true}
	halves := exact(x4, half1, -1.984111, 1.959901, 2.462378, 4.019800)
	pairs := exact(x4, inter1, -1.142640, 1.922076, 2.959851, 4.029800)
	part := wire.Params{Rotary: 4, Offset: 3}
	right := exact(x8, part, -1.413353, 1.879118, -2.828857, 4.058191, 5, 6, 7, 8)
	of := func(id, name string, x []float64, p wire.Params, right, wrong reference.Heads, kind string) shipped {
		return shipped{id, name, "rope", p, nil, map[string]reference.Heads{"before": row(x), "after": right}, map[string]reference.Heads{"after": wrong}, kind, "", nil}
	}
	last := []float64{1, 2, 3, 4}
	return []shipped{
		of("R1", "as printed, halves for pairs", x4, inter1, pairs, halves, "pairing"),
		of("R1", "as printed, pairs for halves", x4, half1, halves, pairs, "pairing"),
		of("R3", "as printed, not interleaved again", count, wire.Params{Rotary: 8, Interleaved: true}, row(count), row([]float64{0, 2, 4, 6, 1, 3, 5, 7}), "order of the output"),
		of("O1", "as printed, a token at 4 rotated to 0", last, wire.Params{Rotary: 4, Offset: 4}, exact(last, wire.Params{Rotary: 4, Offset: 4}), row(last), "not rotated"),
		of("O1", "as printed, a token at 4 rotated to 3", last, wire.Params{Rotary: 4, Offset: 4}, exact(last, wire.Params{Rotary: 4, Offset: 4}), exact(last, wire.Params{Rotary: 4, Offset: 3}), "offset"),
		of("P1", "as printed, padded with zeros", x8, part, right, exact(x8, wire.Params{Rotary: 8, Offset: 3, InvFreq: []float64{1, 1e-2, 0, 0}}, -1.695593, 1.819127, 3, 4, -4.808842, 6.057291, 7, 8), "stride of pairs"),
		of("P1", "as printed, all dims", x8, part, right, exact(x8, wire.Params{Rotary: 8, Offset: 3}, -1.695593, 0.137552, 2.788682, 3.975982, -4.808842, 6.323059, 7.086837, 8.011964), "rotary dims"),
		of("P1", "as printed, the head dim for a denominator", x8, part, right, exact(x8, wire.Params{Rotary: 4, Offset: 3, InvFreq: []float64{1, 1e-1}}, -1.413353, 0.728592, -2.828857, 4.412386, 5, 6, 7, 8), "denominator"),
		of("P1", "as printed, pairs", x8, part, right, exact(x8, wire.Params{Rotary: 4, Offset: 3, Interleaved: true}, -1.272233, -1.838865, 2.878668, 4.088187, 5, 6, 7, 8), "pairing"),
	}
}
