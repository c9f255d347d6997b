"""Attention variants in a cell: windows, softcap, biases, sinks, and rotations that are scaled."""

from __future__ import annotations

from conftest import Kernel

CELL = """%%
q := attn.FromSlice(wave(4*6*8, 0.37), "heads seq dim", 4, 6, 8).RoPE(attn.HalfSplit(8).Base(5e5).Llama3(8, 1, 4, 8192).Offset(3))
k := attn.FromSlice(wave(2*9*8, 0.53), "heads seq dim", 2, 9, 8).RoPE(attn.HalfSplit(8).Base(5e5).Llama3(8, 1, 4, 8192))
v := attn.FromSlice(wave(2*9*8, 0.71), "heads seq dim", 2, 9, 8)
sinks := attn.Sinks(attn.FromSlice([]float32{1, 2, 0, -1}, "heads", 4))
s := attn.Scores(q, k, attn.Causal, attn.Window(3), attn.Softcap(5), attn.ALiBi())
p := s.Softmax(sinks)
p.Heatmap()
whole := attn.Prefill(q, k, v, attn.Window(3), attn.Softcap(5), attn.ALiBi(), sinks)
attn.Require(attn.Compare(attn.Context(p, v), whole))
attn.Require(whole.Check())
sum := float32(0)
row := p.Head(0).Rows(5, 6).Download()
for _, x := range row {
	sum += x
}
fmt.Println("row", row[5] == 0, row[6] > 0, sum < 1)
"""

WAVE = """func wave(n int, f float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(math.Sin(f * float64(i)))
	}
	return x
}"""


def test_a_variant_step_by_step_is_prefill(kernel: Kernel) -> None:
    assert kernel.run(WAVE).status == "ok"
    ran = kernel.run(CELL)
    assert ran.status == "ok", ran
    assert "row true true true" in ran.text()
    assert "window 3, softcap 5, ALiBi, sinks" in ran.text()


def test_a_mistake_is_one_line(kernel: Kernel) -> None:
    ran = kernel.run('%%\nx := attn.FromSlice([]float32{1, 2, 3, 4}, "heads seq dim", 1, 2, 2)\nattn.Prefill(x, x, x, attn.Softcap(0))')
    assert ran.status == "error", ran
    assert ran.errors[0]["evalue"].endswith("Softcap: must be above 0; leave it out for none"), ran
