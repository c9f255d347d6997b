"""Cells: what they leave, how they end, what they show."""

from __future__ import annotations

import base64
import os
import re

import psutil
import pytest

from conftest import ATTN, Kernel

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module", autouse=True)
def kept(kernel: Kernel) -> None:
    """A tensor that every later cell must find."""
    made = kernel.run('%%\nattn.FromSlice([]float32{1, 2, 3, 4, 5, 6}, "query key", 2, 3).Named("kept")')
    assert made.status == "ok", made


def assert_kept(kernel: Kernel) -> None:
    seen = kernel.run('%%\nfmt.Println(attn.Get("kept").Shape(), attn.Get("kept").Download())')
    assert (seen.status, seen.text()) == ("ok", "[2 3] [1 2 3 4 5 6]\n")


def test_a_later_cell_sees_a_tensor(kernel: Kernel) -> None:
    assert_kept(kernel)


def test_declarations_outlive_their_cell(kernel: Kernel) -> None:
    assert kernel.run("func twice(x int) int { return 2 * x }").status == "ok"
    assert kernel.run("%%\nfmt.Print(twice(21))").text() == "42"


def test_once_computes_once_until_its_text_changes(kernel: Kernel) -> None:
    cell = 'var once = attn.Once("once", func() attn.Tensor {{ fmt.Println("computed"); return fill({}) }})'
    fill = 'func fill(x float32) attn.Tensor {{ return attn.FromSlice([]float32{{{}x}}, "dim", 1) }}'
    assert kernel.run(fill.format("")).status == "ok"
    assert "computed" in kernel.run(cell.format(1)).text()
    again = kernel.run("%%\nfmt.Println(once.Download())")
    assert again.text() == "[1]\n"
    assert "computed" in kernel.run(cell.format(2)).text()
    changed = kernel.run(fill.format("10 * ") + "\n%%\nfmt.Println(once.Download())")
    assert changed.text() == "computed\n[20]\n"
    kernel.run("%rm once fill")


ENDINGS = {
    "panic": ('%%\nfmt.Println("before")\npanic("as asked")', r"panic", r"as asked"),
    "exit": ("%%\nos.Exit(3)", r".", r"3"),
    "kill": ("%%\nsyscall.Kill(os.Getpid(), syscall.SIGKILL)\nselect {}", r".", r"SIGKILL|killed"),
    "compile error": ("%%\nunused := 1", r".", r"declared and not used"),
    "parse error": ("%%\nfor {", r".", r"expected|syntax"),
    "failed op": ('%%\nattn.Get("no such")', r".", r'no tensor is named "no such"'),
}


@pytest.mark.parametrize("how", ENDINGS)
def test_a_cell_that_fails_says_so_and_loses_no_tensor(kernel: Kernel, how: str) -> None:
    code, ename, evalue = ENDINGS[how]
    result = kernel.run(code)
    assert result.status == "error", result
    assert len(result.errors) == 1, result
    for told in (result.reply, result.errors[0]):
        assert re.search(ename, told["ename"])
        assert re.search(evalue, told["evalue"])
        assert re.search(evalue, "\n".join(told["traceback"]))
        assert "<" not in "".join(told["traceback"]), "the traceback is text, not HTML"
    assert_kept(kernel)


def test_a_killed_cell_loses_no_tensor(kernel: Kernel) -> None:
    msg_id = kernel.client.execute('%%\nfmt.Println("pid", os.Getpid())\ntime.Sleep(time.Minute)')
    while True:
        message = kernel.client.get_iopub_msg(timeout=60)
        if message["msg_type"] == "stream" and (pid := re.search(r"pid (\d+)", message["content"]["text"])):
            break
    psutil.Process(int(pid[1])).kill()
    result = kernel.finish(msg_id)
    assert result.status == "error", result
    assert_kept(kernel)


BAD_INPUT = {
    'attn.FromSlice([]float32{1, 2, 3}, "query key", 2, 2)': "FromSlice: 3 values for [query 2, key 2], which has 4",
    'attn.Load("no/such.npy")': "no such file",
    f'attn.Load("{__file__}")': ".npy",
    'attn.Get("kept").SplitHeads(attn.NeoX(5))': "SplitHeads",
    'attn.Get("kept").Named("")': "Named: a name has 1 to",
}


