"""Sequences with repeats: what the model learns from, and what it is measured on.

Token 0 begins every sequence. Tokens 1 to 120 are syllables (ba, be, ... zu, zy), so that a picture can name them.
"""

import numpy as np

LENGTH = 128
SYLLABLES = [c + v for c in "bcdfghjklmnpqrstvwxz" for v in "aeiouy"]
VOCABULARY = ["<s>"] + SYLLABLES


def periodic(rng, count, length=LENGTH, shortest=4, longest=63):
    """Some distinct syllables, over and over: the period differs from row to row, so that no fixed distance finds the copy.

    Returns ids [count, length] and, of the same shape, whether a token can be told from what precedes it.
    """
    period = rng.integers(shortest, longest + 1, size=(count, 1))
    shuffled = rng.permuted(np.tile(np.arange(1, len(VOCABULARY)), (count, 1)), axis=1)
    at = np.arange(length - 1)[None, :]
    ids = np.zeros((count, length), np.int64)
    ids[:, 1:] = np.take_along_axis(shuffled, at % period, axis=1)
    copied = np.zeros((count, length), bool)
    copied[:, 1:] = at > period  # the first repeated token is a surprise, the ones after it are not
    return ids, copied


def fragments(rng, count, length=LENGTH, chance=1 / 12, shortest=4, longest=24):
    """Random syllables; now and then a fragment of what came before is said again. Returns as periodic does."""
    rows = np.arange(count)
    ids = np.zeros((count, length), np.int64)
    copied = np.zeros((count, length), bool)
    ids[:, 1:] = rng.integers(1, len(VOCABULARY), size=(count, length - 1))
    left, source = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for t in range(8, length):
        running = left > 0
        start = ~running & (rng.random(count) < chance)
        source = np.where(start, rng.integers(1, t - 2, size=count), source)
        left = np.where(start, rng.integers(shortest, longest + 1, size=count), left)
        copy = left > 0
        ids[copy, t] = ids[rows[copy], source[copy]]
        copied[:, t] = running
        source += copy
        left -= copy
    return ids, copied


def mixture(rng, count):
    """Half of each, in random order."""
    parts = [periodic(rng, count - count // 2), fragments(rng, count // 2)]
    order = rng.permutation(count)
    return tuple(np.concatenate(p)[order] for p in zip(*parts))
