package tensorfile

import (
	"encoding/json"
	"math"
)

// geometry is what all families have, by the names that theirs has for it.
func (c *config) geometry(hidden, heads, layers, positions string) (*Model, Layer, int) {
	m := &Model{Hidden: c.count(hidden, 0, maxWidth), Positions: c.count(positions, 0, maxLength)}
	l := Layer{Heads: c.count(heads, 0, maxWidth)}
	n := c.count(layers, 0, maxLayers)
	if c.err != nil {
		return m, l, 0
	}
	l.KVHeads = l.Heads
	l.HeadDim = m.Hidden / l.Heads
	return m, l, n
}

// divides refuses a hidden width that is not that of the heads.
func (c *config) divides(m *Model, l Layer) {
	if c.err == nil && m.Hidden%l.Heads != 0 {
		c.fail("hidden width %d is not a multiple of %d heads", m.Hidden, l.Heads)
	}
}

func (c *config) scale(l Layer) float64 {
	if c.err != nil {
		return 0
	}
	return 1 / math.Sqrt(float64(l.HeadDim))
}

func readGPT2(c *config) *Model {
	m, l, n := c.geometry("n_embd", "n_head", "n_layer", "n_positions")
	c.divides(m, l)
	if c.bool("add_cross_attention", false) {
		c.fail("add_cross_attention: layers that attend to another sequence cannot be read")
	}
	l.Scale = 1
	if c.bool("scale_attn_weights", true) {
		l.Scale = c.scale(l)
	}
	l.Layout = GPT2
	l.QKV = Projection{"attn.c_attn.weight", "attn.c_attn.bias", true}
	l.Out = Projection{"attn.c_proj.weight", "attn.c_proj.bias", true}
	l.Norm = Norm{"ln_1.weight", "ln_1.bias", false, c.number("layer_norm_epsilon", 1e-5)}
	deeper := c.bool("scale_attn_by_inverse_layer_idx", false)
	for i := range n {
		at := l
		if deeper {
			at.Scale /= float64(i + 1)
		}
		m.Layers = append(m.Layers, at)
	}
	return m
}

func readNeoX(c *config) *Model {
	m, l, n := c.geometry("hidden_size", "num_attention_heads", "num_hidden_layers", "max_position_embeddings")
	c.divides(m, l)
	l.Scale = c.scale(l)
	l.Layout = NeoX
	l.QKV = Projection{Weight: "attention.query_key_value.weight"}
	l.Out = Projection{Weight: "attention.dense.weight"}
	if c.bool("attention_bias", true) {
		l.QKV.Bias, l.Out.Bias = "attention.query_key_value.bias", "attention.dense.bias"
	}
	l.Norm = Norm{"input_layernorm.weight", "input_layernorm.bias", false, c.number("layer_norm_eps", 1e-5)}
	l.Rotary = c.rotary(m, l, "rotary_emb_base", "rotary_pct", 0.25)
	for range n {
		m.Layers = append(m.Layers, l)
	}
	return m
}

// readLlama reads Llama and those that differ from it in a few fields: Mistral in its window, Qwen2 in its window and its biases.
func readLlama(c *config) *Model {
	m, l, n := c.geometry("hidden_size", "num_attention_heads", "num_hidden_layers", "max_position_embeddings")
	if !c.has("head_dim") {
		c.divides(m, l)
	}
	kv := l.Heads // also where it is null
	if _, given := c.fields["num_key_value_heads"]; !given && c.family != "llama" {
		kv = map[string]int{"mistral": 8, "qwen2": 32}[c.family]
	}
	if c.err == nil {
		l.KVHeads = c.count("num_key_value_heads", kv, maxWidth)
		l.HeadDim = c.count("head_dim", max(l.HeadDim, 1), maxWidth)
	}
	if c.err == nil && l.Heads%l.KVHeads != 0 {
		c.fail("%d heads are not a multiple of %d key and value heads", l.Heads, l.KVHeads)
	}
	l.Scale = c.scale(l)
	l.Layout = Separate
	l.Q = Projection{Weight: "self_attn.q_proj.weight"}
	l.K = Projection{Weight: "self_attn.k_proj.weight"}
	l.V = Projection{Weight: "self_attn.v_proj.weight"}
	l.Out = Projection{Weight: "self_attn.o_proj.weight"}
	biased := c.family == "llama" && c.bool("attention_bias", false)
	if biased || c.family == "qwen2" {
		l.Q.Bias, l.K.Bias, l.V.Bias = "self_attn.q_proj.bias", "self_attn.k_proj.bias", "self_attn.v_proj.bias"
	}
	if biased {
		l.Out.Bias = "self_attn.o_proj.bias"
	}
	l.Norm = Norm{Weight: "input_layernorm.weight", RMS: true, Epsilon: c.number("rms_norm_eps", 1e-6)}
	l.Rotary = c.rotary(m, l, "rope_theta", "partial_rotary_factor", 1)
	windows := c.windows(n)
	for i := range n {
		at := l
		if c.err == nil {
			at.Window = windows[i]
		}
		m.Layers = append(m.Layers, at)
	}
	return m
}

// windows are the windows of n layers; 0: none.
func (c *config) windows(n int) []int {
	windows := make([]int, n)
	if c.family == "llama" || c.family == "qwen2" && !c.bool("use_sliding_window", false) {
		return windows
	}
	size := 0
	if _, given := c.fields["sliding_window"]; c.has("sliding_window") || !given { // null: none
		size = c.count("sliding_window", 4096, maxLength)
	}
	if c.has("layer_types") {
		return c.typed(n, size)
	}
	first := 0
	if c.family == "qwen2" {
		first = c.nonNegative("max_window_layers", 28)
	}
	for i := first; i < n; i++ {
		windows[i] = size
	}
	return windows
}

// typed are the windows of layers whose types are listed one by one.
func (c *config) typed(n, size int) []int {
	windows := make([]int, n)
	var types []string
	if json.Unmarshal(c.fields["layer_types"], &types) != nil || len(types) != n {
		c.fail("layer_types must be a list of %d strings", n)
		return windows
	}
	for i, t := range types {
		switch {
		case t == "sliding_attention" && size == 0:
			c.fail("layer_types[%d] is sliding_attention, but there is no sliding_window", i)
		case t == "sliding_attention":
			windows[i] = size
		case t != "full_attention":
			c.fail("layer_types[%d] is %.40q, must be full_attention or sliding_attention", i, t)
		}
	}
	return windows
}

// nonNegative is a count that may be 0.
func (c *config) nonNegative(name string, otherwise int) int {
	if string(c.fields[name]) == "0" {
		return 0
	}
	return c.count(name, otherwise, maxLength)
}
