package figure

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/parity"
	"github.com/attnb/attnb/viz"
)

var (
	nan32 = float32(math.NaN())
	inf32 = float32(math.Inf(1))
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12*(1+math.Abs(b)) }

// The statistics of rows whose statistics are known.
func TestMeasure(t *testing.T) {
	causal := func(q int) (int, int) { return 0, q + 1 }
	for name, c := range map[string]struct {
		p    Rows
		want Statistics
	}{
		"one key each": {Rows{Queries: 2, Keys: 4, Values: []float32{0, 0, 1, 0, 0, 0, 0, 1}}, Statistics{2, 0, 0, 0}},
		"all alike":    {Rows{Queries: 1, Keys: 4, Values: []float32{.25, .25, .25, .25}}, Statistics{1, 2, 1.5, .25}},
		"causal, what is hidden does not count": {Rows{Queries: 2, Keys: 2, Values: []float32{1, 77, .5, .5}, Seen: causal, Position: func(q int) int { return q }},
			Statistics{2, .5, .25, .75}},
		"a key ahead is as far as one behind":   {Rows{Queries: 3, Keys: 3, Values: []float32{0, 0, 1, 0, 1, 0, 1, 0, 0}}, Statistics{3, 0, 4. / 3, 1. / 3}},
		"rows that see nothing are left out":    {Rows{Queries: 2, Keys: 2, Values: []float32{9, 9, 1, 0}, Seen: func(q int) (int, int) { return 0, 2 * q }}, Statistics{1, 0, 1, 1}},
		"nothing is seen":                       {Rows{Queries: 1, Keys: 2, Values: []float32{1, 0}, Seen: func(int) (int, int) { return 0, 0 }}, Statistics{}},
		"a window hides key 0":                  {Rows{Queries: 1, Keys: 3, Values: []float32{7, .5, .5}, Seen: func(int) (int, int) { return 1, 3 }}, Statistics{1, 1, .5, 0}},
		"what is not allowed does not count":    {Rows{Queries: 2, Keys: 2, Values: []float32{77, 1, 9, 9}, Allowed: func(q, k int) bool { return q == 0 && k == 1 }}, Statistics{1, 0, 1, 0}},
		"a denormal probability weighs nothing": {Rows{Queries: 1, Keys: 2, Values: []float32{1e-45, 1}}, Statistics{1, 1.4e-45 * 149, 1.4e-45, 1.4e-45}},
	} {
		got := Measure(c.p)
		if got.Queries != c.want.Queries || !near(got.Entropy, c.want.Entropy) || !near(got.Distance, c.want.Distance) || !near(got.Sink, c.want.Sink) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		if math.Signbit(got.Entropy) {
			t.Errorf("%s: entropy is -0", name)
		}
	}
	if s := Measure(Rows{Queries: 1, Keys: 2, Values: []float32{nan32, 1}}); s.Entropy == s.Entropy || s.Sink == s.Sink {
		t.Errorf("NaN is lost: %+v", s)
	}
	if got := strings.Join(Measure(Rows{Queries: 1, Keys: 2, Values: []float32{.5, .5}}).Notes(), "; "); got != "entropy 1.00 bits; distance 0.5 keys; sink 50.0%" {
		t.Error(got)
	}
}

func TestProbable(t *testing.T) {
	for _, v := range []float32{0, 1, 1.0005, nan32, inf32} {
		if err := (Rows{Queries: 1, Keys: 1, Values: []float32{v}}).Probable(); err != nil {
			t.Errorf("%g: %v", v, err)
		}
	}
	for _, v := range []float32{-1e-6, 1.1, 1e38} {
		if err := (Rows{Queries: 1, Keys: 1, Values: []float32{v}}).Probable(); err == nil {
			t.Errorf("%g passes", v)
		}
	}
	if err := (Rows{Queries: 1, Keys: 2, Values: []float32{1, 5}, Seen: func(int) (int, int) { return 0, 1 }}).Probable(); err != nil {
		t.Errorf("what is hidden: %v", err)
	}
}

