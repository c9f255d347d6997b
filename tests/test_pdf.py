"""Notebooks as PDF: nbconvert's webpdf prints the HTML of a notebook in Chromium. The pages are looked at as images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pypdfium2
import pytest
from nbconvert import WebPDFExporter
from PIL import Image, ImageChops, ImageStat
from playwright.async_api import BrowserType

from bundles import CELLS, VIEWS, Pictures, png
from conftest import ROOT
from test_lab import CHROMIUM

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium (Debian: apt-get install chromium)")

PRINTED = ["heatmap", "explore", "trace", "interactive", "enlarge", "zoom", "map"]


@pytest.fixture(scope="module")
def document(pictures: Pictures, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The PDF of a notebook with a cell for each of PRINTED."""
    cells = []
    for name in PRINTED:
        output = pictures.outputs[name]
        shown = nbformat.v4.new_output("display_data", output["data"], metadata=output["metadata"])
        cells.append(nbformat.v4.new_code_cell(CELLS[name].splitlines()[-1][:60], outputs=[shown]))
    with pytest.MonkeyPatch.context() as patch:
        launch = BrowserType.launch

        async def debian(self: BrowserType, **options: Any) -> Any:  # Playwright's own Chromium is not on every machine
            return await launch(self, executable_path=CHROMIUM, **options)

        patch.setattr(BrowserType, "launch", debian)
        exporter = WebPDFExporter(disable_sandbox=True, mathjax_url="", require_js_url="", jquery_url="", mermaid_js_url="")
        made, _ = exporter.from_notebook_node(nbformat.v4.new_notebook(cells=cells))
    file = tmp_path_factory.mktemp("pdf") / "pictures.pdf"
    file.write_bytes(made)
    return file


def images(document: Path) -> list[Image.Image]:
    """The images in a PDF as they are stored, from top to bottom; small ones are letters and legends."""
    found = []
    pdf = pypdfium2.PdfDocument(document)
    for number, page in enumerate(pdf):
        for thing in page.get_objects(filter=[pypdfium2.raw.FPDF_PAGEOBJ_IMAGE]):
            _, _, _, top = thing.get_bounds()
            image = thing.get_bitmap().to_pil().convert("RGB")
            if image.width > 200 and image.height > 100:
                found.append((number, -top, image))
    return [image for _, _, image in sorted(found, key=lambda f: f[:2])]


def test_the_pictures_are_in_the_pdf(pictures: Pictures, document: Path) -> None:
    shown = images(document)
    assert len(shown) == len(PRINTED), [i.size for i in shown]
    for name, image in zip(PRINTED, shown, strict=True):
        if name not in VIEWS or name == "enlarge":  # the PNG itself, whose colours JPEG may have touched
            want = png(pictures.outputs[name]["data"]).convert("RGB")
            assert image.size == want.size, name
            assert max(ImageStat.Stat(ImageChops.difference(image, want)).mean) < 2, name
        else:  # what the page drew
            colours = image.quantize(64).convert("RGB").getcolors(1 << 16) or []
            assert len(colours) > 16, (name, colours)


def test_the_pages_look_right(document: Path) -> None:
    """Each picture is whole on its page, and none lies across an edge: the outermost pixels of each page are blank."""
    shots = ROOT / "build" / "screenshots"
    shots.mkdir(parents=True, exist_ok=True)
    for number, page in enumerate(pypdfium2.PdfDocument(document)):
        image = page.render(scale=1.5).to_pil().convert("RGB")
        image.save(shots / f"pdf-{number + 1}.png")
        for edge in (image.crop((0, 0, 4, image.height)), image.crop((image.width - 4, 0, image.width, image.height))):
            assert edge.getcolors(8) == [(edge.width * edge.height, (255, 255, 255))], number


def test_labels_are_words_in_the_pdf(document: Path) -> None:
    """What a page draws as text is text of the PDF, also the worst of it, and there is no trace of scripts."""
    text = "".join(page.get_textpage().get_text_range() for page in pypdfium2.PdfDocument(document))
    assert "</script><script>window.pwned = 1</script>" in text
    assert "DecompressionStream" not in text and "base64" not in text
