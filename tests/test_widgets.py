"""Pictures with controls, in a real JupyterLab, in a headless Chromium."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Locator, Page, expect, sync_playwright

from conftest import ATTN, KERNEL, ROOT
from test_lab import CHROMIUM, SLOW, run_all, wait_until_up

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium (Debian: apt-get install chromium)")

LAYER = (
    ATTN
    + """%%
x := make([]float64, 12*3*4*16)
for i := range x { x[i] = 1.5 * math.Sin(float64(i*i%997)) }
q, k, _ := attn.FromSlice(x, "seq hidden", 12, 3*4*16).SplitHeads(attn.NeoX(4))
q, k = q.RoPE(attn.HalfSplit(8)), k.RoPE(attn.HalfSplit(8))
p := attn.Scores(q, k, attn.Causal).Softmax()
"""
)
CELLS = [
    LAYER + 'attn.Explore(p, attn.Dial("offset", -64, 64), attn.Choice("pairing"), attn.Choice("head"), attn.Title("probabilities"))',
    LAYER + 'attn.Explore(p.Head(0), attn.Dial("key offset", -64, 1<<28))',
    '%%\nfmt.Println("begun")\ntime.Sleep(6 * time.Second)\nfmt.Println("ended")',
]

# A browser that asks nobody for anything.
QUIET = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--disable-quic"]  # fmt: skip

# The bytes that a picture shows, as text, or nothing where there is none.
BYTES = """async image => {
  if (!image.isConnected) return null;  // another one took its place just now
  let bytes;
  try {
    bytes = new Uint8Array(await (await fetch(image.src)).arrayBuffer());
  } catch (err) {
    if (!image.isConnected) return null;
    throw err;
  }
  const hash = await crypto.subtle.digest("SHA-256", bytes);
  return Array.from(new Uint8Array(hash), b => b.toString(16).padStart(2, "0")).join("");
}"""


@pytest.fixture
def notebook(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[str, Path]]:
    """A JupyterLab with one notebook, of CELLS or of the test's parameter: its address, and the file."""
    file = tmp_path / "explore.ipynb"
    cells = [nbformat.v4.new_code_cell(cell) for cell in getattr(request, "param", CELLS)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": {"name": KERNEL, "display_name": "Go (attnb)", "language": "go"}}), file)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    base, log = f"http://127.0.0.1:{port}", tmp_path / "lab.log"
    with log.open("w") as out:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", "--no-browser", f"--port={port}", "--ServerApp.port_retries=0", "--ip=127.0.0.1",
             "--IdentityProvider.token=secret", f"--notebook-dir={tmp_path}", "--allow-root",
             "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"],
            stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            wait_until_up(f"{base}/api/status?token=secret", server, log)
            yield f"{base}/lab/tree/explore.ipynb?token=secret", file
        finally:
            server.terminate()
            server.wait(timeout=30)


@pytest.fixture
def page() -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        try:
            yield browser.new_page(viewport={"width": 1500, "height": 1000})
        finally:
            browser.close()


def cell(page: Page, index: int) -> Locator:
    return page.locator(".jp-Notebook .jp-CodeCell").nth(index)


def picture(page: Page, index: int) -> Locator:
    return cell(page, index).locator(".attnb-picture img")


def shown(image: Locator) -> str:
    expect(image).to_be_visible(timeout=SLOW)
    while True:
        image.page.wait_for_function("image => image.complete && image.naturalWidth > 100", arg=image.element_handle(), timeout=SLOW)
        if hash := image.evaluate(BYTES):
            return hash


def changed(image: Locator, before: str) -> str:
    """What a picture shows once it shows something else."""
    deadline = SLOW
    while (now := shown(image)) == before and deadline > 0:
        image.page.wait_for_timeout(20)
        deadline -= 20
    assert now != before, "the picture stays as it is"
    return now


def settled(image: Locator) -> str:
    """What a picture shows once it has stayed the same for a second."""
    same, now = 0, shown(image)
    while same < 10:
        image.page.wait_for_timeout(100)
        before, now = now, shown(image)
        same = same + 1 if now == before else 0
    return now


def turn(page: Page, index: int, key: str, times: int = 1) -> None:
    """Moves the first slider of a cell by the keyboard."""
    handle = cell(page, index).locator(".noUi-handle").first
    handle.focus()
    for _ in range(times):
        handle.press(key)


def type_value(page: Page, index: int, value: int) -> None:
    readout = cell(page, index).locator(".widget-readout").first
    readout.fill(str(value))
    readout.press("Enter")


def save(page: Page, file: Path) -> None:
    """Saves the notebook, and waits until the file has the outputs of all cells: what the page says of it may come before."""
    page.keyboard.press("Escape")
    deadline = time.monotonic() + SLOW / 1000
    while True:
        page.keyboard.press("Control+s")
        for _ in range(50):
            page.wait_for_timeout(100)
            try:
                saved = nbformat.read(file, as_version=4)
            except (ValueError, OSError):  # it is being written
                continue
            outputs = [output for c in saved.cells[-1:] for output in c.outputs]
            if all(c.outputs for c in saved.cells) and "ended" in str(outputs):
                expect(page.locator(".jp-Document .jp-mod-dirty")).to_have_count(0, timeout=SLOW)
                return
        assert time.monotonic() < deadline, "the notebook is not saved"


