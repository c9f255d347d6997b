"""What every picture has to be so that it shows wherever a notebook is opened: the rules of those places, one bundle at a time.

VS Code shows the first of application/vnd.*, text/html, image/png and text/plain, and runs scripts of text/html under a content
security policy without a module loader; Colab shows each output in a sandboxed frame on another origin, and runs no text/javascript of
its notebook's own page; viewers of static outputs take image/png or text/plain. test_isolated.py opens the outputs in such frames.
"""

from __future__ import annotations

import base64
import gzip
import re
from typing import Any

import nbformat
import pytest
from nbconvert import HTMLExporter, LatexExporter

from bundles import CELLS, KINDS, LABELLED, PREPARE, Markup, Pictures, addresses, png
from conftest import KERNEL, Kernel
from test_comms import VIEW, Front

ALLOWED = {"text/html", "image/png", "text/plain"}
LIMIT = 1_000_000  # of an output, as a notebook file holds it

# What an output cannot count on where it stands alone: a page around it, an origin, a loader of modules, a network.
FORBIDDEN = re.compile(
    r"\b(window\.)?(parent|top|opener)\.(document|postMessage|location|Jupyter|IPython)|\bIPython\b|\bJupyter\.|\brequire(js)?\s*[(.]|\bdefine\s*\("
    r"|\b(local|session)Storage\b|\bindexedDB\b|document\.(cookie|domain|write)|\bfetch\s*\(|XMLHttpRequest|WebSocket|EventSource|importScripts|\bimport\s*[({\"']"
    r"|\beval\s*\(|new Function\b"
)


def packed(script: str) -> list[str]:
    """What a fragment carries gzipped, where it is text: the viewer, the charting library."""
    unpacked = [gzip.decompress(base64.b64decode(s)) for s in re.findall(r'"(H4sI[A-Za-z0-9+/]{1000,}=*)"', script)]
    return [text.decode() for text in unpacked if b"function" in text]


@pytest.fixture
def outputs(pictures: Pictures) -> dict[str, dict[str, Any]]:
    return pictures.outputs


@pytest.mark.parametrize("name", KINDS)
def test_a_bundle_keeps_the_rules(outputs: dict[str, dict[str, Any]], name: str) -> None:
    check_bundle(outputs[name], KINDS[name][1])


def check_bundle(output: dict[str, Any], view: bool) -> None:
    data, metadata = output["data"], output["metadata"]
    assert {"image/png", "text/plain"} <= set(data) <= ALLOWED
    assert sum(len(part) for part in data.values() if isinstance(part, str)) <= LIMIT
    assert ("text/html" in data) == view

    # The labelled PNG, of the size that the metadata says, and the same in words.
    image, said = png(data), metadata["image/png"]
    assert image.width >= said["width"] > 100 and image.height >= said["height"] > 100
    assert image.width / said["width"] == pytest.approx(image.height / said["height"], rel=0.01)
    assert len(image.convert("RGB").getcolors(1 << 24) or []) > 2
    assert said["alt"] == data["text/plain"]
    assert re.search(r"\d+ \S+ x \d+|charts over \d+|\d+ x \d+", said["alt"]), said["alt"]

    if "text/html" in data:
        markup = Markup(data["text/html"])
        assert {tag for tag, _ in markup.elements} <= {"div", "img", "script", "style", "input", "label"}
        assert not [name for _, attrs in markup.elements for name in attrs if name.startswith("on")]
        assert [url[:40] for url in addresses(markup) if not url.startswith("data:image/png;base64,")] == []
        still = markup.images()[0]
        assert still["alt"] == said["alt"]
        assert (still["width"], still["height"]) == (str(said["width"]), str(said["height"]))
        script = "".join(markup.code)
        assert "</" not in script and "<!--" not in script
        for code in [script, *packed(script)]:
            code = re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', code)
            assert (found := FORBIDDEN.search(code)) is None, found


