package detect

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/attnb/attnb/reference"
)

// attends is causal attention, aligned bottom-right, by a rule: f32 results.
func attends(r Rule, spoil func(q, k, p reference.Heads)) Attention {
	return func(q, k, v reference.Heads) (reference.Heads, error) {
		rule := r
		if rule.Causal {
			rule.Diagonal += countOf(k) - countOf(q)
		}
		p := weights(q, k, rule, nil)
		if spoil != nil {
			spoil(q, k, p)
		}
		out, err := reference.Context(p, v)
		return rounded(out, Float32), err
	}
}

func holds(t *testing.T, want bool) func(Check, error) {
	return func(c Check, err error) {
		t.Helper()
		if err != nil || c.Pass != want || (c.Worst <= c.Floor) != want {
			t.Errorf("%v, %v: want %v", c, err, want)
		}
	}
}

// Each law holds for what is right, in many geometries, and its floor is not so wide that it could not fail.
func TestInvariantsSilent(t *testing.T) {
	for trial := range right(50) {
		r := seeded(50, trial)
		kv := r.between(2, 3)
		heads, rows, past, dim := kv*r.between(1, 3), r.between(2, 6), r.between(0, 5), 2*r.between(2, 8)
		q, k, v := r.heads(heads, rows, dim), r.heads(kv, rows+past, dim), r.heads(kv, rows+past, dim)
		f := attends(Rule{Causal: true}, nil)
		holds(t, true)(PrefillIsDecode(f, q, k, v, []int{2, 3}, 0, Float32))
		holds(t, true)(HeadsPermute(f, q, k, v, 0, Float32))
		holds(t, true)(FutureUnseen(f, q, k, v, past))
		p := weights(q, k, Rule{Causal: true, Diagonal: past}, nil)
		holds(t, true)(NoFuture(p, past))
		holds(t, true)(RowsSum(p, false, Float32))
		sinks := make([]float64, heads)
		holds(t, true)(RowsSum(weights(q, k, Rule{Sinks: sinks}, nil), true, Float32))
		rope := reference.RoPE{Rotary: 2 * r.between(1, dim/2), Base: 1e4, Offset: r.IntN(131072), Magnitude: pick(r, 0, 1.1386)}
		holds(t, true)(NormsKept(q, rotated(t, q, rope), rope.Rotary, rope.Magnitude, Float32))
		turn := func(x reference.Heads, offset int) (reference.Heads, error) {
			at := rope
			at.Offset = offset
			return rotated(t, x, at), nil
		}
		holds(t, true)(RelativeOnly(turn, q, k, []int{0, 1, 1000, 100000}, Float32))
		if t.Failed() {
			t.Fatalf("trial %d", trial)
		}
	}
}