def test_explore(notebook: tuple[str, Path], page: Page) -> None:
    address, file = notebook
    page.goto(address)
    expect(page.locator(".jp-Notebook .jp-CodeCell")).to_have_count(len(CELLS), timeout=SLOW)
    expect(page.get_by_text("Go (attnb) | Idle")).to_be_visible(timeout=SLOW)
    run_all(page, "run-all")

    # While the last cell runs, and the cells of the pictures have ended.
    expect(cell(page, 2).locator(".jp-OutputArea-output")).to_contain_text("begun", timeout=SLOW)
    readout = cell(page, 0).locator(".widget-readout").first
    recorded = shown(picture(page, 0))
    turn(page, 0, "ArrowRight")
    turned = changed(picture(page, 0), recorded)
    expect(cell(page, 2).locator(".jp-OutputArea-output")).not_to_contain_text("ended")

    # Between cells. The picture of a setting is the same each time.
    expect(cell(page, 2).locator(".jp-OutputArea-output")).to_contain_text("ended", timeout=SLOW)
    turn(page, 0, "ArrowLeft")
    assert changed(picture(page, 0), turned) == recorded
    expect(readout).to_have_text("0")
    turn(page, 0, "ArrowRight", 20)  # a drag
    expect(readout).to_have_text("20")
    far = settled(picture(page, 0))
    assert far not in (recorded, turned)
    cell(page, 0).get_by_label("pairing").select_option("interleaved")
    other = changed(picture(page, 0), far)
    cell(page, 0).get_by_label("head").select_option("head 2")
    head = changed(picture(page, 0), other)
    assert "12 query x 12 key" in (picture(page, 0).get_attribute("alt") or "")
    cell(page, 0).get_by_label("head").select_option("all")
    assert changed(picture(page, 0), head) == other

    # What cannot be run says so under the picture, and the next value works.
    note = cell(page, 1).locator(".attnb-picture figcaption")
    before = shown(picture(page, 1))
    type_value(page, 1, 200_000_000)
    expect(note).to_contain_text("RoPE: offset 200000000 with 12 rows", timeout=SLOW)
    assert shown(picture(page, 1)) == before
    type_value(page, 1, 5)
    changed(picture(page, 1), before)
    expect(note).to_have_text("")

    screenshots = ROOT / "build" / "screenshots"
    screenshots.mkdir(parents=True, exist_ok=True)
    for toast in page.locator(".jp-toast-button", has_text="No").all():
        toast.click()
    cell(page, 0).scroll_into_view_if_needed()
    page.screenshot(path=screenshots / "explore.png")

    # After a reload of the page, with the kernel alive.
    save(page, file)
    page.reload()
    readout = cell(page, 0).locator(".widget-readout").first
    expect(readout).to_have_text("20", timeout=SLOW)
    expect(cell(page, 0).get_by_label("pairing")).to_have_value("interleaved")
    assert shown(picture(page, 0)) == other
    turn(page, 0, "ArrowLeft")
    changed(picture(page, 0), other)
    expect(readout).to_have_text("19")

    # The file holds the picture for readers without widgets.
    outputs = nbformat.read(file, as_version=4).cells[0].outputs
    assert [sorted(output["data"]) for output in outputs] == [["image/png", "text/html", "text/plain"], ["application/vnd.jupyter.widget-view+json", "text/plain"]]

    # A new kernel knows nothing of it, and makes another.
    run_all(page, "restart-and-run-all")
    page.locator(".jp-Dialog .jp-mod-accept").click()
    expect(cell(page, 0).locator(".widget-readout").first).to_have_text("0", timeout=SLOW)
    assert shown(picture(page, 0)) == recorded
    turn(page, 0, "ArrowRight")
    assert changed(picture(page, 0), recorded) == turned


HEARS = ATTN + """%%
for gain := range attn.Slider("gain", 0, 10, 3).Values() {
	fmt.Printf("<gain %d>\\n", gain)
	if gain == 5 { break }
}
for mask := range attn.Menu("mask", "causal", "full").Values() {
	fmt.Printf("<mask %s>\\n", mask)
	if mask == "full" { break }
}
"""


@pytest.mark.parametrize("notebook", [[HEARS]], indirect=True)
def test_a_cell_hears_its_own_controls(notebook: tuple[str, Path], page: Page) -> None:
    address, _ = notebook
    page.goto(address)
    expect(page.get_by_text("Go (attnb) | Idle")).to_be_visible(timeout=SLOW)
    run_all(page, "run-all")
    output = cell(page, 0).locator(".jp-OutputArea")
    expect(output).to_contain_text("<gain 3>", timeout=SLOW)
    turn(page, 0, "ArrowRight")
    expect(output).to_contain_text("<gain 4>", timeout=SLOW)
    turn(page, 0, "ArrowRight")
    expect(output).to_contain_text("<mask causal>", timeout=SLOW)
    cell(page, 0).get_by_label("mask").select_option("full")
    expect(output).to_contain_text("<mask full>", timeout=SLOW)
    expect(output.get_by_text("Its cell has ended: run it again.")).to_have_count(2, timeout=SLOW)
    expect(cell(page, 0).get_by_label("mask")).to_be_disabled()
    expect(page.get_by_text("Go (attnb) | Idle")).to_be_visible(timeout=SLOW)
