"""The Jupyter protocol, by its own suite."""

from __future__ import annotations

import time

import jupyter_kernel_test

ATTN = 'import "github.com/attnb/attnb/kernel/attn"\n'


class AttnbKernelTests(jupyter_kernel_test.KernelTests):
    kernel_name = "attnb"
    language_name = "go"
    file_extension = ".go"
    code_hello_world = '%%\nfmt.Println("hello, world")'
    code_stderr = '%%\nfmt.Fprintln(os.Stderr, "test")'
    code_generate_error = '%%\npanic("as asked")'
    code_display_data = [
        {"code": ATTN + '%%\nattn.Show("image/svg+xml", []byte("<svg/>"))', "mime": "image/svg+xml"},
    ]
    completion_samples = [{"text": "%%\nfmt.Printl", "matches": {"Println"}}]
    complete_code_samples = ['%%\nfmt.Println("done")\n', "func f() int { return 1 }", "x := `raw\nstring`"]
    incomplete_code_samples = ["func f() {", "x := `raw", "%%\nfmt.Println("]
    invalid_code_samples = ["func f() }", "%%\nfmt.Println)"]
    code_inspect_sample = "%%\nfmt.Println"
    # A Go cell is statements, not an expression: the results are those of the kernel's own commands.
    code_execute_result = [
        {"code": "%version", "mime": "text/plain"},
        {"code": "%tensors", "result": "no named tensors"},
        {"code": "%device", "mime": "text/plain"},
    ]
    code_history_pattern = "%ver?ion*"
    supported_history_operations = ("tail", "range", "search")
    code_page_something = "%help"
    code_clear_output = "%clear"

    @classmethod
    def setUpClass(cls) -> None:
        """Starts the kernel and waits for the Go language server, which reads the standard library first."""
        super().setUpClass()
        deadline = time.monotonic() + 120
        found: list[str] = []
        while not found and time.monotonic() < deadline:
            msg_id = cls.kc.complete("%%\nfmt.Printl")
            reply = cls.kc.get_shell_msg(timeout=60)
            if reply["parent_header"]["msg_id"] == msg_id:
                found = reply["content"]["matches"]


class AttnbWelcomeTests(jupyter_kernel_test.IopubWelcomeTests):
    kernel_name = "attnb"
    support_iopub_welcome = True


def test_nothing_of_the_suite_is_left_out() -> None:
    """Each test of the suite runs, with every sample that it can have."""
    for own in (AttnbKernelTests, AttnbWelcomeTests):
        suite = own.__bases__[0]
        for name in vars(suite):
            if name.startswith("test_"):
                assert getattr(own, name) is getattr(suite, name), name
            elif name.startswith(("code_", "complete", "completion", "incomplete", "invalid", "language", "file_", "support")):
                assert name in vars(own) and getattr(own, name), name


del jupyter_kernel_test.KernelTests, jupyter_kernel_test.IopubWelcomeTests  # else pytest would take the base classes for tests
