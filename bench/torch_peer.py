#!/usr/bin/env python3
"""Measure PyTorch's best f32 path for the rows that bench/gpu gives on stdin, on the same inputs; answer in JSON.

Of several candidates for a row the quickest is reported. TF32 stays off. Inputs and sampled rows are those of bench/gpu/inputs.go.
"""
import json
import math
import sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
DEV = "cuda"
SAMPLES, SHORTEST_MS, MOST_RUNS = 15, 2.0, 200
FEW_SAMPLES = 5
few = False  # the row is one of many sizes: few samples, and nothing is compiled for its size alone


def constant(x):
    """A 64-bit constant as the signed integer that torch wants."""
    return x - (1 << 64) if x >= 1 << 63 else x


def shift(z, n):
    return (z >> n) & ((1 << (64 - n)) - 1)


def mix(z):
    z = z + constant(0x9E3779B97F4A7C15)
    z = (z ^ shift(z, 30)) * constant(0xBF58476D1CE4E5B9)
    z = (z ^ shift(z, 27)) * constant(0x94D049BB133111EB)
    return z ^ shift(z, 31)


def normal(seed, *shape):
    n = math.prod(shape)
    out = torch.empty(n, device=DEV)
    scale = torch.tensor(math.sqrt(3) / 65536, device=DEV, dtype=torch.float32)
    for at in range(0, n, 1 << 27):
        end = min(n, at + (1 << 27))
        h = mix(torch.arange(at, end, device=DEV, dtype=torch.int64) + constant((seed << 40) % (1 << 64)))
        total = (h & 0xFFFF) + (shift(h, 16) & 0xFFFF) + (shift(h, 32) & 0xFFFF) + shift(h, 48) - 2 * 65535
        out[at:end] = total.float() * scale
    return out.view(*shape)


def shaped(x, kind):
    i = torch.arange(x.numel(), device=DEV).view(x.shape)
    return {
        "amp4": lambda: 4 * x,
        "positive": lambda: x.abs(),
        "weights": lambda: x / 64,
        "denormal": lambda: torch.where(i % 17 == 0, torch.ldexp(x.double(), torch.tensor(-130, device=DEV)), x.double()).float(),
        "spread": lambda: torch.ldexp(x.double(), -(i * 7 % 25)).float(),
    }.get(kind, lambda: x)()


