"""The bundle: packed here, it runs in another place where there is no network, no Go and no Jupyter."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import nbformat
import pytest
from jupyter_client.kernelspec import KernelSpecManager

from conftest import KERNEL, ROOT

VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
PYTHON = Path(sys.base_prefix) / "bin" / f"python{VERSION}"
# -S: no site-packages. What is imported is the standard library's or the bundle's.
BARE_PYTHON = [str(PYTHON), "-s", "-S"]

# Fails where any interface is up, loopback too: then even 127.0.0.1 is not reached.
ALONE = """
import errno, socket
listener = socket.create_server(("", 0))
try:
    socket.create_connection(("127.0.0.1", listener.getsockname()[1]), 1)
except OSError as e:
    assert e.errno == errno.ENETUNREACH, e
else:
    raise SystemExit("there is a network")
"""


def offline() -> list[str]:
    """The beginning of a command that runs where there is no network at all: a namespace whose interfaces are none, or down."""
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("no unshare command: no network namespace can be made")
    for flags in ("-n", "-rn"):  # as root, or as root of a user namespace
        tried = subprocess.run([unshare, flags, str(PYTHON), "-c", ALONE], capture_output=True, timeout=60, check=False)
        if tried.returncode == 0:
            return [unshare, flags]
    pytest.skip(f"no network namespace can be made here: {tried.stderr.decode(errors='replace').strip()[-200:]}")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle for this Python, unpacked in a folder of its own."""
    if sys.platform != "linux":
        pytest.skip("bundles are for Linux")
    place = tmp_path_factory.mktemp("else where")  # with a blank, on purpose
    attnb = KernelSpecManager().get_kernel_spec(KERNEL).argv[0]
    packed = subprocess.run(
        [attnb, "bundle", "--clone", ROOT, "--python", sys.executable, "--for", VERSION, "-o", place / "bundle.tar"],
        capture_output=True, text=True, timeout=300, check=False,
    )
    assert packed.returncode == 0, packed.stdout + packed.stderr
    with tarfile.open(place / "bundle.tar") as archive:
        archive.extractall(place)
    (place / "bundle.tar").unlink()
    return place / "attnb-bundle"


def bare(place: Path) -> dict[str, str]:
    """An environment in which nothing is found: no Go, no caches, no settings."""
    (place / "empty").mkdir(exist_ok=True)
    return {"PATH": str(place / "empty"), "HOME": str(place / "empty"), "TMPDIR": "/tmp", "ATTNB_DEVICE": "host"}


