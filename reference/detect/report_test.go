package detect

import (
	"strings"
	"testing"

	"github.com/attnb/attnb/reference"
)

// Faults that projects shipped, each as the tensor that it made, and the right one, which raises nothing.

func TestOffsetReports(t *testing.T) {
	r := seeded(70, 0)
	const heads, rows = 12, 6
	x := r.heads(heads, rows, 16)
	at := func(offset int, positions ...int) reference.RoPE {
		return reference.RoPE{Rotary: 16, Base: 1e4, Offset: offset, Positions: positions}
	}
	for _, c := range []struct {
		name            string
		declared, wrong reference.RoPE
		kind            Kind
		words           string
	}{
		{"the cached branch slices the table from 0", at(4), at(0), WrongOffset, "restarted"},
		{"a cache of tables keyed without the offset", at(3), at(0), WrongOffset, "restarted"},
		{"the prompt counted again", at(6), at(12), WrongOffset, "counted twice"},
		{"the length reported one too long", at(9), at(10), WrongOffset, "off by one"},
		{"layer 0 advanced the count for the others", at(7), at(8), WrongOffset, "off by one"},
		{"the length read from the heads axis", at(40), at(heads), WrongOffset, "the number of heads, not of rows"},
		{"the block's own rows counted too", at(20), at(26), WrongOffset, "own rows were counted too"},
		{"the table sliced to its first row", at(40), at(0, 0, 0, 0, 0, 0, 0), SamePosition, "(every row at one position)"},
		{"left padding not counted", at(0, 0, 0, 0, 1, 2, 3), at(0), WrongPositions, "ignore the padding"},
		{"left padding not declared", at(0), at(0, 0, 0, 0, 1, 2, 3), WrongPositions, "left padding"},
		{"positions of another row of the batch", at(0, 0, 0, 0, 1, 2, 3), at(0, 0, 0, 1, 2, 3, 4), WrongPositions, "rows are at"},
		{"a packed document that does not begin again", at(0, 0, 1, 2, 0, 1, 2), at(0), WrongPositions, "ignore"},
	} {
		if f := asked(t, x, rotated(t, x, c.declared), c.declared); f.Faults != nil {
			t.Errorf("%s: right, but %v", c.name, f)
		}
		f := asked(t, x, rotated(t, x, c.wrong), c.declared)
		if !f.has(c.kind) || !strings.Contains(f.String(), c.words) {
			t.Errorf("%s: %v, want %s with %q", c.name, f, c.kind, c.words)
		}
	}
	// Keys cached after RoPE and rotated again at use.
	once := rotated(t, x, at(5))
	if f := asked(t, x, rotated(t, once, at(5)), at(5)); !f.has(RotatedTwice) {
		t.Error(f)
	}
	// The rotation dropped from a prompt of 24 rows on.
	for rows := 23; rows <= 25; rows++ {
		x := r.heads(2, rows, 16)
		y := x
		if rows < 24 {
			y = rotated(t, x, at(0))
		}
		if f := asked(t, x, y, at(0)); f.has(NotRotated) != (rows >= 24) {
			t.Errorf("%d rows: %v", rows, f)
		}
	}
}

func TestPartialAndScalingReports(t *testing.T) {
	r := seeded(71, 0)
	scaled := func(rotary int, base float64, s reference.Scaling) reference.RoPE {
		f, magnitude, err := s.Frequencies(rotary, base)
		if err != nil {
			t.Fatal(err)
		}
		return reference.RoPE{Rotary: rotary, Base: base, InvFreq: f, Magnitude: magnitude}
	}
	llama := reference.Llama3{Factor: 32, Low: 1, High: 4, Trained: 8192}
	other := llama
	other.Factor = 8
	for _, c := range []struct {
		name            string
		dim             int
		declared, wrong reference.RoPE
		kind            Kind
	}{
		{"all of 128 dims rotated, not 64", 128, reference.RoPE{Rotary: 64, Base: 1e4}, reference.RoPE{Rotary: 128, Base: 1e4}, WrongRotary},
		{"a factor of a quarter ignored", 16, reference.RoPE{Rotary: 4, Base: 1e4}, reference.RoPE{Rotary: 16, Base: 1e4}, WrongRotary},
		{"frequencies over the head dim, rotary dims rotated", 8, reference.RoPE{Rotary: 4, Base: 1e4}, reference.RoPE{Rotary: 4, InvFreq: powers(4, 8, 1e4)}, WrongDenominator},
		{"wrong llama3 factor", 64, scaled(64, 5e5, llama), scaled(64, 5e5, other), WrongScaling},
		{"llama3 left out", 64, scaled(64, 5e5, llama), reference.RoPE{Rotary: 64, Base: 5e5}, WrongScaling},
		{"position scale 2 by default", 32, reference.RoPE{Rotary: 32, Base: 1e4}, scaled(32, 1e4, reference.LinearScaling{Factor: 2}), WrongScaling},
		{"dynamic NTK factor never used", 32, scaled(32, 1e4, reference.DynamicNTK{Factor: 6, Trained: 8, Length: 12}), reference.RoPE{Rotary: 32, Base: 1e4}, WrongScaling},
		{"YaRN's magnitude left out", 64, scaled(64, 1e4, reference.YaRN{Factor: 4, Trained: 4096}),
			reference.RoPE{Rotary: 64, InvFreq: scaled(64, 1e4, reference.YaRN{Factor: 4, Trained: 4096}).InvFreq}, WrongMagnitude},
	} {
		x := r.heads(2, 12, c.dim)
		if f := asked(t, x, rotated(t, x, c.declared), c.declared); f.Faults != nil {
			t.Errorf("%s: right, but %v", c.name, f)
		}
		if f := asked(t, x, rotated(t, x, c.wrong), c.declared); !f.has(c.kind) {
			t.Errorf("%s: %v, want %s", c.name, f, c.kind)
		}
	}
	// Pairing in bf16, as accelerators compute it.
	x := rounded(r.heads(2, 20, 64), BFloat16)
	half, inter := reference.RoPE{Rotary: 64, Base: 1e4}, reference.RoPE{Rotary: 64, Base: 1e4, Interleaved: true}
	y := rounded(must[reference.Heads](t)(reference.ApplyRoPE(x, inter)), BFloat16)
	if f := must[RoPEFinding](t)(RoPE(t.Context(), x, y, inter, BFloat16)); f.Faults != nil {
		t.Error(f)
	}
	if f := must[RoPEFinding](t)(RoPE(t.Context(), x, y, half, BFloat16)); !f.has(WrongPairing) {
		t.Error(f)
	}
}

