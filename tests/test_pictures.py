"""The other kinds of picture: in real cells, and panels that a click enlarges, in a real JupyterLab and in a file."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from nbconvert import HTMLExporter
from playwright.sync_api import Locator, Page, expect

from conftest import ATTN, ROOT, Kernel
from test_lab import CHROMIUM, SLOW, jupyterlab, page, run_all  # noqa: F401 (a fixture)

PNG = b"\x89PNG\r\n\x1a\n"
SHOTS = ROOT / "build" / "screenshots"
QKV = """%%
x := make([]float32, 2*7*8)
for i := range x { x[i] = float32((i*37)%23)/8 - 1.4 }
k := attn.FromSlice(x, "heads seq dim", 2, 7, 8).RoPE(attn.HalfSplit(8)).Named("k")
s := attn.Scores(k, k, attn.Causal).Named("s")
s.Softmax().Named("p")
"""


@pytest.fixture(scope="module", autouse=True)
def tensors(kernel: Kernel) -> None:
    assert kernel.run(QKV).status == "ok"


PICTURES = {
    "statistics": ('attn.Get("p").Heatmap(attn.Statistics)', "head 1: entropy "),
    "layers": ('attn.Layers([]attn.Tensor{attn.Get("p"), attn.Get("p")}, attn.Distance)', "Heatmap of 2 layer x 2 head (distance (keys))"),
    "trace": ('attn.Trace(attn.Get("s"), attn.Get("k"), 4, attn.OnlyHead(1))', "head 1, query 4. 5 charts over 7 key."),
    "decoding": ('attn.Decoding([]attn.Tensor{attn.Get("p").Rows(0, 5), attn.Get("p").Rows(5, 7)})', "2 heatmaps on one scale, each of 7 query x 7 key"),
    "timeline": ('k := attn.Get("k"); attn.AppendKV(k, k.Rows(0, 1)).Timeline()', "Heatmap of 8 slot x 2 step (position)"),
    "writes": ("attn.Writes([]attn.Write{{Slots: []int{0}}, {Slots: []int{2}}, {Slots: []int{0}}})", "hole in 2 cells, first at slot 1"),
    "phasors": ("attn.HalfSplit(8).Phasors(9, attn.Beside(attn.Interleaved(8)))", "each of 8 dim x 9 row (angle (rad))"),
    "differences": ('attn.Compare(attn.Get("p"), attn.Get("p"), attn.Differences)', '"p" and "p"'),
    "steps": ('attn.Get("p").Check(attn.ULP)', "(f32 steps)"),
}


@pytest.mark.parametrize("what", PICTURES)
def test_a_cell_shows(kernel: Kernel, what: str) -> None:
    code, says = PICTURES[what]
    result = kernel.run("%%\n" + code)
    assert (result.status, len(result.displays)) == ("ok", 1), result
    data = result.displays[0]
    assert base64.b64decode(data["image/png"]).startswith(PNG)
    assert says in data["text/plain"]


def test_what_cannot_be_drawn_is_one_line(kernel: Kernel) -> None:
    result = kernel.run('%%\nattn.Trace(attn.Get("s"), attn.Get("k"), 7, attn.OnlyHead(1))')
    assert (result.status, len(result.displays)) == ("error", 0)
    assert result.reply["evalue"] == 'Trace: query 7 is not within 0 to 6 (scores: "s" [heads 2, query 7, key 7])'


ENLARGE = ATTN + QKV + "attn.Get(\"p\").Heatmap(attn.Enlarge)"


def panels(where: Page | Locator) -> tuple[Locator, Locator, Locator]:
    """The picture of all panels, the second of them to click, and what it becomes."""
    gallery = where.locator(".attnb-gallery")
    return gallery.locator("img"), gallery.locator(".all label").nth(1), gallery.locator("label.p1")


def assert_enlarges(where: Page | Locator) -> None:
    picture, small, large = panels(where)
    expect(picture).to_be_visible(timeout=SLOW)
    assert picture.evaluate("image => image.naturalWidth") > 100
    expect(large).to_be_hidden()
    small.click()
    expect(large).to_be_visible()
    expect(picture).to_be_hidden()
    box = large.bounding_box()
    assert box and box["width"] > 300 and box["height"] > 300
    assert large.evaluate("e => getComputedStyle(e).backgroundImage").startswith('url("data:image/png;base64,')
    large.click()
    expect(picture).to_be_visible()
    expect(large).to_be_hidden()


@pytest.fixture(scope="module")
def enlarging(kernel: Kernel) -> str:
    result = kernel.run('%%\nattn.Get("p").Heatmap(attn.Enlarge)')
    data = result.displays[0]
    assert sorted(data) == ["image/png", "text/html", "text/plain"]
    assert len(data["text/html"]) < 1 << 20
    return data["text/html"]


@pytest.fixture
def no_network(page: Page) -> Iterator[list[str]]:  # noqa: F811
    asked: list[str] = []
    page.on("request", lambda r: asked.append(r.url) if r.url.startswith("http") else None)
    yield asked
    assert asked == []


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium (Debian: apt-get install chromium)")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_panel_enlarges_in_an_export(enlarging: str, page: Page, no_network: list[str], tmp_path: Path, scheme: str) -> None:  # noqa: F811
    """The same output twice in an exported notebook, opened from a file, without a network: each enlarges alone."""
    output = nbformat.v4.new_output("display_data", {"text/html": enlarging})
    again = nbformat.v4.new_output("display_data", {"text/html": enlarging.replace("attnb-", "attnb-x")})
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x", outputs=[output, again])])
    exporter = HTMLExporter(mathjax_url="", require_js_url="", jquery_url="", mermaid_js_url="")
    (tmp_path / "export.html").write_text(exporter.from_notebook_node(notebook)[0])
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.goto((tmp_path / "export.html").as_uri())
    first = page.locator(".attnb-gallery").first
    first.locator(".all label").nth(1).click()
    expect(first.locator("label.p1")).to_be_visible()
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SHOTS / f"enlarged-{scheme}.png")


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium (Debian: apt-get install chromium)")
def test_a_panel_enlarges_in_lab_and_untrusted_there_is_the_picture(page: Page, tmp_path: Path) -> None:  # noqa: F811
    with jupyterlab(tmp_path, [ENLARGE]) as address:
        page.goto(address)
        cell = page.locator(".jp-Notebook .jp-CodeCell").first
        expect(page.get_by_text("Go (attnb) | Idle")).to_be_visible(timeout=SLOW)
        run_all(page, "run-all")
        assert_enlarges(cell)
        page.keyboard.press("Control+s")
        expect(page.locator(".jp-mod-dirty")).to_have_count(0, timeout=SLOW)

        saved = nbformat.read(tmp_path / "picture.ipynb", as_version=4)
        while not saved.cells[0].outputs:
            page.wait_for_timeout(200)
            saved = nbformat.read(tmp_path / "picture.ipynb", as_version=4)
        saved.cells[0].source += " // from elsewhere"  # so its signature is another
        nbformat.write(saved, tmp_path / "untrusted.ipynb")
        page.goto(address.replace("picture.ipynb", "untrusted.ipynb"))
        output = page.locator(".jp-Notebook:visible .jp-OutputArea-output")
        picture = output.locator("img").first
        expect(picture).to_be_visible(timeout=SLOW)
        assert picture.evaluate("image => image.naturalWidth") > 100
        expect(output.locator("style")).to_have_count(0)
        expect(output.locator("input:visible")).to_have_count(0)
        SHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SHOTS / "enlarge-untrusted.png")


EXPLORE = (
    ATTN
    + QKV.replace('.RoPE(attn.HalfSplit(8)).Named("k")', '.Named("x")').split("s := ")[0]
    + """
