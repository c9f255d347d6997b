package detect

import (
	"testing"

	"github.com/attnb/attnb/reference"
)

// A layer of 12 heads, 1024 rows of 64: what a notebook asks about.

func BenchmarkRoPE(b *testing.B) {
	x := seeded(80, 0).heads(12, 1024, 64)
	right := reference.RoPE{Rotary: 64, Base: 1e4, Offset: 7}
	wrong := right
	wrong.Offset, wrong.Interleaved = 8, true
	y, err := reference.ApplyRoPE(x, wrong)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if f, err := RoPE(b.Context(), x, y, right, Float32); err != nil || len(f.Faults) != 2 {
			b.Fatal(f, err)
		}
	}
}

func BenchmarkLayout(b *testing.B) {
	r := seeded(81, 0)
	d := Fused{Layout: reference.NeoX, Heads: 12, KVHeads: 12, Dim: 64}
	rows := r.matrix(1024, 3*12*64)
	_, k, _, err := reference.Split(rows, reference.GPT2, 12, 12, 64)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if f, err := Layout(b.Context(), rows, d, Parts{K: k}); err != nil || !f.Faults.Has(WrongLayout) {
			b.Fatal(f, err)
		}
	}
}

func BenchmarkMask(b *testing.B) {
	r := seeded(82, 0)
	q, k := r.heads(12, 1024, 64), r.heads(12, 1024, 64)
	p, err := reference.Scores(q, k, 0.125)
	if err == nil {
		p, err = reference.Softmax(p, reference.Causal(1))
	}
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if f, err := Mask(b.Context(), q, k, p, Rule{Causal: true}, Float32); err != nil || !f.Faults.Has(WrongDiagonal) {
			b.Fatal(f, err)
		}
	}
}
