package tensorfile

import (
	"strings"
	"testing"
)

// with is a config with fields set to JSON values ("": taken out).
func with(t *testing.T, config string, fields ...string) string {
	t.Helper()
	all, err := object([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		if all[fields[i]] = []byte(fields[i+1]); fields[i+1] == "" {
			delete(all, fields[i])
		}
	}
	var b strings.Builder
	for name, value := range all {
		b.WriteString(`,"` + name + `":` + string(value))
	}
	return "{" + b.String()[1:] + "}"
}

func TestConfigRefuses(t *testing.T) {
	rope := func(fields string) string { return with(t, llamaConfig, "rope_scaling", fields) }
	for _, c := range []struct{ name, config, want string }{
		{"nothing", "", "no JSON object"},
		{"a list", "[]", "no JSON object"},
		{"cut", llamaConfig[:40], "it ends too early"},
		{"a field twice", `{"a": 1, "a": 2}`, `"a" twice`},
		{"NaN", `{"model_type": "llama", "hidden_size": NaN}`, "no JSON from byte 35 on"},
		{"no type", `{}`, "no model_type"},
		{"a type that is a number", `{"model_type": 3}`, "model_type is 3, must be a string"},
		{"another type", `{"model_type": "gemma\n2"}`, `model_type "gemma\n2": gpt2, gpt_neox, llama, mistral and qwen2 can be read`},
		{"quantized", with(t, llamaConfig, "quantization_config", `{"bits": 4}`), "a quantization_config: weights that are not plain numbers cannot be read"},
		{"no hidden", with(t, llamaConfig, "hidden_size", ""), "no hidden_size"},
		{"null heads", with(t, neoxConfig, "num_attention_heads", "null"), "no num_attention_heads"},
		{"zero heads", with(t, neoxConfig, "num_attention_heads", "0"), "num_attention_heads is 0, must be a whole number from 1 to 1048576"},
		{"negative layers", with(t, gpt2Config, "n_layer", "-1"), "n_layer is -1, must be a whole number from 1 to 1024"},
		{"a billion layers", with(t, gpt2Config, "n_layer", "1e9"), "n_layer is 1e9, must be a whole number from 1 to 1024"},
		{"half a head", with(t, gpt2Config, "n_head", "1.5"), "n_head is 1.5, must be a whole number from 1 to 1048576"},
		{"a number beyond all", with(t, gpt2Config, "n_head", "1e999"), "n_head is 1e999, must be a whole number"},
		{"text for a number", with(t, gpt2Config, "n_head", `"three\nlines of text that go on and on and on"`), `n_head is "three\nlines of text that go on and on ..., must be a whole number`},
		{"an object for a number", with(t, gpt2Config, "n_head", "{\n}"), "n_head is { }, must be a whole number"},
		{"heads that do not divide", with(t, neoxConfig, "num_attention_heads", "5"), "hidden width 24 is not a multiple of 5 heads"},
		{"KV heads that do not divide", with(t, llamaConfig, "num_key_value_heads", "4"), "6 heads are not a multiple of 4 key and value heads"},
		{"cross attention", with(t, gpt2Config, "add_cross_attention", "true"), "add_cross_attention: layers that attend to another sequence cannot be read"},
		{"a flag that is none", with(t, gpt2Config, "scale_attn_weights", `"yes"`), `scale_attn_weights is "yes", must be true or false`},
		{"epsilon 0", with(t, llamaConfig, "rms_norm_eps", "0"), "rms_norm_eps is 0, must be a positive number"},
		{"odd rotary", with(t, neoxConfig, "rotary_pct", "0.4"), "RoPE of 3 of 8 dims: must be an even number from 2"},
		{"no rotary dims", with(t, neoxConfig, "rotary_pct", "0.01"), "RoPE of 0 of 8 dims: must be an even number from 2"},
		{"more than all dims", with(t, neoxConfig, "rotary_pct", "1.5"), "rotary_pct is 1.5, must be at most 1"},
		{"negative base", with(t, llamaConfig, "rope_theta", "-1"), "rope_theta is -1, must be a positive number"},
		{"unknown scaling", rope(`{"type": "longrope"}`), `rope_scaling.rope_type "longrope": default, linear, dynamic, llama3 and yarn can be read`},
		{"unknown field", rope(`{"type": "linear", "factor": 2, "mrope_section": [1]}`), `rope_scaling."mrope_section" is not known here`},
		{"no factor", rope(`{"type": "linear"}`), "no rope_scaling.factor"},
		{"a factor below 1", rope(`{"type": "dynamic", "factor": 0.5}`), "rope_scaling.factor 0.5 is below 1"},
		{"llama3 half said", rope(`{"rope_type": "llama3", "factor": 8, "low_freq_factor": 1}`), "no rope_scaling.high_freq_factor"},
		{"llama3 upside down", rope(`{"rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 1}`), "rope_scaling.low_freq_factor 4 is not below high_freq_factor 1"},
		{"YaRN upside down", rope(`{"rope_type": "yarn", "factor": 8, "beta_fast": 1, "beta_slow": 2}`), "rope_scaling.beta_slow 2 is not below beta_fast 1"},
		{"a scaling that is a list", rope(`["linear"]`), "rope_scaling: no JSON object"},
		{"layer types of another number", with(t, qwenConfig, "layer_types", `["full_attention"]`), "layer_types must be a list of 2 strings"},
		{"unknown layer type", with(t, qwenConfig, "layer_types", `["full_attention", "mamba"]`), `layer_types[1] is "mamba", must be full_attention or sliding_attention`},
		{"a window without a size", with(t, qwenConfig, "layer_types", `["full_attention", "sliding_attention"]`, "sliding_window", "null"), "layer_types[1] is sliding_attention, but there is no sliding_window"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := modelDir(t, map[string][]byte{"config.json": []byte(c.config)})
			m, err := OpenModel(dir)
			if want := dir + "/config.json: " + c.want; m != nil || err == nil || err.Error() != want {
				t.Errorf("error %v, want %q", err, want)
			}
		})
	}
}

