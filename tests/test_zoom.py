"""Pictures that zoom, in a real JupyterLab and in an exported page, in a headless Chromium."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from nbformat.sign import NotebookNotary
from playwright.sync_api import Locator, Page, expect

from conftest import ATTN, ROOT
from test_lab import CHROMIUM, SLOW, jupyterlab, run_all
from test_widgets import cell, page, save  # noqa: F401 (page is a fixture)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium (Debian: apt-get install chromium)")

SEQ, DIM, SIDE = 8192, 16, 300
NASTY = ['"quoted"', "back\\slash", "line\nbreak", "🙂 emoji", "שלום", "</script><script>window.pwned = 1</script>",
         "<img src=x onerror='window.pwned = 1'>", " ", "", "a\u2028b", "&amp;", "'"]  # fmt: skip
HEADS = 3

CELLS = [
    # 0: long
    ATTN
    + f"""%%
x := make([]float64, 2*{SEQ}*{DIM})
for i := range x {{ x[i] = 1.5 * math.Sin(float64(i)*float64(i%997)*0.37) }}
q := attn.FromSlice(x[:{SEQ}*{DIM}], "heads seq dim", 1, {SEQ}, {DIM}).Named("q")
k := attn.FromSlice(x[{SEQ}*{DIM}:], "heads seq dim", 1, {SEQ}, {DIM}).Named("k")
attn.Map(q, k, attn.Causal)""",
    # 1: a matrix that is there, with what is not finite
    ATTN
    + f"""%%
x := make([]float32, {SIDE}*{SIDE})
for i := range x {{ x[i] = float32(math.Sin(float64(i)*float64(i%97)*0.37)) }}
x[0], x[1], x[2] = float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))
attn.FromSlice(x, "query key", {SIDE}, {SIDE}).Named("x").Interactive(attn.Title("a matrix </script>"))""",
    # 2: heads, and labels of all kinds
    ATTN
    + f"""%%
x := make([]float32, {HEADS}*{len(NASTY)}*4)
for i := range x {{ x[i] = float32(i%7) }}
q := attn.FromSlice(x, "heads seq dim", {HEADS}, {len(NASTY)}, 4)
attn.Map(q, q, attn.Causal, attn.Tokens({", ".join('"' + "".join(chr(c) if 32 < c < 127 and chr(c) not in '"' + chr(92) else f"{chr(92)}U{c:08x}" for c in map(ord, t)) + '"' for t in NASTY)}))""",
    # 3: what the kernel says of the cells that the test names in a file
    ATTN
    + f"""%%
