"""A storm of output: all of it arrives, and nobody between grows with it."""

from __future__ import annotations

import threading
import time

import psutil

from conftest import Kernel

LINES, WIDTH = 1_000_000, 101  # bytes of a line


def sizes(kernel: Kernel) -> dict[int, float]:
    """MB of each process of the kernel. gopls reads the standard library at its own pace."""
    found = {}
    for process in kernel.processes():
        try:
            if process.name() != "gopls":
                found[process.pid] = process.memory_info().rss / 1e6
        except psutil.Error:
            continue
    return found


def test_100_megabytes_of_text_arrive_whole(own_kernel: Kernel) -> None:
    assert own_kernel.run("!echo up").text() == "up\n"
    before = sizes(own_kernel)
    grown: dict[int, float] = {}
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.2):
            for pid, size in sizes(own_kernel).items():
                grown[pid] = max(grown.get(pid, 0), size - before.get(pid, size))

    watcher = threading.Thread(target=watch)
    watcher.start()
    began = time.monotonic()
    msg_id = own_kernel.client.execute(
        f"%%\nw := bufio.NewWriter(os.Stdout)\ndefer w.Flush()\nfor i := range {LINES} {{\n"
        'fmt.Fprintf(w, "%07d %s\\n", i, strings.Repeat("€", 30)+"é")\n}'
    )
    lines, damaged, rest = 0, 0, ""
    while True:
        message = own_kernel.client.get_iopub_msg(timeout=60)
        if message["parent_header"].get("msg_id") != msg_id:
            continue
        content = message["content"]
        if message["msg_type"] == "status" and content["execution_state"] == "idle":
            break
        if message["msg_type"] == "stream":
            text = rest + content["text"]
            *whole, rest = text.split("\n")
            for line in whole:
                damaged += line != f"{lines:07d} " + "€" * 30 + "é"
                lines += 1
    took = time.monotonic() - began
    over.set()
    watcher.join()
    print(f"{lines} lines of {WIDTH} bytes in {took:.1f} s; processes grew by at most {max(grown.values()):.0f} MB")
    assert (lines, damaged, rest) == (LINES, 0, "")
    assert max(grown.values()) < 100, grown


def test_an_interrupt_ends_a_storm(own_kernel: Kernel) -> None:
    assert own_kernel.run("!echo up").text() == "up\n"
    msg_id = own_kernel.client.execute('%%\nfor {\nfmt.Println(strings.Repeat("€", 30))\n}')
    time.sleep(3)  # nobody reads: what waits has reached its bounds
    before = sizes(own_kernel)
    time.sleep(2)
    now = sizes(own_kernel)
    grown = {pid: size - before.get(pid, size) for pid, size in now.items()}
    began = time.monotonic()
    own_kernel.manager.interrupt_kernel()
    result = own_kernel.finish(msg_id)
    print(f"the storm was over {time.monotonic() - began:.2f} s after the interrupt; it grew processes by {max(grown.values()):.0f} MB in 2 s")
    assert max(grown.values()) < 50, grown
    assert result.reply["ename"] == "Interrupted", result.reply
    assert own_kernel.run("!echo next").text() == "next\n"
