"""Trains the model and writes it: model.safetensors, config.json, vocabulary.json, training.csv.

    python train.py                    # on a GPU if there is one
    python train.py --steps 300 --batch 32 --out /tmp/tiny

Seeds are fixed. Another device or another PyTorch rounds otherwise, so that the weights differ while the heads come out alike.
"""

import argparse
import csv
import json
import math
import os
import pathlib
import time

import numpy as np
import torch

import heads
import tensors
from losses import losses, surprise
from neox import CONFIG, initial
from sequences import VOCABULARY, mixture


def batches(rng, batch, device, at_once=256):
    """Endless batches of ids, made many at a time."""
    while True:
        ids, _ = mixture(rng, batch * at_once)
        yield from torch.from_numpy(ids.astype(np.uint8)).to(device).long().split(batch)


def train(args, device):
    params = {name: value.to(device).requires_grad_() for name, value in initial(CONFIG, args.seed).items()}
    decayed = [p for p in params.values() if p.dim() > 1]
    plain = [p for p in params.values() if p.dim() == 1]
    groups = [{"params": decayed, "weight_decay": args.decay}, {"params": plain, "weight_decay": 0.0}]
    adam = torch.optim.AdamW(groups, lr=args.rate, betas=(0.9, 0.98), fused=device == "cuda")

    def rate(step):  # a short warm-up, then a cosine down to a tenth
        done = step / args.steps
        return min(1, (step + 1) / 200) * (0.1 + 0.45 * (1 + math.cos(math.pi * done)))

    schedule = torch.optim.lr_scheduler.LambdaLR(adam, rate)
    held_out = [torch.from_numpy(x).to(device) for x in mixture(np.random.default_rng(args.seed + 1), 256)]
    source = batches(np.random.default_rng(args.seed + 2), args.batch, device)
    log, started = [], time.monotonic()
    for step in range(args.steps + 1):
        if step % args.every == 0 or step == args.steps:
            all_, told, others = losses(params, *held_out)
            scored = heads.scores(params)
            best = [scored["previous"][0].max(), scored["induction"][1].max()]
            log.append([step, all_, told, others, *best])
            print(f"step {step}: loss {all_:.3f}, told {told:.3f}, others {others:.3f}, previous {best[0]:.3f}, "
                  f"induction {best[1]:.3f}, {time.monotonic() - started:.0f} s", flush=True)
        if step == args.steps:
            break
        loss = surprise(params, next(source)).mean()
        adam.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(params.values(), 1.0)
        adam.step()
        schedule.step()
    return {name: p.detach() for name, p in params.items()}, log


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--decay", type=float, default=0.1)
    parser.add_argument("--init", type=float, default=CONFIG["initializer_range"], help="standard deviation of initial weights")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=int, default=100, help="steps between two lines of training.csv")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    args = parser.parse_args()
    assert len(VOCABULARY) == CONFIG["vocab_size"]
    CONFIG["initializer_range"] = args.init

    device = "cuda" if torch.cuda.is_available() else "cpu"
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when CUDA starts; without it cuBLAS may add in any order
    torch.use_deterministic_algorithms(True)
    params, log = train(args, device)
    print(heads.table(heads.scores(params)))

    args.out.mkdir(parents=True, exist_ok=True)
    made = {"format": "pt", "made by": f"train.py, seed {args.seed}, {args.steps} steps of {args.batch}"}
    tensors.write(args.out / "model.safetensors", {name: p.cpu().numpy() for name, p in params.items()}, made)
    (args.out / "config.json").write_text(json.dumps(CONFIG, indent=2) + "\n")
    (args.out / "vocabulary.json").write_text(json.dumps(VOCABULARY) + "\n")
    with open(args.out / "training.csv", "w", newline="") as f:
        w = csv.writer(f, lineterminator="\n")
        w.writerow(["step", "loss", "loss of what a repeat tells", "loss of the others", "best previous", "best induction"])
        w.writerows([row[0], *(f"{x:.4f}" for x in row[1:])] for row in log)


if __name__ == "__main__":
    main()
