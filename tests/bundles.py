"""Every kind of picture, as cells make it, with labels of the worst kind: what the tests of other places show there."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from html.parser import HTMLParser
from io import BytesIO
from typing import Any

from PIL import Image

from conftest import ATTN, Kernel

# Labels that are quoted, escaped, broken, invisible, right to left, or markup that would run if it were taken for markup.
TOKENS = ['"quoted"', "back\\slash", "line\nbreak", "🙂 emoji", "שלום", "</script><script>window.pwned = 1</script>",
          "<img src=x onerror='window.pwned = 1'>", " ", "", "a\u2028b", "&amp;", "'", "\\input{x} $x_1$ %", "-->"]  # fmt: skip
SHORT = len(TOKENS)
WIDE, LONG, DIM = 96, 1100, 8  # every cell of 96 x 96 is stored with a picture, and 1100 x 1100 are pooled
HOSTILE = '</script><script>window.pwned = 1</script> "t" \\ \n 🙂 שלום'


def go(text: str) -> str:
    """A Go string literal in ASCII."""
    return '"' + "".join(c if 32 <= ord(c) < 127 and c not in '"\\' else f"\\U{ord(c):08x}" for c in text) + '"'


LABELS = f"attn.Tokens({', '.join(map(go, TOKENS))})"
TITLE = f"attn.Title({go(HOSTILE)})"

PREPARE = (
    ATTN
    + f"""%%
wave := func(n int) []float32 {{
	x := make([]float32, n)
	for i := range x {{ x[i] = float32(math.Sin(float64(i)*float64(i%97)*0.37)) }}
	return x
}}
x := attn.FromSlice(wave(2*{SHORT}*{DIM}), "heads seq dim", 2, {SHORT}, {DIM})
k := x.RoPE(attn.HalfSplit({DIM})).Named("k")
s := attn.Scores(x.RoPE(attn.HalfSplit({DIM})), k, attn.Causal).Named("s")
s.Softmax().Named("p")
attn.FromSlice(wave({LONG}*{DIM}), "heads seq dim", 1, {LONG}, {DIM}).Named("long")
attn.FromSlice(wave({WIDE}*{WIDE}), "query key", {WIDE}, {WIDE}).Named("wide")
fmt.Println("ready")
"""
)
VALUES = (
    ATTN
    + """%%
for _, name := range []string{"p", "wide"} {
	fmt.Printf("<%s", name)
	for _, v := range attn.Get(name).Download() { fmt.Printf(" %.9g", v) }
	fmt.Println(">")
}
"""
)

STEPS = f'[]attn.Tensor{{attn.Get("p").Rows(0, {SHORT - 4}), attn.Get("p").Rows({SHORT - 4}, {SHORT})}}'

# By name: the cell without its imports, and whether it has a page's view.
KINDS = {
    "heatmap": (f'attn.Get("p").Heatmap({LABELS}, {TITLE})', False),
    "statistics": (f'attn.Get("p").Heatmap(attn.Statistics, {LABELS})', False),
    "interactive": (f'attn.Get("p").Interactive({LABELS}, {TITLE})', True),
    "enlarge": (f'attn.Get("p").Heatmap(attn.Enlarge, {LABELS}, {TITLE})', True),
    "zoom": (f'attn.Get("wide").Interactive({TITLE})', True),
    "map": (f'attn.Map(attn.Get("long"), attn.Get("long"), attn.Causal, {TITLE})', True),
    "short map": (f'attn.Map(attn.Get("k"), attn.Get("k"), attn.Causal, {LABELS}, {TITLE})', True),
    "layers": (f'attn.Layers([]attn.Tensor{{attn.Get("p"), attn.Get("p")}}, {TITLE})', False),
    "trace": (f'attn.Trace(attn.Get("s"), attn.Get("k"), {SHORT - 1}, attn.OnlyHead(1), {LABELS}, {TITLE})', False),
    "decoding": (f"attn.Decoding({STEPS}, {LABELS}, {TITLE})", False),
    "timeline": (f'k := attn.Get("k"); attn.AppendKV(k, k.Rows(0, 1)).Timeline({TITLE})', False),
    "writes": (f"attn.Writes([]attn.Write{{{{Slots: []int{{0}}}}, {{Slots: []int{{2}}}}, {{Slots: []int{{0}}}}}}, {TITLE})", False),
    "phasors": (f"attn.HalfSplit({DIM}).Phasors(9, attn.Beside(attn.Interleaved({DIM})))", False),
    "check": ('attn.Get("p").Check()', False),
    "differences": ('attn.Compare(attn.Get("p"), attn.Get("p"), attn.Differences)', False),
    "steps": ('attn.Get("p").Check(attn.ULP)', False),
    "explore": (f'attn.Explore(attn.Get("p"), {LABELS}, {TITLE})', False),
    "expected": (f'attn.Explore(attn.Get("p"), attn.Expected(attn.Get("p")), {LABELS}, {TITLE})', False),
}
CELLS = {name: ATTN + "%%\n" + code for name, (code, _) in KINDS.items()}
LABELLED = [name for name, (code, _) in KINDS.items() if LABELS in code]
VIEWS = [name for name, (_, view) in KINDS.items() if view]


@dataclass
class Pictures:
    """What cells showed, by the kind of picture, and the values of the tensors that some of them show."""

    outputs: dict[str, dict[str, Any]]
    values: dict[str, list[float]]


def made(kernel: Kernel) -> Pictures:
    prepared, printed = kernel.run(PREPARE), kernel.run(VALUES)
    assert (prepared.status, printed.status) == ("ok", "ok"), (prepared, printed)
    values = {name: [float(v) for v in numbers.split()] for name, numbers in re.findall(r"<(\w+) ([^>]*)>", printed.text())}
    outputs = {}
    for name, code in CELLS.items():
        result = kernel.run(code, allow_stdin=False)  # as a program runs it: no widgets
        assert (result.status, len(result.displays)) == ("ok", 1), (name, result)
        outputs[name] = next(o for o in result.outputs if o["msg_type"] == "display_data")
    return Pictures(outputs, values)


def png(data: dict[str, Any]) -> Image.Image:
    """The PNG of an output, decoded to its last line."""
    image = Image.open(BytesIO(base64.b64decode(data["image/png"], validate=True)))
    image.load()
    assert image.format == "PNG"
    return image


class Markup(HTMLParser):
    """The elements of an HTML fragment with their attributes, and the text of its scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.code: list[str] = []
        self.text: list[str] = []
        self.within = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        self.within = tag if tag in ("script", "style") else ""

    def handle_endtag(self, tag: str) -> None:
        self.within = ""

    def handle_data(self, data: str) -> None:
        (self.code if self.within else self.text).append(data)

    def images(self) -> list[dict[str, str]]:
        return [attrs for tag, attrs in self.elements if tag == "img"]


def addresses(markup: Markup) -> list[str]:
    """Whatever in a fragment a page would load."""
    found = [attrs[name] for _, attrs in markup.elements for name in ("src", "href", "srcset", "data", "action", "poster", "background") if name in attrs]
    styles = markup.code + [attrs["style"] for _, attrs in markup.elements if "style" in attrs]
    return found + [url for style in styles for url in re.findall(r"url\(\s*['\"]?([^)'\"]*)|@import\s+['\"]?(\S+)", style) for url in url if url]
