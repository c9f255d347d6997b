"""Kernels that are measured, and what a cell in one of them takes."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

TIMEOUT = 120  # seconds for one cell


class CellError(Exception):
    """A cell failed, or did not show what it should."""


class Kernel:
    def __init__(self, name: str, specs: Path, env: dict[str, str]) -> None:
        self.name = name
        self.manager = KernelManager(kernel_name=name, kernel_spec_manager=KernelSpecManager(kernel_dirs=[str(specs)]))
        self.manager.start_kernel(env=env)
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=TIMEOUT)

    def run(self, code: str, shows: str = "", pictures: int = 0) -> float:
        """Milliseconds from the request to both its reply and the idle message. The cell must print shows, and show
        that many PNG pictures."""
        begin = time.perf_counter()
        request = self.client.execute(code)
        printed, seen, said = "", 0, []
        while True:
            message = self.client.get_iopub_msg(timeout=TIMEOUT)
            if message["parent_header"].get("msg_id") != request:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "status" and content["execution_state"] == "idle":
                break
            if kind == "stream":
                printed += content["text"]
            if kind in ("display_data", "execute_result"):
                seen += "image/png" in content["data"]
            if kind in ("stream", "error"):
                said.append(content)
        while True:
            reply = self.client.get_shell_msg(timeout=TIMEOUT)
            if reply["parent_header"].get("msg_id") == request:
                break
        took = (time.perf_counter() - begin) * 1e3
        if reply["content"]["status"] != "ok" or shows not in printed or seen != pictures:
            raise CellError(f"{self.name}: {seen} of {pictures} pictures, {said}, after\n{code}")
        return took

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=False)


def stock_gonb(specs: Path, tools: Path) -> None:
    """A kernelspec for GoNB as its users have it: on a PATH with Go, gopls and goimports, and nothing of ours."""
    spec = specs / "gonb"
    spec.mkdir(parents=True)
    path = specs / "tools"
    path.mkdir()
    for name in ("gonb", "gopls", "goimports"):
        (path / name).symlink_to(tools / name)
    (spec / "kernel.json").write_text(json.dumps({
        "argv": [str(path / "gonb"), "--kernel", "{connection_file}"],
        "display_name": "Go (gonb)",
        "language": "go",
        "env": {"PATH": f"{path}{os.pathsep}{os.environ['PATH']}"},
    }))
