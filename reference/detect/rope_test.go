package detect

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/attnb/attnb/reference"
)

// rotated is x turned as a correct f32 implementation turns it: cosine and sine rounded to f32, f32 arithmetic.
func rotated(t *testing.T, x reference.Heads, r reference.RoPE) reference.Heads {
	t.Helper()
	rows, dim := x[0].Dims()
	if err := r.Validate(rows, dim); err != nil {
		t.Fatal(err)
	}
	return turn32(x, r.Rotary, r.Pair, r.Turn)
}

// turn32 turns pairs in f32.
func turn32(x reference.Heads, rotary int, pair func(i int) (int, int), turn func(row, i int) (cos, sin float64)) reference.Heads {
	out := rounded(x, Float32)
	rows, _ := x[0].Dims()
	for h := range x {
		for row := range rows {
			for i := range rotary / 2 {
				a, b := pair(i)
				c, s := turn(row, i)
				cos, sin := float32(c), float32(s)
				xa, xb := float32(x[h].At(row, a)), float32(x[h].At(row, b))
				out[h].Set(row, a, float64(float32(xa*cos)-float32(xb*sin)))
				out[h].Set(row, b, float64(float32(xa*sin)+float32(xb*cos)))
			}
		}
	}
	return out
}

// asked runs the detective and fails the test at an error.
func asked(t *testing.T, x, y reference.Heads, declared reference.RoPE) RoPEFinding {
	t.Helper()
	return must[RoPEFinding](t)(RoPE(t.Context(), x, y, declared, Float32))
}

// names are the faults of all explanations in the tie.
func (f RoPEFinding) names() []Faults {
	out := make([]Faults, len(f.Fits))
	for i, r := range f.Fits {
		out[i] = r.Faults
	}
	return out
}

// has says whether an explanation in the tie is this one fault and nothing else.
func (f RoPEFinding) has(k Kind) bool {
	for _, r := range f.Fits {
		if r.Faults.kinds() == string(k) {
			return true
		}
	}
	return false
}

// The cases that projects shipped: one row each, so that ties are what the reader of one token can know.
func TestRoPEReports(t *testing.T) {
	x4, x8 := []float64{1, 2, 3, 4}, []float64{1, 2, 3, 4, 5, 6, 7, 8}
	full := reference.RoPE{Rotary: 4, Base: 1e4, Offset: 1}
	inter := reference.RoPE{Rotary: 4, Base: 1e4, Offset: 1, Interleaved: true}
	part := reference.RoPE{Rotary: 4, Base: 1e4, Offset: 3}
	none := reference.RoPE{Rotary: 8, Base: 1e4, Interleaved: true}
	const coarse = 2e-6 // the values have six digits
	for _, c := range []struct {
		name     string
		x, y     []float64
		declared reference.RoPE
		kind     Kind // empty: silent
	}{
		{"half", x4, []float64{-1.984111, 1.959901, 2.462378, 4.019800}, full, ""},
		{"interleaved as half", x4, []float64{-1.142640, 1.922076, 2.959851, 4.029800}, full, WrongPairing},
		{"interleaved", x4, []float64{-1.142640, 1.922076, 2.959851, 4.029800}, inter, ""},
		{"half as interleaved", x4, []float64{-1.984111, 1.959901, 2.462378, 4.019800}, inter, WrongPairing},
		{"concatenated", []float64{0, 1, 2, 3, 4, 5, 6, 7}, []float64{0, 2, 4, 6, 1, 3, 5, 7}, none, WrongOutputOrder},
		{"interleaved again", []float64{0, 1, 2, 3, 4, 5, 6, 7}, []float64{0, 1, 2, 3, 4, 5, 6, 7}, none, ""},
		{"partial", x8, []float64{-1.413353, 1.879118, -2.828857, 4.058191, 5, 6, 7, 8}, part, ""},
		{"zero-padded", x8, []float64{-1.695593, 1.819127, 3, 4, -4.808842, 6.057291, 7, 8}, part, WrongStride},
		{"all dims", x8, []float64{-1.695593, 0.137552, 2.788682, 3.975982, -4.808842, 6.323059, 7.086837, 8.011964}, part, WrongRotary},
		{"head dim as denominator", x8, []float64{-1.413353, 0.728592, -2.828857, 4.412386, 5, 6, 7, 8}, part, WrongDenominator},
		{"partial interleaved", x8, []float64{-1.272233, -1.838865, 2.878668, 4.088187, 5, 6, 7, 8}, part, WrongPairing},
	} {
		t.Run(c.name, func(t *testing.T) {
			exact := exactly(t, c.x, c.y, c.declared, coarse)
			f := asked(t, one(c.x), exact, c.declared)
			t.Log(f)
			if c.kind == "" && f.Faults != nil || c.kind != "" && !f.has(c.kind) {
				t.Error(f)
			}
		})
	}
}

