"""Writes golden.npz: one sequence through the model in float64 arithmetic, step by step, each value rounded to f32 once.

ids (as f32) [37]; embeddings, hidden.0, hidden.1 [37, 128]; of each layer i: q_pre.i, k_pre.i (before rotation), q.i, k.i (after),
v.i [4, 37, 32], p.i (probabilities) [4, 37, 37], attention.i and mlp.i (what each adds) [37, 128]; logits [37, 121], and logits_f32,
the same by f32 arithmetic.
"""

import pathlib

import numpy as np
import torch

import tensors
from neox import forward
from sequences import periodic

HERE = pathlib.Path(__file__).parent


def parameters(dtype):
    return {name: torch.from_numpy(value).to(dtype) for name, value in tensors.read(HERE / "model.safetensors").items()}


def sequence():
    """<s> and 12 syllables, three times: ids [1, 37]."""
    return torch.from_numpy(periodic(np.random.default_rng(7), 1, 37, 12, 12)[0])


def main():
    kept = {"ids": sequence()}
    kept["logits"] = forward(parameters(torch.float64), kept["ids"], keep=kept.__setitem__)
    kept["logits_f32"] = forward(parameters(torch.float32), kept["ids"])
    np.savez_compressed(HERE / "golden.npz", **{name: value[0].numpy().astype(np.float32) for name, value in kept.items()})
    difference = (kept["logits"] - kept["logits_f32"]).abs().max().item()
    print(f"logits up to {kept['logits'].abs().max().item():.1f}, f32 arithmetic differs by {difference:.1e} at most")


if __name__ == "__main__":
    main()
