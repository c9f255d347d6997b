package detect

import (
	"math"
	"strings"
	"testing"

	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/mat"
)

// Rounding against what is known of each format: exact cases, ties, denormals, overflow.
func TestRound(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		p       Precision
		x, want float64
	}{
		{TF32, 3.14, 3.140625}, {TF32, 1 + 0x1p-11, 1}, {TF32, 1 + 3*0x1p-11, 1 + 0x1p-9}, {TF32, 1 + 0x1p-11 + 0x1p-20, 1 + 0x1p-10},
		{BFloat16, 1 + 0x1p-8, 1}, {BFloat16, 1 + 3*0x1p-8, 1 + 0x1p-6}, {BFloat16, 257, 256}, {BFloat16, 259, 260}, {BFloat16, 3.3895e38, 3.3895313892515355e38}, {BFloat16, 3.4e38, inf},
		{Float16, 2049, 2048}, {Float16, 2051, 2052}, {Float16, 65519, 65504}, {Float16, 65520, inf}, {Float16, -65520, -inf},
		{Float16, 0x1p-24, 0x1p-24}, {Float16, 0x1p-25, 0}, {Float16, 0x1.8p-25, 0x1p-24}, {Float16, 3 * 0x1p-25, 0x1p-23},
		{Float32, 16777217, 16777216}, {Float64, 0.1, 0.1}, {BFloat16, inf, inf},
	} {
		if got := c.p.Round(c.x); got != c.want {
			t.Errorf("%v of %v is %v, want %v", c.p, c.x, got, c.want)
		}
	}
	if !math.IsNaN(Float16.Round(math.NaN())) {
		t.Error("NaN was lost")
	}
	// bf16 is the upper half of f32, rounded: against the bits themselves.
	for trial := range 2000 {
		r := seeded(30, trial)
		x := math.Float32frombits(r.Uint32())
		if math.IsNaN(float64(x)) {
			continue
		}
		bits := math.Float32bits(x)
		want := math.Float32frombits((bits + 0x7fff + bits>>16&1) &^ 0xffff)
		if got := BFloat16.Round(float64(x)); got != float64(want) {
			t.Fatalf("bf16 of %v is %v, want %v", x, got, want)
		}
		// Once rounded, always rounded, and never further than the unit says.
		for _, p := range []Precision{TF32, Float16, BFloat16} {
			y := p.Round(float64(x))
			if p.Round(y) != y || !math.IsInf(y, 0) && math.Abs(float64(x)) > 0x1p-14 && math.Abs(y-float64(x)) > p.Unit()*math.Abs(float64(x)) {
				t.Fatalf("%v of %v is %v", p, x, y)
			}
		}
	}
}

// TF32 reads 3.14 as 3.140625, so a product that is 9.8596 comes out as 9.8616 where one operand was cut, 9.8635 where both were.
func TestLadderTF32Report(t *testing.T) {
	z := 3.14
	if got := z * TF32.Round(z); math.Abs(got-9.8616) > 5e-5 {
		t.Errorf("%v", got)
	}
	ladder := must[Rungs](t)(Ladder(Cell{Query: []float64{0, z}, Keys: matrix([]float64{0, z}), Scale: 1}))
	for i, want := range []float64{9.8596, 9.8596, 9.8596, 9.863526, 9.859375, 9.875} { // fp16 stores 3.140625 squared in steps of 2^-7
		if i == 4 {
			want = Float16.Round(3.140625 * 3.140625)
		}
		if i == 5 {
			want = BFloat16.Round(BFloat16.Round(z) * BFloat16.Round(z))
		}
		if !(math.Abs(ladder[i].Value-want) <= 2e-6) {
			t.Errorf("%v, want %v", ladder[i], want)
		}
	}
}

