"""How surprised the model is."""

import torch
import torch.nn.functional as F

from neox import forward


def surprise(params, ids):
    """Cross entropy in nats of each next token, [batch * (length - 1)]."""
    return F.cross_entropy(forward(params, ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), reduction="none")


def losses(params, ids, copied):
    """The mean surprise: of all tokens, of those that a repeat tells, of the others."""
    with torch.no_grad():
        each = surprise(params, ids)
    told = copied[:, 1:].flatten()
    return [x.mean().item() for x in (each, each[told], each[~told])]
