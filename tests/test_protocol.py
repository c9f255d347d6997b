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

    # A Go cell is statements, not an expression: it has no result of its own, and nothing in Go opens a pager or
    # clears an output.
    test_execute_result = None
    test_history = None
    test_pager = None
    test_clear_output = None


del jupyter_kernel_test.KernelTests  # else pytest would take the base class for a test
