package detect

import (
	"math"
	"testing"

	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/mat"
)

// The sizes of real models, and more rows than the detective reads angles of.
func TestRoPELarge(t *testing.T) {
	for _, rows := range []int{23, 24, 25, 70} {
		r := seeded(60, rows)
		x := r.heads(3, rows, 128)
		declared := reference.RoPE{Rotary: 128, Base: 5e5, Offset: 130000}
		right := rotated(t, x, declared)
		if f := asked(t, x, right, declared); f.Faults != nil {
			t.Error(f)
		}
		for kind, change := range map[Kind]func(d *reference.RoPE){
			WrongOffset:  func(d *reference.RoPE) { d.Offset++ },
			WrongPairing: func(d *reference.RoPE) { d.Interleaved = true },
			WrongRotary:  func(d *reference.RoPE) { d.Rotary = 64 },
			WrongBase:    func(d *reference.RoPE) { d.Base = 123456 },
			SamePosition: func(d *reference.RoPE) {
				d.Positions = make([]int, rows)
				for row := range d.Positions {
					d.Positions[row] = d.Offset
				}
			},
			WrongScaling: func(d *reference.RoPE) {
				d.InvFreq, _, _ = reference.Llama3{Factor: 8, Low: 1, High: 4, Trained: 8192}.Frequencies(d.Rotary, d.Base)
			},
		} {
			wrong := declared
			change(&wrong)
			if f := asked(t, x, rotated(t, x, wrong), declared); !f.has(kind) {
				t.Errorf("%d rows, %s: %v", rows, kind, f)
			}
		}
		// Only the last row is wrong: no rotation explains that, and it is seen.
		right[2].Set(rows-1, 5, right[2].At(rows-1, 5)+1)
		if f := asked(t, x, right, declared); !f.Faults.Has(UnknownRotation) {
			t.Error(f)
		}
	}
}

// 16-bit data: right tensors raise no alarm, and faults larger than the rounding are named.
func TestOtherPrecisions(t *testing.T) {
	var found rate
	for trial := range right(20) {
		r := seeded(61, trial)
		p := pick(r, BFloat16, Float16, Float64)
		x, declared := plainQuestion(r)
		declared.Offset = r.between(1, 60)
		x = rounded(x, p)
		turned := func(d reference.RoPE) reference.Heads {
			y := must[reference.Heads](t)(reference.ApplyRoPE(x, d))
			return rounded(y, p)
		}
		if f := must[RoPEFinding](t)(RoPE(t.Context(), x, turned(declared), declared, p)); f.Faults != nil {
			t.Fatalf("trial %d, %v: %+v: %v", trial, p, declared, f)
		}
		if trial < planted(20) {
			wrong := declared
			wrong.Offset += 7
			found.count(must[RoPEFinding](t)(RoPE(t.Context(), x, turned(wrong), declared, p)).has(WrongOffset), "trial %d, %v: %+v", trial, p, declared)
		}

		q, k, rule := ruled(r)
		q, k = rounded(q, p), rounded(k, p)
		weight := weights(q, k, rule, nil)
		if p == Float64 {
			p = Float32 // weights makes f32
		}
		if f := must[MaskFinding](t)(Mask(t.Context(), q, k, rounded(weight, p), rule, p)); f.Faults != nil {
			t.Fatalf("trial %d, %v: %+v: %v", trial, p, rule, f)
		}
	}
	found.atLeast(t, 0.95)
}

// Scores so far apart that weights underflow: what is 0 because it is small is not taken for hidden.
func TestMaskUnderflow(t *testing.T) {
	for trial := range right(100) {
		r := seeded(62, trial)
		q, k := r.heads(2, 6, 8), r.heads(1, r.between(6, 300), 8)
		rule := Rule{Scale: 30, Causal: r.IntN(2) == 0, Diagonal: countOf(k) - 6}
		if f := masked(t, q, k, weights(q, k, rule, nil), rule); f.Faults != nil {
			t.Fatalf("trial %d: %+v: %v", trial, rule, f)
		}
	}
}

// Whatever is given, an answer or an error comes back, and nothing that holds NaN is found right.
func TestNothingPanics(t *testing.T) {
	for trial := range planted(5) {
		r := seeded(63, trial)
		s := shape{r.between(1, 3), r.between(1, 30), r.between(1, 9)}
		x, y := r.heads(s.heads, s.rows, s.dim), r.heads(s.heads, s.rows, s.dim)
		value := pick(r, math.NaN(), math.Inf(1), math.Inf(-1), 0, 1e38, 1e-44)
		for _, m := range pick(r, x, y) {
			for row := range s.rows {
				if r.IntN(3) > 0 {
					m.Set(row, r.IntN(s.dim), value)
				}
			}
		}
		declared := reference.RoPE{Rotary: 2 * r.IntN(1+s.dim/2), Base: 1e4, Offset: r.IntN(9), Interleaved: r.IntN(2) == 0}
		if f, err := RoPE(t.Context(), x, y, declared, Float32); err == nil && f.Faults == nil && math.IsNaN(value) && s.dim > 1 && holdsNaN(x, y) {
			t.Fatalf("trial %d: %v", trial, f)
		}
		_, _ = Cache(t.Context(), x, y, &declared, Float32)
		_, _ = Cache(t.Context(), x, y, nil, Float32)
		_, _ = NormsKept(x, y, declared.Rotary, 0, Float32)
		_, _ = RowsSum(x, false, Float32)
		_, _ = NoFuture(x, 0)
		if dim := s.dim * s.heads; dim%3 == 0 {
			rows := mat.NewDense(s.rows, dim, nil)
			for h := range x {
				rows.Slice(0, s.rows, h*s.dim, (h+1)*s.dim).(*mat.Dense).Copy(x[h])
			}
			_, _ = Layout(t.Context(), rows, Fused{Heads: 1, Dim: dim / 3}, Parts{Q: reference.Heads{mat.DenseCopyOf(rows.Slice(0, s.rows, 0, dim/3))}})
		}
		p := zeros(shape{s.heads, s.rows, s.rows})
		for h := range p {
			p[h].Apply(func(_, _ int, _ float64) float64 { return pick(r, 0, 0.5, r.Float64(), value) }, p[h])
		}
		f, err := Mask(t.Context(), x, y, p, Rule{Causal: r.IntN(2) == 0, Softcap: pick(r, 0., 5), Window: r.IntN(4)}, Float32)
		if err == nil {
			_ = f.String()
		}
	}
}

func holdsNaN(tensors ...reference.Heads) bool {
	for _, x := range tensors {
		for _, m := range x {
			rows, dim := m.Dims()
			for i := range rows * dim {
				if math.IsNaN(m.At(i/dim, i%dim)) {
					return true
				}
			}
		}
	}
	return false
}
