"""An interrupt ends what a cell has the device do, and what was done before stays."""

from __future__ import annotations

import time

import pytest

from conftest import ATTN, Kernel

# A chain whose float64 replay takes far longer than the test waits, and scores whose picture does.
LONG = """
func chain() attn.Tensor {
	const heads, seq, dim = 8, 512, 64
	values := make([]float32, heads*seq*dim)
	for i := range values {
		values[i] = float32(i%17)/17 - 0.5
	}
	k := attn.FromSlice(values, "heads seq dim", heads, seq, dim)
	x := k
	for range 12 {
		x = attn.Prefill(x, k, k)
	}
	return x
}
"""


@pytest.fixture(scope="module", autouse=True)
def prepared(kernel: Kernel) -> None:
    made = kernel.run(LONG + '%%\nchain().Named("chain")\nattn.FromSlice([]float32{1, 2}, "dim", 2).Named("kept")')
    assert made.status == "ok", made


def idle_after(kernel: Kernel, began: float) -> float:
    """The seconds until the device says that it works on nothing."""
    while "idle" not in kernel.run("%device").result:
        assert time.monotonic() < began + 60
    return time.monotonic() - began


@pytest.mark.parametrize(
    "work",
    [
        'attn.Get("chain").Check()',
        'for {\nattn.Scores(attn.Get("chain"), attn.Get("chain")).Heatmap()\n}',
        'for {\nattn.Prefill(attn.Get("chain"), attn.Get("chain"), attn.Get("chain"))\n}',
    ],
    ids=["check", "picture", "op"],
)
def test_an_interrupt_ends_long_work(kernel: Kernel, work: str) -> None:
    msg_id = kernel.client.execute(f'%%\nfmt.Println("up")\n{work}')
    while True:
        message = kernel.client.get_iopub_msg(timeout=60)
        if message["parent_header"].get("msg_id") == msg_id and message["msg_type"] == "stream":
            break
    time.sleep(1)
    began = time.monotonic()
    kernel.manager.interrupt_kernel()
    result = kernel.finish(msg_id)
    replied = time.monotonic() - began
    assert result.reply["ename"] == "Interrupted", result
    idle = idle_after(kernel, began)
    print(f"{work!r}: the reply came {replied:.2f} s after the interrupt, the device was idle after {idle:.2f} s")
    assert replied < 5 and idle < 20  # 1 s and one step of the replay, on a machine that does nothing else
    assert kernel.run('%%\nfmt.Print(attn.Get("kept").Download())').text() == "[1 2]"
