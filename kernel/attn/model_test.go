package attn_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A whole model runs in one cell, and every stage of it is PyTorch's within the bounds of the chain up to there. One activation for another,
// which changes an element by 5e-4 at most, is found at once.
func TestForwardPass(t *testing.T) {
	dir := filepath.Join(here, "../../notebooks/models/induction")
	k := newKernel(t)
	r := k.run("forward", "MODEL="+dir)
	t.Log(k.device.Info().Device, regexp.MustCompile(`4477 logits.*`).FindString(r.out))
	if r.exit != 0 || !strings.Contains(r.out, "4477 logits, ") {
		t.Errorf("exit %d, %q, %s\n%s", r.exit, r.fail, r.stderr, r.out)
	}
	if r := k.run("forward by another function", "MODEL="+dir); r.exit != 1 || !strings.Contains(r.out, "hidden.0: FAIL") {
		t.Errorf("exit %d, %q\n%s", r.exit, r.fail, r.out)
	}
}

// modelFiles writes a model of one layer whose tensors, in f32, hold 0.001 times the index of each element, but weights of norms 1.
func modelFiles(t *testing.T, dir, config string, tensors map[string][]int) {
	t.Helper()
	header := map[string]any{}
	var data []byte
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		n := 1
		for _, s := range tensors[name] {
			n *= s
		}
		header[name] = map[string]any{"dtype": "F32", "shape": tensors[name], "data_offsets": []int{len(data), len(data) + 4*n}}
		for i := range n {
			v := 0.001 * float64(i)
			if strings.Contains(name, "norm.weight") || strings.Contains(name, "ln_1.weight") {
				v = 1
			}
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(v)))
		}
	}
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), append(text, data...)...)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"config.json": []byte(config), "model.safetensors": file} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// gpt2Files is a GPT-2 of hidden width 6 and 2 heads; its query of head 0 and dim j is column j of c_attn's [in, out].
func gpt2Files(t *testing.T, dir string) {
	modelFiles(t, dir, `{"model_type": "gpt2", "n_embd": 6, "n_head": 2, "n_layer": 1, "n_positions": 16}`, map[string][]int{
		"h.0.ln_1.weight": {6}, "h.0.ln_1.bias": {6}, "h.0.attn.c_attn.weight": {6, 18}, "h.0.attn.c_attn.bias": {18},
		"h.0.attn.c_proj.weight": {6, 6}, "h.0.attn.c_proj.bias": {6}, "wte.weight": {11, 6},
	})
}

