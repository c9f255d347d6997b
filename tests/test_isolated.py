"""Outputs where each stands alone: in a sandboxed frame of no origin, under a content security policy that forbids the network.

So Colab shows an output, each in a frame of its own, and so VS Code does, all in one frame, where a renderer of its own puts the HTML in place
and then runs each script again, at the end of the output.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Frame, Page, expect, sync_playwright

from bundles import SHORT, TOKENS, VIEWS, WIDE, Pictures
from test_lab import CHROMIUM, SLOW
from test_widgets import QUIET
from test_zoom import Reading, screenshot

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium (Debian: apt-get install chromium)")

# No eval, no fetch, no worker; scripts of the page's own text, and data in it.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; connect-src 'none'"

# How a place puts the HTML of an output on its page: a script of the frame, or none where the frame is the output.
PLACES = {
    "parsed": None,
    "in a fragment": "host.append(document.createRange().createContextualFragment(text))",
    "run again": """host.innerHTML = text;
      for (const old of host.querySelectorAll("script")) {
        const script = document.createElement("script");
        script.text = old.textContent;
        host.append(script);
        script.remove();
      }""",
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture
def alone(browser: Browser) -> Iterator[Page]:
    """A page on which nothing may be asked for, refused by the policy, or thrown."""
    page = browser.new_page(viewport={"width": 1500, "height": 1000})
    bad: list[str] = []
    page.on("request", lambda r: None if r.url.startswith(("data:", "blob:", "about:")) else bad.append(f"asked for {r.url[:80]}"))
    page.on("pageerror", lambda e: bad.append(f"threw {e}"))
    page.on("dialog", lambda d: (bad.append("a dialog"), d.dismiss()))
    page.on("console", lambda m: bad.append(m.text) if m.type == "error" else None)
    yield page
    page.close()
    assert bad == []


def frame(page: Page, place: str, *outputs: str, dark: bool = False) -> Frame:
    """The frame in which outputs stand."""
    head = f"""<!doctype html><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}">