func TestInvariantsPlanted(t *testing.T) {
	for trial := range planted(50) {
		r := seeded(51, trial)
		kv := r.between(2, 3)
		heads, rows, past, dim := kv*r.between(1, 3), r.between(4, 6), r.between(1, 5), 2*r.between(2, 8)
		q, k, v := r.heads(heads, rows, dim), r.heads(kv, rows+past, dim), r.heads(kv, rows+past, dim)
		// Chunked prefill with a mask that forgets what came before: the history is hidden.
		topLeft := func(q, k, v reference.Heads) (reference.Heads, error) {
			return reference.Attention(q, k, v, 1/math.Sqrt(float64(dim)), reference.Causal(0))
		}
		holds(t, false)(PrefillIsDecode(topLeft, q, k, v, []int{2}, 0, Float32))
		// A mask only where there are as many queries as keys.
		square := func(q, k, v reference.Heads) (reference.Heads, error) {
			return attends(Rule{Causal: countOf(q) == countOf(k)}, nil)(q, k, v)
		}
		holds(t, false)(PrefillIsDecode(square, q, slice(k, 0, rows), slice(v, 0, rows), []int{2}, 0, Float32))
		// One key too many.
		future := attends(Rule{Causal: true, Diagonal: 1}, nil)
		holds(t, false)(FutureUnseen(future, q, k, v, past))
		holds(t, false)(NoFuture(weights(q, k, Rule{Causal: true, Diagonal: past + 1}, nil), past))
		// Zero times NaN.
		poisoned := func(q, k, v reference.Heads) (reference.Heads, error) {
			p := weights(q, k, Rule{Causal: true, Diagonal: past}, nil)
			out := zeros(shape{heads, rows, dim})
			for h := range out {
				for row := range rows {
					for col := range rows + past {
						for i := range dim {
							out[h].Set(row, i, out[h].At(row, i)+p[h].At(row, col)*v[h/(heads/kv)].At(col, i))
						}
					}
				}
			}
			return out, nil
		}
		holds(t, false)(FutureUnseen(poisoned, q, k, v, past))
		// A scale that depends on the head's number.
		leaky := func(q, k, v reference.Heads) (reference.Heads, error) {
			out, err := attends(Rule{Causal: true}, nil)(q, k, v)
			out[0].Scale(1.001, out[0])
			return out, err
		}
		holds(t, false)(HeadsPermute(leaky, q, k, v, 0, Float32))
		// Heads that are not divided by their own sum; a row that holds NaN; a negative weight.
		p := weights(q, k, Rule{Causal: true, Diagonal: past}, nil)
		p[1].Set(1, 0, p[1].At(1, 0)+0.001)
		holds(t, false)(RowsSum(p, true, Float32))
		p[1].Set(1, 0, math.NaN())
		holds(t, false)(RowsSum(p, false, Float32))
		p = weights(q, k, Rule{}, nil)
		p[1].Set(1, 0, -1e-3)
		holds(t, false)(RowsSum(p, true, Float32))
		// The wrong pairs; more dims; a magnitude that was not declared.
		rope := reference.RoPE{Rotary: dim - 2, Base: 1e4, Offset: 40}
		y := rotated(t, q, rope)
		holds(t, false)(NormsKept(q, rotated(t, q, reference.RoPE{Rotary: dim, Base: 1e4, Offset: 4000}), rope.Rotary, 0, Float32))
		y[0].Set(0, 0, y[0].At(0, 0)+math.Copysign(0.1, y[0].At(0, 0)))
		holds(t, false)(NormsKept(q, y, rope.Rotary, 0, Float32))
		rope.Magnitude = 1.1386
		holds(t, false)(NormsKept(q, rotated(t, q, rope), rope.Rotary, 0, Float32))
		// f32 angles far out; an offset that q gets and k does not.
		turn := func(x reference.Heads, offset int) (reference.Heads, error) {
			return rotated(t, x, reference.RoPE{Rotary: dim, Base: 1e4, Offset: offset, Float32Angles: true}), nil
		}
		holds(t, false)(RelativeOnly(turn, q, k, []int{0, 131071}, Float32))
		lost := func(x reference.Heads, offset int) (reference.Heads, error) {
			if len(x) == len(k) && countOf(x) == countOf(k) {
				offset = 0
			}
			return rotated(t, x, reference.RoPE{Rotary: dim, Base: 1e4, Offset: offset}), nil
		}
		holds(t, false)(RelativeOnly(lost, q, k, []int{0, 3}, Float32))
		if t.Failed() {
			t.Fatalf("trial %d", trial)
		}
	}
}

