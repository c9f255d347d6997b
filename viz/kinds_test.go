package viz

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// stages is a query's row on its way from scores to what each key adds to the context.
func stages(n int) Plot {
	g := rand.New(rand.NewPCG(7, uint64(n)))
	scores, p, weighted, share := make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)
	seen := n * 3 / 4
	sum, total := 0.0, 0.0
	for i := range n {
		scores[i] = float32(2*g.NormFloat64() - 1)
		if i < seen {
			sum += math.Exp(float64(scores[i]))
		}
	}
	for i := range seen {
		p[i] = float32(math.Exp(float64(scores[i])) / sum)
		weighted[i] = p[i] * float32(1+g.Float64())
		total += float64(weighted[i])
	}
	for i := range seen {
		share[i] = float32(float64(weighted[i]) / total)
	}
	hidden := func(i int) bool { return i >= seen }
	return Plot{Title: "Head 3, query 8", Axis: "key", Charts: []Chart{
		{Name: "scores", Quantity: "score", Series: []Series{{Values: scores}}},
		{Name: "masked", Quantity: "score", Series: []Series{{Values: scores, Hidden: hidden}}},
		{Name: "probabilities", Quantity: "probability", Note: "sum 1, entropy 2.61 bits", Series: []Series{{Values: p, Hidden: hidden}}},
		{Name: "contribution", Quantity: "|p| |v|", Series: []Series{{Values: weighted, Hidden: hidden}}},
		{Name: "share of the context", Quantity: "share", Series: []Series{{Values: share, Hidden: hidden}}},
	}}
}

// turning is the angles of pairs by position, of two settings.
func turning(pairs, positions int) Heatmap {
	h := Heatmap{Title: "RoPE: base 10000, 16 rotary dims", Kind: Angles, RowAxis: "pair", ColAxis: "row", Quantity: "angle (rad)"}
	for i := range pairs {
		h.RowLabels = append(h.RowLabels, fmt.Sprintf("%d: dims %d, %d", i, i, i+pairs))
	}
	for _, offset := range []int{0, 3} {
		m := Matrix{Name: fmt.Sprintf("half-split, offset %d", offset), Rows: pairs, Cols: positions, Values: make([]float32, pairs*positions)}
		for i := range m.Values {
			f := math.Pow(10000, -float64(i/positions)/float64(pairs))
			m.Values[i] = float32(math.Remainder(float64(i%positions+offset)*f, 2*math.Pi))
		}
		h.Matrices = append(h.Matrices, m)
	}
	return h
}

// similarity is q.k over distance with its envelope, of two settings.
func similarity(n int) Plot {
	p := Plot{Title: "RoPE: q·k of a query in each row with a key at position 0", Axis: "row"}
	chart := Chart{Name: "base 10000", Quantity: "q·k / its most", Low: -1, High: 1}
	var env []float32
	for k, offset := range []int{0, 3} {
		v := make([]float32, n)
		for i := range v {
			re, im := 0.0, 0.0
			for pair := range 32 {
				s, c := math.Sincos(float64(i+offset) * math.Pow(10000, -float64(pair)/32))
				re, im = re+c/32, im+s/32
			}
			v[i] = float32(re)
			if k == 0 {
				env = append(env, float32(math.Hypot(re, im)))
			}
		}
		chart.Series = append(chart.Series, Series{Name: fmt.Sprintf("offset %d", offset), Style: Curve, Values: v})
	}
	chart.Series = append(chart.Series, Series{Name: "envelope of offset 0", Style: Within, Values: env})
	p.Charts = []Chart{chart}
	return p
}

// decoding is a run of a prompt and single steps, one row a query.
func decoding(prompt, steps int) Heatmap {
	h := Heatmap{Title: "Decode, head 0", Kind: Probabilities, RowAxis: "step", ColAxis: "key"}
	n := prompt + steps
	full := attention(1, n).Matrices[0]
	first := prompt
	h.Matrices = []Matrix{{Rows: n, Cols: n, Values: full.Values,
		Hidden: func(row, col int) bool { return row < first && col > row && col < first },
		Absent: func(row, col int) bool { return col >= max(first, row+1) }}}
	return h
}

func cacheSteps() Timeline {
	t := Timeline{Title: "KV cache: a hole, an overwrite, a trim"}
	prompt := Write{}
	for i := range 5 {
		prompt.Slots, prompt.Positions = append(prompt.Slots, i), append(prompt.Positions, i)
	}
	t.Steps = append(t.Steps, prompt)
	for _, slot := range []int{5, 6, 8, 9, 9, 10} {
		t.Steps = append(t.Steps, Write{Slots: []int{slot}, Positions: []int{len(t.Steps) + 4}})
	}
	t.Steps = append(t.Steps, Write{Trim: true, Length: 7, Slots: []int{7}, Positions: []int{7}}, Write{Slots: []int{8}, Positions: []int{8}})
	return t
}

