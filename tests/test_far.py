"""A device process on another machine, through ssh: here, by way of the loopback interface."""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import notebooks
from conftest import ATTN, ROOT, Kernel, cmdline
from sshd import Server

NAMED = '%%\nattn.FromSlice([]float32{1.5, -0, 3e-45}, "dim", 3).Named("x")'
HAS = '%%\nfmt.Print(attn.Get("x").Download())'
VALUES = "[1.5 0 3e-45]"
LONG = """%%
data := make([]float32, 8*3000*64)
for i := range data {
	data[i] = float32(i%17) / 17
}
q := attn.FromSlice(data, "heads seq dim", 8, 3000, 64)
for {
	attn.Prefill(q, q, q, attn.Causal).Check()
}"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    s = Server()
    try:
        yield s
    finally:
        s.close()


@pytest.fixture
def far(server: Server) -> Iterator[Kernel]:
    k = Kernel(server.env)
    try:
        assert k.run(ATTN + "var _ = attn.Get").status == "ok"
        yield k
    finally:
        k.close()


def ssh(k: Kernel, server: Server) -> psutil.Process:
    return next(p for p in k.processes() if str(server.config) in cmdline(p))


def relay(k: Kernel) -> psutil.Process:
    return next(p for p in k.processes() if cmdline(p)[1:2] == ["device"])


def left(server: Server, *directories: Path, patience: float = 15) -> list[str]:
    """What is there, after at most `patience` seconds, of device processes and their directories."""
    deadline = time.monotonic() + patience
    while True:
        there = [str(p) for p in server.devices()] + [str(d) for d in directories if d.exists()]
        if not there or time.monotonic() > deadline:
            return there
        time.sleep(0.05)


def test_the_first_notebook_unchanged(server: Server) -> None:
    """Every cell, the exercises and their solutions, every check, and the same text as where the tensors are near."""
    path = notebooks.NOTEBOOKS / "01-first-attention.ipynb"
    notebook, answers = notebooks.read(path), notebooks.solutions(path)
    run = notebooks.execute(notebooks.tried_and_solved(notebook, answers), env=server.env)
    assert run.faults == []
    assert notebooks.changes(notebook, run.notebook) == []
    assert left(server) == []


def test_it_says_where_the_tensors_are(far: Kernel) -> None:
    assert far.run(NAMED).status == "ok"
    said = far.run("%device").result
    assert re.search(r"^host: .*, on 127\.0\.0\.1 through ssh, [\d.]+ ms away\n1 tensor, 12 B in use", said), said
    assert far.run("%tensors").result.splitlines()[1].split()[:3] == ["x", "dim", "3"]


def test_a_file_is_read_here(far: Kernel) -> None:
    data = ROOT / "notebooks/data/neox_layer.npz"
    r = far.run(f'%%\nx := attn.Load("{data}", "qkv")\nfmt.Print(x.Shape())\nx.Heatmap()')
    assert r.status == "ok", r.reply
    assert len(r.displays) == 1 and "image/png" in r.displays[0]


def test_a_link_that_is_lost(far: Kernel, server: Server) -> None:
    assert far.run(NAMED).status == "ok"
    ssh(far, server).kill()
    assert far.run(HAS).text() == VALUES, "nothing was under way: the next cell does not notice"

    msg_id = far.client.execute(LONG)
    r = None
    while not r:
        wait_for_op(server)
        ssh(far, server).kill()
        try:
            r = far.finish(msg_id, timeout=10)
        except queue.Empty:  # it fell between two ops, and the second was sent again
            pass
    assert r.status == "error"
    assert re.match(
        r"\w+: the link to 127\.0\.0\.1 was lost: .*\. Tensors are kept there until \d\d:\d\d:\d\d \(ATTNB_GRACE=10m0s\): run the cell again$",
        r.reply["evalue"],
    ), r.reply["evalue"]
    assert far.run(HAS).text() == VALUES


def wait_for_op(server: Server) -> None:
    """Waits until the device process works for the cell that runs."""
    worker = server.devices()[-1]
    began = worker.cpu_times().user
    deadline = time.monotonic() + 30
    while worker.cpu_times().user < began + 0.3:
        assert time.monotonic() < deadline, "the device process does nothing"
        time.sleep(0.02)


def test_an_interrupt_reaches_it(far: Kernel, server: Server) -> None:
    assert far.run(NAMED).status == "ok"
    msg_id = far.client.execute(LONG)
    wait_for_op(server)
    began = time.monotonic()
    far.manager.interrupt_kernel()
    assert far.finish(msg_id).reply["ename"] == "Interrupted"
    assert time.monotonic() - began < 5
    deadline = time.monotonic() + 10
    while "\nidle" not in (said := far.run("%device").result):
        assert time.monotonic() < deadline, said
    assert far.run(HAS).text() == VALUES


def test_the_relay_is_killed(far: Kernel) -> None:
    assert far.run(NAMED).status == "ok"
    relay(far).kill()
    time.sleep(0.3)
    r = far.run(HAS)
    assert r.text() == VALUES
    assert "the relay to ssh://127.0.0.1:" in r.text("stderr") and "finds the tensors that have a name" in r.text("stderr")


def test_the_device_process_there_is_killed(far: Kernel, server: Server) -> None:
    assert far.run(NAMED).status == "ok"
    server.devices()[-1].kill()
    deadline = time.monotonic() + 15
    said = ""
    while "every tensor is lost" not in said and time.monotonic() < deadline:
        r = far.run(HAS)
        said += r.text("stderr") + r.reply.get("evalue", "")
    assert "the device process at ssh://127.0.0.1:" in said and "is gone: every tensor is lost" in said
    r = far.run(HAS)
    assert "lost when the device process ended" in r.reply["evalue"], r.reply["evalue"]


@pytest.mark.parametrize("how", ["shutdown", "killed"])
def test_nothing_is_left_on_either_machine(server: Server, how: str) -> None:
    k = Kernel(server.env)
    try:
        assert k.run(ATTN + NAMED).status == "ok"
        (device,) = server.devices()
        directory = Path(device.cmdline()[3])
        assert directory.stat().st_mode & 0o777 == 0o700
        if how == "killed":
            os.kill(k.pid, signal.SIGKILL)
        else:
            k.client.shutdown()
        assert left(server, directory) == []
        assert k.leftovers() == []
    finally:
        k.close()


def test_a_machine_that_is_not_there(server: Server) -> None:
    """Cells without attn run; one with it says what ssh says."""
    k = Kernel(server.env | {"ATTNB_DEVICE": "ssh://attnb.invalid"})
    try:
        assert k.run('%%\nfmt.Print("here")').text() == "here"
        r = k.run(ATTN + NAMED)
        assert r.reply["evalue"].startswith("FromSlice: no link to attnb.invalid: ssh: "), r.reply["evalue"]
    finally:
        k.close()


def test_the_doctor(server: Server) -> None:
    attnb = server.env["ATTNB_FAR"]
    said = subprocess.run([attnb, "doctor"], env=os.environ | server.env, capture_output=True, text=True, timeout=120).stdout
    assert re.search(r"^ok +device process +serves host on .*, on 127\.0\.0\.1 through ssh, [\d.]+ ms away, protocol \d", said, re.MULTILINE), said


def test_a_checkpoint_is_a_file_of_this_machine(far: Kernel) -> None:
    file = far.scratch / "kept.safetensors"
    assert far.run(NAMED).status == "ok"
    assert far.run(f"%save {file}").result == f"saved x, 12 B, in {file}"
    assert file.stat().st_size > 12
    assert far.run("%free x").status == "ok"
    assert far.run(f"%restore {file}").status == "ok"
    assert far.run(HAS).text() == VALUES