text, err := os.ReadFile("ask.txt")
if err == nil {{
	var row, col int
	fmt.Sscan(string(text), &row, &col)
	s := attn.Scores(attn.Get("q").Rows(row, row+1), attn.Get("k"), attn.CausalAt(row))
	fmt.Printf("<score %d %d %.9g>\\n", row, col, s.Download()[col])
	fmt.Printf("<probability %d %d %.9g>\\n", row, col, s.Softmax().Download()[col])
	fmt.Printf("<value %d %d %.9g>\\n", row%{SIDE}, col%{SIDE}, attn.Get("x").Download()[row%{SIDE}*{SIDE}+col%{SIDE}])
}}
fmt.Println("ended")""",
]


@dataclass
class Reading:
    """What the tooltip says: the ranges that a cell stands for, and its values as they are written."""

    text: str

    def range(self, axis: str) -> tuple[int, int]:
        found = re.search(rf"^{axis} (\d+)(?:–(\d+))?", self.text, re.M)
        assert found, self.text
        return int(found[1]), int(found[2] or found[1])

    @property
    def single(self) -> bool:
        return all(a == b for a, b in (self.range("query"), self.range("key")))

    def value(self, name: str) -> str:
        found = re.search(rf"^{name} (.*)$", self.text, re.M)
        assert found, self.text
        return found[1].strip()


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    directory = tmp_path_factory.mktemp("zoom")
    with jupyterlab(directory, CELLS) as address:
        yield address, directory / "picture.ipynb"


def pad(where: Locator) -> Locator:
    return where.locator(".attnb-zoom [role=application]")


def hover(where: Locator, x: float, y: float) -> None:
    """Puts the pointer on a place of the plot, from 0 to 1."""
    box = pad(where).bounding_box()
    assert box
    at = x * box["width"], y * box["height"]
    for nudge in (1, 0):  # it waits until the page has scrolled and stands still
        pad(where).hover(position={"x": min(max(at[0], 1) + nudge, box["width"] - 1), "y": min(max(at[1], 1) + nudge, box["height"] - 1)}, timeout=SLOW)


def reading(where: Locator, exact: bool = True) -> Reading:
    tip = where.locator(".attnb-tip")
    expect(tip).to_be_visible(timeout=SLOW)
    if exact:
        expect(tip).not_to_contain_text("≈", timeout=SLOW)
    return Reading(tip.inner_text())


def into(where: Locator, x: float, y: float, exact: bool = True) -> Reading:
    """Zooms in at a place by the wheel, as far as it goes."""
    hover(where, x, y)
    for _ in range(40):
        where.page.keyboard.down("Control")
        where.page.mouse.wheel(0, -200)
        where.page.keyboard.up("Control")
        where.page.wait_for_timeout(30)
        if "• single cells" in where.locator(".attnb-zoom").inner_text():
            break
    expect(where.locator(".attnb-zoom")).not_to_have_attribute("data-state", "waits", timeout=SLOW)
    hover(where, x, y)
    return reading(where, exact)


def state(where: Locator, want: str) -> None:
    expect(where.locator(".attnb-zoom")).to_have_attribute("data-state", want, timeout=SLOW)


def status(where: Locator) -> Locator:
    return where.locator(".attnb-zoom [role=status]")


def screenshot(page: Page, name: str) -> None:
    directory = ROOT / "build" / "screenshots"
    directory.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=directory / f"{name}.png")


def theme(page: Page, name: str) -> None:
    page.get_by_role("menuitem", name="Settings", exact=True).click()
    page.get_by_role("listitem").filter(has_text=re.compile(r"^Theme$")).hover()
    page.locator(".lm-Menu-item", has_text=re.compile(rf"^JupyterLab {name}$")).click()


def open_and_run(address: str, page: Page) -> None:
    page.goto(address)
    expect(page.locator(".jp-Notebook .jp-CodeCell")).to_have_count(len(CELLS), timeout=SLOW)
    expect(page.get_by_text("Go (attnb) | Idle")).to_be_visible(timeout=SLOW)
    run_all(page, "run-all")
    expect(cell(page, len(CELLS) - 1).locator(".jp-OutputArea-output")).to_contain_text("ended", timeout=SLOW)
    expect(page.get_by_text("Go (attnb) | Idle")).to_be_visible(timeout=SLOW)


def f32(text: str) -> bytes:
    return struct.pack("<f", float(text))


def ask(page: Page, directory: Path, row: int, col: int) -> dict[str, str]:
    """What the kernel has at a place: a score, a probability, a value of the matrix."""
    (directory / "ask.txt").write_text(f"{row} {col}")
    cell(page, 3).locator(".jp-InputArea-editor").click()
    page.keyboard.press("Control+Enter")
    output = cell(page, 3).locator(".jp-OutputArea-output")
    expect(output).to_contain_text(f"<score {row} {col}", timeout=SLOW)
    expect(output).to_contain_text("ended", timeout=SLOW)
    page.keyboard.press("Escape")
    return dict(re.findall(r"<(\w+) \d+ \d+ (\S+)>", output.inner_text()))


def test_zoom(notebook: tuple[str, Path], page: Page) -> None:  # noqa: F811
    address, file = notebook
    open_and_run(address, page)
    long, matrix, heads = (cell(page, i) for i in range(3))

    # A pooled cell: its range, its reduction, its exact value. The page scrolls where the wheel is not meant for the picture.
    state(long, "live")
    hover(long, 0.05, 0.61)
    pooled = reading(long)
    assert not pooled.single
    assert re.search(r"largest of 16 × 16", pooled.text), pooled.text
    page.mouse.wheel(0, -1)
    assert "• single cells" not in long.locator(".attnb-zoom").inner_text()
    screenshot(page, "zoom-whole")

    # Down to a single cell of 8192 x 8192, which has the values that the kernel has.
    one = into(long, 0.05, 0.61)
    assert one.single, one.text
    screenshot(page, "zoom-single")
    row, col = one.range("query")[0], one.range("key")[0]
    want = ask(page, file.parent, row, col)
    for name in ("score", "probability"):
        assert f32(one.value(name)) == f32(want[name]), (name, one.text, want)
    long.get_by_label("copy the Go line that shows this part").click()
    expect(status(long)).to_contain_text(re.compile(r'copied: attn\.Map\(attn\.Get\("q"\), attn\.Get\("k"\), attn\.Causal, attn\.Queries\(\d+, \d+\), attn\.Keys\(\d+, \d+\)\)'))

    # The keyboard, drag and double click.
    pad(long).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("-")
    detail = long.locator(".attnb-zoom").inner_text()
    assert "query" in detail
    pad(long).dblclick()
    expect(long.locator(".attnb-zoom")).to_contain_text("largest of 16 × 16", timeout=SLOW)
    expect(page.locator(".jp-Notebook .jp-CodeCell")).to_have_count(len(CELLS))  # no key reached the notebook

    # What is masked says so.
    hover(long, 0.9, 0.1)
    assert reading(long).value("probability") == "masked"

    # A matrix: bit for bit what it holds, and each kind of what is not finite.
    state(matrix, "live")
    value = into(matrix, 0.3, 0.4)
    assert value.single, value.text
    row, col = value.range("query")[0], value.range("key")[0]
    want = ask(page, file.parent, row, col)
    assert f32(value.value("value")) == f32(want["value"]), (value.text, want)
    pad(matrix).focus()
    page.keyboard.press("0")
    corner = into(matrix, 0.0, 0.0)
    assert corner.value("value") == "NaN", corner.text
    for text in ("NaN: 1 cell", "+Inf: 1 cell", "-Inf: 1 cell"):
        expect(matrix.locator(".attnb-zoom")).to_contain_text(text)

    # Labels are text, whatever they hold; each head has its own cells.
    state(heads, "live")
    said = set()
    for i in range(len(NASTY)):
        hover(heads, 0.5 / len(NASTY), (i + 0.5) / len(NASTY))
        said.add(reading(heads).value("query"))
    assert len(said) == len(NASTY), said
    assert any("</script><script>" in text for text in said) and any("שלום" in text for text in said) and any("🙂" in text for text in said), said
    assert page.evaluate("window.pwned") is None
    heads.get_by_label("which matrix shows").select_option("2")
    hover(heads, 0.1, 0.9)
    reading(heads)
    heads.get_by_label("copy the Go line that shows this part").click()
    expect(status(heads)).to_contain_text("attn.OnlyHead(2)")
    screenshot(page, "zoom-heads")

    # A reload of the page, with the kernel alive.
    save(page, file)
    page.reload()
    state(long, "live")
    assert into(long, 0.3, 0.8).single

    # The dark theme.
    theme(page, "Dark")
    page.wait_for_timeout(1500)
    hover(long, 0.3, 0.8)
    screenshot(page, "zoom-dark")
    theme(page, "Light")

    # The cell runs again: a picture of its own, and the one before is let go.
    long.locator(".jp-InputArea-editor").click()
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Go (attnb) | Idle")).to_be_visible(timeout=SLOW)
    state(long, "live")

    # A new kernel knows nothing of the picture, which says so.
    page.get_by_role("menuitem", name="Kernel", exact=True).click()
    page.locator('.lm-Menu [data-command="kernelmenu:restart"]').click()
    page.locator(".jp-Dialog .jp-mod-accept").click()
    state(long, "stored")
    expect(status(long)).to_contain_text("run the cell again")

    # The output is what notebooks hold pleasantly.
    saved = nbformat.read(file, as_version=4)
    outputs = [output for c in saved.cells[:3] for output in c.outputs]
    for output in outputs:
        assert sorted(output["data"]) == ["image/png", "text/html", "text/plain"]
        assert sum(len(part) for part in output["data"].values()) <= 1_000_000


def elsewhere(saved: nbformat.NotebookNode, file: Path, trusted: bool) -> None:
    """The notebook under another name, which asks for no kernel."""
    saved = nbformat.from_dict(saved)
    saved.metadata.pop("kernelspec", None)
    saved.metadata.pop("language_info", None)
    saved.metadata["for"] = file.name  # nobody has signed this one
    nbformat.write(saved, file)
    if trusted:
        notary = NotebookNotary()
        with file.open(encoding="utf-8") as f:
            notary.sign(nbformat.read(f, as_version=4))


def open_without_kernel(page: Page, address: str) -> None:
    page.goto(address.replace("?", "?reset&"))  # without the notebooks that were open
    dialog = page.locator(".jp-Dialog")
    expect(dialog).to_be_visible(timeout=SLOW)
    dialog.get_by_role("button", name="No Kernel").click()
    expect(page.locator(".jp-Notebook .jp-CodeCell")).to_have_count(len(CELLS), timeout=SLOW)


def test_without_a_kernel(notebook: tuple[str, Path], page: Page) -> None:  # noqa: F811
    address, file = notebook
    saved = nbformat.read(file, as_version=4)
    assert all(c.outputs for c in saved.cells), "the test before this one saves the notebook"

    # Trusted: what is stored zooms, and says what is missing.
    elsewhere(saved, file.with_name("trusted.ipynb"), trusted=True)
    open_without_kernel(page, address.replace("picture.ipynb", "trusted.ipynb"))
    long = cell(page, 0)
    state(long, "stored")
    expect(status(long)).to_contain_text("needs the kernel: run the cell again")
    hover(long, 0.05, 0.61)
    assert "≈" in reading(long, exact=False).text
    before = long.locator(".attnb-zoom").inner_text()
    pad(long).focus()
    page.keyboard.press("+")
    page.keyboard.press("+")
    expect(long.locator(".attnb-zoom")).to_contain_text("largest of 8 × 8", timeout=SLOW)
    assert "largest of 16 × 16" in before
    screenshot(page, "zoom-stored")

    # Not trusted: the labelled PNG, and no script of ours.
    elsewhere(saved, file.with_name("untrusted.ipynb"), trusted=False)
    open_without_kernel(page, address.replace("picture.ipynb", "untrusted.ipynb"))
    picture = cell(page, 0).locator(".jp-OutputArea-output img")
    expect(picture).to_be_visible(timeout=SLOW)
    assert picture.evaluate("image => image.complete && image.naturalWidth > 500")
    assert "8192" in (picture.get_attribute("alt") or "") or "query 0–8191" in (picture.get_attribute("alt") or "").lower()
    expect(page.locator(".attnb-zoom [role=application]")).to_have_count(0)
    expect(page.get_by_text("model not found")).to_have_count(0)
    screenshot(page, "zoom-untrusted")


def test_export(notebook: tuple[str, Path], page: Page) -> None:  # noqa: F811
    _, file = notebook
    subprocess.run([sys.executable, "-m", "nbconvert", "--log-level=ERROR", "--to", "html", str(file)], check=True, stdin=subprocess.DEVNULL)
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(request.url))
    page.goto(file.with_suffix(".html").as_uri())
    pictures = page.locator(".attnb-zoom")
    expect(pictures).to_have_count(3)
    expect(pictures.first).to_have_attribute("data-state", "stored", timeout=SLOW)
    hover(pictures.first.locator(".."), 0.05, 0.61)
    assert "≈" in reading(pictures.first.locator(".."), exact=False).text
    assert not [url for url in loaded if "attnb" in url and not url.startswith("file:")]
    pictures.first.scroll_into_view_if_needed()
    screenshot(page, "zoom-export")
