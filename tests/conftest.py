"""Fixtures: a running kernel, as Jupyter starts it from the installed kernelspec."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from jupyter_client.manager import KernelManager

KERNEL = "attnb"
ROOT = Path(__file__).resolve().parent.parent
ATTN = 'import "github.com/attnb/attnb/kernel/attn"\n'
TIMEOUT = 60  # seconds for one cell, on a busy machine


@dataclass
class Result:
    """What came of a cell: the reply, and what it showed, in the order of arrival."""

    reply: dict[str, Any]
    outputs: list[dict[str, Any]] = field(default_factory=list)  # content of each IOPub message, with its msg_type

    @property
    def status(self) -> str:
        return self.reply["status"]

    def text(self, stream: str = "stdout") -> str:
        return "".join(o["text"] for o in self.outputs if o["msg_type"] == "stream" and o["name"] == stream)

    @property
    def errors(self) -> list[dict[str, Any]]:
        return [o for o in self.outputs if o["msg_type"] == "error"]

    @property
    def displays(self) -> list[dict[str, Any]]:
        return [o["data"] for o in self.outputs if o["msg_type"] == "display_data"]

    @property
    def result(self) -> str:
        """The text of the cell's result, which the kernel's own commands have."""
        return "".join(o["data"]["text/plain"] for o in self.outputs if o["msg_type"] == "execute_result")


class Kernel:
    """A kernel in directories of its own, so that what it leaves behind can be seen."""

    def __init__(self, env: dict[str, str] | None = None) -> None:
        self.scratch = Path(tempfile.mkdtemp(prefix="kt", dir="/tmp"))  # short: a socket's path has 108 bytes at most
        self.runtime, self.tmp = self.scratch / "run", self.scratch / "tmp"
        self.runtime.mkdir(mode=0o700)
        self.tmp.mkdir()
        self.env = os.environ | {"XDG_RUNTIME_DIR": str(self.runtime), "TMPDIR": str(self.tmp)} | (env or {})
        self.manager = KernelManager(kernel_name=KERNEL)
        self.manager.start_kernel(env=self.env)
        self.connect()

    def connect(self) -> None:
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=TIMEOUT)

    @property
    def pid(self) -> int:
        return self.manager.provisioner.pid

    def run(self, code: str, **options: Any) -> Result:
        """Runs a cell and waits for its reply and its last output."""
        return self.finish(self.client.execute(code, **options))

    def finish(self, msg_id: str, timeout: float = TIMEOUT) -> Result:
        outputs = []
        deadline = time.monotonic() + timeout
        while True:
            message = self.client.get_iopub_msg(timeout=max(0.1, deadline - time.monotonic()))
            if message["parent_header"].get("msg_id") != msg_id:
                continue
            content = message["content"] | {"msg_type": message["msg_type"]}
            if message["msg_type"] == "status" and content["execution_state"] == "idle":
                break
            if message["msg_type"] not in ("status", "execute_input"):
                outputs.append(content)
        while True:
            reply = self.client.get_shell_msg(timeout=max(0.1, deadline - time.monotonic()))
            if reply["parent_header"].get("msg_id") == msg_id:
                return Result(reply["content"], outputs)

    def processes(self) -> list[psutil.Process]:
        """Whatever was started by this kernel: what has its runtime directory in its environment."""
        mark = f"XDG_RUNTIME_DIR={self.runtime}"
        found = []
        for process in psutil.process_iter():
            try:
                if process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE:
                    env = Path(f"/proc/{process.pid}/environ").read_bytes().decode(errors="replace")
                    if mark in env.split("\0"):
                        found.append(process)
            except (psutil.Error, OSError):
                continue
        return found

    def leftovers(self, patience: float = 15) -> list[str]:
        """What is there of the kernel after `patience` seconds, which is how long it may take to go."""
        deadline = time.monotonic() + patience
        while True:
            left = [f"process {p.pid}: {' '.join(cmdline(p))}" for p in self.processes()]
            left += [str(path) for path in [*self.runtime.iterdir(), *self.tmp.iterdir()]]
            if not left or time.monotonic() > deadline:
                return left
            time.sleep(0.05)

    def close(self) -> None:
        self.client.stop_channels()
        if self.manager.has_kernel:
            self.manager.shutdown_kernel()
        self.manager.cleanup_resources()
        for process in self.processes():
            process.kill()
        shutil.rmtree(self.scratch, ignore_errors=True)


def cmdline(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    """One kernel for a file of tests. `attn` is imported in it."""
    k = Kernel()
    try:
        assert k.run(ATTN + "var _ = attn.Get").status == "ok"
        yield k
    finally:
        k.close()


@pytest.fixture
def own_kernel() -> Iterator[Kernel]:
    """A kernel for one test."""
    k = Kernel()
    try:
        yield k
    finally:
        k.close()


@pytest.fixture(scope="session")
def pictures() -> Any:
    """Every kind of picture, made once for all files of tests (bundles.Pictures)."""
    from bundles import made  # it knows this file

    k = Kernel()
    try:
        return made(k)
    finally:
        k.close()
