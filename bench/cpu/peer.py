"""Run and time PyTorch's f32 ops on the processor, as bench/cpu asks for them: a line of JSON in, a line of JSON out.

    {"threads": N}                                     -> {"torch": VERSION, "vectors": CAPABILITY}
    {"op": OP, "shapes": [...], "files": [...], "causal": BOOL, "scale": X, "out": PREFIX}
                                                       -> {"peers": [NAME, ...]}; PREFIX.NAME holds the result of each
    {"peer": NAME, "runs": N}                          -> {"seconds": T} for N runs of the op last prepared
"""
import ctypes
import json
import sys
import time

import torch
import torch.nn.functional as F


def load(path, shape):
    n = 1
    for size in shape:
        n *= size
    return torch.from_file(path, shared=False, size=n, dtype=torch.float32).view(*shape).clone()


def unfused(q, k, v, scale, mask):
    """Matmul, mask, softmax, matmul; the mask is added by the first."""
    k = k.transpose(-1, -2)
    if mask is None:
        return lambda: torch.softmax(torch.bmm(q, k).mul_(scale), -1) @ v
    return lambda: torch.softmax(torch.baddbmm(mask, q, k, alpha=scale), -1) @ v


def textbook(q, k, v, scale, mask):
    """The same as tutorials write it."""
    k = k.transpose(-1, -2)
    if mask is None:
        return lambda: torch.softmax(q @ k * scale, -1) @ v
    return lambda: torch.softmax(q @ k * scale + mask, -1) @ v


def peers(op, x, causal, scale):
    """What PyTorch has for an op on tensors x, by name."""
    if op in ("prefill", "decode"):
        q, k, v = x
        mask = torch.full((q.shape[1], k.shape[1]), float("-inf")).triu(1) if causal else None
        return {
            "fused": lambda: F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=causal, scale=scale)[0],
            "unfused": unfused(q, k, v, scale, mask),
            "textbook": textbook(q, k, v, scale, mask),
        }
    if op == "softmax":
        if causal:
            mask = torch.full(x[0].shape[1:], float("-inf")).triu(1)
            return {"torch": lambda: torch.softmax(x[0] + mask, -1)}
        return {"torch": lambda: torch.softmax(x[0], -1)}
    if op == "linear":
        return {"torch": lambda: F.linear(x[0][0], x[1][0])}
    if op == "add":
        return {"torch": lambda: x[0] + x[1]}
    raise ValueError(op)


def main():
    ready = {}
    for line in sys.stdin:
        ask = json.loads(line)
        if "threads" in ask:
            torch.set_num_threads(ask["threads"])
            answer = {"torch": torch.__version__, "vectors": torch.backends.cpu.get_cpu_capability()}
        elif "op" in ask:
            x = [load(path, shape) for path, shape in zip(ask["files"], ask["shapes"])]
            ready = peers(ask["op"], x, ask["causal"], ask["scale"])
            for name, run in ready.items():
                with open(f"{ask['out']}.{name}", "wb") as f:
                    y = run().contiguous()
                    f.write(ctypes.string_at(y.data_ptr(), 4 * y.numel()))
            answer = {"peers": list(ready)}
        else:
            run, begin = ready[ask["peer"]], time.perf_counter()
            for _ in range(ask["runs"]):
                run()
            answer = {"seconds": time.perf_counter() - begin}
        print(json.dumps(answer), flush=True)


with torch.inference_mode():
    main()