// What a cell gets of models of each kind: their geometry, their projections the right way round, rotated rows, and a layer of attention that
// float64 agrees with.
func TestOpenModel(t *testing.T) {
	k := newKernel(t)
	// Row 0 of the ramp is 0, 1/7, ... 5/7: q of head 0 is sum x_i w_ij + b_j.
	project := func(weight func(i, j int) float64, bias bool, n int) string {
		var words []string
		for j := range n {
			sum := 0.0
			for i := range 6 {
				sum += float64(i) / 7 * weight(i, j)
			}
			if bias {
				sum += 0.001 * float64(j)
			}
			words = append(words, fmt.Sprint(float32(sum)))
		}
		return strings.Join(words, " ")
	}
	t.Run("GPT-2", func(t *testing.T) {
		gpt2Files(t, filepath.Join(k.dir, "gpt2"))
		r := k.run("geometry", "MODEL=gpt2", "TENSOR=wte.weight")
		want := "gpt2 6 16 1 2 2 3 0 true 0\n" + "[out 6, in 6] false 1e-05 2 [seq 11, hidden 6]\n"
		if r.exit != 0 || !strings.HasPrefix(r.out, want) {
			t.Fatalf("exit %d, %q %s, printed\n%swant\n%s", r.exit, r.fail, r.stderr, r.out, want)
		}
		near(t, r.out, project(func(i, j int) float64 { return 0.001 * float64(18*i+j) }, true, 3))
	})
	t.Run("Llama", func(t *testing.T) {
		modelFiles(t, filepath.Join(k.dir, "llama"), `{"model_type": "llama", "hidden_size": 6, "num_attention_heads": 3, "num_key_value_heads": 1,
			"num_hidden_layers": 1, "head_dim": 4, "max_position_embeddings": 32, "rms_norm_eps": 1e-6, "rope_theta": 500000,
			"rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 16}}`, map[string][]int{
			"model.layers.0.input_layernorm.weight": {6}, "model.layers.0.self_attn.q_proj.weight": {12, 6}, "model.layers.0.self_attn.k_proj.weight": {4, 6},
			"model.layers.0.self_attn.v_proj.weight": {4, 6}, "model.layers.0.self_attn.o_proj.weight": {6, 12}, "lm_head.weight": {11, 6},
		})
		r := k.run("geometry", "MODEL=./llama", "TENSOR=lm_head.weight")
		want := "llama 6 32 1 3 1 4 0 false 4\n" + "[out 6, in 12] true 1e-06 2 [seq 11, hidden 6]\n"
		if r.exit != 0 || !strings.HasPrefix(r.out, want) {
			t.Fatalf("exit %d, %q %s, printed\n%swant\n%s", r.exit, r.fail, r.stderr, r.out, want)
		}
		near(t, r.out, project(func(i, j int) float64 { return 0.001 * float64(6*j+i) }, false, 3))
	})
	t.Run("Mistral with dynamic NTK", func(t *testing.T) {
		modelFiles(t, filepath.Join(k.dir, "mistral"), `{"model_type": "mistral", "hidden_size": 6, "num_attention_heads": 3, "num_key_value_heads": 1,
			"num_hidden_layers": 1, "head_dim": 4, "max_position_embeddings": 4, "sliding_window": 2,
			"rope_scaling": {"rope_type": "dynamic", "factor": 2}}`, map[string][]int{
			"layers.0.input_layernorm.weight": {6}, "layers.0.self_attn.q_proj.weight": {12, 6}, "layers.0.self_attn.k_proj.weight": {4, 6},
			"layers.0.self_attn.v_proj.weight": {4, 6}, "layers.0.self_attn.o_proj.weight": {6, 12}, "norm.weight": {6},
		})
		r := k.run("geometry", "MODEL="+filepath.Join(k.dir, "mistral"), "TENSOR=norm.weight")
		want := "mistral 6 4 1 3 1 4 2 false 4\n" + "[out 6, in 12] true 1e-06 3 [dim 6]\n"
		if r.exit != 0 || !strings.HasPrefix(r.out, want) {
			t.Fatalf("exit %d, %q %s, printed\n%swant\n%s", r.exit, r.fail, r.stderr, r.out, want)
		}
	})
	t.Run("by name", func(t *testing.T) {
		hub := filepath.Join(k.dir, "hub")
		t.Setenv("HF_HUB_CACHE", hub)
		gpt2Files(t, filepath.Join(hub, "models--org--tiny", "snapshots", "0123456789abcdef"))
		if r := k.run("geometry", "MODEL=org/tiny", "TENSOR=wte.weight"); r.exit != 0 || !strings.HasPrefix(r.out, "gpt2 6 16 ") {
			t.Errorf("exit %d, %q %s, printed %s", r.exit, r.fail, r.stderr, r.out)
		}
	})
}

// near compares the first numbers that a cell printed in brackets of its third line with those wanted.
func near(t *testing.T, out, want string) {
	t.Helper()
	line := strings.Split(out, "\n")[2]
	_, numbers, _ := strings.Cut(line, "] [0")
	got := strings.Fields(strings.TrimRight("0"+numbers, "]"))
	for i, w := range strings.Fields(want) {
		var x, y float64
		fmt.Sscan(got[i], &x)
		fmt.Sscan(w, &y)
		if !(math.Abs(x-y) <= 1e-6*(math.Abs(y)+1e-3)) {
			t.Errorf("projected %v in %q, want %v", x, line, want)
		}
	}
}