def sampled(heads, rows):
    n = min(64, heads * rows)
    step = max(1, rows // 64)
    return [(i * 5 % heads, (rows - 1 - i * step) % rows) for i in range(n)]


def rel_l2(got, want):
    return float((got.double() - want).norm() / want.norm())


def elapsed(run, n):
    a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    a.record()
    for _ in range(n):
        run()
    b.record()
    b.synchronize()
    return a.elapsed_time(b)


def median(run):
    warm = elapsed(run, 3)
    n = int(min(MOST_RUNS, max(1, 3 * SHORTEST_MS / max(warm, 1e-3))))
    elapsed(run, n)
    samples = FEW_SAMPLES if few else SAMPLES
    return sorted(elapsed(run, n) / n for _ in range(samples))[samples // 2]


class Rotating:
    """Calls f with the inputs of one set after the other."""

    def __init__(self, f, sets):
        self.f, self.sets, self.next = f, sets, 0

    def __call__(self):
        self.next += 1
        return self.f(*self.sets[self.next % len(self.sets)])


GRAPHED, SHORT_MS = 20, 2.0


def graphed(run):
    """The median time of a run among those of a CUDA graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(GRAPHED):
            run()
    return median(graph.replay) / GRAPHED


def best(candidates, sets):
    """The quickest candidate that runs, also from a CUDA graph where it is short: its name, time and result on set 0."""
    found = None
    for name, f in candidates:
        if few and name == "torch.compile":
            continue
        try:
            result = f(*sets[0])
            ms = median(Rotating(f, sets))
        except Exception as e:  # a path that this version or this shape lacks is no peer
            print(f"torch: {name}: {type(e).__name__}: {str(e).splitlines()[0][:200]}", file=sys.stderr)
            continue
        print(f"torch: {name}: {ms:.4f} ms", file=sys.stderr)
        if found is None or ms < found[1]:
            found = (name, ms, result)
        if ms > SHORT_MS:
            continue
        try:
            ms = graphed(Rotating(f, sets))
        except Exception as e:
            print(f"torch: {name}, graph: {type(e).__name__}: {str(e).splitlines()[0][:200]}", file=sys.stderr)
            continue
        if ms < found[1]:
            found = (name + ", CUDA graph", ms, result)
    return found


def make(row, which, *shape, kind=""):
    return [shaped(normal(8 * i + which, *shape), kind) for i in range(max(1, row.get("sets", 1)))]


def compiled(f):
    if few:
        return f  # not run
    torch._dynamo.reset()
    return torch.compile(f)


any_size = torch.compile(lambda x, cos, sin: rotated(x, cos, sin), dynamic=True)


def rope(row):
    h, s, d, offset = row["H"], row["S"], row["d"], row.get("offset", 0)
    x = make(row, 0, h, s, d)
    freq = 10000.0 ** (-torch.arange(0, d, 2, device=DEV, dtype=torch.float64) / d)
    angle = torch.arange(offset, offset + s, device=DEV, dtype=torch.float64)[:, None] * freq
    cos, sin = (torch.cat([f(angle)] * 2, -1).float() for f in (torch.cos, torch.sin))  # a table made beforehand

    def turn(x):
        half = x.shape[-1] // 2
        return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin

    candidates = [("eager", turn), ("torch.compile", compiled(turn))]
    if few:
        candidates.append(("torch.compile, any size", lambda x: any_size(x, cos, sin)))
    found = best(candidates, [(t,) for t in x])
    at = sampled(h, s)
    hi, si = [p[0] for p in at], [p[1] for p in at]
    a, b = x[0][hi, si].double().split(d // 2, -1)
    c, n = torch.cos(angle)[si], torch.sin(angle)[si]
    return found, rel_l2(found[2][hi, si], torch.cat([a * c - b * n, b * c + a * n], -1))


def gather(row):
    h, s, d = row["H"], row["S"], row["d"]
    x = make(row, 0, s, 3 * h * d)
    permute = lambda x: x.view(s, 3, h, d).permute(1, 2, 0, 3).contiguous()
    return best([("permute.contiguous", permute), ("torch.compile", compiled(permute))], [(t,) for t in x]), 0.0


def add(row):
    a, b = make(row, 0, row["S"], row["d"]), make(row, 1, row["S"], row["d"])
    found = best([("add", torch.add)], list(zip(a, b)))
    want = a[0].double() + b[0].double()
    return found, rel_l2(found[2], want)


def softmax(row):
    s, d = row["S"], row["d"]
    x = make(row, 0, s, d)
    hidden = torch.ones(s, d, dtype=torch.bool, device=DEV).triu(1) if row.get("causal") else None
    f = lambda x: torch.softmax(x if hidden is None else x.masked_fill(hidden, -math.inf), -1)
    found = best([("softmax", f), ("torch.compile", compiled(f))], [(t,) for t in x])
    at = [p[1] for p in sampled(1, s)]
    y = x[0][at].double()
    if hidden is not None:
        y = y.masked_fill(hidden[at], -math.inf)
    return found, rel_l2(found[2][at], torch.softmax(y, -1))


def append(row):
    h, t, d = row["H"], row["T"], row["d"]
    cache, new = normal(0, 1, h, t, d), normal(1, 1, h, 1, d)
    return best([("cat", lambda a, b: torch.cat([a, b], 2))], [(cache, new)]), 0.0


def linear(row):
    x, w = make(row, 0, row["S"], row["d"]), make(row, 1, row["T"], row["d"])
    found = best([("linear", F.linear)], list(zip(x, w)))
    at = [p[1] for p in sampled(1, row["S"])]
    return found, rel_l2(found[2][at], x[0][at].double() @ w[0].double().T)


def context(row):
    h, n, d = row["H"], row["S"], row["d"]
    p, v = make(row, 0, h, n, n, kind="positive"), make(row, 1, h, n, d)
    found = best([("bmm", torch.bmm)], list(zip(p, v)))
    at = sampled(h, n)
    hi, si = [a[0] for a in at], [a[1] for a in at]
    want = torch.stack([p[0][a, b].double() @ v[0][a].double() for a, b in at])
    return found, rel_l2(found[2][hi, si], want)


def tiny(row):
    x = normal(0, row["S"], row["d"])
    return best([("add", lambda x: x + x)], [(x,)]), 0.0


FLEX_ROWS = (4096, 16384)  # it takes long to compile


def attention(row):
    h, kv, d, t = row["H"], row["KV"], row["d"], row["T"]
    s = row.get("S", 1)
    causal = row["op"] == "prefill"
    kind = row.get("input", "")
    q = make(row, 0, 1, h, s, d, kind="" if kind == "positive" else kind)
    all_kinds = kind if kind in ("denormal", "spread") else ""
    k = make(row, 1, 1, kv, t, d, kind=all_kinds)
    v = make(row, 2, 1, kv, t, d, kind="positive" if kind == "positive" else all_kinds)

    def path(backend):
        def f(q, k, v):
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=h != kv)

        return f

    def expanded(q, k, v):
        with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
            return F.scaled_dot_product_attention(
                q, k.repeat_interleave(h // kv, 1), v.repeat_interleave(h // kv, 1), is_causal=causal)

    candidates = [("efficient", path(SDPBackend.EFFICIENT_ATTENTION) if h == kv else expanded)]
    if s * t * h <= 1 << 31:
        candidates.append(("math", path(SDPBackend.MATH)))
    if causal and h == kv and s in FLEX_ROWS and not kind and not few:
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
        mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, s, t, device=DEV)
        flex = compiled(flex_attention)
        candidates.append(("FlexAttention", lambda q, k, v: flex(q, k, v, block_mask=mask, kernel_options={"PRECISION": "'ieee'"})))
    found = best(candidates, list(zip(q, k, v)))
    want, got = [], []
    for head, r in sampled(h, s):
        n = r + 1 if causal else t
        g = head // (h // kv)
        p = torch.softmax(k[0][0, g, :n].double() @ q[0][0, head, r].double() / math.sqrt(d), 0)
        want.append(p @ v[0][0, g, :n].double())
        got.append(found[2][0, head, r])
    return found, rel_l2(torch.stack(got), torch.stack(want))


def pooled(row):
    """Chunks of rows: scores, softmax over what they see, mean over blocks. One pass; the chunk's scores are in memory."""
    n, d, side = row["S"], row["d"], row["side"]
    pool, scale = n // side, 1 / math.sqrt(row["d"])
    q, k = make(row, 0, n, d)[0], make(row, 1, n, d)[0]
    sizes = [c for c in ((2048, 4096) if few else (512, 1024, 2048, 4096)) if c < n and c % pool == 0] or [n]
    hidden = {c: torch.ones(c, c, dtype=torch.bool, device=DEV).triu(1) for c in sizes}
    tri = torch.arange(1, pool + 1, device=DEV).sum()

    def means(p, c, end):
        return p.view(c // pool, pool, end // pool, pool).sum((1, 3)) / (pool * pool)

    fused = torch.compile(lambda s, c, end: means(torch.exp(s - torch.logsumexp(s, -1, True)), c, end), dynamic=True)

    def chunked(c, finish):
        scores = torch.empty(c * n, device=DEV)

        def f(q, k):
            out = torch.zeros(side, side, device=DEV)
            scaled = q * scale
            for r in range(0, n, c):
                end = r + c
                s = torch.mm(scaled[r:end], k[:end].T, out=scores[:c * end].view(c, end))
                s[:, r:end].masked_fill_(hidden[c], -math.inf)
                out[r // pool:end // pool, :end // pool] = finish(s, c, end)
            out.diagonal().mul_(pool * pool / tri)
            return out

        return f

    plain = lambda s, c, end: means(torch.softmax(s, -1, dtype=torch.float32), c, end)
    in_place = lambda s, c, end: means(s.sub_(torch.logsumexp(s, -1, True)).exp_(), c, end)
    candidates = [(f"{name}, chunks of {c}", chunked(c, f)) for c in sizes
                  for name, f in (("softmax", plain), ("in place", in_place))]
    if not few:
        candidates += [(f"torch.compile, chunks of {c}", chunked(c, fused)) for c in (1024, 2048)]
    found = best(candidates, [(q, k)])
    want = torch.zeros(side, side, device=DEV, dtype=torch.double)
    k64, upper = k.double(), torch.ones(pool, pool, dtype=torch.bool, device=DEV).triu(1)
    for r in range(side):  # a row of the picture: its queries against all keys that they see, in float64
        end = (r + 1) * pool
        s = q[r * pool:end].double() @ k64[:end].T * scale
        s[:, r * pool:].masked_fill_(upper, -math.inf)
        want[r, :r + 1] = torch.softmax(s, -1).view(pool, r + 1, pool).sum((0, 2)) / (pool * pool)
    want.diagonal().mul_(pool * pool / tri)
    seen = torch.ones(side, side, dtype=torch.bool, device=DEV).tril()
    want, got = want[seen], found[2][seen]
    largest = lambda x: float(((x.double() - want).abs() / want).max())
    row["max_rel"] = largest(got)
    if row.get("picture"):
        row["ours_max_rel"] = largest(torch.tensor(row["picture"], device=DEV).view(side, side)[seen])
    return found, rel_l2(got, want)

def turn(x, position):
    """RoPE of [..., rows, d], half-split, angles in float64, in the precision of x."""
    d = x.shape[-1]
    freq = 10000.0 ** (-torch.arange(0, d, 2, device=DEV, dtype=torch.float64) / d)
    angle = position.double()[:, None] * freq
    cos, sin = (torch.cat([f(angle)] * 2, -1).to(x.dtype) for f in (torch.cos, torch.sin))
    return x * cos + torch.cat([-x[..., d // 2:], x[..., :d // 2]], -1) * sin


def rotated(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


def table(position, d):
    freq = 10000.0 ** (-torch.arange(0, d, 2, device=DEV, dtype=torch.float64) / d)
    angle = position.double()[:, None] * freq
    return [torch.cat([f(angle)] * 2, -1).float() for f in (torch.cos, torch.sin)]  # made beforehand


def split_heads(x, h, d):
    return [y.view(1, x.shape[0], h, d).transpose(1, 2) for y in x.split(h * d, -1)]


def layer(row):
    h, d, s = row["H"], row["d"], row["S"]
    n = h * d
    x, wqkv, wo = normal(0, s, n), shaped(normal(1, 3 * n, n), "weights"), shaped(normal(2, n, n), "weights")
    cos, sin = table(torch.arange(s, device=DEV), d)

    def f(x, wqkv, wo):
        q, k, v = split_heads(F.linear(x, wqkv), h, d)
        q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + F.linear(y.transpose(1, 2).reshape(s, n), wo)

    found = best([("eager", f), ("torch.compile", compiled(f))], [(x, wqkv, wo)])
    few = 256
    q, k, v = split_heads(x[:few].double() @ wqkv.double().T, h, d)
    at = torch.arange(few, device=DEV)
    score = turn(q, at) @ turn(k, at).transpose(-1, -2) / math.sqrt(d)
    y = torch.softmax(score.masked_fill(torch.ones(few, few, dtype=torch.bool, device=DEV).triu(1), -math.inf), -1) @ v
    want = x[:few].double() + y.transpose(1, 2).reshape(few, n) @ wo.double().T
    rows = list(range(few - 1, 0, -32))
    return found, rel_l2(found[2][rows], want[rows])


def step(row):
    h, d, t = row["H"], row["d"], row["T"]
    n = h * d
    x, wqkv, wo = normal(0, 1, n), shaped(normal(1, 3 * n, n), "weights"), shaped(normal(2, n, n), "weights")
    keys, values = (torch.cat([normal(i, 1, h, t, d), torch.zeros(1, h, 1, d, device=DEV)], 2) for i in (3, 4))  # and room for one
    at = torch.tensor([t], device=DEV)
    cos, sin = table(at, d)

    def path(backend):
        def f(x, wqkv, wo):
            q, k, v = split_heads(F.linear(x, wqkv), h, d)
            keys.index_copy_(2, at, rotated(k, cos, sin))
            values.index_copy_(2, at, v)
            with sdpa_kernel(backend):
                y = F.scaled_dot_product_attention(rotated(q, cos, sin), keys, values)
            return x + F.linear(y.transpose(1, 2).reshape(1, n), wo)

        return f

    paths = [("efficient", path(SDPBackend.EFFICIENT_ATTENTION)), ("math", path(SDPBackend.MATH))]
    found = best(paths + [("torch.compile, " + name, compiled(f)) for name, f in paths], [(x, wqkv, wo)])
    q, k, v = split_heads(x.double() @ wqkv.double().T, h, d)
    k, v = torch.cat([keys[:, :, :t].double(), turn(k, at)], 2), torch.cat([values[:, :, :t].double(), v], 2)
    y = torch.softmax(turn(q, at) @ k.transpose(-1, -2) / math.sqrt(d), -1) @ v
    return found, rel_l2(found[2], x.double() + y.transpose(1, 2).reshape(1, n) @ wo.double().T)


OPS = {"layer": layer, "step": step, "rope": rope, "gather": gather, "add": add, "softmax": softmax, "append": append, "linear": linear, "context": context, "tiny": tiny, "pooled": pooled,
       "prefill": attention, "decode": attention}


def main():
    global few
    rows = []
    for row in json.load(sys.stdin):
        few = row.get("few", False)
        answer = {"peer": "", "ms": 0, "rel_l2": 0}
        if row["op"] in OPS:
            try:
                found, error = OPS[row["op"]](row)
                answer = {"peer": "torch " + found[0], "ms": found[1], "rel_l2": error,
                          **({name: row[name] for name in ("max_rel", "ours_max_rel") if name in row} if row["op"] == "pooled" else {})}
            except Exception as e:
                print(f"torch: {row}: {type(e).__name__}: {str(e)[:300]}", file=sys.stderr)
        rows.append(answer)
        torch.cuda.empty_cache()
    json.dump({"torch": torch.__version__, "rows": rows}, sys.stdout)


if __name__ == "__main__":
    main()