@pytest.mark.parametrize("name", LABELLED)
def test_labels_end_nothing(outputs: dict[str, dict[str, Any]], name: str) -> None:
    """No label becomes markup: there are as many scripts as the fragment has without labels, and no image that one asked for."""
    data = outputs[name]["data"]
    if "text/html" not in data:
        assert set(data) <= {"image/png", "text/plain"}
        return
    markup = Markup(data["text/html"])
    assert len([tag for tag, _ in markup.elements if tag == "script"]) == (0 if name == "enlarge" else 1)
    assert "pwned" not in "".join(markup.text)
    assert "pwned" not in " ".join(value for tag, attrs in markup.elements if tag != "label" for key, value in attrs.items() if key not in ("alt", "aria-label"))


def test_a_page_with_widgets_gets_the_picture_too(kernel: Kernel) -> None:
    """The bundle for a page: the widget's view, and what shows where there is none. No module of ours loads another."""
    assert kernel.run(PREPARE).status == "ok"
    front = Front(kernel)
    for name in ("explore", "expected"):
        came = front.idle(kernel.client.execute(CELLS[name], allow_stdin=True))
        still, shown = (m["content"] for m in came if m["msg_type"] == "display_data")
        assert set(shown["data"]) == {VIEW, "text/plain"}
        check_bundle(still, True)
    modules = [state["_esm"] for state in front.states.values() if "_esm" in state]
    assert modules
    for module in modules:
        assert FORBIDDEN.search(module) is None
        assert not re.search(r"https?:", module)
    for state in front.states.values():  # what a page of any make has: ipywidgets' own, and anywidget
        assert state["_model_module"] in ("@jupyter-widgets/base", "@jupyter-widgets/controls", "anywidget")


def document(outputs: dict[str, dict[str, Any]]) -> nbformat.NotebookNode:
    cells = []
    for name, output in outputs.items():
        shown = nbformat.v4.new_output("display_data", output["data"], metadata=output["metadata"])
        cells.append(nbformat.v4.new_code_cell(CELLS[name], outputs=[shown]))
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": {"name": KERNEL, "display_name": "Go (attnb)", "language": "go"}})
    nbformat.validate(notebook)
    return notebook


def test_a_viewer_of_static_outputs(outputs: dict[str, dict[str, Any]]) -> None:
    """One that knows no HTML takes the PNG of each, and says in words what it is to those who cannot see it."""
    exporter = HTMLExporter(template_name="classic")
    exporter.register_preprocessor(Plain, enabled=True)
    page = Markup(exporter.from_notebook_node(document(outputs))[0])
    pictures = [i for i in page.images() if i.get("src", "").startswith("data:image/png;base64,")]
    assert [i["src"].partition(",")[2].replace("\n", "") for i in pictures] == [o["data"]["image/png"].replace("\n", "") for o in outputs.values()]
    assert [i["alt"] for i in pictures] == [o["metadata"]["image/png"]["alt"] for o in outputs.values()]


class Plain:
    """Takes of each output what such viewers know."""

    def __init__(self, **_: Any) -> None: ...

    def __call__(self, notebook: nbformat.NotebookNode, resources: Any) -> tuple[nbformat.NotebookNode, Any]:
        for c in notebook.cells:
            for output in c.outputs:
                output.data = {kind: part for kind, part in output.data.items() if kind in ("image/png", "text/plain")}
        return notebook, resources


def test_latex_takes_the_picture(outputs: dict[str, dict[str, Any]]) -> None:
    """The way to PDF by LaTeX includes each PNG, and nothing of pages."""
    text, resources = LatexExporter().from_notebook_node(document(outputs))
    files = re.findall(r"\\adjustimage\{max size=\{[^}]*\}\{[^}]*\}\}\{([^}]*)\}", text)
    assert len(files) == len(outputs)
    pictures = resources["outputs"]
    assert [png({"image/png": base64.b64encode(pictures[file])}).size for file in files] == [png(o["data"]).size for o in outputs.values()]
    body = re.sub(r"\\begin\{Verbatim\}.*?\\end\{Verbatim\}", "", text, flags=re.S)  # the cells' own text
    for residue in ("<script", "<div", "<img", "data:image", "attnbZoom", "DecompressionStream"):
        assert residue not in body
