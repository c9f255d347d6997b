"""Notebooks through nbclient, as `jupyter execute` and continuous integration run them."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

import notebooks
from conftest import ATTN, KERNEL, ROOT

MAX_SIZE = 1_600_000  # bytes of a notebook with its pictures
PATHS = notebooks.paths()
NAMES = [path.name for path in PATHS]


def test_nbclient_stops_at_a_panic(tmp_path: Path) -> None:
    cells = [
        ATTN + '%%\nattn.FromSlice([]float32{7}, "dim", 1).Named("x")',
        '%%\nfmt.Print(attn.Get("x").Download())',
        '%%\npanic("as asked")',
        '%%\nfmt.Print("not reached")',
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    with pytest.raises(CellExecutionError, match="as asked"):
        NotebookClient(notebook, kernel_name=KERNEL, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert notebook.cells[1].outputs[0]["text"] == "[7]"
    assert [output.output_type for output in notebook.cells[2].outputs] == ["error"]
    assert notebook.cells[3].outputs == []
    assert notebook.cells[3].execution_count is None


@pytest.mark.parametrize("path", PATHS, ids=NAMES)
def test_notebook(path: Path) -> None:
    """Everything runs, each exercise fails before it is solved and passes after, and what is shown is what is stored."""
    notebook, answers = notebooks.read(path), notebooks.solutions(path)
    assert notebooks.unanswered(notebook, answers) == []
    run = notebooks.execute(notebooks.tried_and_solved(notebook, answers))
    assert run.faults == []
    assert notebooks.changes(notebook, run.notebook) == []


@pytest.mark.parametrize("path", PATHS, ids=NAMES)
def test_what_is_stored(path: Path) -> None:
    notebook = notebooks.read(path)
    assert path.stat().st_size < MAX_SIZE
    assert notebooks.static(copy.deepcopy(notebook)) == notebook, "stored otherwise than by tests/notebooks.py --write"
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 6
    assert [output for output in outputs if output.output_type == "error"] == []
    checks = [line for output in outputs if output.output_type == "stream" for line in output.text.splitlines() if line.startswith("Check ")]
    assert [line for line in checks if ": pass," not in line] == []
    for cell in notebook.cells:
        if cell.cell_type == "code" and "exercise" not in notebooks.tags(cell):
            assert cell.execution_count, f"{cell.id} was not run"
            assert len(cell.source.splitlines()) <= 30, f"{cell.id} is long for one idea"


def changed(text: str, to: str) -> list[tuple[str, str]]:
    return notebooks.different_lines(text, to)


def test_a_changed_text_is_found() -> None:
    """What the comparison with stored outputs forgives is rounding, and nothing else."""
    check = 'Check "s": pass, error/bound 0.0564\n  Scores [heads 4, query 9]: 324 cells against float64, 0 failed\n  max abs 6.1e-07'
    assert changed(check, check.replace("0.0564", "0.0712").replace("6.1e-07", "5e-07")) == []
    assert changed(check, check.replace("pass", "FAIL"))
    assert changed(check, check.replace("0 failed", "1 failed"))
    assert changed(check, check + "\n  and more")
    law = "RowsSum: pass: rows sum to 1: holds; off by 3e-08 at head 1 row 3"
    assert changed(law, law.replace("head 1", "head 0")) == []
    assert changed(law, law.replace("holds", "BROKEN"))
    audit = "  1  RoPE    [heads 2, seq 12]    0.24, L2 4.3e-08 of 3.1e-07    0.24, L2 4.3e-08 of 3.1e-07"
    assert changed(audit, audit.replace("0.24", "0.3")) == []
    assert changed(audit, audit.replace("seq 12", "seq 13"))
    assert changed(audit, audit + " FAIL")
    assert changed("weight 0.25 of head 3", "weight 0.2500001 of head 3") == []
    assert changed("weight 0.25 of head 3", "weight 0.26 of head 3")
    assert changed("weight 0.25 of head 3", "weight 0.25 of head 2")
    assert changed("off by 3e-08", "off by 5e-08") == []
    assert changed("took 3 s", "took 14.2 ms") == []
    assert changed("took 3 heads", "took 4 heads")


def test_the_words_of_a_picture_are_compared_but_for_rounding() -> None:
    """Of equal cells another may be the largest; which numbers an error has is chance; all else counts."""
    words = "scores. Heatmap of 2 query x 3 key (score). From -1.5 at query 0, key 1 to 4 at query 0, key 0. 1 of 6 cells masked."
    assert notebooks.steady(words) == notebooks.steady(words.replace("query 0, key 0", "query 1, key 2"))
    assert notebooks.steady(words) == "scores. Heatmap of 2 query x 3 key (score). From -1.5 to 4. 1 of 6 cells masked."
    check = 'Check "s": pass, error/bound 0.05. Heatmap of 2 query x 3 key (error / bound). From 0 at query 0, key 0 to 0.05 at query 1, key 2.'
    assert not changed(notebooks.steady(check), notebooks.steady(check.replace("0.05", "0.04")))
    assert changed(notebooks.steady(check), notebooks.steady(check.replace("pass", "FAIL")))


def test_the_lines_that_dump_a_layer_are_the_same_everywhere() -> None:
    """Readers copy them from a page or a notebook; the script is where they were run."""
    lines = re.compile(r"^class Dump.*?return out$", re.MULTILINE | re.DOTALL)
    notebook = "\n".join(cell.source for cell in notebooks.read(ROOT / "notebooks" / "09-your-own-tensors.ipynb").cells)
    page, script = ((ROOT / path).read_text() for path in ("docs/own-tensors.md", "notebooks/data/stranger.py"))
    found = [lines.findall(text) for text in (page, notebook, script)]
    assert len(found[0]) == 1 and found[0] == found[1] == found[2]


def test_an_exercise_must_fail_by_require(tmp_path: Path) -> None:
    """The three ways in which an exercise is none, and a cell that fails though it should not."""

    def exercise(code: str) -> nbformat.NotebookNode:
        return nbformat.v4.new_code_cell(code, id="exercise-1", metadata={"tags": ["exercise", "raises-exception"]})

    x = 'x := attn.FromSlice([]float32{1}, "dim", 1)\n'
    bad = {
        "%%\n": "passes unsolved",
        '%%\npanic("no")': "fails otherwise than by Require",
        f"%%\n{x}attn.Require(attn.Compare(x, x))": "passes unsolved",
    }
    cells = [nbformat.v4.new_code_cell(ATTN + "%%\n_ = attn.Get", id="first"), *[exercise(code) for code in bad]]
    cells += [nbformat.v4.new_code_cell("%%\nos.Exit(1)", id="last")]
    for n, cell in enumerate(cells):
        cell.id += f"-{n}"
    run = notebooks.execute(nbformat.v4.new_notebook(cells=cells), tmp_path)
    assert len(run.faults) == 4, run.faults
    for fault, says in zip(run.faults, [*bad.values(), "failed: "], strict=True):
        assert says in fault
