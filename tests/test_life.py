"""How a kernel ends: nothing of it stays."""

from __future__ import annotations

import os
import signal
import time

from conftest import ATTN, Kernel

MAKE = ATTN + '%%\nattn.FromSlice([]float32{1}, "dim", 1).Named("x")\nfmt.Print(len(attn.Tensors()))'
COUNT = ATTN + "%%\nfmt.Print(len(attn.Tensors()))"


def busy(kernel: Kernel) -> None:
    """Starts a cell that ignores SIGINT and SIGTERM and has a child, and waits until it runs."""
    msg_id = kernel.client.execute(
        'import ("os/exec"; "os/signal"; "syscall"; "time")\n%%\nsignal.Ignore(os.Interrupt, syscall.SIGTERM)\n'
        'exec.Command("sleep", "300").Start()\nfmt.Println("running")\ntime.Sleep(5 * time.Minute)'
    )
    while True:
        message = kernel.client.get_iopub_msg(timeout=60)
        if message["parent_header"].get("msg_id") == msg_id and message["msg_type"] == "stream":
            assert "running" in message["content"]["text"], message
            return


def test_shutdown_leaves_nothing(own_kernel: Kernel) -> None:
    assert own_kernel.run(MAKE).text() == "1"
    assert len(own_kernel.processes()) >= 3  # the kernel, gonb, the device process
    assert list(own_kernel.runtime.iterdir())
    own_kernel.manager.shutdown_kernel()
    assert own_kernel.leftovers() == []


def test_shutdown_ends_a_cell_that_ignores_signals(own_kernel: Kernel) -> None:
    busy(own_kernel)
    own_kernel.manager.shutdown_kernel()
    assert own_kernel.leftovers() == []


def test_a_killed_kernel_leaves_nothing(own_kernel: Kernel) -> None:
    busy(own_kernel)
    os.kill(own_kernel.pid, signal.SIGKILL)
    assert own_kernel.leftovers() == []


def test_restart_forgets_tensors_and_leaves_nothing_of_the_old(own_kernel: Kernel) -> None:
    assert own_kernel.run(MAKE).text() == "1"
    before = {p.pid for p in own_kernel.processes()}
    own_kernel.client.stop_channels()
    own_kernel.manager.restart_kernel()
    own_kernel.connect()
    assert own_kernel.run(COUNT).text() == "0"
    deadline = time.monotonic() + 15
    while (left := before & {p.pid for p in own_kernel.processes()}) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == set()
    assert len(list(own_kernel.runtime.iterdir())) == 1


def test_a_killed_device_process_is_replaced(own_kernel: Kernel) -> None:
    assert own_kernel.run(MAKE).text() == "1"
    devices = [p for p in own_kernel.processes() if "device" in p.cmdline()[1:2]]
    assert len(devices) == 1
    devices[0].kill()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        result = own_kernel.run(COUNT)
        if result.status == "ok":
            break
    assert (result.status, result.text()) == ("ok", "0"), result
