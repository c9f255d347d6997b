"""The model: GPT-NeoX with a sequential residual, as functions of a dict of parameters with Hugging Face's names.

    x = embed_in[ids]
    for each layer:  x += dense(attention(layernorm(x)));  x += mlp(layernorm(x))
    logits = layernorm(x) @ embed_out.T
"""

import math

import torch
import torch.nn.functional as F

CONFIG = {
    "architectures": ["GPTNeoXForCausalLM"],
    "model_type": "gpt_neox",
    "vocab_size": 121,
    "hidden_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 512,
    "hidden_act": "gelu",
    "rotary_pct": 0.5,
    "rotary_emb_base": 10000,
    "max_position_embeddings": 128,
    "layer_norm_eps": 1e-05,
    "use_parallel_residual": False,
    "attention_bias": True,
    "attention_dropout": 0.0,
    "hidden_dropout": 0.0,
    "initializer_range": 0.02,
    "tie_word_embeddings": False,
    "bos_token_id": 0,
    "eos_token_id": 0,
    "torch_dtype": "float32",
}


def initial(config, seed):
    """Normal weights of initializer_range; what writes to the residual is smaller by sqrt(2 * layers). On the CPU, f32."""
    g = torch.Generator().manual_seed(seed)
    h, m, std = config["hidden_size"], config["intermediate_size"], config["initializer_range"]
    params = {}

    def linear(name, out, width, std):
        params[name + ".weight"] = torch.randn(out, width, generator=g) * std
        params[name + ".bias"] = torch.zeros(out)

    def norm(name):
        params[name + ".weight"], params[name + ".bias"] = torch.ones(h), torch.zeros(h)

    params["gpt_neox.embed_in.weight"] = torch.randn(config["vocab_size"], h, generator=g) * std
    for i in range(config["num_hidden_layers"]):
        layer, small = f"gpt_neox.layers.{i}.", std / math.sqrt(2 * config["num_hidden_layers"])
        norm(layer + "input_layernorm")
        linear(layer + "attention.query_key_value", 3 * h, h, std)
        linear(layer + "attention.dense", h, h, small)
        norm(layer + "post_attention_layernorm")
        linear(layer + "mlp.dense_h_to_4h", m, h, std)
        linear(layer + "mlp.dense_4h_to_h", h, m, small)
    norm("gpt_neox.final_layer_norm")
    params["embed_out.weight"] = torch.randn(config["vocab_size"], h, generator=g) * std
    return params


def angles(config, length, like):
    """cos and sin of position * base^(-2i/dims), [length, dims], the two halves equal. In float64, then as like."""
    head_dim = config["hidden_size"] // config["num_attention_heads"]
    dims = int(head_dim * config["rotary_pct"])
    frequency = config["rotary_emb_base"] ** (-torch.arange(0, dims, 2, dtype=torch.float64) / dims)
    angle = torch.arange(length, dtype=torch.float64)[:, None] * frequency
    angle = torch.cat([angle, angle], dim=1)
    return angle.cos().to(like), angle.sin().to(like)


def rotate(x, cos, sin):
    """Turns the first dims of x [..., length, head dim] in the pairs (i, i + dims/2); the others stay."""
    dims = cos.shape[1]
    turned, rest = x[..., :dims], x[..., dims:]
    a, b = turned.chunk(2, dim=-1)
    return torch.cat([turned * cos + torch.cat([-b, a], dim=-1) * sin, rest], dim=-1)


def forward(params, ids, config=CONFIG, keep=None):
    """Logits [batch, length, vocabulary] of ids [batch, length]. keep(name, value) is told of the steps on the way:
    of layer i, q_pre.i, k_pre.i, q.i, k.i, v.i [batch, heads, length, head dim], p.i [batch, heads, length, length], attention.i and mlp.i
    (what each adds to the residual), and the residual itself as embeddings, then hidden.i behind layer i."""
    keep = keep or (lambda name, value: None)
    heads, eps = config["num_attention_heads"], config["layer_norm_eps"]
    batch, length = ids.shape

    def norm(name, x):
        return F.layer_norm(x, x.shape[-1:], params[name + ".weight"], params[name + ".bias"], eps)

    def linear(name, x):
        return F.linear(x, params[name + ".weight"], params[name + ".bias"])

    x = params["gpt_neox.embed_in.weight"][ids]
    keep("embeddings", x)
    cos, sin = angles(config, length, x)
    hidden = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
    for i in range(config["num_hidden_layers"]):
        layer = f"gpt_neox.layers.{i}."
        fused = linear(layer + "attention.query_key_value", norm(layer + "input_layernorm", x))
        q, k, v = fused.view(batch, length, heads, -1).transpose(1, 2).chunk(3, dim=-1)  # q k v of head 0, of head 1, ...
        keep(f"q_pre.{i}", q), keep(f"k_pre.{i}", k), keep(f"v.{i}", v)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        keep(f"q.{i}", q), keep(f"k.{i}", k)
        scores = (q @ k.transpose(-1, -2)) / math.sqrt(q.shape[-1])
        p = scores.masked_fill(hidden, -math.inf).softmax(dim=-1)
        keep(f"p.{i}", p)
        added = linear(layer + "attention.dense", (p @ v).transpose(1, 2).reshape(batch, length, -1))
        keep(f"attention.{i}", added)
        x = x + added
        inner = F.gelu(linear(layer + "mlp.dense_h_to_4h", norm(layer + "post_attention_layernorm", x)))
        added = linear(layer + "mlp.dense_4h_to_h", inner)
        keep(f"mlp.{i}", added)
        x = x + added
        keep(f"hidden.{i}", x)
    return F.linear(norm("gpt_neox.final_layer_norm", x), params["embed_out.weight"])
