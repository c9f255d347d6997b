"""A short run of faults: `make faults` has the long one."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import psutil

from faults import Faults, run


def test_each_part_is_killed_once_and_the_rest_is_as_promised() -> None:
    assert run(faults=len(Faults.VICTIMS), seed=1) == []


def test_the_run_sees_what_is_left() -> None:
    f = Faults(1, print)
    orphan = None
    try:
        assert f.life.orphans() == [] and f.life.stale() == []
        own = next(d for d in f.life.runtime.iterdir() if d.name.startswith("attnb-"))
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(str(own / "left"))
        (f.life.runtime / "attnb-left").mkdir()
        env = psutil.Process(f.life.server.pid).environ()
        parent = subprocess.run(  # its child outlives it
            [sys.executable, "-c", "import subprocess; print(subprocess.Popen(['sleep', '60'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).pid)"],
            env=env, capture_output=True, text=True, check=True, timeout=60,
        )
        orphan = psutil.Process(int(parent.stdout))
        assert sorted(f.life.stale()) == ["2 runtime directories", "stale socket left"]
        assert [w.split()[:2] for w in f.life.orphans()] == [["orphan", str(orphan.pid)]]
        Path(f.life.runtime, "attnb-left").rmdir()
    finally:
        if orphan:
            orphan.kill()
        f.life.end()
        f.close()
