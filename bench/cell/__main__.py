"""What a cell takes, against the cells of stock GoNB and of ipykernel with matplotlib, in one run: python bench/cell.

Medians of RUNS runs, taken in turn. Exits with 1 when a target is missed, and writes bench/results/cell.json."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from cells import CELLS, PREPARE_ATTNB, PREPARE_PYTHON, PRINTING, USING
from kernels import Kernel, stock_gonb

ROOT = Path(__file__).resolve().parent.parent.parent
VENV = Path(sys.prefix)
BIN = ROOT / "bin"
WARMUPS = 2


@dataclass
class Target:
    what: str
    value: float
    limit: float
    unit: str
    goal: bool = False  # beyond what is required: missing it is told, and fails nothing

    @property
    def met(self) -> bool:
        return self.value <= self.limit


def measure_cells(runs: int, scratch: Path) -> dict[str, list[float]]:
    stock_gonb(scratch / "specs", BIN)
    installed = VENV / "share" / "jupyter" / "kernels"
    env = dict(os.environ)
    kernels = {name: Kernel(name, specs, env) for name, specs in (
        ("attnb", installed), ("gonb", scratch / "specs"), ("python3", installed))}
    took: dict[str, list[float]] = {name: [] for name in CELLS}
    try:
        kernels["attnb"].run(PREPARE_ATTNB)
        kernels["python3"].run(PREPARE_PYTHON)
        for n in range(-WARMUPS, runs):
            for name, cell in CELLS.items():
                text = cell.code(n + 1000)
                t = kernels[cell.kernel].run(text, f"run {n + 1000}" if cell.prints else "", cell.pictures)
                if n >= 0:
                    took[name].append(t)
    finally:
        for kernel in kernels.values():
            kernel.close()
    return took


def measure_first(times: int, scratch: Path) -> list[float]:
    """The first cell of the first kernel of a new installation, for a user who never had one."""
    took = []
    for n in range(times):
        prefix, cache = scratch / f"prefix{n}", scratch / f"cache{n}"
        env = os.environ | {"GOCACHE": go("env", "GOCACHE"), "XDG_CACHE_HOME": str(cache)}
        attnb = prefix / "share" / "attnb" / "bin" / "attnb"
        subprocess.run([BIN / "attnb", "install", "--prefix", prefix], env=env, check=True, stdout=subprocess.DEVNULL)
        kernel = Kernel("attnb", prefix / "share" / "jupyter" / "kernels", env)
        try:
            took.append(kernel.run(PREPARE_ATTNB.replace("97", str(97 + time.time_ns() % 1000))))
        finally:
            kernel.close()
            subprocess.run([attnb, "uninstall", "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
    return took


def measure_builds(runs: int, scratch: Path) -> dict[str, list[float]]:
    """What the go stand-in takes to build the two programs."""
    home = VENV / "share" / "attnb" / "bin"
    directory = scratch / "gonb_0123456789"
    directory.mkdir()
    env = os.environ | {"PATH": f"{home / 'path'}{os.pathsep}{home}{os.pathsep}{os.environ['PATH']}", "PWD": str(directory)}
    command = str(home / "path" / "go")
    subprocess.run([command, "mod", "init", directory.name], cwd=directory, env=env, check=True, capture_output=True)
    took: dict[str, list[float]] = {"printing": [], "using": []}
    for n in range(-WARMUPS, runs):
        for name, program in (("printing", PRINTING), ("using", USING)):
            (directory / "main.go").write_text(program.replace("RUN", str(n + 1000)))
            begin = time.perf_counter()
            subprocess.run([command, "build", "-o", directory / directory.name], cwd=directory, env=env, check=True)
            if n >= 0:
                took[name].append((time.perf_counter() - begin) * 1e3)
    return took


def go(*args: str) -> str:
    return subprocess.run(["go", *args], check=True, capture_output=True, text=True).stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=30)
    runs = parser.parse_args().runs
    load = [os.getloadavg()[0]]
    with tempfile.TemporaryDirectory(prefix="ab", dir="/tmp") as scratch:
        cells = measure_cells(runs, Path(scratch))
        builds = measure_builds(runs, Path(scratch))
        first = measure_first(3, Path(scratch))
    load.append(os.getloadavg()[0])

    median = {name: statistics.median(t) for name, t in (cells | builds | {"c": first}).items()}
    further = statistics.median(using - printing for using, printing in zip(builds["using"], builds["printing"]))
    targets = [
        Target("a / b: a heatmap, and stock gonb's print", median["a"] / median["b"], 1.0, "x"),
        Target("c / b: the first cell after installing", median["c"] / median["b"], 3.0, "x"),
        Target("a / d1: a heatmap, and matplotlib's", median["a"] / median["d1"], 1.0, "x", goal=True),
        Target("e / d12: twelve heads, and matplotlib's", median["e"] / median["d12"], 1.0, "x", goal=True),
        Target("f: build with attn, beyond one that prints", further, 30.0, "ms"),
    ]
    print(f"medians of {runs} runs in turn (c: of 3), ms from the request to reply and idle; load {load[0]:.1f} to {load[1]:.1f}")
    rows = [(name, cell.what, cells[name]) for name, cell in CELLS.items()]
    rows += [("c", "attnb: the first cell after installing", first),
             ("", "go build, by the stand-in, of a program that prints", builds["printing"]),
             ("", "go build, by the stand-in, of one that uses attn", builds["using"])]
    for name, what, t in rows:
        print(f"  {name:4} {what:55} {statistics.median(t):8.1f}   ({min(t):.1f} .. {max(t):.1f})")
    for target in targets:
        print(f"  {'met' if target.met else 'MISSED':7}{target.what:52} {target.value:8.2f} {target.unit:2}  {'goal' if target.goal else 'at most'} {target.limit} {target.unit}")

    result = {
        "runs": runs, "load": load, "cpus": os.cpu_count(), "machine": platform.machine(), "go": go("env", "GOVERSION"),
        "python": platform.python_version(), "median_ms": median, "ms": cells | builds | {"c": first},
        "targets": [vars(t) | {"met": t.met} for t in targets],
    }
    out = ROOT / "bench" / "results" / "cell.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(result, indent=1) + "\n")
    print(f"wrote {out.relative_to(ROOT)}")
    return 0 if all(t.met or t.goal for t in targets) else 1


if __name__ == "__main__":
    sys.exit(main())