// exactly finds, for printed values of six digits, the full values: of the rotation that gives them.
func exactly(t *testing.T, x, printed []float64, declared reference.RoPE, off float64) reference.Heads {
	t.Helper()
	dim := len(x)
	for p := range pairings {
		for rotary := 2; rotary <= dim; rotary += 2 {
			for _, denominator := range []int{rotary, dim} {
				r := Rotation{Pairing: Pairing(p), Rotary: rotary, Frequency: powers(rotary, denominator, declared.Base)}
				y := append([]float64(nil), x...)
				worst := 0.0
				for i, f := range r.Frequency {
					a, b, toA, toB := r.Pairing.elements(i, rotary, dim)
					sin, cos := math.Sincos(float64(declared.Offset) * f)
					y[toA], y[toB] = float64(float32(x[a]*cos-x[b]*sin)), float64(float32(x[a]*sin+x[b]*cos))
				}
				for i := range y {
					worst = max(worst, math.Abs(y[i]-printed[i]))
				}
				if worst <= off {
					return one(y)
				}
			}
		}
	}
	t.Fatal("no rotation gives these values")
	return nil
}

// At position 0 nothing can be told, and the finding says so instead of being content.
func TestRoPEPositionZero(t *testing.T) {
	x := seeded(10, 0).heads(2, 1, 8)
	f := asked(t, x, x, reference.RoPE{Rotary: 8, Base: 1e4})
	if f.Faults != nil || len(f.Undecided) < 3 || !strings.Contains(f.String(), "cannot tell it from: interleaved, pairs (2i, 2i+1)") {
		t.Error(f)
	}
}

func TestRoPESilent(t *testing.T) {
	for trial := range right(10) {
		r := seeded(11, trial)
		x, declared := question(r)
		f, err := RoPE(t.Context(), x, rotated(t, x, declared), declared, Float32)
		if err != nil || f.Faults != nil {
			t.Fatalf("trial %d: %+v: %v, %v", trial, declared, f, err)
		}
	}
}

// question is a random input and declaration, near and far.
func question(r random) (reference.Heads, reference.RoPE) {
	dim := 2 * r.between(2, 16)
	rows := r.between(2, 9)
	declared := reference.RoPE{
		Rotary: 2 * r.between(2, dim/2), Base: pick(r, 1e4, 5e5, 1e6, 1234.5), Interleaved: r.IntN(2) == 0,
		Offset: pick(r, 0, 1, 3, 40, 2000, 16000, 131071, -5, r.IntN(100000)),
	}
	switch r.IntN(8) {
	case 0:
		declared.InvFreq, declared.Magnitude, _ = reference.YaRN{Factor: 8, Trained: 4096}.Frequencies(declared.Rotary, declared.Base)
	case 1:
		declared.InvFreq, declared.Magnitude, _ = reference.Llama3{Factor: 8, Low: 1, High: 4, Trained: 8192}.Frequencies(declared.Rotary, declared.Base)
	case 2:
		declared.Positions = make([]int, rows)
		pads := r.IntN(rows)
		for row := range declared.Positions {
			declared.Positions[row] = max(row-pads, 0)
		}
	case 3:
		declared.Float32Angles = true
	}
	return r.heads(r.between(1, 4), rows, dim), declared
}

// plainQuestion is a question with no scaling and no vector of positions, at an offset.
func plainQuestion(r random) (reference.Heads, reference.RoPE) {
	for {
		x, declared := question(r)
		if declared.InvFreq == nil && declared.Positions == nil && declared.Offset > 0 && !declared.Float32Angles {
			return x, declared
		}
	}
}