func TestWeightsMustAgree(t *testing.T) {
	changed := func(name string, shape []int) shapes {
		all := neoxShapes("gpt_neox.layers.")
		if all[name] = shape; shape == nil {
			delete(all, name)
		}
		return all
	}
	fused := "gpt_neox.layers.1.attention.query_key_value."
	for _, c := range []struct {
		name, config, dtype string
		tensors             shapes
		want                string
	}{
		{"none", neoxConfig, "", nil, "/: neither model.safetensors nor model.safetensors.index.json: weights of other kinds cannot be read"},
		{"another model", neoxConfig, "F32", llamaShapes(4), `/model.safetensors: no tensor "gpt_neox.layers.0.input_layernorm.weight"`},
		{"fewer layers", neoxConfig, "F32", changed(fused+"weight", nil), `/model.safetensors: no tensor "gpt_neox.layers.1.attention.query_key_value.weight"`},
		{"turned", neoxConfig, "F32", changed(fused+"weight", []int{24, 72}), `/model.safetensors: "gpt_neox.layers.1.attention.query_key_value.weight" is [24 72], but config.json calls for [72 24]`},
		{"no bias", neoxConfig, "F32", changed(fused+"bias", nil), `/model.safetensors: no tensor "gpt_neox.layers.1.attention.query_key_value.bias"`},
		{"a bias too many", with(t, neoxConfig, "attention_bias", "false"), "F32", neoxShapes("gpt_neox.layers."), `/model.safetensors: "gpt_neox.layers.0.attention.query_key_value.bias" is there, but config.json has no bias there`},
		{"integers", neoxConfig, "I8", neoxShapes("gpt_neox.layers."), `/model.safetensors: "gpt_neox.layers.0.input_layernorm.weight": dtype "I8", only F16, BF16, F32 and F64 can be loaded`},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := map[string][]byte{"config.json": []byte(c.config)}
			if c.tensors != nil {
				files["model.safetensors"] = weightsFile(t, c.dtype, c.tensors)
			}
			dir := modelDir(t, files)
			m, err := OpenModel(dir)
			if want := strings.Replace(dir+c.want, "/:", ":", 1); m != nil || err == nil || err.Error() != want {
				t.Errorf("error %v, want %q", err, want)
			}
		})
	}
	if _, err := OpenModel("relative"); err == nil || err.Error() != "relative/config.json: the path is not absolute" {
		t.Error(err)
	}
	big := modelDir(t, map[string][]byte{"config.json": make([]byte, maxConfig+1)})
	if _, err := OpenModel(big); err == nil || !strings.HasSuffix(err.Error(), ": 1048577 bytes are more than 1048576") {
		t.Error(err)
	}
}

