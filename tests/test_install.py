"""What the installer leaves, and its own tools."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from jupyter_client.kernelspec import KernelSpecManager

from conftest import KERNEL, ROOT

sys.path.insert(0, str(Path(__file__).parent))
import summary  # noqa: E402


def installed() -> Path:
    return Path(KernelSpecManager().get_kernel_spec(KERNEL).argv[0])


def test_the_kernelspec_is_one_that_needs_no_clone() -> None:
    spec = KernelSpecManager().get_kernel_spec(KERNEL)
    assert spec.argv[1:] == ["kernel", "{connection_file}"]
    assert installed().is_file()
    assert ROOT / "bin" not in installed().parents
    assert (spec.display_name, spec.language, spec.interrupt_mode) == ("Go (attnb)", "go", "message")
    for logo in ("logo-64x64.png", "logo-svg.svg"):
        assert (Path(spec.resource_dir) / logo).stat().st_size > 0


def test_doctor_finds_all_in_order() -> None:
    doctor = subprocess.run([installed(), "doctor"], capture_output=True, text=True, timeout=300, check=False)
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr
    assert "FAULT" not in doctor.stdout
    assert "janpfeifer/gonb v0.10.11" in doctor.stdout
    assert "gopls v0.23.0" in doctor.stdout
    lines = {name: state for state, name in re.findall(r"^(ok|absent) +(.*?)  ", doctor.stdout, re.MULTILINE)}
    for name in ("kernelspec", "jupyter", "jupyterlab", "ipywidgets", "anywidget", "socket directory", "build cache", "recipes of cells",
                 "ATTNB_DEVICE", "ATTNB_MEMORY", "device", "memory for tensors", "version", "device process", "a cell"):  # fmt: skip
        assert lines.get(name) == "ok", doctor.stdout
    assert "NVIDIA driver" in lines


def test_an_installation_installs_itself_elsewhere_and_goes_again(tmp_path: Path) -> None:
    for command, code in (("install", 0), ("uninstall", 0)):
        run = subprocess.run(
            [installed(), command, "--prefix", tmp_path], capture_output=True, text=True, timeout=300, check=False
        )
        assert run.returncode == code, run.stdout + run.stderr
        there = tmp_path / "share" / "jupyter" / "kernels" / KERNEL / "kernel.json"
        assert there.exists() == (command == "install")
    assert not (tmp_path / "share" / "attnb").exists()


def test_install_sh_explains_itself() -> None:
    shown = subprocess.run([ROOT / "install.sh", "help"], capture_output=True, text=True, timeout=60, check=True)
    for word in ("demo", "test", "lab", "uninstall"):
        assert word in shown.stdout
    wrong = subprocess.run([ROOT / "install.sh", "dmeo"], capture_output=True, text=True, timeout=60, check=False)
    assert wrong.returncode != 0 and "no such command: dmeo" in wrong.stderr


def test_without_python_or_go_one_line_says_what_is_missing(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "env", "dirname", "cat", "mkdir", "sha256sum", "cut", "awk", "sort", "rm"):
        found = next(p for d in os.environ["PATH"].split(":") if (p := Path(d) / name).exists())
        (tools / name).symlink_to(found.resolve())
    clone = tmp_path / "clone"
    clone.mkdir()
    for name in ("install.sh", "go.mod", "requirements.txt"):
        (clone / name).write_bytes((ROOT / name).read_bytes())
    bare = subprocess.run(
        ["bash", clone / "install.sh", "demo"],
        env={"PATH": str(tools), "HOME": str(tmp_path)}, capture_output=True, text=True, timeout=60, check=False,
    )
    assert bare.returncode != 0
    assert [line for line in bare.stderr.splitlines() if line] == [
        "install.sh: Python 3.10 or newer is missing: install it (Debian: apt-get install python3 python3-venv)"
    ]


def test_the_summary_counts_what_failed_and_what_was_skipped(tmp_path: Path, capsys) -> None:  # noqa: ANN001
    def event(action: str, test: str = "", **more: str) -> str:
        return json.dumps({"Action": action, "Package": "x/attnb/attnb/p", "Test": test} | more) + "\n"

    (tmp_path / "go-plain.json").write_text(
        event("pass", "TestA")
        + event("output", "TestB", Output="    b_test.go:7: no GPU here\n")
        + event("skip", "TestB")
        + event("output", "TestC/sub", Output="    c_test.go:9: wrong\n")
        + event("fail", "TestC/sub")
        + event("fail", "TestC")
        + event("fail")
        + json.dumps({"Action": "build-output", "ImportPath": "x/q", "Output": "q.go:1: no\n"})
        + "\n"
        + json.dumps({"Action": "fail", "Package": "x/q", "FailedBuild": "x/q"})
        + "\n"
    )
    (tmp_path / "jupyter.xml").write_text(
        '<testsuites><testsuite><testcase classname="t" name="ok"/>'
        '<testcase classname="t" name="bad"><failure message="m">why</failure></testcase>'
        '<testcase classname="t" name="not"><skipped message="no browser"/></testcase></testsuite></testsuites>'
    )
    assert summary.main(str(tmp_path), ["gofmt", "go test"]) == 1
    said = capsys.readouterr().out
    assert said.splitlines()[-1] == "2 passed, 5 failed, 2 skipped"
    for line in ("skipped p TestB (plain): no GPU here", "skipped t.not: no browser", "FAILED p TestC/sub (plain)", "FAILED gofmt", "q.go:1: no"):
        assert line in said
    assert "FAILED go test\n" not in said

    for file in tmp_path.iterdir():
        file.unlink()
    assert summary.main(str(tmp_path), []) == 1, "a run without tests is no success"
