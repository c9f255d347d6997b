#!/usr/bin/env python3
"""Tests a whole kernel on a GPU machine, through Jupyter, from an unpacked bundle:

    python3 bench/gpu_kernel.py DIR

DIR is a bundle (attnb bundle) whose attnb was built with the tags cuda and cudafault, so that a SIGUSR2 to its device process
puts an illegal address before the next op. Prints what an op costs a cell that does not read, next to the bare round trip of
the socket in the same cell; then what a fault does to a kernel, its tensors and its cells; then executes notebook 01. The exit
status is 0 when all of it is as it must be.
"""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import sys
import tempfile
import time
from pathlib import Path

PREPARE = """
import (
    "fmt"
    "github.com/attnb/attnb/kernel/attn"
)
var kept = attn.Once("kept", func() attn.Tensor { return attn.FromSlice([]float32{1, 2, 3, 4}, "seq dim", 2, 2) })
%%
attn.FromSlice([]float32{5, 6, 7, 8}, "seq dim", 2, 2).Named("brought")
fmt.Println(attn.Add(kept, attn.Get("brought")).Download())
"""

# The cell's program starts itself again as the other end of a bare socket.
QUEUE = """
import (
    "fmt"
    "net"
    "os"
    "os/exec"
    "slices"
    "time"
    "github.com/attnb/attnb/kernel/attn"
    "github.com/attnb/attnb/kernel/wire"
)
func echo(path string) {
    l, err := net.Listen("unix", path)
    if err != nil { panic(err) }
    c, err := l.Accept()
    if err != nil { panic(err) }
    in := wire.NewReader(c)
    for {
        body, err := wire.ReadFrame(in)
        if err != nil { return }
        if wire.WriteFrame(c, body) != nil { return }
    }
}
func median(d []time.Duration) float64 {
    slices.Sort(d)
    return float64(d[len(d)/2].Nanoseconds()) / 1e3
}
%%
if path := os.Getenv("ECHO"); path != "" {
    echo(path)
    return
}
path := fmt.Sprintf("%s/echo-%d", os.TempDir(), os.Getpid())
cmd := exec.Command("/proc/self/exe")
cmd.Env = append(os.Environ(), "ECHO=" + path)
if err := cmd.Start(); err != nil { panic(err) }
defer cmd.Process.Kill()
var bare net.Conn
for bare == nil {
    bare, _ = net.Dial("unix", path)
}
file, err := bare.(*net.UnixConn).File()
if err != nil { panic(err) }
in := wire.NewReader(file)
frame := (&wire.Request{Kind: wire.KindRun, Op: wire.OpAdd, IDs: []int{100, 100}}).Encode()
x := attn.FromSlice([]float32{1, 2, 3, 4}, "seq dim", 2, 2)
var op, trip []time.Duration
for range 1000 {
    began := time.Now()
    attn.Add(x, x)
    op = append(op, time.Since(began))
}
for range 1000 {
    began := time.Now()
    if err := wire.WriteFrame(file, frame); err != nil { panic(err) }
    if _, err := wire.ReadFrame(in); err != nil { panic(err) }
    trip = append(trip, time.Since(began))
}
a, b := median(op), median(trip)
fmt.Printf("queue: %.1f us an op, bare round trip %.1f us, over it %.1f us\\n", a, b, a-b)
"""

USE = "%%\n" + 'fmt.Println(attn.Add(attn.Get("brought"), attn.Get("brought")).Download())'
BROUGHT = "%%\n" + 'fmt.Println(attn.Get("brought").Shape())'
KEPT = "%%\nfmt.Println(attn.Add(kept, kept).Download())"


def device_process(kernel: int) -> int:
    """The device process below a kernel."""
    parents, devices = {}, []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            continue
        parents[int(entry.name)] = parent
        if len(words) > 1 and words[0].endswith(b"attnb") and words[1] == b"device":
            devices.append(int(entry.name))
    for pid in devices:
        above = pid
        while above in parents:
            if above == kernel:
                return pid
            above = parents[above]
    raise SystemExit(f"no device process below {kernel}: {devices}")


