"""Detectives, laws, probes of a function in a cell, and audits: in real cells."""

from __future__ import annotations

import base64

import pytest

from conftest import Kernel

PNG = b"\x89PNG\r\n\x1a\n"
CHAIN = """%%
x := make([]float32, 9*48)
for i := range x { x[i] = float32((i*i*37+i*11)%101)/50 - 1 }
rows := attn.FromSlice(x, "seq hidden", 9, 48).Named("rows")
q, k, v := rows.SplitHeads(attn.NeoX(2))
q.Named("q"); k.Named("k"); v.Named("v")
rq, rk := q.RoPE(attn.HalfSplit(8)).Named("rq"), k.RoPE(attn.HalfSplit(8)).Named("rk")
p := attn.Scores(rq, rk, attn.Causal).Softmax().Named("p")
attn.Context(p, v).Named("out")
"""


@pytest.fixture(scope="module", autouse=True)
def chain(kernel: Kernel) -> None:
    assert kernel.run(CHAIN).status == "ok"


RIGHT = {
    "audit": ('attn.Audit(attn.Get("out"))', 'Audit "out": pass: every stage is what f32 arithmetic makes of its inputs', 1),
    "layout": ('attn.FindLayout(attn.Get("rows"), attn.NeoX(2), attn.Known{Q: attn.Get("q")})', "FindLayout: pass: ", 1),
    "rope": ('attn.FindRoPE(attn.Get("q"), attn.Get("rq"), attn.HalfSplit(8))', "FindRoPE: pass: the declared rotation fits", 1),
    "mask": ('attn.FindMask(attn.Get("rq"), attn.Get("rk"), attn.Get("p"), attn.Causal)', "FindMask: pass: the declared rule fits", 1),
    "norms": ('attn.NormsKept(attn.Get("q"), attn.Get("rq"), attn.HalfSplit(8))', "NormsKept: pass: norms are kept by RoPE: holds", 1),
    "ladder": ('attn.Ladder(attn.Get("out"), 1, 8, 3)', "Ladder: pass: head 1, seq 8, dim 3: ", 1),
    "check": ('attn.Get("out").Check()', "the bound of a cell is what these may add up to", 1),
}


@pytest.mark.parametrize("what", RIGHT)
def test_what_is_right_passes(kernel: Kernel, what: str) -> None:
    code, says, pictures = RIGHT[what]
    result = kernel.run(f"%%\nattn.Require({code})")
    assert (result.status, len(result.displays)) == ("ok", pictures), result
    assert says in result.text()
    for data in result.displays:
        assert base64.b64decode(data["image/png"]).startswith(PNG)


WRONG = {
    "rope": ('attn.FindRoPE(attn.Get("q"), attn.Get("rq"), attn.HalfSplit(8).Offset(1))', "Require: FindRoPE: FAIL: offset: "),
    "mask": ('attn.FindMask(attn.Get("rq"), attn.Get("rk"), attn.Get("p"), attn.Causal, attn.Window(4))', "Require: FindMask: FAIL: window: "),
    "audit": (
        'attn.Audit(attn.Get("out"), attn.Stage(attn.Get("rk"), attn.Get("k").RoPE(attn.Interleaved(8)).Axes("heads seq dim")))',
        "Require: Audit: FAIL: the first stage to depart is RoPE",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_fails_its_cell_by_name(kernel: Kernel, what: str) -> None:
    code, says = WRONG[what]
    result = kernel.run(f"%%\nattn.Require({code})")
    assert result.status == "error", result
    assert result.reply["evalue"].startswith(says), result.reply["evalue"]


def test_a_function_of_the_cell_is_probed(kernel: Kernel) -> None:
    """The function runs in the cell, by inputs that the device process chooses."""
    result = kernel.run(
        "func topLeft(q, k, v attn.Tensor) attn.Tensor { return attn.Prefill(q, k, v, attn.CausalAt(0)) }\n"
        "%%\n"
        "f := attn.Probe(topLeft, attn.Causal)\n"
        'fmt.Println("has", f.Has("alignment of the mask"), attn.HeadsPermute(topLeft).Passed(), attn.PrefillIsDecode(topLeft).Passed())'
    )
    assert result.status == "ok", result
    assert "has true true false" in result.text()
    kernel.run("%rm topLeft")
