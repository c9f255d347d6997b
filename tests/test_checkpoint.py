"""Named tensors that a file keeps: from one kernel to the next, and what is said where that cannot be."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import struct
import threading
import time

from conftest import ATTN, Kernel, Result

# Quiet and signalling NaNs with payloads, both zeros, both infinities, subnormal numbers.
BITS = ["7fc00001", "ffc12345", "7f800001", "ffa00123", "80000000", "00000000", "7f800000", "ff800000", "00000001", "80000001"]
MAKE = (
    ATTN
    + 'import "math"\nvar kept = attn.Once("kept", func() attn.Tensor { fmt.Println("computed"); return attn.FromSlice([]float32{1, 2, 3, 4}, "seq dim", 2, 2) })\n%%\n'
    + "x := make([]float32, 0)\n"
    + "".join(f"x = append(x, math.Float32frombits(0x{b}))\n" for b in BITS)
    + 'attn.FromSlice(x, "seq heads dim", 1, 2, 5).Named("bits")\n'
    + 'attn.Scores(kept, kept, attn.Causal).Named("scores")\n'
    + 'attn.Prefill(kept, kept, kept, attn.Causal).Named("out")\n'
)
BITS_OF = ATTN + 'import "math"\n%%\nx := attn.Get("bits")\nfmt.Println(x)\nfor _, v := range x.Download() { fmt.Printf("%08x ", math.Float32bits(v)) }'


def restarted(kernel: Kernel) -> None:
    kernel.client.stop_channels()
    kernel.manager.restart_kernel()
    kernel.connect()


def ok(result: Result) -> Result:
    assert result.status == "ok", result
    return result


def refusal(result: Result) -> str:
    assert result.status == "error" and "\n" not in result.reply["evalue"], result
    return result.reply["evalue"]


def bits_of(kernel: Kernel) -> list[str]:
    return ok(kernel.run(BITS_OF)).text().split("\n")[-1].split()


def test_a_restart_between(own_kernel: Kernel) -> None:
    file = own_kernel.scratch / "run 1.safetensors"
    assert ok(own_kernel.run(MAKE)).text() == "computed\n"
    assert bits_of(own_kernel) == BITS
    ok(own_kernel.run(f"%cd {own_kernel.scratch}"))
    saved = ok(own_kernel.run(f'%save "{file.name}"')).result
    assert saved == f"saved bits, kept, out, scores, 88 B, in {file.name}"
    assert [p.name for p in own_kernel.scratch.iterdir() if p.is_file()] == [file.name]
    restarted(own_kernel)
    assert "no tensor is named" in refusal(own_kernel.run(BITS_OF))
    restored = ok(own_kernel.run(f'%restore "{file}"')).result
    assert restored.startswith(f"restored bits, kept, out, scores from {file}: the values, as leaves"), restored
    assert bits_of(own_kernel) == BITS
    # The declaration finds what it made, and what is made of a restored tensor is checked from there.
    again = ok(own_kernel.run(ATTN + 'var kept = attn.Once("kept", func() attn.Tensor { fmt.Println("computed"); return attn.FromSlice([]float32{1, 2, 3, 4}, "seq dim", 2, 2) })\n'
        '%%\np := attn.Get("scores").Softmax()\nattn.Require(p.Check())\nfmt.Println(p.Download(), kept.Name())'))  # fmt: skip
    assert "\n[1 0 " in again.text() and again.text().endswith("kept\n") and "computed" not in again.text(), again.text()
    assert "restored from run 1.safetensors" in again.text(), again.text()
    assert "nothing to replay: the tensor was restored from run 1.safetensors" in refusal(own_kernel.run(ATTN + '%%\nattn.Get("out").Check()'))
    # The same from Go, some of them.
    ok(own_kernel.run(f"%cd {own_kernel.scratch}"))
    some = ok(own_kernel.run(ATTN + '%%\nattn.Save("some.safetensors", "out", "bits")\nattn.Get("bits").Free()\nfmt.Println(attn.Restore("some.safetensors", "bits"))'))
    assert (own_kernel.scratch / "some.safetensors").exists()
    assert some.text() == '["bits" [seq 1, heads 2, dim 5]]\n' and bits_of(own_kernel) == BITS


def test_the_file_is_one_for_other_programs(own_kernel: Kernel) -> None:
    file = own_kernel.scratch / "run.safetensors"
    ok(own_kernel.run(MAKE))
    ok(own_kernel.run(f"%save {file} bits out"))
    whole = file.read_bytes()
    (size,) = struct.unpack("<Q", whole[:8])
    header = json.loads(whole[8 : 8 + size])
    assert size % 8 == 0 and sorted(header) == ["__metadata__", "bits", "out"]
    assert header["bits"] == {"dtype": "F32", "shape": [1, 2, 5], "data_offsets": [0, 40]}
    values = struct.unpack("<10I", whole[8 + size :][:40])
    assert [f"{v:08x}" for v in values] == BITS
    seal = header["__metadata__"]["sha256"]
    assert hashlib.sha256(whole.replace(seal.encode(), b"0" * 64)).hexdigest() == seal
    described = json.loads(header["__metadata__"]["attnb"])["tensors"]
    assert described["bits"]["axes"] == ["seq", "heads", "dim"] and any("Prefill(" in line for line in described["out"]["made_by"])


def test_refusals(own_kernel: Kernel) -> None:
    ok(own_kernel.run(MAKE))
    file = own_kernel.scratch / "run.safetensors"
    ok(own_kernel.run(f"%save {file}"))
    listed = own_kernel.run("%tensors").result
    whole = bytearray(file.read_bytes())
    whole[-1] ^= 1
    damaged = own_kernel.scratch / "damaged.safetensors"
    damaged.write_bytes(whole)
    for code, said in {
        "%save": "%save takes a file",
        "%restore": "%restore takes a file",
        f"%save {file} nope": 'Save: no tensor is named "nope"',
        "%save /sys/x": "Save: /sys/x: permission denied",  # root is denied it too
        "%save /nowhere/x": "Save: /nowhere/x: no such directory",
        f"%save {own_kernel.scratch}": "is there already and is no checkpoint",
        "%restore /nowhere/x": "Restore: /nowhere/x: no such file",
        f"%restore {file}": 'Restore: there are tensors "bits", "kept", "out", "scores": let go of them first, or name what to restore',
        f"%restore {file} nope": 'Restore: run.safetensors holds no "nope", but bits, kept, out, scores',
    }.items():
        assert said in refusal(own_kernel.run(code)), code
    ok(own_kernel.run("%free bits"))
    assert "cut or changed since it was saved" in refusal(own_kernel.run(f"%restore {damaged} bits"))
    ok(own_kernel.run(f"%restore {file} bits"))
    rows = {line.split()[0]: " ".join(line.split()) for line in own_kernel.run("%tensors").result.splitlines()}
    assert sorted(rows) == sorted(line.split()[0] for line in listed.splitlines()), rows
    assert "restored from run.safetensors" in rows["bits"] and "Scores" in rows["scores"], rows


def test_help_and_completion(own_kernel: Kernel) -> None:
    helped = ok(own_kernel.run("%help", allow_stdin=False)).result
    assert "%save FILE [NAMES]" in helped and "%restore FILE [NAMES]" in helped
    for typed, whole in {"%sa": ["%save"], "%res": ["%reset", "%restore"]}.items():
        own_kernel.client.complete(typed)
        assert own_kernel.client.get_shell_msg(timeout=30)["content"]["matches"] == whole


def test_an_interrupt_leaves_no_file(own_kernel: Kernel) -> None:
    """A save is interrupted at several moments: there is the whole file, or none."""
    ok(own_kernel.run(ATTN + '%%\nattn.FromSlice(make([]float32, 30_000_000), "seq dim", 30000, 1000).Named("large")'))
    directory = own_kernel.scratch / "saves"
    directory.mkdir()
    interrupted = 0
    for delay in (0.02, 0.05, 0.1, 0.01):
        timer = threading.Timer(delay, own_kernel.manager.interrupt_kernel)
        timer.start()
        result = own_kernel.run(f"%save {directory / 'x'}")
        timer.join()
        if result.status == "error":
            assert refusal(result) == "interrupted"
            interrupted += 1
        deadline = time.monotonic() + 5
        while (left := [p.name for p in directory.iterdir()]) not in ([], ["x"]) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert left in ([], ["x"])
        if left:
            assert (directory / "x").stat().st_size > 120_000_000
            (directory / "x").unlink()
    assert interrupted > 0
    assert ok(own_kernel.run(ATTN + '%%\nfmt.Print(attn.Get("large").Shape())')).text() == "[30000 1000]"


def test_a_killed_save_leaves_no_file_of_that_name(own_kernel: Kernel) -> None:
    ok(own_kernel.run(ATTN + '%%\nattn.FromSlice(make([]float32, 30_000_000), "seq dim", 30000, 1000).Named("large")'))
    file = own_kernel.scratch / "x"
    msg_id = own_kernel.client.execute(f"%save {file}")
    deadline = time.monotonic() + 10
    while not list(own_kernel.scratch.glob(".attnb-*.saving")) and not file.exists() and time.monotonic() < deadline:
        time.sleep(0.001)
    device = next(p for p in own_kernel.processes() if "device" in p.cmdline()[1:2])
    os.kill(device.pid, signal.SIGKILL)
    result = own_kernel.finish(msg_id)
    assert (result.status == "ok") == file.exists()
    if not file.exists():
        assert "lost the device process" in refusal(result)
    # What it had written goes with the next save beside it, once it is surely nobody's.
    for left in own_kernel.scratch.glob(".attnb-*.saving"):
        os.utime(left, (0, 0))
    deadline = time.monotonic() + 20
    while own_kernel.run(ATTN + '%%\nattn.FromSlice([]float32{1}, "dim", 1).Named("small")').status != "ok" and time.monotonic() < deadline:
        time.sleep(0.1)
    ok(own_kernel.run(f"%save {own_kernel.scratch / 'y'} small"))
    assert list(own_kernel.scratch.glob(".attnb-*.saving")) == []
