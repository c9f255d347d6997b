"""Executes the notebooks as their readers do, with the exercises as they are and with them solved, and keeps their stored outputs true.

usage: notebooks.py [--write] [--out DIRECTORY] [NOTEBOOK...]

Each notebook runs twice through Jupyter, on the cores of this machine and with no module proxy to ask: as it is, and with its
solutions put in. A notebook fails where a cell fails that should not, where an exercise does not fail, or not by
attn.Require, before it is solved, where text is not what is stored, or where a run takes over a minute. The executed notebooks are left in DIRECTORY
(build/notebooks) and its folder solved.

--write stores what the first run shows, instead of comparing it: text and PNGs, which every viewer shows, and no HTML; of exercises
nothing. Run it after any change to a notebook, and look at what `git diff` then says.

An exercise is a cell with the tags `exercise` and `raises-exception`. Its solution is in notebooks/solutions, in a Markdown file
with the notebook's name: the Go code below the heading that the cell's own comment begins with ("Exercise 1"). A cell with the tag `machine` shows what depends
on the machine: its text is not compared.
"""

from __future__ import annotations

import argparse
import copy
import math
import os
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
KERNEL = "attnb"
ENVIRONMENT = {"ATTNB_DEVICE": "host", "GOPROXY": "off"}
CELL_TIMEOUT = 120  # seconds
RUN_LIMIT = 60  # seconds for a notebook, which is promised to its readers


@dataclass
class Run:
    notebook: NotebookNode  # executed
    seconds: float
    faults: list[str]


def paths() -> list[Path]:
    return sorted(NOTEBOOKS.glob("[0-9][0-9]-*.ipynb"))


def read(path: Path) -> NotebookNode:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    return notebook


def tags(cell: NotebookNode) -> list[str]:
    return cell.metadata.get("tags", [])


def exercises(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if "exercise" in tags(cell)]


def heading(cell: NotebookNode) -> str:
    """What an exercise is called: `// Exercise 1: ...` in it says "Exercise 1"."""
    found = re.search(r"^// (Exercise \d+)\b", cell.source, re.MULTILINE)
    if not found:
        raise ValueError(f"cell {cell.id} has the tag exercise, and no comment that says which")
    return found[1]


