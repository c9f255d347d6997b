#!/usr/bin/env python3
"""Tells the Jupyter of this machine about the kernel in this bundle, which stays where it is.

    python3 install.py              for your own Jupyter
    python3 install.py --prefix D   for the one in D, such as a virtual environment
    python3 install.py --remove     takes that back
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

import run


def kernels(prefix: Path | None) -> Path:
    """Where Jupyter looks for kernels."""
    if prefix:
        return prefix / "share" / "jupyter" / "kernels"
    if data := os.environ.get("JUPYTER_DATA_DIR"):
        return Path(data) / "kernels"
    share = os.environ.get("XDG_DATA_HOME")
    return (Path(share) if share else Path.home() / ".local" / "share") / "jupyter" / "kernels"


def main() -> int:
    parser = argparse.ArgumentParser(description="Tell the Jupyter of this machine about the kernel in this bundle.")
    parser.add_argument("--prefix", type=Path, help="for the Jupyter there, not for your own")
    parser.add_argument("--remove", action="store_true", help="take it back")
    asked = parser.parse_args()
    spec = kernels(asked.prefix) / "attnb" / "kernel.json"
    if spec.exists() and json.loads(spec.read_text())["argv"][0] != run.kernelspec()["argv"][0]:
        print(f"install.py: {spec} belongs to another installation: it stays", file=sys.stderr)
        return 1
    if asked.remove:
        if spec.exists():
            spec.unlink()
            spec.parent.rmdir()
            print(f"removed {spec.parent}")
        return 0
    if why := run.cannot():
        print(f"install.py: {why}", file=sys.stderr)
        return 2
    run.prepare()
    spec.parent.mkdir(parents=True, exist_ok=True)
    spec.write_text(json.dumps(run.kernelspec(), indent=1) + "\n")
    print(f'wrote {spec}\nJupyter now offers "Go (attnb)". The bundle must stay at {run.BUNDLE}')
    return 0


if __name__ == "__main__":
    sys.exit(main())
