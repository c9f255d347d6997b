"""Pictures in a real Jupyter Notebook 7, in a headless Chromium: live, opened again without a kernel, trusted and not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Locator, Page, expect

from bundles import CELLS, PREPARE, VIEWS
from test_lab import CHROMIUM, SLOW, jupyterlab, run_all
from test_widgets import cell, changed, page, save, shown  # noqa: F401 (page is a fixture)
from test_zoom import elsewhere, hover, into, pad, reading, screenshot, state, status

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium (Debian: apt-get install chromium)")

SHOWN = ["map", "interactive", "enlarge", "heatmap", "explore", "short map"]
ALL = [PREPARE, *(CELLS[name] for name in SHOWN), '%%\nfmt.Println("ended")']
MAP, CHART, ENLARGE, STILL, EXPLORE, LABELLED = range(1, 1 + len(SHOWN))


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    directory = tmp_path_factory.mktemp("notebook7")
    with jupyterlab(directory, ALL, ["notebook"], "notebooks") as address:
        yield address, directory / "picture.ipynb"


def opened(page: Page, address: str) -> None:  # noqa: F811
    page.goto(address)
    expect(page.locator(".jp-Notebook .jp-CodeCell")).to_have_count(len(ALL), timeout=SLOW)


def in_sight(page: Page, i: int, selector: str) -> Locator:  # noqa: F811
    """What cell i holds, on the screen: Notebook 7 skips what is not, and cells above that are drawn late move it away."""
    found = cell(page, i).locator(selector)
    expect(found.first).to_be_attached(timeout=SLOW)
    for _ in range(100):
        if found.first.is_visible():
            break
        cell(page, i).evaluate("e => e.scrollIntoView()")
        page.wait_for_timeout(100)
    expect(found.first).to_be_visible()
    return found


def no_label_ran(page: Page) -> None:  # noqa: F811
    assert page.evaluate("window.pwned") is None


def test_live(notebook: tuple[str, Path], page: Page) -> None:  # noqa: F811
    address, file = notebook
    opened(page, address)
    run_all(page, "run-all")
    expect(cell(page, len(ALL) - 1).locator(".jp-OutputArea-output")).to_contain_text("ended", timeout=SLOW)

    # Zooming reaches single cells, which the kernel computes.
    state(cell(page, MAP), "live")
    hover(cell(page, MAP), 0.05, 0.9)
    assert not reading(cell(page, MAP)).single
    one = into(cell(page, MAP), 0.05, 0.9)
    assert one.single and 0 <= float(one.value("probability")) <= 1, one
    expect(status(cell(page, MAP))).to_contain_text("single cells, with exact values")

    # The chart tells values, a click enlarges, labels show as they are.
    chart = cell(page, CHART).locator(".attnb-heatmap")
    chart.scroll_into_view_if_needed()
    expect(chart.locator("canvas").first).to_be_visible(timeout=SLOW)
    expect(chart.locator("> img")).to_be_hidden()
    cell(page, ENLARGE).locator(".attnb-gallery .all label").nth(1).click()
    expect(cell(page, ENLARGE).locator("label.p1")).to_be_visible()
    state(cell(page, LABELLED), "live")
    hover(cell(page, LABELLED), 0.02, 5.5 / 14)
    assert "“</script><script>window.pwned = 1</script>”" in reading(cell(page, LABELLED)).text
    still = cell(page, STILL).locator(".jp-OutputArea-output img")
    assert still.evaluate("image => image.complete && image.naturalWidth > 100")
    screenshot(page, "notebook7-live")

    # A control turns the picture.
    image = in_sight(page, EXPLORE, ".attnb-picture img")
    before = shown(image)
    expect(cell(page, EXPLORE).locator(".attnb-still")).to_be_hidden()  # the picture with controls stands for it
    cell(page, EXPLORE).locator(".noUi-target").first.click(position={"x": 150, "y": 2})
    changed(image, before)
    screenshot(page, "notebook7-explore")
    no_label_ran(page)
    save(page, file)

    # A reload of the page, with the kernel alive.
    opened(page, address)
    state(cell(page, MAP), "live")
    assert into(cell(page, MAP), 0.3, 0.8).single
    in_sight(page, EXPLORE, ".attnb-picture img")
    expect(cell(page, EXPLORE).locator(".attnb-still")).to_be_hidden()


def test_without_a_kernel(notebook: tuple[str, Path], page: Page) -> None:  # noqa: F811
    address, file = notebook
    saved = nbformat.read(file, as_version=4)
    assert all(c.outputs for c in saved.cells), "the test before this one saves the notebook"
    for trusted in (True, False):
        name = "trusted.ipynb" if trusted else "untrusted.ipynb"
        elsewhere(saved, file.with_name(name), trusted)
        opened(page, address.replace("picture.ipynb", name))
        dialog = page.locator(".jp-Dialog")
        expect(dialog).to_be_visible(timeout=SLOW)
        dialog.get_by_role("button", name="No Kernel").click()
        if trusted:
            state(cell(page, MAP), "stored")
            expect(status(cell(page, MAP))).to_contain_text("needs the kernel: run the cell again")
            hover(cell(page, MAP), 0.05, 0.9)
            coarse = reading(cell(page, MAP), exact=False)
            pad(cell(page, MAP)).focus()
            page.keyboard.press("+")
            page.keyboard.press("+")
            hover(cell(page, MAP), 0.05, 0.9)
            fine = reading(cell(page, MAP), exact=False)
            assert "≈" in fine.text and fine.range("query")[1] - fine.range("query")[0] < coarse.range("query")[1] - coarse.range("query")[0]
            expect(cell(page, CHART).locator(".attnb-heatmap canvas").first).to_be_visible(timeout=SLOW)
        else:
            expect(page.locator("[role=application], .attnb-heatmap canvas, .attnb-gallery style")).to_have_count(0)
        for i, kind in enumerate(SHOWN, start=1):
            if trusted and kind in VIEWS:
                continue
            picture = in_sight(page, i, ".jp-OutputArea-output img").first
            assert picture.evaluate("image => image.complete && image.naturalWidth > 100")
            output = saved.cells[i].outputs[0]
            if "text/html" in output["data"]:
                assert picture.get_attribute("alt") == output["metadata"]["image/png"]["alt"]
        no_label_ran(page)
        screenshot(page, f"notebook7-{'trusted' if trusted else 'untrusted'}")
