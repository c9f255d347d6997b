"""The Jupyter protocol, by its own suite."""

from __future__ import annotations

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
    completion_samples = [{"text": "%%\nfmt.Printl", "matches": {"Println", "Fprintln", "Sprintln"}}]
    complete_code_samples = ['%%\nfmt.Println("done")\n', "func f() int { return 1 }", "x := `raw\nstring`"]
    incomplete_code_samples = ["func f() {", "x := `raw", "%%\nfmt.Println("]
    invalid_code_samples = ["func f() }", "%%\nfmt.Println)"]
    code_inspect_sample = "%%\nfmt.Println"

    # A Go cell is statements, not an expression: it has no result of its own, and nothing in Go opens a pager or
    # clears an output.
    test_execute_result = None
    test_history = None
    test_pager = None
    test_clear_output = None


del jupyter_kernel_test.KernelTests  # else pytest would take the base class for a test
