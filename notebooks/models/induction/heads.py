"""What a head attends to, as numbers between 0 and 1: the mean attention of queries to one kind of key.

On <s> and n random syllables that are said twice, for the queries of the second time:

    induction    to the token after the earlier occurrence of the query's token, n - 1 back
    duplicate    to the earlier occurrence itself, n back
    first        to <s>

and for all queries that have such a key:

    self         to the query's own token
    previous     to the token before it
    second       to the one before that

What a head is worth: how surprised the model is by what a repeat tells, in nats, when the head adds nothing.

    python heads.py                    # both, of model.safetensors
"""

import pathlib

import numpy as np
import torch

import tensors
from losses import losses
from neox import CONFIG, forward
from sequences import mixture, periodic

HERE = pathlib.Path(__file__).parent


def attention(params, ids):
    """Probabilities [layers, batch, heads, query, key]."""
    kept = {}
    with torch.no_grad():
        forward(params, ids, keep=kept.__setitem__)
    return torch.stack([kept[name] for name in sorted(kept) if name.startswith("p.")])


def scores(params, seed=1, rows=64, period=31):
    """Each measure's [layers, heads]."""
    length = 1 + 2 * period
    ids, _ = periodic(np.random.default_rng(seed), rows, length, period, period)
    p = attention(params, torch.from_numpy(ids).to(params["embed_out.weight"].device))

    def mean(back, queries_from=0):
        to = p.diagonal(-back, dim1=-2, dim2=-1)  # of the queries from `back` on
        return to[..., max(queries_from - back, 0):].mean(dim=(1, 3)).cpu().numpy()

    second_time = 1 + period
    return {
        "induction": mean(period - 1, second_time),
        "duplicate": mean(period, second_time),
        "first": p[..., second_time:, 0].mean(dim=(1, 3)).cpu().numpy(),
        "self": mean(0),
        "previous": mean(1),
        "second": mean(2),
    }


def worth(params, seed=2, rows=256):
    """The loss of what a repeat tells: with all heads, and [layers, heads] without each of them."""
    ids, copied = (torch.from_numpy(x).to(params["embed_out.weight"].device) for x in mixture(np.random.default_rng(seed), rows))
    layers, heads = CONFIG["num_hidden_layers"], CONFIG["num_attention_heads"]
    missing = np.zeros((layers, heads))
    for layer in range(layers):
        name = f"gpt_neox.layers.{layer}.attention.dense.weight"
        for head in range(heads):
            cut = params[name].clone()
            cut.chunk(heads, dim=1)[head].zero_()  # what the head sends to the residual
            missing[layer, head] = losses({**params, name: cut}, ids, copied)[1]
    return losses(params, ids, copied)[1], missing


def table(measured):
    """Measures of heads [layers, heads], by name, as lines of a Markdown table."""
    lines = ["| head | " + " | ".join(measured) + " |", "|---" * (1 + len(measured)) + "|"]
    for at in np.ndindex(next(iter(measured.values())).shape):
        lines.append(f"| {at[0]}.{at[1]} | " + " | ".join(f"{m[at]:.3f}" for m in measured.values()) + " |")
    return "\n".join(lines)


def main():
    params = {name: torch.from_numpy(value) for name, value in tensors.read(HERE / "model.safetensors").items()}
    whole, missing = worth(params)
    print(table({**scores(params), "loss without it": missing}))
    print(f"loss with all heads: {whole:.3f}")


if __name__ == "__main__":
    main()
