"""The same step of a tutorial in attnb, in PyTorch with matplotlib, and in BertViz, in one run: python bench/versus --peer PYTHON.

Prints, for each tool and length, the milliseconds from the request to the end of the cell (median of RUNS), the bytes that its
outputs take in the notebook, the most memory that its processes took (Linux), and the addresses that its outputs fetch from. Writes
bench/results/versus.json. PYTHON has what requirements.txt lists."""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

import psutil
from cells import DIM, HEADS, TOOLS
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

ROOT = Path(__file__).resolve().parent.parent.parent
LENGTHS = (128, 1024, 4096)
RUNS = 5
PATIENCE = 120  # seconds that a cell may take: a learner has gone by then
MEMORY = 8 << 30  # bytes of address space beyond which a peer's kernel is refused memory: half a laptop


class Failed(Exception):
    """A cell ended with an error, or not in time."""


class Kernel:
    def __init__(self, name: str, specs: Path) -> None:
        self.manager = KernelManager(kernel_name=name, kernel_spec_manager=KernelSpecManager(kernel_dirs=[str(specs)]))
        limit = (lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))) if name == "python3" else None
        self.manager.start_kernel(preexec_fn=limit)
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=PATIENCE)
        self.process = psutil.Process(self.manager.provisioner.pid)

    def run(self, code: str) -> tuple[float, list[dict]]:
        """Milliseconds until the cell is idle, and its outputs' bundles."""
        begin = time.perf_counter()
        request, shown, wrong = self.client.execute(code), [], ""
        while True:
            left = begin + PATIENCE - time.perf_counter()
            try:
                message = self.client.get_iopub_msg(timeout=max(left, 0.01))
            except Exception as err:
                raise Failed(f"no picture within {PATIENCE} s") from err
            if message["parent_header"].get("msg_id") != request:
                continue
            content = message["content"]
            if message["msg_type"] in ("display_data", "execute_result"):
                shown.append({"data": content["data"], "metadata": content["metadata"]})
            if message["msg_type"] == "error":
                wrong = f"{content['ename']}: {content['evalue'][:120]}"
            if message["msg_type"] == "status" and content["execution_state"] == "idle":
                break
        if wrong:
            raise Failed(wrong)
        return (time.perf_counter() - begin) * 1e3, shown

    def memory(self) -> int:
        """The most bytes of resident memory that the kernel, and what it started and is still there, ever had."""
        family = [self.process, *self.process.children(recursive=True)]
        peaks = (re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{p.pid}/status").read_text()) for p in family)
        return sum(int(peak[1]) * 1024 for peak in peaks if peak)

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


def fetched(outputs: list[dict]) -> list[str]:
    """The hosts that the outputs load scripts or styles from."""
    text = " ".join(str(o["data"].get(kind, "")) for o in outputs for kind in ("text/html", "application/javascript"))
    if len(text) > 1 << 20:
        text = text[: 1 << 19] + text[-(1 << 19):]
    loads = re.findall(r"""(?:src=|href=|from |import\(|paths:[^}]*?|['"]?\w+['"]?:\s*)['"](?:https?:)?//([^/'"]+)""", text)
    return sorted(set(loads))


def measure(tool: str, length: int, specs: dict[str, Path], runs: int) -> dict:
    name, prepare, cell = TOOLS[tool]
    kernel = Kernel(name, specs[name])
    try:
        kernel.run(prepare.replace("TOKENS", str(length)))
        kernel.run(cell.replace("RUN", "0"))  # what is slow once is not what is compared
        took, outputs = [], []
        for n in range(1, runs + 1):
            ms, outputs = kernel.run(cell.replace("RUN", str(n)))
            took.append(ms)
        if not outputs:
            raise Failed("nothing was shown")
        return {"ms": took, "median_ms": statistics.median(took), "bytes": len(json.dumps(outputs)),
                "memory": kernel.memory(), "fetches": fetched(outputs)}
    except Failed as err:
        return {"failed": str(err)}
    finally:
        kernel.close()


def peer_spec(python: str, folder: Path) -> Path:
    spec = folder / "python3"
    spec.mkdir(parents=True)
    (spec / "kernel.json").write_text(json.dumps({
        "argv": [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"], "display_name": "Python", "language": "python"}))
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", required=True, help="a Python that has the peers")
    parser.add_argument("--runs", type=int, default=RUNS)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        specs = {"attnb": Path(sys.prefix) / "share" / "jupyter" / "kernels",
                 "python3": peer_spec(options.peer, Path(scratch) / "specs")}
        for length in LENGTHS:
            for tool in TOOLS:
                row = {"tool": tool, "tokens": length, **measure(tool, length, specs, options.runs)}
                rows.append(row)
                said = row.get("failed") or (f"{row['median_ms']:8.0f} ms {row['bytes'] / 1e6:9.2f} MB in the notebook "
                                             f"{row['memory'] / 1e6:7.0f} MB of memory  fetches from: {', '.join(row['fetches']) or 'nowhere'}")
                print(f"{length:5d} tokens  {tool:24s} {said}", flush=True)
    result = {"heads": HEADS, "dim": DIM, "runs": options.runs, "load": load, "cpus": os.cpu_count(),
              "machine": platform.machine(), "python": platform.python_version(), "rows": rows}
    (ROOT / "bench" / "results" / "versus.json").write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