// ring is a cache of few slots that goes round.
func ring(slots, steps int) Timeline {
	t := Timeline{Title: "Ring cache"}
	for i := range steps {
		t.Steps = append(t.Steps, Write{Slots: []int{i % slots}, Positions: []int{i}})
	}
	return t
}

// comparison is two matrices and their difference in f32 steps, on the same axes.
func comparison() Sheet {
	mine := attention(1, 9).Matrices[0]
	want := Matrix{Rows: 9, Cols: 9, Values: append([]float32(nil), mine.Values...), Hidden: causal}
	steps := Matrix{Rows: 9, Cols: 9, Values: make([]float32, 81), Hidden: causal}
	g := rand.New(rand.NewPCG(3, 3))
	for i := range steps.Values {
		steps.Values[i] = float32(g.IntN(5) - 2)
	}
	steps.Values[40] = -4711
	worst := func(m int) Mark { return Mark{Matrix: m, Row: 4, Col: 4, Label: "worst"} }
	mine.Name, want.Name, steps.Name = "p", "expected", "p - expected"
	return Sheet{Title: "Compare p with expected: 45 cells, worst 4711 f32 steps at query 4, key 4", Pictures: []Drawable{
		Heatmap{Title: "Both", Kind: Probabilities, RowAxis: "query", ColAxis: "key", Columns: 2, Matrices: []Matrix{mine, want}, Marks: []Mark{worst(0), worst(1)}},
		Heatmap{Title: "Difference", Kind: Steps, RowAxis: "query", ColAxis: "key", Columns: 1, Matrices: []Matrix{steps}, Marks: []Mark{worst(0)}}}}
}

func noted(heads, n int) Heatmap {
	h := attention(heads, n)
	for i := range h.Matrices {
		h.Matrices[i].Notes = []string{fmt.Sprintf("entropy %.2f bits", 1+float64(i)/7), fmt.Sprintf("distance %.1f", 2.5+float64(i)), fmt.Sprintf("sink %d%%", 3*i)}
	}
	return h
}

// layers is one number a head of a model whose last layer has fewer heads.
func layers() Heatmap {
	m := noise(6, 8, 1)
	for i := range m.Values {
		m.Values[i] = 1 + abs(m.Values[i])
	}
	m.Absent = func(row, col int) bool { return row == 5 && col > 5 }
	m.Hidden = func(row, col int) bool { return row == 2 && col == 2 }
	return Heatmap{Title: "Entropy of each head", Kind: Amounts, Quantity: "entropy (bits)", RowAxis: "layer", ColAxis: "head", Matrices: []Matrix{m}}
}

func kinds() map[string]Drawable {
	oddSteps := odd()
	oddSteps.Kind, oddSteps.Title = Steps, "Odd steps"
	tokens := stages(12)
	tokens.Title, tokens.Labels = "With tokens </script>", sentence
	strange := Plot{Title: `Odd values </script><b>`, Axis: "key", Labels: []string{"a", "</script>", `"q" \`, "שלום", "🙂", "b", "c", "d", "e"},
		Charts: []Chart{
			{Name: "everything", Quantity: "score", Series: []Series{{Values: []float32{1e38, -3e38, nan32, inf32, -inf32, 0, minus0, 1e-45, 5}, Hidden: func(i int) bool { return i == 8 }}}},
			{Name: "denormals", Series: []Series{{Style: Curve, Values: []float32{1e-45, 2e-45, 0, 1e-45, nan32, 3e-45, -1e-45, 0, 0}}}},
			{Name: "nothing above 0", Series: []Series{{Values: []float32{-1, -2, -3, 0, 0, -1, -2, -1, -1}}}},
			{Name: "constant", Series: []Series{{Style: Curve, Values: []float32{.5, .5, .5, .5, .5, .5, .5, .5, .5}}}},
			{Name: "all masked", Series: []Series{{Values: make([]float32, 9), Hidden: func(int) bool { return true }}}},
		}}
	return map[string]Drawable{
		"stages": stages(12), "stagestokens": tokens, "stageslong": stages(3000), "strange": strange,
		"phasors": turning(8, 16), "phasorslong": turning(32, 2000), "similarity": similarity(256),
		"decoding": decoding(4, 8), "timeline": cacheSteps(), "ring": ring(64, 300), "difference": comparison(),
		"noted": noted(12, 20), "layers": layers(), "oddsteps": oddSteps,
	}
}
