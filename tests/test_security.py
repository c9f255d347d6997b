"""Another user of the machine gets nothing of a kernel, and a name gets nothing of a page."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest

import thief
from conftest import ATTN, Kernel

NOBODY = 65534
MAKE = ATTN + '%%\nattn.FromSlice([]float32{1, 2}, "dim", 2).Named("secret")'
needs_two_users = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None or not os.access("/usr/bin/python3", os.X_OK),
    reason="only root, with setpriv and a Python for all users, can be a second user",
)


@pytest.fixture(scope="module")
def held() -> Iterator[Kernel]:
    k = Kernel()
    try:
        assert k.run(MAKE).status == "ok"
        yield k
    finally:
        k.close()


def test_directories_sockets_and_files_are_the_users_own(held: Kernel) -> None:
    own = [p for p in held.runtime.iterdir() if p.name.startswith("attnb-")]
    assert len(own) == 1 and stat.S_IMODE(own[0].stat().st_mode) == 0o700
    assert stat.S_IMODE((own[0] / "device").stat().st_mode) == 0o600
    for path in own[0].rglob("kernel-*.json"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


@needs_two_users
def test_another_user_reaches_nothing(held: Kernel) -> None:
    held.scratch.chmod(0o755)  # only the kernel's own directory is in the way
    held.runtime.chmod(0o755)
    own = next(p for p in held.runtime.iterdir() if p.name.startswith("attnb-"))
    tries = thief.below(own) + [t for p in held.processes() for t in thief.of_process(p.pid)]
    assert sum(t.startswith("socket ") for t in tries) >= 6 and sum(t.startswith("signal ") for t in tries) >= 3, tries
    assert [line for line in thief.steal(tries, NOBODY, NOBODY) if not line.startswith("refused ")] == []
    assert [line for line in thief.steal(tries[:1], 0, 0) if not line.startswith("HAD ")] == []  # it can be had by who may


@needs_two_users
def test_another_user_is_refused_where_every_directory_is_open(held: Kernel) -> None:
    """The second lock: the sockets ask the system whose process connects. GoNB's own do not, and have the first alone."""
    held.scratch.chmod(0o755)
    held.runtime.chmod(0o755)
    own = next(p for p in held.runtime.iterdir() if p.name.startswith("attnb-"))
    own.chmod(0o755)
    sockets = [own / name for name in ("device", "streams", "controls")]
    for path in sockets:
        path.chmod(0o666)
    try:
        tries = [f"socket {path}" for path in sockets]
        assert thief.steal(tries, NOBODY, NOBODY) == [f"refused {t}" for t in tries]
        assert thief.steal(tries[:1], os.getuid(), os.getgid()) == [f"HAD {tries[0]}"]  # its own user gets an answer
    finally:
        own.chmod(0o700)
    assert held.run(ATTN + '%%\nfmt.Print(attn.Get("secret").Download())').text() == "[1 2]"


def test_a_program_without_the_token_is_refused(held: Kernel) -> None:
    result = held.run(
        'import ("os"; "github.com/attnb/attnb/kernel/wire")\n%%\n'
        'for _, token := range []string{"", "0123456789abcdef0123456789abcdef", os.Getenv(wire.EnvNonce)} {\n'
        '\tconn, err := wire.DialAs(os.Getenv(wire.EnvSocket), token)\n\tfmt.Println(conn != nil, err)\n}'
    )
    refused = "false the device process is of another kernel: this program does not know its token\n"
    assert result.text() == 2 * refused + "true <nil>\n", result


HOSTILE = """</script></style><script>alert(1)</script><img src=x onerror=alert(2)>" onmouseover="alert(3)'"""


class Tags(HTMLParser):
    """The tags of a page with what they may run."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = tag
        for name, value in attrs:
            if name.startswith("on") or (value or "").strip().lower().startswith("javascript:"):
                self.found.append(f"<{tag} {name}={value!r}>")
            if tag == "img" and name == "src" and not (value or "").startswith("data:image/"):
                self.found.append(f"<img src={value!r}>")

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside == "script" and re.search(r"^\s*alert\(", data):
            self.found.append(f"<script>{data[:40]}")


def test_the_test_of_pages_finds_what_runs() -> None:
    assert len(Tags(HOSTILE).found) == 3
    assert Tags('<p title="onerror=alert(2)">&lt;img src=x onerror=alert(2)&gt;</p><img src="data:image/png;base64,AA">').found == []


def test_no_name_or_label_reaches_a_page_as_markup(held: Kernel) -> None:
    name = "`" + HOSTILE + "`"
    result = held.run(
        ATTN + f"%%\nname := {name}\nx := make([]float32, 2*12*8)\nfor i := range x {{ x[i] = float32(i%7) }}\n"
        'q := attn.FromSlice(x, "heads seq dim", 2, 12, 8).Named(name)\np := attn.Scores(q, q, attn.Causal).Softmax().Named(name + "p")\n'
        "labels := attn.Tokens(name, name, name, name, name, name, name, name, name, name, name, name)\n"
        "p.Heatmap(labels)\np.Interactive(labels)\np.Heatmap(attn.Enlarge, labels)\nq.Heatmap()\n"
    )
    assert result.status == "ok", result
    pages = [data["text/html"] for data in result.displays if "text/html" in data]
    assert len(pages) >= 2, [sorted(d) for d in result.displays]
    said = " ".join(data.get("text/plain", "") for data in result.displays)
    assert "alert(1)" in said  # the name is shown, as text
    for page in pages:
        assert "alert" in page and Tags(page).found == []
    for page in (d["text/html"] for code in ("%tensors", "%device") for o in held.run(code).outputs if (d := o.get("data", {})) and "text/html" in d):
        assert Tags(page).found == []
