"""The stored notebooks in a real JupyterLab, in a headless Chromium: as someone sees them who has only opened them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import notebooks
from conftest import ROOT
from test_lab import CHROMIUM, SLOW, page, serve  # noqa: F401 (a fixture)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium (Debian: apt-get install chromium)")

SHOTS = ROOT / "build" / "screenshots"
PATHS = notebooks.paths()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    directory, settings = tmp_path_factory.mktemp("notebooks"), tmp_path_factory.mktemp("settings")
    for path in PATHS:
        shutil.copy(path, directory)
    tracker = settings / "@jupyterlab" / "notebook-extension" / "tracker.jupyterlab-settings"
    tracker.parent.mkdir(parents=True)
    tracker.write_text(json.dumps({"windowingMode": "none"}))  # else cells out of sight are not in the page
    with serve(directory, settings) as address:
        yield address


@pytest.mark.parametrize("path", PATHS, ids=[path.name for path in PATHS])
def test_opened_it_shows_its_pictures(lab: Callable[[str], str], page: Page, path: Path) -> None:  # noqa: F811
    notebook = notebooks.read(path)
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    pictures = sum("image/png" in output.get("data", {}) for output in outputs)
    page.goto(lab(path.name) + "&reset")  # without the notebooks of the tests before
    expect(page.locator(".jp-Notebook .jp-Cell")).to_have_count(len(notebook.cells), timeout=SLOW)
    images = page.locator(".jp-Notebook .jp-OutputArea-output img")
    expect(images).to_have_count(pictures, timeout=SLOW)
    for image in images.all():
        image.scroll_into_view_if_needed()
        assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") > 100
        assert image.bounding_box()["width"] > 100
    if any("$$" in cell.source for cell in notebook.cells if cell.cell_type == "markdown"):
        expect(page.locator(".jp-RenderedMarkdown mjx-container").first).to_be_visible(timeout=SLOW)
    expect(page.locator(".jp-OutputArea-output[data-mime-type*=error]")).to_have_count(0)
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.locator(".jp-Notebook .jp-Cell").first.scroll_into_view_if_needed()
    page.screenshot(path=SHOTS / f"{path.stem}.png")
