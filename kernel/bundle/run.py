#!/usr/bin/env python3
"""Executes a notebook with what is in this bundle: no network, no Go and no Jupyter of the machine's own.

    python3 run.py notebooks/01-first-attention.ipynb --out executed.ipynb --html page.html

The exit status is 0 when every cell ran, 1 when one failed, 2 when the bundle cannot run here. ATTNB_DEVICE chooses the
device, as always: auto (the first GPU that can be used, else the cores of this machine), cuda, cuda:N or host.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

BUNDLE = Path(__file__).resolve().parent
MANIFEST = json.loads((BUNDLE / "bundle.json").read_text())
HOME = BUNDLE / "share" / "attnb"
VERDICT = re.compile(r"(?:Check|Compare) .*: (pass|FAIL),")  # how the report of a check begins


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in version.split("."))


def cannot() -> str | None:
    """Why the bundle cannot run on this machine, in one line."""
    here = f"{platform.system()} {platform.machine()}"
    if here != "Linux x86_64":
        return f"this bundle is for Linux x86_64, and this is {here}"
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if python not in MANIFEST["python"] or platform.python_implementation() != "CPython":
        have = ", ".join(MANIFEST["python"])
        return f"this bundle is for CPython {have}, and this is {platform.python_implementation()} {python}"
    try:
        glibc = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):
        glibc = ""
    if MANIFEST["glibc"] and not glibc.startswith("glibc "):
        return f"this bundle needs glibc {MANIFEST['glibc']}, and this machine has another C library"
    if MANIFEST["glibc"] and numbers(glibc.split()[1]) < numbers(MANIFEST["glibc"]):
        return f"this bundle needs glibc {MANIFEST['glibc']} or newer, and this machine has {glibc.split()[1]}"
    if not os.access(BUNDLE, os.W_OK):
        return f"{BUNDLE} cannot be written: cells are built in there"
    return None


def kernelspec() -> dict:
    """kernel.json: the kernel, with the bundle's own Go and nothing of the machine's."""
    return {
        "argv": [str(HOME / "bin" / "attnb"), "kernel", "{connection_file}"],
        "display_name": "Go (attnb)",
        "language": "go",
        "interrupt_mode": "message",
        "metadata": {"debugger": False},
        "env": {
            "GOROOT": str(HOME / "go"),
            "GOPATH": str(BUNDLE / "gopath"),
            "GOMODCACHE": str(BUNDLE / "gomod"),
            "GOCACHE": str(BUNDLE / "gocache"),
            "GOENV": "off",
            "GOFLAGS": "",
            "GOWORK": "off",
            "GOTOOLCHAIN": "local",
            "CGO_ENABLED": "0",
        },
    }


def prepare() -> None:
    """Makes the bundle ready where it lies. After the first time there is nothing to do, until it is moved."""
    spec = BUNDLE / "share" / "jupyter" / "kernels" / "attnb" / "kernel.json"
    text = json.dumps(kernelspec(), indent=1) + "\n"
    if spec.exists() and spec.read_text() == text:
        return
    cache = BUNDLE / "gocache"
    for file in cache.rglob("*"):  # the go command forgets what is old, and the archive's files are
        os.utime(file)
    (cache / "trim.txt").write_text(str(int(time.time())))
    spec.parent.mkdir(parents=True, exist_ok=True)
    spec.write_text(text)


def environment(scratch: str) -> None:
    """Sets up this process to see the bundle's Jupyter alone, and to keep its own files out of the way."""
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    sys.path[:0] = [str(BUNDLE / "python" / python), str(BUNDLE / "python" / "common")]
    home = os.environ.get("HOME", "")
    if not os.access(home or "/nowhere", os.W_OK):
        os.environ["HOME"] = scratch
    data = [BUNDLE / "share" / "jupyter", BUNDLE / "python" / "data" / "share" / "jupyter"]
    os.environ["JUPYTER_PATH"] = os.pathsep.join(map(str, data))
    os.environ["JUPYTER_RUNTIME_DIR"] = os.path.join(scratch, "runtime")
    os.environ["JUPYTER_CONFIG_DIR"] = os.path.join(scratch, "config")
    os.environ["JUPYTER_PLATFORM_DIRS"] = "0"
    os.environ["IPYTHONDIR"] = os.path.join(scratch, "ipython")


