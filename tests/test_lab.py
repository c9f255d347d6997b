"""The kernel in a real JupyterLab, in a headless Chromium."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Page, expect, sync_playwright

from conftest import ATTN, KERNEL

CHROMIUM = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium (Debian: apt-get install chromium)")

SLOW = 60_000  # milliseconds, on a busy machine
CELLS = [
    ATTN + '%%\nx := attn.FromSlice([]float32{1, 2, 3, 4, 5, 6}, "query key", 2, 3).Named("x")\nx.Heatmap()',
    '%%\nfmt.Println("shape", attn.Get("x").Shape())',
]


LAB = ["jupyterlab", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]


@contextmanager
def jupyterlab(directory: Path, cells: list[str], command: list[str] = LAB, path: str = "lab/tree") -> Iterator[str]:
    """A JupyterLab, or another front end, with one notebook, picture.ipynb; its address, with everything that a browser needs to enter."""
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
        metadata={"kernelspec": {"name": KERNEL, "display_name": "Go (attnb)", "language": "go"}},
    )
    nbformat.write(notebook, directory / "picture.ipynb")
    with serve(directory, None, command, path) as address:
        yield address("picture.ipynb")


@contextmanager
def serve(directory: Path, settings: Path | None = None, command: list[str] = LAB, path: str = "lab/tree") -> Iterator[Callable[[str], str]]:
    """A JupyterLab over a directory. What it gives makes the address of a notebook in it. settings are a user's own."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    base = f"http://127.0.0.1:{port}"
    with (directory / "lab.log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", *command, "--no-browser", f"--port={port}", "--ServerApp.port_retries=0", "--ip=127.0.0.1",
             "--IdentityProvider.token=secret", f"--notebook-dir={directory}", "--allow-root"],
            stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            env=os.environ | ({"JUPYTERLAB_SETTINGS_DIR": str(settings)} if settings else {}),
        )  # fmt: skip
        try:
            wait_until_up(f"{base}/api/status?token=secret", server, directory / "lab.log")
            yield lambda notebook: f"{base}/{path}/{notebook}?token=secret"
        finally:
            server.terminate()
            server.wait(timeout=30)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with jupyterlab(tmp_path_factory.mktemp("lab"), CELLS) as address:
        yield address


def wait_until_up(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and server.poll() is None:
        try:
            urllib.request.urlopen(address, timeout=5).close()
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
        else:
            return
    pytest.fail(f"JupyterLab does not start:\n{log.read_text()}")


@pytest.fixture
def page() -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser.new_page(viewport={"width": 1400, "height": 1000})
        finally:
            browser.close()


def run_all(page: Page, command: str) -> None:
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.locator(f'.lm-Menu [data-command="runmenu:{command}"]').click()


def test_run_all_restart_run_all(lab: str, page: Page) -> None:
    page.goto(lab)
    cells = page.locator(".jp-Notebook .jp-CodeCell")
    expect(cells).to_have_count(2, timeout=SLOW)
    picture = cells.nth(0).locator(".jp-OutputArea-output img")
    shape = cells.nth(1).locator(".jp-OutputArea-output")

    expect(page.get_by_text("Go (attnb) | Idle")).to_be_visible(timeout=SLOW)
    run_all(page, "run-all")
    expect(shape).to_contain_text("shape [2 3]", timeout=SLOW)
    expect(picture).to_be_visible()
    assert picture.evaluate("image => image.naturalWidth") > 100
    expect(cells.nth(1).locator(".jp-InputPrompt")).to_have_text("[2]:")

    picture.evaluate("image => image.dataset.old = 'yes'")
    run_all(page, "restart-and-run-all")
    page.locator(".jp-Dialog .jp-mod-accept").click()
    expect(cells.nth(0).locator(".jp-OutputArea-output img:not([data-old])")).to_be_visible(timeout=SLOW)
    expect(shape).to_contain_text("shape [2 3]", timeout=SLOW)
    expect(cells.nth(1).locator(".jp-InputPrompt")).to_have_text("[2]:")