def solutions(path: Path) -> dict[str, str]:
    """The solutions of a notebook's exercises, by heading."""
    file = path.parent / "solutions" / f"{path.stem}.md"
    if not file.exists():
        return {}
    parts = re.split(r"^## (Exercise \d+)\b.*$", file.read_text(), flags=re.MULTILINE)[1:]
    found = {}
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        blocks = re.findall(r"^```go\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        if len(blocks) != 1:
            raise ValueError(f"{file}: {name} has {len(blocks)} blocks of Go, not one")
        found[name] = blocks[0].rstrip("\n")
    return found


def solved(notebook: NotebookNode, answers: dict[str, str]) -> NotebookNode:
    """The notebook with its exercises solved, as someone who solved them would leave it."""
    notebook = copy.deepcopy(notebook)
    for cell in exercises(notebook):
        cell.source = answers[heading(cell)]
        cell.metadata.tags = []
    return notebook


def tried_and_solved(notebook: NotebookNode, answers: dict[str, str]) -> NotebookNode:
    """The notebook with each exercise twice: as it is, then solved."""
    notebook = copy.deepcopy(notebook)
    cells = []
    for cell in notebook.cells:
        cells.append(cell)
        if "exercise" in tags(cell):
            cells.append(nbformat.v4.new_code_cell(answers[heading(cell)], id=f"{cell.id}-solved"))
    notebook.cells = cells
    return notebook


def execute(notebook: NotebookNode, directory: Path = NOTEBOOKS, env: dict[str, str] | None = None) -> Run:
    """Runs every cell. Exercises must fail by attn.Require, all others must not fail."""
    notebook = copy.deepcopy(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    client = NotebookClient(
        notebook, kernel_name=KERNEL, timeout=CELL_TIMEOUT, record_timing=False, resources={"metadata": {"path": str(directory)}}
    )
    faults = []
    start = time.monotonic()
    with client.setup_kernel(env={**os.environ, **ENVIRONMENT, **(env or {})}):
        for index, cell in enumerate(notebook.cells):
            if cell.cell_type != "code":
                continue
            try:
                client.execute_cell(cell, index)
            except CellExecutionError as error:
                faults.append(f"{cell.id} failed: {error.ename}: {error.evalue}")
                break
            if "exercise" in tags(cell):
                said = [o.evalue for o in cell.outputs if o.output_type == "error"]
                if not said:
                    faults.append(f"{cell.id} is an exercise, and passes unsolved")
                elif not said[0].startswith("Require: "):
                    faults.append(f"{cell.id} is an exercise, and fails otherwise than by Require: {said[0]}")
    return Run(notebook, time.monotonic() - start, faults)


def static(notebook: NotebookNode) -> NotebookNode:
    """What is stored of an executed notebook: what a viewer shows that runs no script. Of exercises nothing is stored."""
    notebook = copy.deepcopy(notebook)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type != "code":
            continue
        if "exercise" in tags(cell):
            cell.outputs, cell.execution_count = [], None
        cell.outputs = joined(cell.outputs)
        for output in cell.outputs:
            if "data" in output:
                output.data = {mime: data for mime, data in output.data.items() if mime in ("image/png", "text/plain")}
                output.metadata = {}
    notebook.metadata = {
        "kernelspec": {"display_name": "Go (attnb)", "language": "go", "name": KERNEL},
        "language_info": {"file_extension": ".go", "name": "go"},
    }
    return notebook


def joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Outputs, with what a stream said in several pieces in one."""
    whole: list[NotebookNode] = []
    for output in outputs:
        if output.output_type == "stream" and whole and whole[-1].get("name") == output.name:
            whole[-1].text += output.text
        else:
            whole.append(output)
    return whole


def changes(stored: NotebookNode, ran: NotebookNode) -> list[str]:
    """Where the text of a run is not what is stored, cell by cell. Cells that only one of them has do not count."""
    now = {cell.id: cell for cell in ran.cells if cell.cell_type == "code"}
    found = []
    for cell in stored.cells:
        if cell.cell_type != "code" or cell.id not in now or {"exercise", "machine"} & set(tags(cell)):
            continue
        was, shows = shown(cell), shown(now[cell.id])
        if [kind for kind, _ in was] != [kind for kind, _ in shows]:
            found.append(f"{cell.id} shows {[kind for kind, _ in shows]}, stored are {[kind for kind, _ in was]}")
            continue
        for (_, before), (_, after) in zip(was, shows, strict=True):
            found += [f"{cell.id}:\n  stored {a!r}\n  now    {b!r}" for a, b in different_lines(before, after)]
    return found


def shown(cell: NotebookNode) -> list[tuple[str, str]]:
    """What a cell shows, in order: text, and of each picture its words."""
    pieces: list[tuple[str, str]] = []
    for output in joined(copy.deepcopy(cell.outputs)):
        if output.output_type == "stream":
            pieces.append((output.name, output.text))
        elif "data" in output:
            pieces.append(("picture" if "image/png" in output.data else "text", steady(output.data.get("text/plain", ""))))
        else:
            pieces.append((output.output_type, output.get("evalue", "")))
    return pieces


FINDING = re.compile(r"(Check|Compare|Audit) |[A-Z]\w+: ")  # how the words of a picture begin that shows what a check found
RANGE = re.compile(r" (From|from) (\S+) at [^.]*? to (\S+) at [^.;]*")


def steady(words: str) -> str:
    """The words of a picture, without what depends on how rounding fell: where its extremes are, and all numbers of errors."""
    if FINDING.match(words):
        return words.partition(" From ")[0].partition(" charts over")[0]
    return RANGE.sub(r" \1 \2 to \3", words)


def different_lines(before: str, after: str) -> list[tuple[str, str]]:
    was, now = before.splitlines(), after.splitlines()
    if len(was) != len(now):
        return [(before, after)]
    return [(a, b) for a, b in zip(was, now, strict=True) if not same(a, b)]


# Lines and parts of a report that tell how rounding fell, which another processor may do otherwise.
ROUNDING = [
    re.compile(r"(^Check |^Compare |^Audit ).*?(: pass).*"),
    re.compile(r"(: holds);.*()"),
    re.compile(r"()[\d.e+-]+, L2 [\d.e+-]+ of [\d.e+-]+()"),
    re.compile(r"^()( +)(max abs|relative L2|error/|worst|\d+ equal|\d+ rounding|\d+ zero|\d+ masked).*"),
]
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
TIME = re.compile(r"\d+(\.\d+)? (ns|µs|us|ms|s|min)\b")


def same(a: str, b: str) -> bool:
    """Are two lines of text the same up to rounding? Numbers with a fraction may differ by a thousandth, or in what is below 1e-5."""
    for pattern in ROUNDING:
        a, b = pattern.sub(r"\1\2", a), pattern.sub(r"\1\2", b)
    a, b = TIME.sub("a while", a), TIME.sub("a while", b)
    if NUMBER.split(a) != NUMBER.split(b):
        return False
    return all(alike(x, y) for x, y in zip(NUMBER.findall(a), NUMBER.findall(b), strict=True))


def alike(x: str, y: str) -> bool:
    if x == y:
        return True
    return any(c in x + y for c in ".eE") and math.isclose(float(x), float(y), rel_tol=1e-3, abs_tol=1e-5)


def unanswered(notebook: NotebookNode, answers: dict[str, str]) -> list[str]:
    asked = [heading(cell) for cell in exercises(notebook)]
    return [f"{name} has no solution" for name in asked if name not in answers] + [
        f"a solution of {name}, which the notebook does not ask" for name in answers if name not in asked
    ]


def verify(path: Path, out: Path, write: bool) -> list[str]:
    """Both runs of a notebook, and what is wrong with them."""
    notebook, answers = read(path), solutions(path)
    if faults := unanswered(notebook, answers):
        return faults
    first = execute(notebook)
    second = execute(solved(notebook, answers)) if answers else first
    for run, place in ((first, out), (second, out / "solved")):
        place.mkdir(parents=True, exist_ok=True)
        nbformat.write(run.notebook, place / path.name)
    faults = first.faults + [f"solved: {fault}" for fault in second.faults if second is not first]
    for run in (first, second):
        if run.seconds > RUN_LIMIT:
            faults.append(f"a run took {run.seconds:.0f} s, more than the {RUN_LIMIT} s that are promised")
    if write and first.faults:
        return faults
    if write:
        nbformat.write(static(first.notebook), path)
        notebook = read(path)
    faults += changes(notebook, first.notebook)
    if second is not first:
        faults += [f"solved: {change}" for change in changes(notebook, second.notebook)]
    print(f"{path.name}: {len(exercises(notebook))} exercises, {first.seconds:.1f} s, solved {second.seconds:.1f} s, {path.stat().st_size / 1e6:.2f} MB")
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="store what the notebooks show")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "notebooks", help="where executed notebooks are left")
    parser.add_argument("notebooks", nargs="*", type=Path, metavar="NOTEBOOK")
    options = parser.parse_args()
    start, failed = time.monotonic(), []
    every = [path.resolve() for path in options.notebooks] or paths()
    for path in every:
        if faults := verify(path, options.out, options.write):
            failed.append(path.name)
            print("\n".join(f"  {fault}" for fault in faults))
        sys.stdout.flush()
    print(f"{len(every) - len(failed)} passed, {len(failed)} failed, in {time.monotonic() - start:.0f} s")
    return 1 if failed or not every else 0


if __name__ == "__main__":
    sys.exit(main())