def verdicts(notebook) -> list[str]:
    """What each check in the notebook said: pass or FAIL."""
    found = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if said := VERDICT.match(output.get("data", {}).get("text/plain", "")):
                found.append(said[1])
    return found


def title(cell) -> str:
    lines = [line for line in cell.source.splitlines() if line.strip() not in ("", "%%") and not line.startswith("import")]
    return lines[0][:70] if lines else ""


def execute(path: Path, timeout: int, reach: dict[str, str]) -> tuple:
    """Returns the executed notebook, how many of its cells ran, the device, and the error of the cell that failed."""
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
    from traitlets.config import Config

    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, timeout=timeout, startup_timeout=120, kernel_name="attnb", resources={"metadata": {"path": str(path.parent)}},
        config=Config({"KernelManager": reach}),
    )
    ran, device = 0, "unknown"
    with client.setup_kernel():
        for index, cell in enumerate(notebook.cells):
            if cell.cell_type != "code":
                continue
            start = time.monotonic()
            try:
                client.execute_cell(cell, index)
            except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
                return notebook, ran, device, error
            ran += 1
            print(f"  {time.monotonic() - start:6.2f} s  {title(cell)}", flush=True)
        notebook.cells.append(nbformat.v4.new_code_cell("%device"))  # asks the kernel, and is no part of the notebook
        asked = client.execute_cell(notebook.cells[-1], len(notebook.cells) - 1)
        notebook.cells.pop()
        said = "".join(o.get("data", {}).get("text/plain", "") for o in asked.outputs)
        device = said.partition("\n")[0] or device
    return notebook, ran, device, None


def reach(scratch: str) -> dict[str, str]:
    """How to reach the kernel: by sockets in scratch, which need no network interface, not even loopback, unless their paths
    are longer than a socket's may be (108 bytes)."""
    sockets = os.path.join(scratch, "kernel")
    return {"transport": "ipc", "ip": sockets} if len(os.fsencode(sockets)) < 100 else {}


def write_page(notebook, file: Path) -> None:
    from nbconvert import HTMLExporter

    file.write_text(HTMLExporter().from_notebook_node(notebook)[0])


def main() -> int:
    parser = argparse.ArgumentParser(description="Execute a notebook on the attnb kernel of this bundle.")
    parser.add_argument("notebook", type=Path)
    parser.add_argument("--out", type=Path, help="the executed notebook (NAME.executed.ipynb)")
    parser.add_argument("--html", type=Path, help="the executed notebook as a page")
    parser.add_argument("--timeout", type=int, default=300, metavar="S", help="for one cell, in seconds (300)")
    asked = parser.parse_args()
    why = cannot()
    notebook = next((p for p in (asked.notebook, BUNDLE / asked.notebook) if p.is_file()), None)
    if why is None and notebook is None:
        why = f"there is no {asked.notebook}"
    if why:
        print(f"run.py: {why}", file=sys.stderr)
        return 2
    scratch = tempfile.mkdtemp(prefix="attnb-run-")
    try:
        environment(scratch)
        prepare()
        import nbformat

        start = time.monotonic()
        print(f"executing {notebook} with attnb {MANIFEST['version']}, Go {MANIFEST['go']}", flush=True)
        executed, ran, device, error = execute(notebook.resolve(), asked.timeout, reach(scratch))
        took = time.monotonic() - start
        out = asked.out or Path(notebook.stem + ".executed.ipynb")
        nbformat.write(executed, out)
        if asked.html:
            write_page(executed, asked.html)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    cells = sum(cell.cell_type == "code" for cell in executed.cells)
    said = verdicts(executed)
    print(f"device: {device}")
    print(f"cells:  {ran} of {cells} ran, in {took:.1f} s")
    print(f"checks: {said.count('pass')} passed, {said.count('FAIL')} failed that the notebook does not require")
    print(f"wrote:  {out}" + (f", {asked.html}" if asked.html else ""))
    if error is not None:
        print(f"FAILED: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