turned := func(offset int) attn.Tensor {
	return attn.Scores(k.RoPE(attn.HalfSplit(8).Offset(offset)), k.RoPE(attn.HalfSplit(8)), attn.Causal).Softmax()
}
attn.Explore(turned(0), attn.Expected(turned(70).Named("theirs")))
"""
)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium (Debian: apt-get install chromium)")
def test_an_offset_that_is_typed_turns_the_error_white_and_its_go_line_runs(page: Page, kernel: Kernel, tmp_path: Path) -> None:  # noqa: F811
    with jupyterlab(tmp_path, [EXPLORE]) as address:
        page.goto(address)
        cell = page.locator(".jp-Notebook .jp-CodeCell").first
        expect(page.get_by_text("Go (attnb) | Idle")).to_be_visible(timeout=SLOW)
        run_all(page, "run-all")
        picture, code = cell.locator(".attnb-picture img"), cell.locator(".attnb-code code")
        expect(picture).to_have_attribute("alt", re.compile("they differ"), timeout=SLOW)
        expect(code).to_contain_text("attn.HalfSplit(8)")
        shift = cell.locator(".widget-text input[type=number]")
        shift.fill("70")
        shift.press("Enter")
        expect(picture).to_have_attribute("alt", re.compile("they agree"), timeout=SLOW)
        expect(code).to_contain_text("attn.HalfSplit(8).Offset(70)")
        cell.get_by_role("button", name="Copy as Go").click()
        expect(cell.get_by_role("button", name=re.compile("Copied|Selected"))).to_be_visible()
        SHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SHOTS / "expected.png")
        line = code.text_content()
    assert line
    made = kernel.run('%%\nattn.Get("k").Named("x")\n' + line)  # another x, so another picture, by the same steps
    assert (made.status, len(made.displays)) == ("ok", 1), (line, made)
