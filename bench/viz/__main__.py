"""What pictures take in a real JupyterLab, in a headless Chromium, in one run: python bench/viz.

Exits with 1 when a target is missed, and writes bench/results/viz.json."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import nbformat
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from conftest import ATTN  # noqa: E402
from test_lab import CHROMIUM, jupyterlab, run_all  # noqa: E402
from test_widgets import QUIET  # noqa: E402

SLOW = 120_000  # milliseconds
HEADS, SEQ, DIM = 8, 256, 64  # of the exploration


def tensors(name: str, heads: int, seq: int) -> str:
    """Normally distributed queries and keys, whose probabilities are noise: nothing is harder to pack."""
    n = heads * seq * DIM
    return f"""r := rand.New(rand.NewPCG(1, 2))
x := make([]float32, 2*{n})
for i := range x {{ x[i] = float32(r.NormFloat64()) }}
attn.FromSlice(x[:{n}], "heads seq dim", {heads}, {seq}, {DIM}).Named("q{name}")
attn.FromSlice(x[{n}:], "heads seq dim", {heads}, {seq}, {DIM}).Named("k{name}")
"""


def mapped(name: str, options: str = "") -> str:
    return ATTN + f'%%\nfmt.Println("<called", time.Now().UnixMicro())\nattn.Map(attn.Get("q{name}"), attn.Get("k{name}"), attn.Causal{options})'


PREPARE = ATTN + 'import "math/rand/v2"\n%%\n' + "".join(f"func() {{\n{tensors(*of)}}}()\n" for of in (("512", 1, 512), ("8192", 1, 8192), ("e", HEADS, SEQ)))
PLAIN, LOG, SCORES, LONG, EXPLORE, EXPECTED = 1, 2, 3, 4, 5, 6
CHAIN = 'attn.Scores(attn.Get("qe").RoPE(attn.HalfSplit(64){}), attn.Get("ke").RoPE(attn.HalfSplit(64)), attn.Causal).Softmax()'
CELLS = [
    PREPARE,
    mapped("512"),
    mapped("512", ", attn.Log"),
    mapped("512", ", attn.OfScores"),
    mapped("8192"),
    ATTN + f'%%\nattn.Explore({CHAIN.format("")}, attn.Dial("offset", -64, 64))',
    ATTN + f'%%\nattn.Explore({CHAIN.format("")}, attn.Dial("offset", -64, 64), attn.Expected({CHAIN.format(".Offset(7)")}))',
]

# The time from the key that runs a cell, or turns a dial, to the frame that shows what came of it.
WATCH = """() => {
  window.begun = 0;
  addEventListener("keydown", e => { if (e.key !== "Control") window.begun = performance.now(); }, true);
  window.after = (ready, limit = 120000) => new Promise((resolve, reject) => {
    const look = () => {
      if (performance.now() - window.begun > limit) return reject(new Error("nothing came of it"));
      if (ready()) requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - window.begun)));
      else setTimeout(look, 1);
    };
    look();
  });
}"""

SHOWN = """index => window.after(() => {
  const host = document.querySelectorAll(".jp-Notebook .jp-CodeCell")[index].querySelector(".attnb-zoom:not([data-seen])");
  if (!host || !host.dataset.state) return false;
  host.dataset.seen = "yes";
  return true;
})"""

# Some frames after a key the picture has asked for what it needs; then it waits until it has all of that.
ZOOMED = """host => new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(() =>
  resolve(window.after(() => host.dataset.state === "live")))))"""

TURNED = """figure => window.after(() => figure.querySelector("img").src !== window.was)"""


@dataclass
class Target:
    what: str
    value: float
    limit: float | None
    unit: str

    @property
    def met(self) -> bool:
        return self.limit is None or self.value <= self.limit


def runs_of(page: Page, index: int, runs: int) -> tuple[list[float], list[float]]:
    """Milliseconds from the call of attn.Map to its picture, and from the key that runs the cell. The text changes each time, so
    that nothing is found built."""
    cell = page.locator(".jp-Notebook .jp-CodeCell").nth(index)
    took, called = [], []
    for n in range(runs + 1):
        cell.locator(".cm-content").click()
        page.keyboard.press("Control+End")
        page.keyboard.type(f" // {n}" if n == 0 else "0")
        page.keyboard.press("Control+Enter")
        took.append(page.evaluate(SHOWN, index))
        key = page.evaluate("1000 * (performance.timeOrigin + window.begun)")
        text = cell.locator(".jp-OutputArea").inner_text()
        called.append(took[-1] - (int(text[text.index("<called") + 8 :].split()[0]) - key) / 1000)
        page.wait_for_timeout(300)
    return called[1:], took[1:]


def zoom_steps(page: Page, index: int) -> list[float]:
    """Milliseconds of each step of a factor of 2, from the whole down to single cells, at some places."""
    host = page.locator(".jp-Notebook .jp-CodeCell").nth(index).locator(".attnb-zoom")
    pad = host.locator("[role=application]")
    took = []
    for x, y in ((0.1, 0.9), (0.35, 0.4), (0.02, 0.5), (0.7, 0.95)):
        pad.focus()
        page.keyboard.press("0")
        page.wait_for_timeout(500)
        pad.scroll_into_view_if_needed()
        box = pad.bounding_box()
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
        for _ in range(11):
            page.evaluate("([pad, x, y]) => { const b = pad.getBoundingClientRect(); window.begun = performance.now();"
                          " pad.dispatchEvent(new WheelEvent('wheel', { deltaY: -231.2, ctrlKey: true, clientX: b.x + x * b.width, clientY: b.y + y * b.height, bubbles: true, cancelable: true })); }",
                          [pad.element_handle(), x, y])  # fmt: skip
            took.append(page.evaluate(ZOOMED, host.element_handle()))
            page.wait_for_timeout(100)
        if "• single cells" not in host.inner_text():
            raise AssertionError(host.inner_text())
    return took


def dial_turns(page: Page, index: int, runs: int) -> list[float]:
    cell = page.locator(".jp-Notebook .jp-CodeCell").nth(index)
    figure, handle = cell.locator(".attnb-picture"), cell.locator(".noUi-handle").first
    handle.focus()
    took = []
    for _ in range(runs + 3):
        page.evaluate("figure => { window.was = figure.querySelector('img').src; }", figure.element_handle())
        handle.press("ArrowRight")
        took.append(page.evaluate(TURNED, figure.element_handle()))
        page.wait_for_timeout(100)
    return took[3:]


def measure(runs: int, directory: Path) -> list[tuple[str, list[float] | float, float | None, str]]:
    with jupyterlab(directory, CELLS) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        page = browser.new_page(viewport={"width": 1500, "height": 1000})
        page.goto(address)
        page.get_by_text("Go (attnb) | Idle").wait_for(timeout=SLOW)
        page.evaluate(WATCH)
        run_all(page, "run-all")
        page.locator(".jp-Notebook .jp-CodeCell").nth(EXPECTED).locator(".noUi-handle").first.wait_for(timeout=SLOW)
        page.wait_for_timeout(2000)
        called, plain = runs_of(page, PLAIN, runs)
        steps = zoom_steps(page, LONG)
        turns = dial_turns(page, EXPLORE, 3 * runs)
        beside = dial_turns(page, EXPECTED, 3 * runs)
        page.keyboard.press("Escape")
        page.keyboard.press("Control+s")
        page.wait_for_timeout(3000)
        browser.close()
        saved = nbformat.read(directory / "picture.ipynb", as_version=4)

    def size(index: int) -> int:
        return max(sum(len(part) for part in output["data"].values()) for output in saved.cells[index].outputs if "data" in output)

    return [
        ("512 x 512: from the call to the picture", called, 500, "ms"),
        ("512 x 512: from the key that runs the cell to the picture", plain, None, "ms"),
        ("512 x 512, probabilities: the output", size(PLAIN), 300_000, "B"),
        ("512 x 512, logarithmic, of noise: the output", size(LOG), None, "B"),
        ("512 x 512, scores of noise: the output", size(SCORES), None, "B"),
        ("T 8192: the output", size(LONG), 1_000_000, "B"),
        ("T 8192: a zoom step by 2", steps, 150, "ms"),
        (f"a turn of the offset dial, H {HEADS}, S {SEQ}, d {DIM}", turns, 150, "ms"),
        ("the same, with the error against an expected tensor beside it", beside, 150, "ms"),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as scratch:
        rows = measure(options.runs, Path(scratch))
    targets, details = [], {}
    for what, value, limit, unit in rows:
        if isinstance(value, list):
            details[what] = [round(v, 1) for v in value]
            value = statistics.median(value)
        targets.append(Target(what, round(value, 1), limit, unit))
    for t in targets:
        bar = "" if t.limit is None else f"at most {t.limit:,} {t.unit}"
        print(f"{t.what:<62} {t.value:>12,} {t.unit:<3} {bar:<24} {'' if t.met else 'MISSED'}")
    result = {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "cores": os.cpu_count(), "machine": platform.machine(), "load": [round(load, 2), round(os.getloadavg()[0], 2)],
        "targets": [{"what": t.what, "median" if t.unit == "ms" else "value": t.value, "unit": t.unit, "limit": t.limit} for t in targets], "samples": details,
    }  # fmt: skip
    (ROOT / "bench" / "results" / "viz.json").write_text(json.dumps(result, indent=1) + "\n")
    return 0 if all(t.met for t in targets) else 1


if __name__ == "__main__":
    sys.exit(main())
