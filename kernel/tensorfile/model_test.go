package tensorfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// shapes are tensors by name.
type shapes map[string][]int

// weightsFile is a .safetensors file of zeros.
func weightsFile(t *testing.T, dtype string, tensors shapes) []byte {
	t.Helper()
	header, at := map[string]any{}, 0
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		n := map[string]int{"F64": 8, "F32": 4, "BF16": 2, "F16": 2, "I8": 1}[dtype]
		for _, d := range tensors[name] {
			n *= d
		}
		header[name] = map[string]any{"dtype": dtype, "shape": tensors[name], "data_offsets": []int{at, at + n}}
		at += n
	}
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	return safeFile(string(text), at)
}

// modelDir is a directory with files.
func modelDir(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Models of each family, as transformers saves them: hidden 24, 2 layers; Llama's kin has 6 heads of 4, 2 KV heads.
const (
	gpt2Config = `{"model_type": "gpt2", "n_embd": 24, "n_head": 3, "n_layer": 2, "n_positions": 32, "layer_norm_epsilon": 2e-5}`
	neoxConfig = `{"model_type": "gpt_neox", "hidden_size": 24, "num_attention_heads": 3, "num_hidden_layers": 2, "max_position_embeddings": 64,
		"rotary_pct": 0.25, "rotary_emb_base": 500, "layer_norm_eps": 1e-5, "attention_bias": true, "rope_scaling": null}`
	llamaRest = `"hidden_size": 24, "num_attention_heads": 6, "num_key_value_heads": 2, "num_hidden_layers": 2, "max_position_embeddings": 64,
		"rms_norm_eps": 1e-5, "rope_theta": 500000.0}`
	llamaConfig   = `{"model_type": "llama", "head_dim": null, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32}, ` + llamaRest
	mistralConfig = `{"model_type": "mistral", "head_dim": 6, "sliding_window": 16, ` + llamaRest
	qwenConfig    = `{"model_type": "qwen2", "use_sliding_window": true, "sliding_window": 16, "max_window_layers": 1, ` + llamaRest
)

func layers(prefix string, each shapes) shapes {
	all := shapes{"unrelated.weight": {2, 2}}
	for i := range 2 {
		for name, shape := range each {
			all[fmt.Sprintf("%s%d.%s", prefix, i, name)] = shape
		}
	}
	return all
}

func neoxShapes(prefix string) shapes {
	return layers(prefix, shapes{
		"input_layernorm.weight": {24}, "input_layernorm.bias": {24},
		"attention.query_key_value.weight": {72, 24}, "attention.query_key_value.bias": {72},
		"attention.dense.weight": {24, 24}, "attention.dense.bias": {24},
	})
}

func llamaShapes(dim int, biased ...string) shapes {
	each := shapes{
		"input_layernorm.weight": {24}, "self_attn.q_proj.weight": {6 * dim, 24}, "self_attn.k_proj.weight": {2 * dim, 24},
		"self_attn.v_proj.weight": {2 * dim, 24}, "self_attn.o_proj.weight": {24, 6 * dim},
	}
	for _, name := range biased {
		name = "self_attn." + name + "_proj."
		each[name+"bias"] = each[name+"weight"][:1]
	}
	return layers("model.layers.", each)
}

func TestOpenModel(t *testing.T) {
	gpt2 := shapes{
		"ln_1.weight": {24}, "ln_1.bias": {24}, "attn.c_attn.weight": {24, 72}, "attn.c_attn.bias": {72},
		"attn.c_proj.weight": {24, 24}, "attn.c_proj.bias": {24},
	}
	linear := func(name string) Projection { return Projection{Weight: name + ".weight"} }
	biased := func(name string) Projection { return Projection{name + ".weight", name + ".bias", false} }
	attn := "model.layers.1.self_attn."
	rms := Norm{"model.layers.1.input_layernorm.weight", "", true, 1e-5}
	neox := func(prefix string) Layer {
		return Layer{
			Heads: 3, KVHeads: 3, HeadDim: 8, Scale: 1 / math.Sqrt(8), Layout: NeoX,
			QKV: biased(prefix + "attention.query_key_value"), Out: biased(prefix + "attention.dense"),
			Norm:   Norm{prefix + "input_layernorm.weight", prefix + "input_layernorm.bias", false, 1e-5},
			Rotary: Rotary{Dims: 2, Base: 500},
		}
	}
	for _, c := range []struct {
		name, config string
		tensors      shapes
		positions    int
		last         Layer // layer 1
		firstWindow  int
	}{
		{"GPT-2", gpt2Config, layers("transformer.h.", gpt2), 32, Layer{
			Heads: 3, KVHeads: 3, HeadDim: 8, Scale: 1 / math.Sqrt(8), Layout: GPT2,
			QKV:  Projection{"transformer.h.1.attn.c_attn.weight", "transformer.h.1.attn.c_attn.bias", true},
			Out:  Projection{"transformer.h.1.attn.c_proj.weight", "transformer.h.1.attn.c_proj.bias", true},
			Norm: Norm{"transformer.h.1.ln_1.weight", "transformer.h.1.ln_1.bias", false, 2e-5},
		}, 0},
		{"GPT-2, the body alone, deeper layers scaled", strings.Replace(gpt2Config, "{", `{"scale_attn_weights": false, "scale_attn_by_inverse_layer_idx": true, `, 1), layers("h.", gpt2), 32, Layer{
			Heads: 3, KVHeads: 3, HeadDim: 8, Scale: 0.5, Layout: GPT2,
			QKV:  Projection{"h.1.attn.c_attn.weight", "h.1.attn.c_attn.bias", true},
			Out:  Projection{"h.1.attn.c_proj.weight", "h.1.attn.c_proj.bias", true},
			Norm: Norm{"h.1.ln_1.weight", "h.1.ln_1.bias", false, 2e-5},
		}, 0},
		{"GPT-NeoX", neoxConfig, neoxShapes("gpt_neox.layers."), 64, neox("gpt_neox.layers.1."), 0},
		{"GPT-NeoX, the body alone", neoxConfig, neoxShapes("layers."), 64, neox("layers.1."), 0},
		{"Llama", llamaConfig, llamaShapes(4), 64, Layer{
			Heads: 6, KVHeads: 2, HeadDim: 4, Scale: 0.5, Layout: Separate, Norm: rms,
			Q: linear(attn + "q_proj"), K: linear(attn + "k_proj"), V: linear(attn + "v_proj"), Out: linear(attn + "o_proj"),
			Rotary: Rotary{4, 500000, Scaling{Kind: Llama3, Factor: 8, Trained: 32, Low: 1, High: 4}},
		}, 0},
		{"Mistral, its heads wider than hidden", mistralConfig, llamaShapes(6), 64, Layer{
			Heads: 6, KVHeads: 2, HeadDim: 6, Scale: 1 / math.Sqrt(6), Window: 16, Layout: Separate, Norm: rms,
			Q: linear(attn + "q_proj"), K: linear(attn + "k_proj"), V: linear(attn + "v_proj"), Out: linear(attn + "o_proj"),
			Rotary: Rotary{Dims: 6, Base: 500000},
		}, 16},
		{"Qwen2, a window from layer 1 on", qwenConfig, llamaShapes(4, "q", "k", "v"), 64, Layer{
			Heads: 6, KVHeads: 2, HeadDim: 4, Scale: 0.5, Window: 16, Layout: Separate, Norm: rms,
			Q: biased(attn + "q_proj"), K: biased(attn + "k_proj"), V: biased(attn + "v_proj"), Out: linear(attn + "o_proj"),
			Rotary: Rotary{Dims: 4, Base: 500000},
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := modelDir(t, map[string][]byte{"config.json": []byte(c.config), "model.safetensors": weightsFile(t, "BF16", c.tensors)})
			m, err := OpenModel(dir)
			if err != nil {
				t.Fatal(err)
			}
			if m.Dir != dir || m.Weights != filepath.Join(dir, "model.safetensors") || m.Hidden != 24 || m.Positions != c.positions || len(m.Layers) != 2 {
				t.Errorf("%+v", m)
			}
			if got := m.Layers[1]; got != c.last {
				t.Errorf("layer 1 is\n%+v, want\n%+v", got, c.last)
			}
			if got := m.Layers[0].Window; got != c.firstWindow {
				t.Errorf("the window of layer 0 is %d, want %d", got, c.firstWindow)
			}
			for _, p := range []Projection{m.Layers[0].QKV, m.Layers[0].Q, m.Layers[0].Out} {
				if p.Weight == "" {
					continue
				}
				if shape, _, err := Load(m.Weights, p.Weight); err != nil || !slices.Equal(shape, c.tensors[p.Weight]) {
					t.Errorf("%s: %v %v", p.Weight, shape, err)
				}
			}
		})
	}
}

func TestOpenModelOfSeveralFiles(t *testing.T) {
	all := llamaShapes(4)
	parts, index := [2]shapes{{}, {}}, map[string]string{}
	for i, name := range slices.Sorted(maps.Keys(all)) {
		parts[i%2][name], index[name] = all[name], fmt.Sprintf("part-%d.safetensors", i%2)
	}
	files := map[string][]byte{"config.json": []byte(llamaConfig)}
	for i, p := range parts {
		files[fmt.Sprintf("part-%d.safetensors", i)] = weightsFile(t, "F16", p)
	}
	write := func() string {
		text, err := json.Marshal(map[string]any{"metadata": map[string]int{"total_size": 1}, "weight_map": index})
		if err != nil {
			t.Fatal(err)
		}
		files["model.safetensors.index.json"] = text
		return modelDir(t, files)
	}
	m, err := OpenModel(write())
	if err != nil {
		t.Fatal(err)
	}
	if shape, _, err := Load(m.Weights, m.Layers[1].K.Weight); err != nil || !slices.Equal(shape, []int{8, 24}) {
		t.Errorf("%v %v", shape, err)
	}
	name := m.Layers[1].K.Weight
	for file, want := range map[string]string{
		"part-7.safetensors":  "part-7.safetensors: no such file",
		"../secret":           `the index names a file "../secret" that does not lie beside it`,
		"part-0.safetensors":  `"model.layers.1.self_attn.k_proj.weight" is not in part-0.safetensors, where the index has it`,
		"part-1.safetensors ": "part-1.safetensors : no such file",
	} {
		if file == index[name] {
			file = "part-1.safetensors"
			want = strings.Replace(want, "part-0", "part-1", 1)
		}
		was := index[name]
		index[name] = file
		if _, err := OpenModel(write()); err == nil || !strings.HasSuffix(err.Error(), ".index.json: "+want) {
			t.Errorf("%q: error %v, want %q", file, err, want)
		}
		index[name] = was
	}
}

// The model that the notebooks bring.
func TestOpenTrainedModel(t *testing.T) {
	dir, err := filepath.Abs("../../notebooks/models/induction")
	if err != nil {
		t.Fatal(err)
	}
	m, err := OpenModel(dir)
	if err != nil {
		t.Fatal(err)
	}
	l := m.Layers[1]
	if len(m.Layers) != 2 || m.Family != "gpt_neox" || m.Hidden != 128 || l.Heads != 4 || l.HeadDim != 32 || l.Layout != NeoX ||
		!reflect.DeepEqual(l.Rotary, Rotary{Dims: 16, Base: 10000}) || l.QKV.Weight != "gpt_neox.layers.1.attention.query_key_value.weight" {
		t.Errorf("%+v", m)
	}
}
