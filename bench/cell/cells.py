"""The cells that are measured. Each run of one has a text of its own, so that no cache knows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

ATTN = 'import "github.com/attnb/attnb/kernel/attn"\n'


@dataclass(frozen=True)
class Cell:
    what: str
    kernel: str
    code: Callable[[int], str]
    pictures: int = 0
    prints: bool = False


def go(body: str, imports: str = "") -> Callable[[int], str]:
    return lambda n: f"{imports}%%\n" + body.replace("RUN", str(n))


PREPARE_ATTNB = ATTN + """%%
fill := func(heads, n int) []float32 {
	values := make([]float32, heads*n*n)
	for i := range values {
		values[i] = float32(i%97)/16 - 3
	}
	return values
}
attn.FromSlice(fill(1, 64), "heads query key", 1, 64, 64).Named("one")
attn.FromSlice(fill(12, 128), "heads query key", 12, 128, 128).Named("twelve")
"""

PREPARE_PYTHON = """
import numpy as np
import matplotlib.pyplot as plt
%matplotlib inline
def scores(heads, n):
    return (np.arange(heads * n * n, dtype=np.float32) % 97 / 16 - 3).reshape(heads, n, n)
one, twelve = scores(1, 64), scores(12, 128)
def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)
"""

CELLS = {
    "a": Cell("attnb: get, softmax, heatmap of 64x64", "attnb",
              go('attn.Get("one").Softmax().Heatmap(attn.Title("run RUN"))', ATTN), pictures=1),
    "b": Cell("stock gonb: print", "gonb", go('fmt.Println("run", RUN)', 'import "fmt"\n'), prints=True),
    "d1": Cell("ipykernel, matplotlib: softmax, heatmap of 64x64", "python3",
               lambda n: f"plt.imshow(softmax(one)[0]); plt.colorbar(); plt.title('run {n}'); plt.show()", pictures=1),
    "d12": Cell("ipykernel, matplotlib: softmax, 12 heads of 128x128", "python3", lambda n: f"""
figure, axes = plt.subplots(3, 4, figsize=(12, 9))
for head, axis in zip(softmax(twelve), axes.flat):
    figure.colorbar(axis.imshow(head), ax=axis)
figure.suptitle('run {n}'); plt.show()
""", pictures=1),
    "e": Cell("attnb: get, softmax, heatmaps of 12 heads of 128x128", "attnb",
              go('attn.Get("twelve").Softmax().Heatmap(attn.Title("run RUN"))', ATTN), pictures=1),
}

# Programs, for what only the build of a cell takes.
PRINTING = 'package main\n\nimport "fmt"\n\nfunc main() { fmt.Println("run RUN") }\n'
USING = ('package main\n\nimport "github.com/attnb/attnb/kernel/attn"\n\n'
         'func main() { attn.Get("one").Softmax().Heatmap(attn.Title("run RUN")) }\n')