<body style="margin:0;font-family:sans-serif;{'background:#1e1e1e;color:#ddd' if dark else ''}">"""
    text = head + "".join(f'<div class="output">{output}</div>' if PLACES[place] is None else '<div class="output"></div>' for output in outputs)
    page.set_content('<iframe sandbox="allow-scripts" width="1400" height="950"></iframe>')
    page.eval_on_selector("iframe", "(frame, text) => { frame.srcdoc = text; return new Promise(done => (frame.onload = done)); }", text)
    inside = page.frames[1]
    assert inside.evaluate("self.origin") == "null"
    with pytest.raises(Exception, match="Blocked a frame|SecurityError"):
        inside.evaluate("parent.document.title")
    if (place_it := PLACES[place]) is not None:
        for i, output in enumerate(outputs):
            inside.evaluate(f"([i, text]) => {{ const host = document.querySelectorAll('.output')[i]; {place_it} }}", [i, output])
    return inside


def f32(value: float | str) -> bytes:
    return struct.pack("<f", float(value))


def chart_tip(page: Page, inside: Frame, html: str, row: int, col: int, panel: int = 0) -> list[str]:
    """The lines that the chart of small matrices says of a cell."""
    drawn = inside.locator(".attnb-heatmap canvas").first
    expect(drawn).to_be_visible(timeout=SLOW)
    box = drawn.bounding_box()
    found = re.search(r'"grid":(\[[^\]]*\])', html)
    assert box and found
    grid = {side: float(json.loads(found[1])[panel][side]) for side in ("left", "top", "width", "height")}
    x, y = box["x"] + grid["left"] + (col + 0.5) / SHORT * grid["width"], box["y"] + grid["top"] + (row + 0.5) / SHORT * grid["height"]
    page.mouse.move(x + 1, y)
    page.mouse.move(x, y)
    tip = inside.locator(".attnb-heatmap bdi").first.locator("xpath=ancestor::div[2]")
    expect(tip).to_be_visible(timeout=SLOW)
    return tip.inner_text().splitlines()


def zoom_tip(page: Page, inside: Frame, x: float, y: float) -> Reading:
    pad = inside.locator(".attnb-zoom [role=application]").first
    expect(pad).to_be_visible(timeout=SLOW)
    box = pad.bounding_box()
    assert box
    for nudge in (1, 0):
        page.mouse.move(box["x"] + x * box["width"] + nudge, box["y"] + y * box["height"] + nudge)
    tip = inside.locator(".attnb-tip").first
    expect(tip).to_be_visible(timeout=SLOW)
    return Reading(tip.inner_text())


# What of a label no escape hides: it must stand in the text of a page as it is, and run nothing.
LEGIBLE = ['"quoted"', "back\\slash", "line↵break", "🙂 emoji", "שלום", "</script><script>window.pwned = 1</script>",
           "<img src=x onerror='window.pwned = 1'>", "␣", '""', "a\\u2028b", "&amp;", "'", "\\input{x} $x_1$ %", "-->"]  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_a_chart_reads_its_values(pictures: Pictures, alone: Page, place: str) -> None:
    html = pictures.outputs["interactive"]["data"]["text/html"]
    inside = frame(alone, place, html)
    expect(inside.locator(".attnb-heatmap canvas").first).to_be_visible(timeout=SLOW)
    expect(inside.locator(".attnb-heatmap > img")).to_be_hidden()
    for row in range(SHORT):
        said = chart_tip(alone, inside, html, row, 0, panel=1)
        assert said[:3] == ["head 1", f"query {row} “{LEGIBLE[row]}”", f"key 0 “{LEGIBLE[0]}”"]
        name, value = said[3].split()
        assert name == "probability" and f32(value) == f32(pictures.values["p"][(SHORT + row) * SHORT]), said
    assert chart_tip(alone, inside, html, 2, 9)[3] == "probability masked"
    assert inside.evaluate("window.pwned") is None
    screenshot(alone, "isolated-chart")


@pytest.mark.parametrize("place", PLACES)
def test_a_zooming_picture_reads_its_values(pictures: Pictures, alone: Page, place: str) -> None:
    inside = frame(alone, place, pictures.outputs["zoom"]["data"]["text/html"])
    for x, y in ((0.03, 0.97), (0.5, 0.5), (0.9, 0.2)):
        said = zoom_tip(alone, inside, x, y)
        row, col = said.range("query")[0], said.range("key")[0]
        assert said.single and f32(said.value("value")) == f32(pictures.values["wide"][row * WIDE + col]), said
    screenshot(alone, "isolated-zoom")


@pytest.mark.parametrize("place", PLACES)
def test_a_pooled_picture_zooms_as_far_as_it_is_stored(pictures: Pictures, alone: Page, place: str) -> None:
    inside = frame(alone, place, pictures.outputs["map"]["data"]["text/html"])
    whole = zoom_tip(alone, inside, 0.1, 0.9)
    assert not whole.single and "≈" in whole.value("probability")
    inside.locator(".attnb-zoom [role=application]").focus()
    alone.keyboard.press("+")
    finer = zoom_tip(alone, inside, 0.1, 0.9)
    span = lambda r: r.range("query")[1] - r.range("query")[0]  # noqa: E731
    assert span(finer) < span(whole)
    status = inside.locator(".attnb-zoom [role=status]")
    expect(status).to_contain_text("needs the kernel: run the cell again")
    inside.get_by_label("copy the Go line that shows this part").click()
    expect(status).to_contain_text('attn.Map(attn.Get("long"), attn.Get("long"), attn.Causal, attn.Title(')
    assert inside.evaluate("window.pwned") is None


@pytest.mark.parametrize("place", PLACES)
def test_labels_show_as_they_are(pictures: Pictures, alone: Page, place: str) -> None:
    inside = frame(alone, place, pictures.outputs["short map"]["data"]["text/html"])
    for i, label in enumerate(LEGIBLE):
        said = zoom_tip(alone, inside, 0.02, (i + 0.5) / SHORT)
        assert f"query {i} “{label}”" in said.text, said
    assert inside.evaluate("window.pwned") is None


def test_the_legend_counts_what_shows(pictures: Pictures, alone: Page) -> None:
    inside = frame(alone, "parsed", pictures.outputs["short map"]["data"]["text/html"])
    viewer = inside.locator(".attnb-zoom")
    entry = viewer.get_by_text("masked: ")
    expect(entry).to_have_text(f"masked: {SHORT * (SHORT - 1) // 2} cells", timeout=SLOW)
    pad = viewer.locator("[role=application]")
    pad.press("+")
    expect(viewer).to_contain_text("key 3–10")
    expect(entry).to_have_text("masked: 28 cells")  # above the diagonal of 8 x 8
    for _ in range(20):
        pad.press("ArrowLeft")
        pad.press("ArrowDown")
    expect(viewer).to_contain_text("key 0–6")
    expect(entry).to_be_hidden()  # all of that is seen
    pad.press("0")
    expect(entry).to_be_visible()
    viewer.get_by_label("which matrix shows").select_option("1")
    expect(entry).to_have_text(f"masked: {SHORT * (SHORT - 1) // 2} cells")


@pytest.mark.parametrize("place", PLACES)
def test_panels_enlarge(pictures: Pictures, alone: Page, place: str) -> None:
    inside = frame(alone, place, pictures.outputs["enlarge"]["data"]["text/html"])
    inside.locator(".attnb-gallery .all label").nth(1).click()
    large = inside.locator(".attnb-gallery label.p1")
    expect(large).to_be_visible()
    assert "pwned" in (large.get_attribute("aria-label") or "")  # the title, in words
    assert inside.evaluate("window.pwned") is None


@pytest.mark.parametrize("place", PLACES)
def test_all_outputs_of_a_notebook_in_one_frame(pictures: Pictures, alone: Page, place: str) -> None:
    """Each draws in its own place, the same picture twice too, on a dark page as on a light one."""
    html = {name: pictures.outputs[name]["data"]["text/html"] for name in VIEWS}
    inside = frame(alone, place, html["zoom"], html["interactive"], html["zoom"], html["map"], html["enlarge"], html["interactive"], dark=True)
    for i, kind in enumerate((".attnb-zoom", ".attnb-heatmap", ".attnb-zoom", ".attnb-zoom", ".attnb-gallery", ".attnb-heatmap")):
        output = inside.locator(".output").nth(i)
        expect(output.locator(kind)).to_have_count(1)
        if kind != ".attnb-gallery":
            expect(output.locator("canvas").first).to_be_visible(timeout=SLOW)
            expect(output.locator(f"{kind} > img")).to_be_hidden()
    screenshot(alone, "isolated-all")


def test_where_no_script_runs_there_is_the_picture(pictures: Pictures, browser: Browser) -> None:
    page = browser.new_page()
    for name in VIEWS:
        output = pictures.outputs[name]
        page.set_content('<iframe sandbox="" width="1400" height="950"></iframe>')
        page.eval_on_selector("iframe", "(frame, text) => { frame.srcdoc = text; return new Promise(done => (frame.onload = done)); }", output["data"]["text/html"])
        picture = page.frame_locator("iframe").locator("img").first
        expect(picture).to_be_visible(timeout=SLOW)
        assert picture.get_attribute("alt") == output["metadata"]["image/png"]["alt"]
        assert page.frames[1].locator("img").first.evaluate("image => image.complete && image.naturalWidth > 100")
    page.close()