func TestLayers(t *testing.T) {
	h, err := Layers("", [][]Statistics{{{1, 2, 3, .5}, {1, 1, 9, .25}}, {{}}}, Distance)
	if err != nil {
		t.Fatal(err)
	}
	want := "Mean distance attended of each head. Heatmap of 2 layer x 2 head (distance (keys)). From 3 at layer 0, head 0 to 9 at layer 0, head 1. " +
		"1 of 4 cells masked. 1 cell not there."
	if got := h.Alt(); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if _, err := Layers("", nil, 9); err == nil {
		t.Error("statistic 9")
	}
}

// The shares of a context are signed, and together one.
func TestTrace(t *testing.T) {
	g := rand.New(rand.NewPCG(1, 1))
	const n, dim, seen = 9, 5, 7
	q := Query{To: seen, Dim: dim, Scores: make([]float32, n), Probabilities: make([]float32, n), Values: make([]float32, n*dim)}
	for i := range q.Values {
		q.Values[i] = float32(g.NormFloat64())
	}
	for i := range seen {
		q.Probabilities[i] = 1. / seen
	}
	p := Trace("x", q, nil)
	added, share := p.Charts[3].Series[0].Values, p.Charts[4].Series[0].Values
	sum := 0.0
	for i := range n {
		v := q.Values[i*dim:][:dim]
		if want := float32(float64(q.Probabilities[i]) * math.Sqrt(dot(widen(v), widen(v)))); i < seen && added[i] != want {
			t.Errorf("key %d adds %g, want %g", i, added[i], want)
		}
		if i >= seen && added[i] != 0 {
			t.Errorf("key %d is hidden and adds %g", i, added[i])
		}
		sum += float64(share[i])
	}
	if math.Abs(sum-1) > 1e-6 {
		t.Errorf("shares sum to %g", sum)
	}
	zero := Trace("x", Query{To: 2, Dim: 1, Scores: []float32{0, 0}, Probabilities: []float32{.5, .5}, Values: []float32{1, -1}}, nil)
	if c := zero.Charts[4]; c.Note != "none: the context is 0" || c.Series[0].Values[0] == c.Series[0].Values[0] {
		t.Errorf("a context of 0: %+v", c)
	}
	none := Trace("x", Query{Dim: 1, Scores: []float32{1}, Probabilities: []float32{0}, Values: []float32{1}}, nil)
	if alt := none.Alt(); !strings.Contains(alt, "probabilities (probability): no finite value. masked: 1 position, first key 0. the query sees no key.") {
		t.Error(alt)
	}
}

func TestDecoding(t *testing.T) {
	step := func(queries, keys int, seen func(int) (int, int)) []Rows {
		v := make([]float32, queries*keys)
		for i := range v {
			v[i] = float32(i+1) / 100
		}
		return []Rows{{Queries: queries, Keys: keys, Values: v, Seen: seen}}
	}
	h, err := Decoding("run", viz.Probabilities, [][]Rows{step(2, 2, func(q int) (int, int) { return 0, q + 1 }), step(1, 3, nil), step(1, 5, func(int) (int, int) { return 2, 5 })}, []string{"head 0"})
	if err != nil {
		t.Fatal(err)
	}
	m := h.Matrices[0]
	for row, want := range []string{"v#___", "vv___", "vvv__", "##vvv"} {
		got := ""
		for col := range m.Cols {
			switch {
			case m.Absent(row, col):
				got += "_"
			case m.Hidden(row, col):
				got += "#"
			default:
				got += "v"
			}
		}
		if got != want {
			t.Errorf("row %d is %s, want %s", row, got, want)
		}
	}
	if m.Values[3*5+4] != .05 || m.Values[2*5+2] != .03 {
		t.Error(m.Values)
	}
	two := append(step(1, 3, nil), step(1, 3, nil)...)
	if _, err := Decoding("", viz.Probabilities, [][]Rows{two, step(1, 3, nil)}, []string{"a", "b"}); err == nil || err.Error() != "step 1 has 1 heads, step 0 has 2" {
		t.Error(err)
	}
}