func TestRotary(t *testing.T) {
	llama := func(fields ...string) string { return with(t, llamaConfig, fields...) }
	for _, c := range []struct {
		name, config string
		want         Rotary
	}{
		{"none said", llama("rope_scaling", "", "rope_theta", ""), Rotary{Dims: 4, Base: 1e4}},
		{"empty", llama("rope_scaling", "{}"), Rotary{Dims: 4, Base: 5e5}},
		{"default", llama("rope_scaling", `{"rope_type": "default"}`), Rotary{Dims: 4, Base: 5e5}},
		{"newer, with a base of its own", llama("rope_scaling", "null", "rope_parameters", `{"rope_type": "default", "rope_theta": 7, "partial_rotary_factor": 0.5}`), Rotary{Dims: 2, Base: 7}},
		{"linear, older", llama("rope_scaling", `{"type": "linear", "factor": 4}`), Rotary{4, 5e5, Scaling{Kind: Linear, Factor: 4}}},
		{"dynamic", llama("rope_scaling", `{"type": "dynamic", "factor": 4}`), Rotary{4, 5e5, Scaling{Kind: DynamicNTK, Factor: 4, Trained: 64}}},
		{"llama3, trained for what it is used for", llama("rope_scaling", `{"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4}`),
			Rotary{4, 5e5, Scaling{Kind: Llama3, Factor: 8, Trained: 64, Low: 1, High: 4}}},
		{"YaRN", llama("rope_scaling", `{"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 16, "finetuned": true}`),
			Rotary{4, 5e5, Scaling{Kind: YaRN, Factor: 4, Trained: 16, Low: 1, High: 32}}},
		{"YaRN, all said", llama("rope_scaling", `{"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 16, "attention_factor": 1.5, "beta_fast": 16, "beta_slow": 2, "truncate": false}`),
			Rotary{4, 5e5, Scaling{Kind: YaRN, Factor: 4, Trained: 16, Low: 2, High: 16, Attention: 1.5, Fractional: true}}},
		{"YaRN, its factor a ratio, its training beside it", llama("original_max_position_embeddings", "8", "rope_scaling", `{"rope_type": "yarn", "factor": null}`),
			Rotary{4, 5e5, Scaling{Kind: YaRN, Factor: 8, Trained: 8, Low: 1, High: 32}}},
		{"YaRN, attention as a ratio that is 1", llama("rope_scaling", `{"rope_type": "yarn", "factor": 4, "mscale": 0.7, "mscale_all_dim": 0.7}`),
			Rotary{4, 5e5, Scaling{Kind: YaRN, Factor: 4, Trained: 64, Low: 1, High: 32, Attention: 1}}},
		{"NeoX, newer", with(t, neoxConfig, "rotary_pct", "", "rotary_emb_base", "", "rope_parameters", `{"rope_type": "linear", "factor": 2, "rope_theta": 3, "partial_rotary_factor": 0.5}`),
			Rotary{4, 3, Scaling{Kind: Linear, Factor: 2}}},
		{"NeoX, what the format says", with(t, neoxConfig, "rotary_pct", "", "rotary_emb_base", ""), Rotary{Dims: 2, Base: 1e4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := parsed(t, c.config)
			if got := m.Layers[0].Rotary; got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

func parsed(t *testing.T, config string) *Model {
	t.Helper()
	c, err := parseConfig([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	m, err := modelOf(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestDefaults(t *testing.T) {
	for _, c := range []struct {
		name, config        string
		kv, dim, w0, w1     int
		epsilon             float64
		outBiased, qkBiased bool
	}{
		{"Llama without KV heads", with(t, llamaConfig, "num_key_value_heads", "", "rms_norm_eps", ""), 6, 4, 0, 0, 1e-6, false, false},
		{"Llama with biases", with(t, llamaConfig, "attention_bias", "true"), 2, 4, 0, 0, 1e-5, true, true},
		{"Mistral, nothing said", with(t, mistralConfig, "num_attention_heads", "24", "num_key_value_heads", "", "sliding_window", "", "head_dim", "4"), 8, 4, 4096, 4096, 1e-5, false, false},
		{"Mistral, nothing given", with(t, mistralConfig, "num_key_value_heads", "null", "sliding_window", "null", "head_dim", ""), 6, 4, 0, 0, 1e-5, false, false},
		{"Qwen2, its window off", with(t, qwenConfig, "use_sliding_window", "false"), 2, 4, 0, 0, 1e-5, false, true},
		{"Qwen2, a window everywhere", with(t, qwenConfig, "max_window_layers", "0"), 2, 4, 16, 16, 1e-5, false, true},
		{"Qwen2, beyond its last layer", with(t, qwenConfig, "max_window_layers", ""), 2, 4, 0, 0, 1e-5, false, true},
		{"Qwen2, layer by layer", with(t, qwenConfig, "layer_types", `["sliding_attention", "full_attention"]`), 2, 4, 16, 0, 1e-5, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := parsed(t, c.config)
			l := m.Layers[0]
			if l.KVHeads != c.kv || l.HeadDim != c.dim || l.Window != c.w0 || m.Layers[1].Window != c.w1 || l.Norm.Epsilon != c.epsilon ||
				(l.Out.Bias != "") != c.outBiased || (l.Q.Bias != "") != c.qkBiased {
				t.Errorf("%+v", l)
			}
		})
	}
}

func FuzzConfig(f *testing.F) {
	for _, c := range []string{gpt2Config, neoxConfig, llamaConfig, mistralConfig, qwenConfig} {
		f.Add([]byte(c))
	}
	f.Add([]byte(`{"model_type": "llama", "rope_scaling": {"rope_type": "yarn", "factor": null, "mscale": 1, "mscale_all_dim": 2}, ` + llamaRest))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := parseConfig(text)
		var m *Model
		if err == nil {
			m, err = modelOf(c)
		}
		if err != nil {
			if m != nil || strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("%v, error %q", m, err)
			}
			return
		}
		for i, l := range m.Layers {
			if l.Heads < 1 || l.KVHeads < 1 || l.HeadDim < 1 || l.Heads%l.KVHeads != 0 || !(l.Scale > 0) || !(l.Norm.Epsilon > 0) || l.Window < 0 {
				t.Errorf("layer %d: %+v", i, l)
			}
			if r := l.Rotary; r.Dims < 0 || r.Dims > l.HeadDim || r.Dims%2 != 0 || r.Dims > 0 && !(r.Base > 0) || r.Scaling.Kind != NoScaling && !(r.Scaling.Factor >= 1) {
				t.Errorf("layer %d: %+v", i, r)
			}
		}
		if len(m.Layers) == 0 || len(m.Layers) > maxLayers {
			t.Errorf("%d layers", len(m.Layers))
		}
		if err := m.locate(nil); err == nil {
			t.Error("tensors were found in nothing")
		}
	})
}