// The f32 rung against plain f32 arithmetic, and the float64 rung against the reference.
func TestLadderAgainstArithmetic(t *testing.T) {
	for trial := range 50 {
		r := seeded(31, trial)
		dim, keys := 2*r.between(1, 8), r.between(1, 9)
		q, k, v := r.matrix(1, dim), r.matrix(keys, dim), r.matrix(keys, 3)
		rope := reference.RoPE{Rotary: dim, Base: 1e4, Offset: r.IntN(5000)}
		c := Cell{Query: q.RawRowView(0), Keys: k, Values: v, Column: 1, RoPE: &rope, QueryPosition: rope.Offset + keys - 1}
		ladder := must[Rungs](t)(Ladder(c))
		last := rope
		last.Offset = c.QueryPosition
		tq := must[reference.Heads](t)(reference.ApplyRoPE(reference.Heads{q}, last))
		tk := must[reference.Heads](t)(reference.ApplyRoPE(reference.Heads{k}, rope))
		s := must[reference.Heads](t)(reference.Scores(tq, tk, 1/math.Sqrt(float64(dim))))
		p := must[reference.Heads](t)(reference.Softmax(s, nil))
		want := must[reference.Heads](t)(reference.Context(p, reference.Heads{v}))[0].At(0, 1)
		if !(math.Abs(ladder[0].Value-want) <= 1e-13) {
			t.Fatalf("trial %d: float64 %v, want %v", trial, ladder[0].Value, want)
		}
		// The same in Go's own f32.
		turn := func(x []float64, position int) []float32 {
			out := make([]float32, dim)
			for i := range dim / 2 {
				sin64, cos64 := math.Sincos(float64(position) * rope.Frequency(i))
				cos, sin, a, b := float32(cos64), float32(sin64), float32(x[i]), float32(x[i+dim/2])
				ac, bs, as, bc := a*cos, b*sin, a*sin, b*cos
				out[i], out[i+dim/2] = ac-bs, as+bc
			}
			return out
		}
		q32, scores, most := turn(q.RawRowView(0), c.QueryPosition), make([]float32, keys), float32(math.Inf(-1))
		for key := range keys {
			for i, x := range turn(k.RawRowView(key), rope.Offset+key) {
				product := q32[i] * x
				scores[key] += product
			}
			scores[key] *= float32(1 / math.Sqrt(float64(dim)))
			most = max(most, scores[key])
		}
		var total, sum float32
		weight := make([]float32, keys)
		for key, s := range scores {
			weight[key] = float32(math.Exp(float64(s - most)))
			total += weight[key]
		}
		for key := range weight {
			product := weight[key] / total * float32(v.At(key, 1))
			sum += product
		}
		if ladder[1].Value != float64(sum) {
			t.Fatalf("trial %d: f32 %v, want %v", trial, ladder[1].Value, sum)
		}
		if len(ladder[1].Steps) != 4 || !(ladder[5].Error > ladder[1].Error) && ladder[5].Error > 0 {
			t.Fatalf("trial %d:\n%v", trial, ladder)
		}
	}
}

// Far out, f32 angles are what spoils a cell, and the ladder shows at which step.
func TestLadderShowsAngles(t *testing.T) {
	r := seeded(32, 0)
	q, k := r.matrix(1, 64), r.matrix(5, 64)
	c := Cell{Query: q.RawRowView(0), Keys: k, Values: r.matrix(5, 2), RoPE: &reference.RoPE{Rotary: 64, Base: 1e4, Offset: 131000}, QueryPosition: 131004}
	ladder := must[Rungs](t)(Ladder(c))
	if good, angles := ladder[1].Steps[0].Error, ladder[2].Steps[0].Error; !(good < 1e-6 && angles > 1e-4) {
		t.Errorf("query after RoPE: off by %v with float64 angles, %v with f32 angles", good, angles)
	}
	if s := ladder.Place(1e-9); !strings.Contains(s, "less than any") {
		t.Error(s)
	}
	if s := ladder.Place(1); !strings.Contains(s, "more than any") {
		t.Error(s)
	}
	if s := ladder.Place((ladder[1].Error + ladder[5].Error) / 2); !strings.Contains(s, "could make of this cell, less than") {
		t.Error(s)
	}
	if s := ladder.Place(math.NaN()); s != "NaN is no rounding error" {
		t.Error(s)
	}
	if !strings.Contains(ladder.String(), "probabilities") {
		t.Error(ladder)
	}
}

