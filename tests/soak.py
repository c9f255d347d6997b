"""Runs thousands of cells of all kinds in one kernel, and says what that leaves: memory, descriptors, files.

    ./install.sh soak [--cells 2000 | --minutes 20] [--seed 1] [--report FILE] [--store FILE.json]

It runs the kernel "attnb" that Jupyter finds, which install.sh sees to. Every cell's outcome is checked.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from conftest import ATTN, Kernel, Result

PNG = b"\x89PNG\r\n\x1a\n"


def named(kernel: Kernel, name: str) -> list[psutil.Process]:
    found = []
    for process in kernel.processes():
        try:
            if process.name() == name:
                found.append(process)
        except psutil.Error:
            continue
    return found


def wait_for(kernel: Kernel, msg_id: str, text: str) -> None:
    """Waits until a cell has printed text."""
    while True:
        message = kernel.client.get_iopub_msg(timeout=60)
        if message["parent_header"].get("msg_id") == msg_id and message["msg_type"] == "stream":
            assert text in message["content"]["text"], message
            return


def expect(result: Result, status: str, name: str = "", text: str | None = None) -> None:
    assert result.status == status, result
    assert not name or result.reply["ename"] == name, result
    assert text is None or result.text() == text, result


class Cells:
    """The kinds of cells. Each takes a number that makes its text new, and checks what comes of it."""

    def __init__(self, kernel: Kernel, random: random.Random) -> None:
        self.kernel, self.random = kernel, random
        self.restarts: list[float] = []  # seconds until the first cell after gonb was killed had run
        self.interrupts: list[float] = []  # seconds until the reply

    def prints(self, n: int) -> None:
        expect(self.kernel.run(f'%%\nfmt.Println("cell", {n}, "äß€")'), "ok", text=f"cell {n} äß€\n")

    def declares(self, n: int) -> None:
        name = f"f{n % 20}"
        expect(self.kernel.run(f"func {name}() int {{ return {n} }}\n%%\nfmt.Print({name}())"), "ok", text=str(n))

    def fails_to_compile(self, n: int) -> None:
        expect(self.kernel.run(f"%%\nunused{n} := 1"), "error", "CompileError")

    def panics(self, n: int) -> None:
        result = self.kernel.run(f'%%\nfmt.Println("before")\npanic("number {n}")')
        expect(result, "error", "panic", "before\n")
        assert result.reply["evalue"] == f"number {n}", result

    def exits(self, n: int) -> None:
        expect(self.kernel.run(f"%%\nos.Exit({n % 100 + 1})"), "error", "ExitError")

    def is_killed(self, n: int) -> None:
        expect(self.kernel.run(f"%%\n_ = {n}\nsyscall.Kill(os.Getpid(), syscall.SIGKILL)"), "error", "Killed")

    def shows(self, n: int) -> None:
        rows = 3 + n % 5
        result = self.kernel.run(
            f"%%\nvalues := make([]float32, {rows}*7)\nfor i := range values {{ values[i] = float32(i*{n}%11) }}\n"
            f'm := attn.FromSlice(values, "query key", {rows}, 7).Named("m{n % 8}")\nm.Heatmap()\nfmt.Println("between")\nm.Heatmap()'
        )
        expect(result, "ok", text="between\n")
        kinds = [o["msg_type"] for o in result.outputs]
        assert kinds == ["display_data", "stream", "display_data"], result
        assert base64.b64decode(result.displays[0]["image/png"]).startswith(PNG), result

    def checks(self, n: int) -> None:
        result = self.kernel.run(
            f"%%\nvalues := make([]float32, 2*5*8)\nfor i := range values {{ values[i] = float32(i*{n}%13) / 13 }}\n"
            'x := attn.FromSlice(values, "heads seq dim", 2, 5, 8)\nattn.Prefill(x, x, x, attn.Causal).Named("out").Check()'
        )
        expect(result, "ok")
        assert result.displays, result

    def fails_in_an_op(self, n: int) -> None:
        expect(self.kernel.run(f'%%\nattn.Get("none{n}")'), "error", "attn")

    def runs_shell_lines(self, n: int) -> None:
        expect(self.kernel.run(f"!echo {n}"), "ok", text=f"{n}\n")
        expect(self.kernel.run(f"!exit {n % 100 + 1}"), "error", "CommandError")

    def prints_much(self, n: int) -> None:
        result = self.kernel.run(f'%%\nfor i := range 20000 {{ fmt.Println({n}, i, "€€€€€€€€€€") }}')
        expect(result, "ok", text="".join(f"{n} {i} €€€€€€€€€€\n" for i in range(20000)))

    def is_interrupted(self, n: int) -> None:
        msg_id = self.kernel.client.execute(f'%%\nfmt.Println("up {n}")\ntime.Sleep(time.Hour)')
        wait_for(self.kernel, msg_id, f"up {n}")
        began = time.monotonic()
        self.kernel.manager.interrupt_kernel()
        expect(self.kernel.finish(msg_id), "error", "Interrupted")
        self.interrupts.append(time.monotonic() - began)

    def is_interrupted_anywhere(self, n: int) -> None:
        msg_id = self.kernel.client.execute(f"%%\n_ = {n}\ntime.Sleep(time.Hour)")
        time.sleep(self.random.random() / 2)
        self.kernel.manager.interrupt_kernel()
        expect(self.kernel.finish(msg_id), "error", "Interrupted")

    def asks(self, n: int) -> None:
        for code in ("%tensors", "%device", "%version"):
            expect(self.kernel.run(code), "ok")
        for ask in (self.kernel.client.complete, self.kernel.client.inspect):
            msg_id = ask(f"%%\n_ = {n}\nfmt.Printl")
            while self.kernel.client.get_shell_msg(timeout=60)["parent_header"]["msg_id"] != msg_id:
                pass

    def loses_gonb(self, n: int) -> None:
        """gonb is killed; declarations and tensors are there in the next cell."""
        expect(self.kernel.run(f"func survivor() int {{ return {n} }}"), "ok")
        gonb = named(self.kernel, "gonb")
        assert len(gonb) == 1, gonb
        began = time.monotonic()
        gonb[0].kill()
        result = self.kernel.run("%%\nfmt.Print(survivor())")
        if result.status == "error" and result.reply["ename"] == "GonbError":  # it was not yet seen to be gone
            result = self.kernel.run("%%\nfmt.Print(survivor())")
        self.restarts.append(time.monotonic() - began)
        expect(result, "ok", text=str(n))

    def sequence(self, rounds: int) -> Iterator[Callable[[int], None]]:
        """Endless, in random order. What is slow is rare, and gonb is killed after so many rounds of 60 cells."""
        often = [self.prints, self.declares, self.fails_to_compile, self.panics, self.exits, self.is_killed, self.shows, self.checks]
        some = [self.fails_in_an_op, self.runs_shell_lines, self.is_interrupted, self.is_interrupted_anywhere, self.asks, self.prints_much]
        while True:
            for _ in range(rounds):
                deck = 6 * often + 2 * some
                self.random.shuffle(deck)
                yield from deck
            yield self.loses_gonb


@dataclass
class State:
    """What a kernel has at one time."""

    cells: int
    seconds: float = 0  # since the first cell
    rss: dict[str, float] = field(default_factory=dict)  # MB of each process
    descriptors: dict[str, int] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)  # in the runtime directory and in TMPDIR


def state(kernel: Kernel, cells: int) -> State:
    s = State(cells)
    expect(kernel.run(f"%%\n_ = {cells}"), "ok")  # the last build is then a whole one
    deadline = time.monotonic() + 20
    while named(kernel, "go") and time.monotonic() < deadline:
        time.sleep(0.2)  # gopls asks the go command now and then
    for p in kernel.processes():
        try:
            name = {"attnb": p.cmdline()[1]}.get(p.name(), p.name())
            s.rss[name] = s.rss.get(name, 0) + p.memory_info().rss / 1e6
            s.descriptors[name] = s.descriptors.get(name, 0) + p.num_fds()
        except psutil.Error:
            continue
    s.files = [str(Path(at, f).relative_to(top)) for top in (kernel.runtime, kernel.tmp) for at, _, files in os.walk(top) for f in files]
    return s


def table(states: list[State]) -> str:
    names = sorted({name for s in states for name in s.rss})
    lines = [f"{'':8}" + "".join(f"{n:>22}" for n in names) + f"{'files':>8}"]
    for s in states:
        cells = "".join(f"{s.rss.get(n, 0):>10.1f} MB{s.descriptors.get(n, 0):>6} fd" for n in names)
        lines.append(f"{s.cells:>8}" + cells + f"{len(s.files):>8}")
    return "\n".join(lines)


def soak(
    cells: int, seed: int, every: int, rounds: int, say: Callable[[str], None] = print, states: list[State] | None = None, seconds: float = float("inf")
) -> list[str]:
    """Runs the cells, or as many as take so many seconds, and returns what did not stay as it was; every says after how many cells to look. What is
    seen is put into states."""
    states = [] if states is None else states
    kernel = Kernel()
    try:
        assert kernel.run(ATTN + "var _ = attn.Get").status == "ok"
        kinds = Cells(kernel, random.Random(seed))
        done: Counter[str] = Counter()
        began = time.monotonic()
        for n, kind in zip(range(1, cells + 1), kinds.sequence(rounds)):
            try:
                kind(n)
            except AssertionError as e:
                raise AssertionError(f"cell {n}, {kind.__name__}: {e}") from e
            done[kind.__name__] += 1
            enough = n == cells or time.monotonic() - began > seconds
            if n % every == 0 or enough:
                states.append(state(kernel, n))
                states[-1].seconds = time.monotonic() - began
                say(table(states[-1:]).splitlines()[-1])
            if enough:
                break
        took = time.monotonic() - began
        say(f"{n} cells, seed {seed}, in {took:.0f} s: " + ", ".join(f"{v} {k.replace('_', ' ')}" for k, v in sorted(done.items())))
        say(table(states))
        if kinds.interrupts:
            say(f"interrupts: median {sorted(kinds.interrupts)[len(kinds.interrupts) // 2]:.3f} s, longest {max(kinds.interrupts):.3f} s")
        if kinds.restarts:
            say(f"gonb killed, until the next cell had run: median {sorted(kinds.restarts)[len(kinds.restarts) // 2]:.2f} s, longest {max(kinds.restarts):.2f} s")
        wrong = compare(states[0], states[-1])
        kernel.client.stop_channels()
        kernel.manager.shutdown_kernel()
        left = kernel.leftovers()
        say(f"left after the shutdown: {left or 'nothing'}")
        return wrong + left
    finally:
        kernel.close()


# What may be more at the end than after the first cells: MB for a garbage collector's moods (gopls reads more of the standard
# library with time), descriptors for what is just being opened.
MAY_GROW = {"kernel": 40, "device": 60, "gonb": 40, "gopls": 400}
MAY_OPEN = 6


def compare(first: State, last: State) -> list[str]:
    wrong = []
    for name, limit in MAY_GROW.items():
        if not last.rss.get(name, 0) - first.rss.get(name, 0) <= limit:
            wrong.append(f"{name} grew from {first.rss.get(name, 0):.0f} to {last.rss[name]:.0f} MB")
        if name != "gopls" and not last.descriptors.get(name, 0) - first.descriptors.get(name, 0) <= MAY_OPEN:
            wrong.append(f"{name} had {first.descriptors.get(name, 0)} descriptors, and now {last.descriptors[name]}")
    if set(last.rss) - set(first.rss) - set(MAY_GROW):
        wrong.append(f"processes that were not there: {sorted(set(last.rss) - set(first.rss))}")
    if len(last.files) > len(first.files):
        wrong.append(f"{len(first.files)} files, and now {len(last.files)}: {last.files}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=2000)
    parser.add_argument("--minutes", type=float, help="as many cells as this takes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", type=Path)
    parser.add_argument("--store", type=Path, help="what was seen, for bench/plots")
    args = parser.parse_args()
    lines: list[str] = []

    def say(text: str) -> None:
        print(text, flush=True)
        lines.append(text)

    states: list[State] = []
    if args.minutes:
        wrong = soak(10**9, args.seed, 100, 8, say, states, 60 * args.minutes)
    else:
        wrong = soak(args.cells, args.seed, max(args.cells // 10, 6), 8, say, states)  # before the sixth, not all of a kernel is there
    say("\n".join(wrong) or "steady")
    if args.report:
        args.report.write_text("\n".join(lines) + "\n")
    if args.store:
        seen = [{"cells": s.cells, "seconds": round(s.seconds), "mb": s.rss, "descriptors": s.descriptors, "files": len(s.files)} for s in states]
        args.store.write_text(json.dumps({"seed": args.seed, "steady": not wrong, "states": seen}, indent=1) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
