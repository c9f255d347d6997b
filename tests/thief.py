"""What another user of the machine may try with a kernel's files, sockets and processes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

# Each line of standard input is a kind and a path; what could be had of it goes to standard output.
PROGRAM = r"""
import os, socket, sys
for line in sys.stdin:
    kind, _, path = line.rstrip("\n").partition(" ")
    try:
        if kind == "socket":
            s = socket.socket(socket.AF_UNIX)
            s.settimeout(5)
            s.connect(path)
            s.sendall(bytes.fromhex(sys.argv[1]))
            if not s.recv(1):
                raise PermissionError("closed without a word")
        elif kind == "dir":
            os.listdir(path)
        elif kind == "read":
            open(path, "rb").read(1)
        elif kind == "write":
            open(path, "ab")
        elif kind == "signal":
            os.kill(int(path), 0)
        print("HAD", kind, path)
    except (PermissionError, ConnectionResetError, BrokenPipeError):
        print("refused", kind, path)
    except OSError as e:
        print("failed", kind, path, e)
"""

# What a client of the device process says first, of version 1 and without a token: kind 0, number 1 and nothing else will do for an answer,
# if only that the request is malformed.
HELLO = "0100000000"


def below(directory: Path) -> list[str]:
    """A try for each thing in a directory."""
    tries = []
    for at, _, files in os.walk(directory):
        tries.append(f"dir {at}")
        for f in files:
            path = Path(at) / f
            tries += [f"socket {path}"] if path.is_socket() else [f"read {path}", f"write {path}"]
    return tries


def of_process(pid: int) -> list[str]:
    return [f"read /proc/{pid}/environ", f"read /proc/{pid}/mem", f"dir /proc/{pid}/fd", f"signal {pid}"]


def steal(tries: Iterable[str], uid: int, gid: int) -> list[str]:
    """Tries all of it as another user, and returns what came of each: HAD, refused or failed, and the try."""
    lines = list(tries)
    command = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", "/usr/bin/python3", "-c", PROGRAM, HELLO]
    done = subprocess.run(command, input="".join(line + "\n" for line in lines), capture_output=True, text=True, timeout=120, check=True)
    said = done.stdout.splitlines()
    assert len(said) == len(lines), done.stderr
    return said