// Steps agrees with the count of f32 values between two, also across 0, and knows what lies between two of them.
func TestSteps(t *testing.T) {
	g := rand.New(rand.NewPCG(2, 2))
	for range 2000 {
		a, b := math.Float32frombits(g.Uint32()), math.Float32frombits(g.Uint32())
		if a-a != 0 || b-b != 0 {
			continue
		}
		got, want := Steps([]float32{a}, []float64{float64(b)})[0], float32(parity.ULP(a, b))
		if a < b {
			want = -want
		}
		if got != want {
			t.Fatalf("%g and %g: %g steps, want %g", a, b, got, want)
		}
	}
	for _, c := range []struct {
		a    float32
		b    float64
		want float32
	}{
		{1, 1 - 0x1p-24, 1}, {1, 1 + 0x1p-24, -.5}, {0, math.Copysign(0, -1), 0}, {1e-45, 0, 1}, {-1e-45, 0x1p-149, -2}, {1, 1, 0},
		{nan32, math.NaN(), 0}, {inf32, math.Inf(1), 0}, {inf32, 5, inf32}, {5, math.Inf(1), -inf32}, {math.MaxFloat32, 1e300, -1},
	} {
		if got := Steps([]float32{c.a}, []float64{c.b})[0]; got != c.want {
			t.Errorf("%g and %g: %g, want %g", c.a, c.b, got, c.want)
		}
	}
	if got := Steps([]float32{nan32}, []float64{1})[0]; got == got {
		t.Errorf("NaN and 1 are %g apart", got)
	}
	if got := Apart([]float32{3e38, 1}, []float64{-3e38, 0.75}); got[0] != math.MaxFloat32 || got[1] != .25 {
		t.Errorf("%g", got)
	}
}

// Angles and curve against the definition, and that an offset is a shift.
func TestRotations(t *testing.T) {
	r := reference.RoPE{Rotary: 6, Base: 100}
	shifted := r
	shifted.Offset = 2
	s, err := Rotations("t", []reference.RoPE{r, shifted}, []string{"a", "b"}, 9)
	if err != nil {
		t.Fatal(err)
	}
	phasors, plot := s.Pictures[0].(viz.Heatmap), s.Pictures[1].(viz.Plot)
	a, b := phasors.Matrices[0], phasors.Matrices[1]
	if a.Rows != 3 || a.Cols != 9 || phasors.RowLabels[1] != "1: dims 1, 4" {
		t.Fatalf("%d x %d, %q", a.Rows, a.Cols, phasors.RowLabels)
	}
	for pair := range 3 {
		for row := range 9 {
			angle := float64(row) * math.Pow(100, -float64(pair)/3)
			if got := float64(a.Values[pair*9+row]); math.Abs(math.Remainder(got-angle, 2*math.Pi)) > 1e-6 || math.Abs(got) > math.Pi+1e-6 {
				t.Errorf("pair %d, row %d: %g, want %g", pair, row, got, angle)
			}
			if row >= 2 && a.Values[pair*9+row] != b.Values[pair*9+row-2] {
				t.Errorf("pair %d, row %d: an offset of 2 is no shift by 2", pair, row)
			}
		}
	}
	first, second := plot.Charts[0].Series[0].Values, plot.Charts[1].Series[0].Values
	if first[0] != 1 || first[2] != second[0] {
		t.Errorf("%g, %g", first, second)
	}
	for i, v := range first {
		if reach := plot.Charts[0].Series[1].Values[i]; math.Abs(float64(v)) > float64(reach)+1e-6 {
			t.Errorf("at distance %d q.k is %g, beyond its envelope %g", i, v, reach)
		}
	}
	inter := r
	inter.Interleaved, inter.Rotary = true, 4
	s, err = Rotations("t", []reference.RoPE{r, inter}, []string{"a", "b"}, 3)
	if err != nil {
		t.Fatal(err)
	}
	phasors = s.Pictures[0].(viz.Heatmap)
	half, next := phasors.Matrices[0], phasors.Matrices[1]
	if phasors.RowAxis != "dim" || half.Rows != 6 || half.Values[0*3+1] != half.Values[3*3+1] || next.Values[0*3+1] != next.Values[1*3+1] || !next.Absent(4, 0) || half.Absent(5, 0) {
		t.Error("two ways to pair are not shown by dim")
	}
	for name, c := range map[string]struct {
		r    reference.RoPE
		rows int
	}{
		"no rows": {r, 0}, "rows": {r, maxRotationRows + 1}, "odd": {reference.RoPE{Rotary: 3, Base: 1}, 2}, "dims": {reference.RoPE{Rotary: 1 << 20, Base: 1}, 2},
	} {
		if _, err := Rotations("", []reference.RoPE{c.r}, []string{""}, c.rows); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