func TestRoPEPlanted(t *testing.T) {
	turnedBy := func(t *testing.T, x reference.Heads, d reference.RoPE, change func(*reference.RoPE)) reference.Heads {
		change(&d)
		return rotated(t, x, d)
	}
	rowsOf := func(x reference.Heads) int { n, _ := x[0].Dims(); return n }
	for _, c := range []struct {
		name  string
		kinds []Kind
		plant func(t *testing.T, r random, x reference.Heads, d reference.RoPE) reference.Heads
	}{
		{"pairing", []Kind{WrongPairing}, func(t *testing.T, r random, x reference.Heads, d reference.RoPE) reference.Heads {
			return turnedBy(t, x, d, func(d *reference.RoPE) { d.Interleaved = !d.Interleaved })
		}},
		{"rotary", []Kind{WrongRotary}, func(t *testing.T, r random, x reference.Heads, d reference.RoPE) reference.Heads {
			return turnedBy(t, x, d, func(d *reference.RoPE) {
				for old := d.Rotary; d.Rotary == old; {
					d.Rotary = 2 * r.between(1, dimOf(x)/2)
				}
			})
		}},
		{"denominator", []Kind{WrongDenominator}, func(t *testing.T, r random, x reference.Heads, d reference.RoPE) reference.Heads {
			return turnedBy(t, x, d, func(d *reference.RoPE) { d.InvFreq = powers(d.Rotary, dimOf(x), d.Base) })
		}},
		{"base", []Kind{WrongBase}, func(t *testing.T, r random, x reference.Heads, d reference.RoPE) reference.Heads {
			return turnedBy(t, x, d, func(d *reference.RoPE) {
				for old := d.Base; d.Base == old; {
					d.Base = pick(r, 1e4, 5e5, 1e6, 2e4, 7777, 3e5)
				}
			})
		}},
		{"offset", []Kind{WrongOffset}, func(t *testing.T, r random, x reference.Heads, d reference.RoPE) reference.Heads {
			return turnedBy(t, x, d, func(d *reference.RoPE) {
				for old := d.Offset; d.Offset == old; {
					d.Offset = pick(r, old+1, old-1, 2*old, 0, old+rowsOf(x), len(x), r.between(-3000, 100000))
				}
			})
		}},
		{"one position", []Kind{SamePosition}, func(t *testing.T, r random, x reference.Heads, d reference.RoPE) reference.Heads {
			return turnedBy(t, x, d, func(d *reference.RoPE) {
				d.Positions = make([]int, rowsOf(x))
				for row := range d.Positions {
					d.Positions[row] = d.Offset
				}
			})
		}},
		{"padding ignored", []Kind{WrongPositions, WrongOffset}, func(t *testing.T, r random, x reference.Heads, d reference.RoPE) reference.Heads {
			return turnedBy(t, x, d, func(d *reference.RoPE) {
				d.Positions = make([]int, rowsOf(x))
				pads := r.between(1, rowsOf(x)-2)
				for row := range d.Positions {
					d.Positions[row] = d.Offset + max(row-pads, 0)
				}
			})
		}},
		{"twice", []Kind{RotatedTwice}, func(t *testing.T, r random, x reference.Heads, d reference.RoPE) reference.Heads {
			return rotated(t, rotated(t, x, d), d)
		}},
		{"not", []Kind{NotRotated}, func(t *testing.T, r random, x reference.Heads, d reference.RoPE) reference.Heads {
			return x
		}},
		{"backwards", []Kind{Backwards}, func(t *testing.T, r random, x reference.Heads, d reference.RoPE) reference.Heads {
			return turn32(x, d.Rotary, d.Pair, func(row, i int) (float64, float64) { cos, sin := d.Turn(row, i); return cos, -sin })
		}},
		{"linear", []Kind{WrongScaling}, func(t *testing.T, r random, x reference.Heads, d reference.RoPE) reference.Heads {
			return turnedBy(t, x, d, func(d *reference.RoPE) {
				d.InvFreq, _, _ = reference.LinearScaling{Factor: pick(r, 2., 4, 8, 6, 2.5, 7.3)}.Frequencies(d.Rotary, d.Base)
			})
		}},
		{"dynamic", []Kind{WrongScaling}, func(t *testing.T, r random, x reference.Heads, d reference.RoPE) reference.Heads {
			return turnedBy(t, x, d, func(d *reference.RoPE) {
				d.InvFreq, _, _ = reference.DynamicNTK{Factor: pick(r, 2., 4, 6), Trained: 2048, Length: r.between(3000, 9000)}.Frequencies(d.Rotary, d.Base)
			})
		}},
		{"magnitude", []Kind{WrongMagnitude}, func(t *testing.T, r random, x reference.Heads, d reference.RoPE) reference.Heads {
			return turnedBy(t, x, d, func(d *reference.RoPE) { d.Magnitude = pick(r, 1.1386, 0.9, 1.2) })
		}},
		{"stride", []Kind{WrongStride}, func(t *testing.T, r random, x reference.Heads, d reference.RoPE) reference.Heads {
			return turn32(x, d.Rotary, func(i int) (int, int) { return i, i + dimOf(x)/2 }, d.Turn)
		}},
		{"output", []Kind{WrongOutputOrder}, func(t *testing.T, r random, x reference.Heads, d reference.RoPE) reference.Heads {
			y := rotated(t, x, d)
			out := rounded(y, Float32)
			for h := range y {
				for row := range rowsOf(y) {
					for i := range d.Rotary / 2 {
						a, b := d.Pair(i)
						toA, toB := 2*i, 2*i+1
						if d.Interleaved {
							toA, toB = i, i+d.Rotary/2
						}
						out[h].Set(row, toA, y[h].At(row, a))
						out[h].Set(row, toB, y[h].At(row, b))
					}
				}
			}
			return out
		}},
		{"heads", []Kind{AlongHeads}, func(t *testing.T, r random, x reference.Heads, d reference.RoPE) reference.Heads {
			turned := rotated(t, must[reference.Heads](t)(reference.Swap(x)), d)
			return must[reference.Heads](t)(reference.Swap(turned))
		}},
		{"f32 angles", []Kind{RoundedAngles}, func(t *testing.T, r random, x reference.Heads, d reference.RoPE) reference.Heads {
			return turnedBy(t, x, d, func(d *reference.RoPE) { d.Float32Angles = true })
		}},
		{"bf16 angles", []Kind{RoundedAngles}, func(t *testing.T, r random, x reference.Heads, d reference.RoPE) reference.Heads {
			a := pick(r, BFloat16Positions, BFloat16Frequency, BFloat16Angles, BFloat16Cosines, Float16Angles)
			if a == Float16Angles && d.Offset > 65000 {
				a = BFloat16Angles // such a position overflows fp16
			}
			return turn32(x, d.Rotary, d.Pair, func(row, i int) (float64, float64) { return a.turn(d.Position(row), d.Frequency(i)) })
		}},
		{"fast sine", []Kind{RoundedAngles}, func(t *testing.T, r random, x reference.Heads, d reference.RoPE) reference.Heads {
			return turn32(x, d.Rotary, d.Pair, func(row, i int) (float64, float64) {
				angle := float64(d.Position(row)) * d.Frequency(i)
				sin, cos := math.Sincos(angle + 1e-7*angle)
				return cos, sin
			})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var found rate
			for trial := 0; found.all < planted(20); trial++ {
				r := seeded(12, trial)
				x, d := plainQuestion(r)
				switch {
				case c.name == "padding ignored" && rowsOf(x) < 3,
					c.name == "denominator" && d.Rotary == dimOf(x), c.name == "stride" && d.Rotary == dimOf(x),
					c.name == "heads" && len(x) == 1,
					(c.name == "f32 angles" || c.name == "fast sine" || c.name == "bf16 angles") && d.Offset < 1000:
					continue // no fault, or none that shows
				}
				if c.name == "stride" {
					d.Interleaved = false
				}
				y := c.plant(t, r, x, d)
				f := asked(t, x, y, d)
				ok := false
				for _, k := range c.kinds {
					ok = ok || f.has(k)
				}
				found.count(ok, "trial %d %+v x %d x %d: %v", trial, d, len(x), rowsOf(x), f)
			}
			found.atLeast(t, 0.95)
		})
	}
}