func TestLadderRefusals(t *testing.T) {
	k := mat.NewDense(3, 2, nil)
	q := []float64{1, 2}
	for _, c := range []struct {
		cell Cell
		text string
	}{
		{Cell{}, "detect: Ladder: shapes do not fit: needs a query and keys"},
		{Cell{Query: q[:1], Keys: k}, "detect: Ladder: shapes do not fit: a query of 1 and keys of 2 elements"},
		{Cell{Query: q, Keys: k, Values: mat.NewDense(2, 2, nil)}, "detect: Ladder: shapes do not fit: 3 keys and 2 values"},
		{Cell{Query: q, Keys: k, Column: 3}, "detect: Ladder: bad argument: column 3 of 3"},
		{Cell{Query: q, Keys: k, Visible: func(int) bool { return false }}, "detect: Ladder: too little data: the query sees no key; needs one"},
		{Cell{Query: q, Keys: k, Bias: q}, "detect: Ladder: shapes do not fit: a bias of 2 for 3 keys"},
		{Cell{Query: q, Keys: k, Softcap: math.NaN()}, "detect: Ladder: bad argument: softcap NaN is not a number from 0 on"},
		{Cell{Query: q, Keys: k, RoPE: &reference.RoPE{Rotary: 4, Base: 1}}, "detect: Ladder: reference: ApplyRoPE: bad argument: rotary 4 is not an even number from 2 to the head dim 2"},
	} {
		if _, err := Ladder(c.cell); err == nil || err.Error() != c.text {
			t.Errorf("%v\nwant %s", err, c.text)
		}
	}
}

// What a variant does to the scores is a rung's business too: its float64 rung is the reference's, and each part of it matters.
func TestLadderOfVariants(t *testing.T) {
	for trial := range right(200) {
		r := seeded(33, trial)
		keys, dim := r.between(2, 20), 2*r.between(1, 8)
		q, k, v := r.matrix(1, dim), r.matrix(keys, dim), r.matrix(keys, 3)
		q.Scale(pick(r, 1., 5), q)
		own, sink := r.IntN(keys), r.NormFloat64()
		c := Cell{Query: q.RawRowView(0), Keys: k, Values: v, Column: 2, Softcap: pick(r, 2., 20), Bias: r.matrix(1, keys).RawRowView(0),
			Slope: pick(r, 0.5, 0.25), Own: own, Sink: &sink, Visible: func(key int) bool { return key <= own }}
		ladder := must[Rungs](t)(Ladder(c))
		variant := reference.Variant{Softcap: c.Softcap, Bias: one(c.Bias), Slopes: []float64{c.Slope}, Diagonal: own, Sinks: []float64{sink}}
		want := must[reference.Heads](t)(variant.Attention(reference.Heads{q}, reference.Heads{k}, reference.Heads{v}, 1/math.Sqrt(float64(dim)), reference.Causal(own)))
		if got := ladder[0].Value; !(math.Abs(got-want[0].At(0, 2)) <= 1e-13) {
			t.Fatalf("trial %d: float64 %v, want %v", trial, got, want[0].At(0, 2))
		}
		if len(ladder[1].Steps) != 4 || ladder[1].Steps[1].Name != "scores as changed" || !(ladder[1].Error <= 1e-5 && ladder[5].Error >= ladder[1].Error) {
			t.Fatalf("trial %d:\n%v", trial, ladder)
		}
		for name, without := range map[string]func(*Cell){
			"softcap": func(c *Cell) { c.Softcap = 0 }, "bias": func(c *Cell) { c.Bias = nil }, "sink": func(c *Cell) { c.Sink = nil },
		} {
			less := c
			if without(&less); keys > 2 && own > 1 && must[Rungs](t)(Ladder(less))[0].Value == ladder[0].Value {
				t.Errorf("trial %d: without %s it is the same", trial, name)
			}
		}
	}
}
