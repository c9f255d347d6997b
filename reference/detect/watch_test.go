package detect

import (
	"context"
	"errors"
	"testing"

	"github.com/attnb/attnb/reference"
)

// Detectives that may take long tell how far they are, and end soon after nobody waits any more, without a finding.
func TestDetectivesEndEarly(t *testing.T) {
	r := seeded(90, 0)
	q, k := r.heads(4, 64, 16), r.heads(2, 64, 16)
	rule := Rule{Causal: true}
	p := weights(q, k, Rule{Causal: true, Diagonal: 3, Softcap: 5}, nil)
	rows := r.matrix(40, 3*4*8)
	rope := reference.RoPE{Rotary: 16, Base: 1e4}
	other := rope
	other.Interleaved, other.Offset = true, 9
	turned := rotated(t, q, other)
	_, heads, _, err := reference.Split(rows, reference.NeoX, 4, 4, 8)
	if err != nil {
		t.Fatal(err)
	}
	for name, ask := range map[string]func(ctx context.Context) (Faults, error){
		"Layout": func(ctx context.Context) (Faults, error) {
			f, err := Layout(ctx, rows, Fused{Layout: reference.GPT2, Heads: 4, Dim: 8}, Parts{K: heads})
			return f.Faults, err
		},
		"RoPE": func(ctx context.Context) (Faults, error) {
			f, err := RoPE(ctx, q, turned, rope, Float32)
			return f.Faults, err
		},
		"Mask": func(ctx context.Context) (Faults, error) {
			f, err := Mask(ctx, q, k, p, rule, Float32)
			return f.Faults, err
		},
		"Cache": func(ctx context.Context) (Faults, error) {
			f, err := Cache(ctx, k, r.heads(2, 64, 16), &rope, Float32)
			return f.Faults, err
		},
		"Probe": func(ctx context.Context) (Faults, error) {
			f, err := Probe(ctx, func(q, k, v reference.Heads) (reference.Heads, error) {
				return reference.Attention(q, k, v, 1, nil)
			}, Geometry{4, 2, 9, 9, 4}, rule, Float32)
			return f.Faults, err
		},
	} {
		var told []float64
		faults, err := ask(WithProgress(t.Context(), func(done float64) { told = append(told, done) }))
		if err != nil || faults == nil {
			t.Fatalf("%s: %v, %v", name, faults, err)
		}
		for i, done := range told {
			if done <= 0 || done > 1 || i > 0 && done <= told[i-1] {
				t.Errorf("%s: progress %v", name, told)
				break
			}
		}
		if len(told) < 3 || len(told) > 2000 {
			t.Errorf("%s told of its progress %d times", name, len(told))
		}
		// Left at once, and after each of the first steps.
		for leave := range min(len(told), 12) {
			ctx, cancel := context.WithCancel(t.Context())
			steps := 0
			left := WithProgress(ctx, func(float64) {
				if steps++; steps == leave {
					cancel()
				}
			})
			if leave == 0 {
				cancel()
			}
			faults, err := ask(left)
			if !errors.Is(err, context.Canceled) || faults != nil {
				t.Errorf("%s, left after %d steps: %v, %v", name, leave, faults, err)
			}
			cancel()
		}
	}
}