@pytest.mark.parametrize("call", BAD_INPUT)
def test_bad_input_is_one_line_at_the_callers_line(kernel: Kernel, call: str) -> None:
    result = kernel.run(f'%%\nfmt.Println("first")\n{call}\nfmt.Println("not reached")')
    assert result.status == "error"
    assert result.text() == "first\n"
    assert BAD_INPUT[call] in result.reply["evalue"]
    assert "\n" not in result.reply["evalue"]
    shown = result.text("stderr") + "\n".join(result.reply["traceback"])
    assert re.search(r"line 3\b", shown, re.IGNORECASE), shown
    assert "goroutine" not in shown, "a mistake in a call needs no stack of goroutines"
    assert_kept(kernel)


def test_prints_and_displays_come_in_program_order(kernel: Kernel) -> None:
    count = 200
    for _ in range(50):
        result = kernel.run(
            f'%%\nfor i := range {count} {{\n\tfmt.Printf("print %d\\n", i)\n'
            '\tattn.Show("text/plain", fmt.Appendf(nil, "show %d", i))\n}'
        )
        assert result.status == "ok", result
        seen: list[str] = []
        for output in result.outputs:
            if output["msg_type"] == "stream":
                seen += output["text"].splitlines()
            elif output["msg_type"] == "display_data":
                seen.append(output["data"]["text/plain"])
        assert seen == [f"{what} {i}" for i in range(count) for what in ("print", "show")]


def test_a_heatmap_is_a_labelled_png_with_words(kernel: Kernel) -> None:
    result = kernel.run('%%\nfmt.Println("above")\nattn.Get("kept").Heatmap(attn.Title("kept values"))\nfmt.Println("below")')
    assert result.status == "ok", result
    kinds = [o["msg_type"] for o in result.outputs]
    assert kinds == ["stream", "display_data", "stream"]
    data = result.displays[0]
    assert base64.b64decode(data["image/png"]).startswith(PNG)
    assert "kept values" in data["text/plain"]
    assert "2" in data["text/plain"] and "3" in data["text/plain"]


def test_reference_and_viz_can_be_imported_offline() -> None:
    offline = Kernel({"GOPROXY": "off"})
    try:
        result = offline.run(
            'import (\n\t"github.com/attnb/attnb/reference"\n\t"github.com/attnb/attnb/viz"\n'
            '\t"gonum.org/v1/gonum/mat"\n)\n%%\n'
            "a := reference.Heads{mat.NewDense(1, 2, []float64{1, 2})}\n"
            "sum, err := reference.Add(a, a)\n"
            "fmt.Println(sum[0].At(0, 1), err)\n"
            'png, err := viz.Heatmap{Title: "t", Kind: viz.Signed, Matrices: []viz.Matrix{{Name: "m", Rows: 1, Cols: 2, '
            "Values: []float32{1, 2}}}}.PNG()\n"
            "fmt.Println(string(png[1:4]), err)"
        )
        assert (result.status, result.text()) == ("ok", "4 <nil>\nPNG <nil>\n"), result
    finally:
        offline.close()


def test_a_cell_has_the_users_own_tmpdir(kernel: Kernel) -> None:
    assert kernel.run("%%\nfmt.Print(os.TempDir())").text() == str(kernel.tmp)


def test_a_test_cell_runs_its_tests(kernel: Kernel) -> None:
    result = kernel.run('import "testing"\n%test\nfunc TestShape(t *testing.T) { t.Log(attn.Get("kept").Shape()) }')
    assert result.status == "ok", result
    assert "[2 3]" in result.text() and "PASS" in result.text()


def test_what_a_cell_started_ends_with_it(kernel: Kernel) -> None:
    result = kernel.run('import "os/exec"\n%%\nc := exec.Command("sleep", "300")\nc.Stdout = os.Stdout\nc.Start()\nfmt.Print(c.Process.Pid)')
    assert result.status == "ok", result
    pid = int(result.text())
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_import_of_attn_needs_nothing_else(own_kernel: Kernel) -> None:
    result = own_kernel.run(ATTN + '%%\nfmt.Print(len(attn.Tensors()), os.Getenv("ATTNB_SOCKET") != "")')
    assert (result.status, result.text()) == ("ok", "0 true"), result
    assert os.path.basename(own_kernel.env["XDG_RUNTIME_DIR"]) == "run"