def test_runs_the_first_notebook_with_nothing_but_python(bundle: Path, tmp_path: Path) -> None:
    out, page = tmp_path / "executed.ipynb", tmp_path / "executed.html"
    alone = [*offline(), *BARE_PYTHON]
    installed = subprocess.run(
        [*alone, bundle / "install.py", "--prefix", tmp_path], env=bare(tmp_path), capture_output=True, text=True, timeout=60, check=False
    )
    assert installed.returncode == 0, installed.stdout + installed.stderr
    run = subprocess.run(
        [*alone, bundle / "run.py", "notebooks/01-first-attention.ipynb", "--out", out, "--html", page],
        cwd=tmp_path, env=bare(tmp_path), capture_output=True, text=True, timeout=300, check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    notebook = nbformat.read(out, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    outputs = [output for cell in code for output in cell.outputs]
    failed = [cell for cell in code if any(output.output_type == "error" for output in cell.outputs)]
    assert failed == [cell for cell in code if "exercise" in cell.metadata.get("tags", [])]
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 6
    said = dict(line.split(":", 1) for line in run.stdout.splitlines()[-4:])
    assert said["device"].strip().startswith("host: ")
    assert said["cells"].split(",")[0].strip() == f"{len(code)} of {len(code)} ran"
    assert int(said["checks"].split()[0]) >= 10, said["checks"]
    assert page.stat().st_size > 100_000
    assert nbformat.read(ROOT / "notebooks" / "01-first-attention.ipynb", as_version=4).cells[-1].source == notebook.cells[-1].source


def test_the_standard_library_is_there_compiled(bundle: Path, tmp_path: Path) -> None:
    """That is what makes the first cell a matter of a second or two, on any machine."""
    env = bare(tmp_path) | {key: value for key, value in kernel_environment(bundle).items() if key != "GOCACHE"}
    go = bundle / "share" / "attnb" / "go" / "bin" / "go"
    packages = ["fmt", "math/rand/v2", "image/png", "encoding/json", "html/template"]
    for cache, wanted, compiled in ((bundle / "gocache", packages, False), (tmp_path / "cache", ["unicode/utf8"], True)):
        built = subprocess.run(
            [go, "build", "-x", *wanted],
            cwd=tmp_path, env=env | {"GOCACHE": str(cache)}, capture_output=True, text=True, timeout=300, check=False,
        )
        assert built.returncode == 0, built.stderr
        assert ("linux_amd64/compile" in built.stderr) == compiled, f"GOCACHE={cache}"


def kernel_environment(bundle: Path) -> dict[str, str]:
    written = subprocess.run(
        [*BARE_PYTHON, "-c", "import json, run; run.prepare(); print(json.dumps(run.kernelspec()['env']))"],
        cwd=bundle, capture_output=True, text=True, timeout=60, check=True,
    )
    return json.loads(written.stdout)


def test_the_device_is_tested_from_the_bundle(bundle: Path, tmp_path: Path) -> None:
    tested = subprocess.run(
        [bundle / "share" / "attnb" / "bin" / "attnb", "device", "--self-test"],
        env=bare(tmp_path), capture_output=True, text=True, timeout=120, check=False,
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert tested.stdout.splitlines()[-1] == "passed"


def test_tells_a_jupyter_that_is_there_about_the_kernel(bundle: Path, tmp_path: Path) -> None:
    def install(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [*BARE_PYTHON, bundle / "install.py", "--prefix", tmp_path, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    place = tmp_path / "share" / "jupyter" / "kernels"
    assert install().returncode == 0
    spec = KernelSpecManager(kernel_dirs=[str(place)], ensure_native_kernel=False).get_kernel_spec("attnb")
    assert Path(spec.argv[0]) == bundle / "share" / "attnb" / "bin" / "attnb"
    assert Path(spec.env["GOROOT"], "bin", "go").is_file()
    assert install("--remove").returncode == 0 and not (place / "attnb").exists()

    (place / "attnb").mkdir()
    (place / "attnb" / "kernel.json").write_text(json.dumps({"argv": ["/elsewhere/attnb"]}))
    for arguments in ((), ("--remove",)):
        refused = install(*arguments)
        assert refused.returncode == 1 and "belongs to another installation: it stays" in refused.stderr
    assert json.loads((place / "attnb" / "kernel.json").read_text())["argv"] == ["/elsewhere/attnb"]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"glibc": "99.1"}, "needs glibc 99.1 or newer, and this machine has "),
        ({"python": ["3.9"]}, "is for CPython 3.9, and this is CPython "),
    ],
)
def test_says_in_one_line_why_it_cannot_run(bundle: Path, tmp_path: Path, wrong: dict, says: str) -> None:
    (tmp_path / "run.py").write_bytes((bundle / "run.py").read_bytes())
    (tmp_path / "bundle.json").write_text(json.dumps(json.loads((bundle / "bundle.json").read_text()) | wrong))
    (tmp_path / "n.ipynb").write_text("{}")
    run = subprocess.run(
        [*BARE_PYTHON, tmp_path / "run.py", tmp_path / "n.ipynb"], env=dict(os.environ), capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 2 and run.stdout == ""
    assert len(run.stderr.splitlines()) == 1 and says in run.stderr