// A tensor-parallel projection: two shards, each [q | k | v] of its heads, read as one.
func TestShardedLayoutReport(t *testing.T) {
	r := seeded(72, 0)
	d := Fused{Layout: reference.GPT2, Heads: 8, KVHeads: 4, Dim: 6}
	q, k, v := r.heads(8, 4, 6), r.heads(4, 4, 6), r.heads(4, 4, 6)
	sharded := declaredArrangement(d)
	sharded.Shards = 2
	f := must[LayoutFinding](t)(Layout(t.Context(), arranged(sharded, q, k, v), d, Parts{Q: q, K: k, V: v}))
	if f.Faults.kinds() != string(WrongLayout) || !strings.Contains(f.String(), "2 shards, each Q K V") || f.Margin < 1000 {
		t.Error(f)
	}
}

func TestMaskReports(t *testing.T) {
	r := seeded(73, 0)
	q, k := r.heads(2, 8, 8), r.heads(2, 8, 8)
	// A window of 3 that attends to 4: row 5 sees keys 2 to 5, not 3 to 5.
	three, four := Rule{Causal: true, Window: 3}, Rule{Causal: true, Window: 4}
	if f := masked(t, q, k, weights(q, k, three, nil), three); f.Faults != nil {
		t.Error(f)
	}
	if f := masked(t, q, k, weights(q, k, four, nil), three); f.Faults.kinds() != string(WrongWindow) || !strings.Contains(f.String(), "4 keys, declared 3 (off by one") {
		t.Error(f)
	}
	// A softcap of 0 taken for "all scores are 0", not for "off".
	none := Rule{Causal: true}
	flat := weights(zeros(shape{2, 8, 8}), k, none, nil)
	if f := masked(t, q, k, flat, none); f.Faults == nil {
		t.Error(f)
	}
	// A chunk behind a cache whose mask begins again: two queries, seven keys.
	chunk := slice(q, 0, 2)
	right := Rule{Causal: true, Diagonal: 6}
	f := masked(t, chunk, k, weights(chunk, k, none, nil), right)
	if f.Faults.kinds() != string(WrongAlignment) || !strings.Contains(f.String(), "top-left") {
		t.Error(f)
	}
	// The end of the keys one too far.
	if f := masked(t, q, k, weights(q, k, Rule{Causal: true, Diagonal: 1}, nil), none); f.Faults.kinds() != string(WrongDiagonal) || !strings.Contains(f.String(), "off by one") {
		t.Error(f)
	}
}

// A kernel whose scratch holds 256 scores is right up to there.
func TestOverrunReport(t *testing.T) {
	overrun := func(q, k, v reference.Heads) (reference.Heads, error) {
		p := weights(q, k, Rule{}, nil)
		for _, m := range p {
			rows, keys := m.Dims()
			for row := range rows {
				for col := 256; col < keys; col++ {
					m.Set(row, col, m.At(row, col-256)) // what lies behind the array
				}
			}
		}
		return reference.Context(p, v)
	}
	for _, keys := range []int{255, 256, 257} {
		f := must[ProbeFinding](t)(Probe(t.Context(), overrun, Geometry{Heads: 1, KVHeads: 1, Rows: 3, Keys: keys, Dim: 16}, Rule{}, Float32))
		if (f.Faults == nil) != (keys <= 256) {
			t.Errorf("%d keys: %v", keys, f)
		}
	}
}

// Splitting the keys changes the order of sums, and so the last bits: the law's floor allows that, in each precision, and no more.
func TestSplitKeysReport(t *testing.T) {
	r := seeded(74, 0)
	q, k, v := r.heads(2, 9, 16), r.heads(2, 40, 16), r.heads(2, 40, 16)
	for _, p := range []Precision{Float32, BFloat16, Float16} {
		split := func(q, k, v reference.Heads) (reference.Heads, error) {
			w := weights(q, k, Rule{Causal: true, Diagonal: countOf(k) - countOf(q)}, nil)
			out := zeros(shape{2, countOf(q), 16})
			splits := 1
			if countOf(q) == 1 {
				splits = 4
			}
			for h := range out {
				for row := range countOf(q) {
					for i := range 16 {
						var total float32
						for part := range splits {
							var sum float32
							for col := part; col < countOf(k); col += splits {
								sum += float32(w[h].At(row, col)) * float32(v[h].At(col, i))
							}
							total += sum
						}
						out[h].Set(row, i, p.Round(float64(total)))
					}
				}
			}
			return out, nil
		}
		c := must[Check](t)(PrefillIsDecode(split, q, k, v, []int{4}, 0, p))
		if !c.Pass || p == Float32 && c.Worst == 0 || c.Floor > 1000*p.Unit() {
			t.Errorf("%v: %v", p, c)
		}
	}
}
