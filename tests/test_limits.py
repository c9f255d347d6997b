"""What runs out (memory, disk, descriptors, the kernel's own directory) is said in one line; tensors stay, and so does the kernel."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest
from jupyter_client.manager import KernelManager

from conftest import ATTN, KERNEL, Kernel, Result

if sys.platform == "linux":
    import resource

MAKE = ATTN + '%%\nattn.FromSlice([]float32{1, 2}, "dim", 2).Named("x")'


def use(n: int) -> str:
    """A cell whose text no cell before it had, so that it is built."""
    return f'%%\nfmt.Print(attn.Get("x").Download(), {n})'


def refusal(result: Result) -> str:
    assert result.status == "error" and "\n" not in result.reply["evalue"], result
    return result.reply["evalue"]


def device(kernel: Kernel) -> psutil.Process:
    return next(p for p in kernel.processes() if "device" in p.cmdline()[1:2])


@pytest.fixture
def made(own_kernel: Kernel) -> Kernel:
    assert own_kernel.run(MAKE).status == "ok"
    return own_kernel


def test_memory_that_is_not_there_costs_no_tensor() -> None:
    """Nothing is evicted without being asked for: what has a name keeps its values, whoever asks for more."""
    k = Kernel({"ATTNB_MEMORY": "1MiB"})
    try:
        fill = ATTN + '%%\nfor i := range 8 {\n\tx := make([]float32, 30000)\n\tx[7] = float32(i)\n\tattn.FromSlice(x, "seq dim", 300, 100).Named(fmt.Sprint("x", i))\n}'
        assert k.run(fill).status == "ok"
        listed = k.run("%tensors").result
        for more in ('attn.FromSlice(make([]float32, 30000), "seq dim", 300, 100)', 'attn.Add(attn.Get("x1"), attn.Get("x2"))', 'attn.Scores(attn.Get("x1"), attn.Get("x2"))'):
            said = refusal(k.run(ATTN + f"%%\n_ = {more}"))
            assert "out of memory" in said and "in use" in said and '"x0" [seq 300, dim 100] 117.2 KiB' in said, said
            assert k.run("%tensors").result == listed
        assert k.run(ATTN + '%%\nfor i := range 8 {\n\tfmt.Print(attn.Get(fmt.Sprint("x", i)).Download()[7], " ")\n}').text() == "0 1 2 3 4 5 6 7 "
        # Asked for, there is room.
        assert k.run("%free x0 x1").status == "ok"
        assert k.run(ATTN + '%%\nattn.Add(attn.Get("x2"), attn.Get("x3")).Named("sum")').status == "ok"
    finally:
        k.close()


@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are set on Linux alone")
def test_a_device_process_without_descriptors(made: Kernel) -> None:
    pid = device(made).pid
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    highest = max(int(fd) for fd in os.listdir(f"/proc/{pid}/fd"))
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (highest + 1, before[1]))
    for i in range(3):
        assert refusal(made.run(use(i))).startswith("the device process has no descriptor left for another connection")
        assert "x " in made.run("%tensors").result
    resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    assert made.run(use(3)).text() == "[1 2] 3"
    assert device(made).pid == pid


@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are set on Linux alone")
def test_a_kernel_without_descriptors(made: Kernel) -> None:
    """Programs' streams then go through gonb, and come back to the kernel once it can take them."""
    before = resource.prlimit(made.pid, resource.RLIMIT_NOFILE)
    highest = max(int(fd) for fd in os.listdir(f"/proc/{made.pid}/fd"))
    resource.prlimit(made.pid, resource.RLIMIT_NOFILE, (highest + 1, before[1]))
    assert made.run(use(1)).text() == "[1 2] 1"
    resource.prlimit(made.pid, resource.RLIMIT_NOFILE, before)
    assert made.run(use(2)).text() == "[1 2] 2"
    assert made.run("%%\nfmt.Println(1); panic(2)").reply["ename"] == "panic"  # which the kernel reads from the streams


@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are set on Linux alone")
def test_a_file_that_may_not_grow(made: Kernel) -> None:
    file = made.scratch / "run.safetensors"
    assert made.run(f"%save {file}").status == "ok"
    whole = file.read_bytes()
    resource.prlimit(device(made).pid, resource.RLIMIT_FSIZE, (len(whole), len(whole)))
    assert made.run(ATTN + '%%\nattn.FromSlice(make([]float32, 100), "dim", 100).Named("y")').status == "ok"
    assert refusal(made.run(f"%save {file}")) == f"Save: {file}: file too large"
    assert file.read_bytes() == whole and list(made.scratch.glob(".attnb-*")) == []
    assert made.run(use(1)).text() == "[1 2] 1"


@pytest.fixture
def small_disk() -> Iterator[Kernel]:
    """A kernel whose own directory is on a disk of 20 MB."""
    k = Kernel()
    k.client.stop_channels()
    k.manager.shutdown_kernel()
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m,mode=0700", "small", str(k.runtime)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as e:
        k.close()
        pytest.skip(f"no file system can be mounted here: {e}")
    try:
        k.manager = KernelManager(kernel_name=KERNEL)
        k.manager.start_kernel(env=k.env)
        k.connect()
        yield k
    finally:
        k.client.stop_channels()
        k.manager.shutdown_kernel()
        subprocess.run(["umount", "--lazy", str(k.runtime)], check=True)
        k.close()


def test_a_full_disk(small_disk: Kernel) -> None:
    assert small_disk.run(MAKE).status == "ok"
    fill = os.open(small_disk.runtime / "fill", os.O_WRONLY | os.O_CREAT)
    with pytest.raises(OSError, match="No space left"):
        while True:
            os.write(fill, bytes(4096))
    os.close(fill)
    assert "no space left on device" in refusal(small_disk.run(use(1)))
    assert "x " in small_disk.run("%tensors").result
    file = small_disk.runtime / "run.safetensors"
    assert refusal(small_disk.run(f"%save {file}")) == f"Save: {file}: no space left on device"
    assert sorted(p.name for p in small_disk.runtime.iterdir() if not p.name.startswith("attnb-")) == ["fill"]
    assert small_disk.run(f"%save {small_disk.scratch / 'x'}").status == "ok"  # on another disk
    (small_disk.runtime / "fill").unlink()
    assert small_disk.run(use(2)).text() == "[1 2] 2"


@pytest.mark.parametrize("part", ["", "device", "streams"])
def test_the_kernels_directory_is_removed(made: Kernel, part: str) -> None:
    own = next(p for p in made.runtime.iterdir() if p.name.startswith("attnb-"))
    if part:
        (own / part).unlink()
    else:
        shutil.rmtree(own)
    what = f"{part} in {own}" if part else str(own)
    assert refusal(made.run(use(1))) == (
        f"somebody removed {what}, without which no Go runs. Tensors are still there: %save FILE keeps those with a name. Then restart the kernel"
    )
    assert made.run("!echo there").text() == "there\n"
    # What it says can be done.
    assert made.run(f"%save {made.scratch / 'x'}").result.startswith("saved x, ")
    made.client.stop_channels()
    made.manager.restart_kernel()
    made.connect()
    assert made.run(f"%restore {made.scratch / 'x'}").status == "ok"
    assert made.run(ATTN + use(2)).text() == "[1 2] 2"
    made.manager.shutdown_kernel()
    assert made.leftovers() == []
