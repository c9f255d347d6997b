"""Draws loss.png (from training.csv) and heads.png (every head on the sequence of golden.npz). Needs matplotlib."""

import csv

import matplotlib
import torch

from golden import HERE, parameters, sequence
from heads import attention
from sequences import VOCABULARY

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402


def loss():
    with open(HERE / "training.csv") as f:
        names, *rows = csv.reader(f)
    columns = dict(zip(names, zip(*[[float(x) for x in row] for row in rows])))
    step = columns.pop("step")
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for name, values in columns.items():
        (left if "loss" in name else right).plot(step, values, label=name)
    left.set(xlabel="step", ylabel="nats", ylim=(0, None))
    right.set(xlabel="step", ylabel="attention", ylim=(0, 1.02))
    left.legend(), right.legend()
    figure.savefig(HERE / "loss.png", dpi=80)


def heads():
    ids = sequence()
    p = attention(parameters(torch.float32), ids)[:, 0]
    figure, axes = plt.subplots(*p.shape[:2], figsize=(11, 6), layout="constrained", sharex=True, sharey=True)
    labels = [VOCABULARY[i] for i in ids[0]]
    for layer, row in enumerate(axes):
        for head, ax in enumerate(row):
            image = ax.imshow(p[layer, head], vmin=0, vmax=1, cmap="viridis")
            ax.set_title(f"head {layer}.{head}", fontsize=9)
            ax.set_xticks(range(len(labels)), labels, fontsize=4, rotation=90)
            ax.set_yticks(range(len(labels)), labels, fontsize=4)
            ax.tick_params(length=0)
    figure.colorbar(image, ax=axes, shrink=0.6, label="probability")
    figure.supxlabel("key", fontsize=9), figure.supylabel("query", fontsize=9)
    figure.savefig(HERE / "heads.png", dpi=90)


if __name__ == "__main__":
    loss()
    heads()
