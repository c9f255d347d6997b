package attn_test

import (
	"strings"
	"testing"
)

func init() {
	messages = append(messages, []struct{ cell, want string }{
		{"no window", `Window: must be at least 1, the query itself; leave it out for none`},
		{"softcap 0", `Softcap: must be above 0; leave it out for none`},
		{"no documents", `Documents: no lengths`},
		{"documents", `Prefill: 2 documents leave 1 of 3 columns (q: [heads 2, seq 3, dim 4], k: [heads 2, seq 3, dim 4])`},
		{"padding", `Scores: padding of 2 and 2 columns does not fit 3 (q: [heads 2, seq 3, dim 4], k: [heads 2, seq 3, dim 4])`},
		{"slopes", `Scores: 3 ALiBi slopes for 2 heads (q: [heads 2, seq 3, dim 4], k: [heads 2, seq 3, dim 4])`},
		{"bias of scores", `Scores: bias is an option of Softmax, Prefill and Decode: scores stay scale * q.k, and softmax changes them`},
		{"bias", `Softmax: must fit scores [2 3 3]: as many columns, and as many rows and heads or 1 (bias: "b" [heads 2, seq 3, dim 4])`},
		{"sinks", `Decode: must be [1 1 2], one a head (sinks: [heads 3])`},
		{"sinks twice", `Softmax: sinks is given twice`},
		{"packed map", `Map: 2 documents leave 1 of 3 columns (q: [heads 2, seq 3, dim 4], k: [heads 2, seq 3, dim 4])`},
		{"sinks of a map", `Map: must be [1 1 2], one a head (sinks: [heads 3])`},
		{"ramp", `Ramp: belongs behind YaRN`},
		{"scaling", `RoPE: llama3 scaling: low 4 and high 1 are not positive numbers, low below high (x: [heads 2, seq 3, dim 4])`},
		{"scaled frequencies", `RoPE: frequencies are given one by one: there is nothing to scale (x: [heads 2, seq 3, dim 4])`},
	}...)
}

// Every option of a variant in one cell: what is a number goes with the scores, tensors are given to Softmax, and Prefill takes all.
func TestVariantCell(t *testing.T) {
	k := newKernel(t)
	r := k.run("variants")
	for _, want := range []string{"0.804 0.196 0\n", "[0.0723 0.197 0.534]\n", "all scaled: true true true\n", "4 rows see nothing, without a mask 0\n"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("%q is not in %q", want, r.out)
		}
	}
	if r.exit != 0 || r.stderr != "" {
		t.Errorf("exit %d, %s", r.exit, r.stderr)
	}
}