func TestRoPERefusals(t *testing.T) {
	r := seeded(13, 0)
	x := r.heads(2, 3, 8)
	for _, c := range []struct {
		x, y     reference.Heads
		declared reference.RoPE
		kind     error
		text     string
	}{
		{x, r.heads(2, 3, 6), reference.RoPE{Rotary: 8, Base: 1e4}, reference.ErrShape, "detect: RoPE: shapes do not fit: before [2, 3, 8] and after [2, 3, 6] differ"},
		{nil, x, reference.RoPE{Rotary: 8, Base: 1e4}, reference.ErrShape, "detect: RoPE: shapes do not fit: before has no heads"},
		{x, x, reference.RoPE{Rotary: 7, Base: 1e4}, reference.ErrArgument, "detect: RoPE: reference: ApplyRoPE: bad argument: rotary 7 is not an even number from 2 to the head dim 8"},
		{zeros(shape{2, 3, 8}), x, reference.RoPE{Rotary: 8, Base: 1e4}, ErrTooLittle, "detect: RoPE: too little data: before is 0 everywhere; needs at least one row that is not"},
	} {
		if _, err := RoPE(t.Context(), c.x, c.y, c.declared, Float32); err == nil || err.Error() != c.text || !errors.Is(err, c.kind) {
			t.Errorf("%v\nwant %s", err, c.text)
		}
	}
	// No rotation at all, and a NaN: neither is explained.
	nan := rotated(t, x, reference.RoPE{Rotary: 8, Base: 1e4})
	nan[1].Set(2, 2, math.NaN())
	for _, y := range []reference.Heads{r.heads(2, 3, 8), nan} {
		if f := asked(t, x, y, reference.RoPE{Rotary: 8, Base: 1e4}); !f.Faults.Has(UnknownRotation) {
			t.Error(f)
		}
	}
}