func TestInvariantRefusals(t *testing.T) {
	r := seeded(52, 0)
	q, k := r.heads(2, 3, 4), r.heads(1, 3, 4)
	f := attends(Rule{Causal: true}, nil)
	wrong := func(q, k, v reference.Heads) (reference.Heads, error) { return k, nil }
	ours := errors.New("their own error")
	failing := func(q, k, v reference.Heads) (reference.Heads, error) { return nil, ours }
	for _, c := range []struct {
		call func() (Check, error)
		kind error
		text string
	}{
		{func() (Check, error) { return HeadsPermute(f, q, k, k, 0, Float32) }, ErrTooLittle, "detect: HeadsPermute: too little data: one KV head has no other order; needs at least two"},
		{func() (Check, error) { return PrefillIsDecode(f, r.heads(2, 4, 4), k, k, nil, 0, Float32) }, ErrTooLittle, "detect: PrefillIsDecode: too little data: 4 rows and 3 keys; needs at least two rows, and a key for each"},
		{func() (Check, error) { return PrefillIsDecode(f, q, k, k, []int{0}, 0, Float32) }, reference.ErrArgument, "detect: PrefillIsDecode: bad argument: a chunk of 0 rows"},
		{func() (Check, error) { return PrefillIsDecode(wrong, q, k, k, nil, 0, Float32) }, reference.ErrShape, "detect: PrefillIsDecode: shapes do not fit: the result [1, 3, 4] and q [2, 3, 4] differ"},
		{func() (Check, error) { return FutureUnseen(failing, q, k, k, 0) }, ours, "detect: FutureUnseen: their own error"},
		{func() (Check, error) { return FutureUnseen(f, q, k, k, 3) }, ErrTooLittle, "detect: FutureUnseen: too little data: no row has a key behind it; needs rows and keys with T > 1+diagonal"},
		{func() (Check, error) { return NormsKept(q, q, 5, 0, Float32) }, reference.ErrArgument, "detect: NormsKept: bad argument: rotary 5 is not from 2 to the head dim 4"},
		{func() (Check, error) { return RelativeOnly(nil, q, k, []int{1}, Float32) }, ErrTooLittle, "detect: RelativeOnly: too little data: needs at least two offsets"},
		{func() (Check, error) { return RowsSum(nil, false, Float32) }, reference.ErrShape, "detect: RowsSum: shapes do not fit: probabilities has no heads"},
	} {
		if _, err := c.call(); err == nil || err.Error() != c.text || !errors.Is(err, c.kind) {
			t.Errorf("%v\nwant %s", err, c.text)
		}
	}
	c, _ := NoFuture(weights(q, k, Rule{}, nil), 0)
	if !strings.HasPrefix(c.String(), "no weight on the future: BROKEN; off by") {
		t.Error(c)
	}
}

// A probe names what a function does that no one declared.
func TestProbe(t *testing.T) {
	g := Geometry{Heads: 4, KVHeads: 2, Rows: 5, Keys: 8, Dim: 3}
	causal := Rule{Causal: true, Diagonal: 3}
	same := func(f Attention, declared Rule, kinds string) {
		t.Helper()
		found := must[ProbeFinding](t)(Probe(t.Context(), f, g, declared, Float32))
		if found.Faults.kinds() != kinds {
			t.Errorf("%v, want %q", found, kinds)
		}
	}
	same(attends(Rule{Causal: true}, nil), causal, "")
	same(attends(Rule{}, nil), Rule{}, "")
	same(attends(Rule{}, nil), causal, string(NoCausalMask))
	same(attends(Rule{Causal: true, Diagonal: -3}, nil), causal, string(WrongAlignment))
	same(attends(Rule{Causal: true, Diagonal: 1}, nil), causal, string(WrongDiagonal))
	same(attends(Rule{Causal: true, Scale: 1}, nil), causal, string(WrongScale))
	same(attends(Rule{Causal: true, Softcap: 50}, nil), causal, string(WrongSoftcap))
	windowed := causal
	windowed.Window = 3
	same(attends(Rule{Causal: true, Window: 3}, nil), windowed, "")
	same(attends(Rule{Causal: true, Window: 4}, nil), windowed, string(WrongWindow))
	sunk := Rule{Causal: true, Sinks: []float64{1, 2, 3, 4}}
	declared := causal
	declared.Sinks = sunk.Sinks
	same(attends(sunk, nil), declared, "")
	same(attends(sunk, nil), causal, string(WrongSink))
	same(attends(Rule{Causal: true}, nil), declared, string(WrongSink))
	tiled := func(q, k, v reference.Heads) (reference.Heads, error) {
		return attends(Rule{Causal: true}, nil)(q, reference.Heads{k[0], k[1], k[0], k[1]}, reference.Heads{v[0], v[1], v[0], v[1]})
	}
	same(tiled, causal, string(TiledKV)+" + "+string(NotLinear))
	capped := Attention(func(q, k, v reference.Heads) (reference.Heads, error) {
		out, err := attends(Rule{Causal: true}, nil)(q, k, v)
		for _, m := range out {
			m.Apply(func(_, _ int, x float64) float64 { return min(x, 1) }, m)
		}
		return out, err
	})
	same(capped, causal, string(NotLinear))
	if _, err := Probe(t.Context(), capped, Geometry{Heads: 3, KVHeads: 2, Rows: 1, Keys: 1, Dim: 1}, causal, Float32); !errors.Is(err, reference.ErrArgument) {
		t.Error(err)
	}
}
