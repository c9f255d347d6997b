"""Writes what notebook 09 loads: one attention layer of a model that nobody has documented, dumped from PyTorch.

stranger.npz             qkv [20, 160], the fused rows before any rotation; q [6, 20, 16], k and v [2, 20, 16], as attention gets them;
                         context [6, 20, 16]. f32
stranger_double.npy      k once more, in f64, the bytes of each number in the other order (big-endian)
stranger_half.npz        q, k and v once more, in f16 and Fortran order
stranger.safetensors     k and v once more, in bf16
engine.npy               v once more, as an engine keeps it: 640 numbers in a row, and no shape

Random weights with a fixed seed, so that running it again writes the same files: `python stranger.py` in this folder. It needs PyTorch (2.15)
and NumPy. The class Dump is that of docs/own-tensors.md.
"""

import json
import math
import pathlib

import numpy as np
import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

HERE = pathlib.Path(__file__).parent


class Dump(TorchFunctionMode):
    """Keeps what the named projections make, and what goes in and out of attention call `layer`."""
    def __init__(self, model, layer, **projections):
        super().__init__()
        self.layer, self.calls, self.kept = layer, 0, {}
        for name, module in projections.items():
            hook = lambda module, given, out, name=name: self.keep(**{name: out})
            model.get_submodule(module).register_forward_hook(hook)
    def keep(self, **tensors):
        for name, t in tensors.items():
            self.kept[name] = t[0].detach().float().cpu().contiguous().numpy()  # [0] of the batch
    def __torch_function__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        if function is F.scaled_dot_product_attention:
            if self.calls == self.layer:
                given = dict(zip(("query", "key", "value"), args)) | (kwargs or {})
                self.keep(q=given["query"], k=given["key"], v=given["value"], context=out)
            self.calls += 1
        return out


class Stranger(torch.nn.Module):
    """The layer. What it does is what the notebook finds out."""

    heads, kv, dim, window, base = 6, 2, 16, 8, 500000.0

    def __init__(self):
        super().__init__()
        hidden = self.heads * self.dim
        self.qkv = torch.nn.Linear(hidden, (self.heads + 2 * self.kv) * self.dim, bias=False)
        torch.nn.init.normal_(self.qkv.weight, std=1.3 / math.sqrt(hidden))

    def turn(self, x):
        pairs = torch.arange(self.dim // 2, dtype=torch.float32)
        angles = torch.arange(x.shape[-2], dtype=torch.float32)[:, None] * self.base ** (-2 * pairs / self.dim)
        even, odd = x[..., 0::2], x[..., 1::2]
        cos, sin = angles.cos(), angles.sin()
        return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)

    def forward(self, x):
        sizes = [n * self.dim for n in (self.heads, self.kv, self.kv)]
        q, k, v = (part.unflatten(-1, (-1, self.dim)).transpose(1, 2) for part in self.qkv(x).split(sizes, dim=-1))
        row, key = torch.arange(x.shape[1])[:, None], torch.arange(x.shape[1])
        sees = (key <= row) & (key > row - self.window)
        return F.scaled_dot_product_attention(self.turn(q), self.turn(k), v, attn_mask=sees, enable_gqa=True)


def write_safetensors(path, tensors):
    """bf16 tensors, written by hand: NumPy has no bf16. It is the upper half of an f32, here rounded to nearest, ties to even."""
    header, body = {}, b""
    for name, x in tensors.items():
        bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
        data = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2").tobytes()
        header[name] = {"dtype": "BF16", "shape": list(x.shape), "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)


def main():
    torch.manual_seed(9)
    model, x = Stranger(), torch.randn(1, 20, Stranger.heads * Stranger.dim)
    with torch.no_grad(), Dump(model, 0, qkv="qkv") as dump:
        model(x)
    kept = dump.kept
    np.savez(HERE / "stranger.npz", **kept)
    np.save(HERE / "stranger_double.npy", kept["k"].astype(">f8"))
    np.savez(HERE / "stranger_half.npz", **{name: np.asfortranarray(kept[name].astype(np.float16)) for name in "qkv"})
    write_safetensors(HERE / "stranger.safetensors", {name: kept[name] for name in "kv"})
    np.save(HERE / "engine.npy", kept["v"].transpose(0, 2, 1).ravel())  # [heads, dim, seq]: each number of a head beside its neighbours in time


if __name__ == "__main__":
    main()
