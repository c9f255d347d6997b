"""Notebooks through nbclient, as `jupyter execute` and continuous integration run them."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from conftest import ATTN, KERNEL, ROOT

NOTEBOOKS = ROOT / "notebooks"
FIRST = "01-first-attention.ipynb"


def execute(notebook: nbformat.NotebookNode, directory: Path) -> None:
    client = NotebookClient(notebook, kernel_name=KERNEL, timeout=120, resources={"metadata": {"path": str(directory)}})
    client.execute()


def outputs(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def test_nbclient_stops_at_a_panic(tmp_path: Path) -> None:
    cells = [
        ATTN + '%%\nattn.FromSlice([]float32{7}, "dim", 1).Named("x")',
        '%%\nfmt.Print(attn.Get("x").Download())',
        '%%\npanic("as asked")',
        '%%\nfmt.Print("not reached")',
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    with pytest.raises(CellExecutionError, match="as asked"):
        execute(notebook, tmp_path)
    assert notebook.cells[1].outputs[0]["text"] == "[7]"
    assert [output.output_type for output in notebook.cells[2].outputs] == ["error"]
    assert notebook.cells[3].outputs == []
    assert notebook.cells[3].execution_count is None


@pytest.mark.parametrize("name", sorted({FIRST, *(path.name for path in NOTEBOOKS.glob("*.ipynb"))}))
def test_notebook(name: str) -> None:
    notebook = nbformat.read(NOTEBOOKS / name, as_version=4)
    execute(notebook, NOTEBOOKS)
    shown = outputs(notebook)
    assert [output for output in shown if output.output_type == "error"] == []
    printed = "".join(output["text"] for output in shown if output.output_type == "stream").splitlines()
    checks = [line for line in printed if line.startswith("Check ")]
    assert [line for line in checks if ": pass," not in line] == []
    if name == FIRST:
        assert len([o for o in shown if "image/png" in o.get("data", {})]) >= 6
        assert checks, "the notebook checks its numbers"
        for cell in notebook.cells:
            if cell.cell_type == "code":
                assert len(cell.source.splitlines()) <= 15