def queue(kernel: "Kernel") -> list[float]:
    """The us that an op costs beyond the bare round trip, in each of five cells."""
    over = []
    for _ in range(5):
        text, error, _ = kernel.run(QUEUE)
        print(text.strip(), error)
        over += [float(v) for v in re.findall(r"over it (-?[\d.]+) us", text)]
    return sorted(over)


class Kernel:
    def __init__(self) -> None:
        from jupyter_client import KernelManager

        self.manager = KernelManager(kernel_name="attnb")
        self.manager.start_kernel()
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    def run(self, code: str) -> tuple[str, str, float]:
        """What a cell printed, its error (empty: none), and the seconds that it took."""
        texts: list[str] = []

        def output(message) -> None:
            content = message["content"]
            texts.append(content.get("text") or (content.get("data") or {}).get("text/plain") or "")

        start = time.monotonic()
        reply = self.client.execute_interactive(code, timeout=90, output_hook=output, allow_stdin=False)["content"]
        error = "" if reply["status"] == "ok" else reply.get("evalue", "") or reply["status"]
        return "".join(texts), error, time.monotonic() - start

    def pid(self) -> int:
        return self.manager.provisioner.process.pid


def main() -> int:
    bundle = Path(sys.argv[1]).resolve()
    spec = importlib.util.spec_from_file_location("run", bundle / "run.py")
    run = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run)
    if why := run.cannot():
        raise SystemExit(why)
    failed = []

    def must(holds: object, what: str) -> None:
        print(("ok    " if holds else "FAIL  ") + what, flush=True)
        if not holds:
            failed.append(what)

    with tempfile.TemporaryDirectory() as scratch:
        run.environment(scratch)
        run.prepare()
        os.environ["ATTNB_DEVICE"] = "host"  # for comparison
        kernel = Kernel()
        try:
            print("on the cores:")
            queue(kernel)
        finally:
            kernel.client.stop_channels()
            kernel.manager.shutdown_kernel(now=False)
        os.environ["ATTNB_DEVICE"] = "cuda"
        kernel = Kernel()
        try:
            text, error, _ = kernel.run("%device")
            print(text.partition("\n")[0])
            text, error, took = kernel.run(PREPARE)
            must(not error and "[6 8 10 12]" in text, f"tensors are made ({took:.2f} s): {text.strip() or error}")
            over = queue(kernel)
            must(len(over) == 5 and over[2] <= 25, f"an op costs a cell at most the round trip and 25 us: {over}")

            before = device_process(kernel.pid())
            os.kill(before, signal.SIGUSR2)
            time.sleep(0.2)
            fault = time.monotonic()
            text, error, took = kernel.run(USE)
            print(f"the cell that met the fault ({took:.2f} s):\n{error or text}")
            must(error, "the cell that met the fault fails")
            must("Fault" in error, "it says which op failed")
            must("brought" in error and "kept" in error, "it says which tensors are gone")
            while True:
                try:
                    after = device_process(kernel.pid())
                    if after != before:
                        break
                except SystemExit:
                    pass
                if time.monotonic() - fault > 10:
                    break
                time.sleep(0.01)
            text, error, took = kernel.run(BROUGHT)
            print(f"the next cell ({took:.2f} s):\n{error or text}")
            must(error and "brought" in error, "the next cell learns that its tensor is gone")
            text, error, took = kernel.run("%device")
            served = time.monotonic() - fault
            must(not error and "cuda" in text, f"a fresh device process answers {served:.2f} s after the op: {text.strip()}")
            must(served <= 3, "that is within 3 s")
            must(device_process(kernel.pid()) != before, "it is another process")
            text, error, took = kernel.run(KEPT)
            must(not error and "[2 4 6 8]" in text, f"attn.Once makes its tensor again ({took:.2f} s): {text.strip() or error}")
        finally:
            kernel.client.stop_channels()
            kernel.manager.shutdown_kernel(now=False)

        start = time.monotonic()
        notebook, ran, device, error = run.execute(bundle / "notebooks" / "01-first-attention.ipynb", 120)
        verdicts = run.verdicts(notebook)
        print(device)
        must(error is None, f"notebook 01: {ran} cells in {time.monotonic() - start:.1f} s {error or ''}")
        must("cuda" in device, "on the CUDA backend")
        print(f"checks: {verdicts.count('pass')} pass, {verdicts.count('FAIL')} FAIL (the notebook shows some that must fail)")
    print(f"{len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
