"""One tutorial step in three tools: fused rows in GPT-NeoX order to rotated q and k, to causal probabilities of all heads, shown.

TOKENS stands for the number of tokens. Inputs are made in a cell before, which is not timed."""

HEADS, DIM = 4, 64

ATTNB_PREPARE = """import (
	"math/rand"

	"github.com/attnb/attnb/kernel/attn"
)

%%
source := rand.New(rand.NewSource(TOKENS))
rows := make([]float32, TOKENS*3*4*64)
for i := range rows {
	rows[i] = float32(source.NormFloat64())
}
attn.FromSlice(rows, "seq hidden", TOKENS, 3*4*64).Named("qkv")
"""

ATTNB = """import "github.com/attnb/attnb/kernel/attn"

%%
q, k, _ := attn.Get("qkv").SplitHeads(attn.NeoX(4))
q, k = q.RoPE(attn.HalfSplit(64)), k.RoPE(attn.HalfSplit(64))
attn.Map(q, k, attn.Causal, attn.Title("run RUN"))
"""

PYTHON_PREPARE = """
%matplotlib inline
import math
import torch
import matplotlib.pyplot as plt
torch.manual_seed(TOKENS)
qkv = torch.randn(TOKENS, 3 * 4 * 64)

def rotate(x):
    half = x.shape[-1] // 2
    angle = torch.outer(torch.arange(x.shape[-2]), 10000 ** (-torch.arange(half) / half))
    cos, sin = angle.cos(), angle.sin()
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

def probabilities():
    q, k, _ = qkv.view(TOKENS, 4, 3, 64).permute(2, 1, 0, 3)
    scores = rotate(q) @ rotate(k).mT / math.sqrt(64)
    hidden = torch.ones(TOKENS, TOKENS, dtype=torch.bool).triu(1)
    return scores.masked_fill(hidden, -math.inf).softmax(-1)
"""

MATPLOTLIB = """
figure, axes = plt.subplots(1, 4, figsize=(16, 4))
for head, axis in zip(probabilities(), axes.flat):
    figure.colorbar(axis.imshow(head), ax=axis)
figure.suptitle('run RUN'); plt.show()
"""

BERTVIZ_PREPARE = PYTHON_PREPARE + """
from bertviz import head_view
tokens = [str(i) for i in range(TOKENS)]
"""

BERTVIZ = """
head_view((probabilities()[None],), tokens)  # run RUN
"""

# tool: its kernel, the cell before, the cell that is timed
TOOLS = {
    "attnb": ("attnb", ATTNB_PREPARE, ATTNB),
    "PyTorch and matplotlib": ("python3", PYTHON_PREPARE, MATPLOTLIB),
    "BertViz": ("python3", BERTVIZ_PREPARE, BERTVIZ),
}
