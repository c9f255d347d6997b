package tensorfile

import (
	"errors"
	"fmt"
	"path/filepath"
)

// Model says where in a model's directory its attention lies: what config.json and the headers of the weights say, which agree.
type Model struct {
	Dir       string
	Family    string // config.json's model_type: gpt2, gpt_neox, llama, mistral or qwen2
	Weights   string // the path that [Load] takes, with the names below: model.safetensors or its index
	Hidden    int    // width of the residual
	Positions int    // the longest sequence that config.json speaks of
	Layers    []Layer
}

// Layout is how queries, keys and values are projected.
type Layout string

const (
	Separate Layout = "Separate" // a projection each: Layer.Q, K and V
	GPT2     Layout = "GPT2"     // one, Layer.QKV: all queries, then all keys, then all values
	NeoX     Layout = "NeoX"     // one, Layer.QKV: q k v of head 0, q k v of head 1, ...
)

// Layer is the attention of one layer, causal, on Norm(residual).
type Layer struct {
	Heads, KVHeads, HeadDim int // query head h reads KV head h / (Heads/KVHeads)
	Scale                   float64
	Window                  int // keys that a query sees, its own included; 0: all up to its own
	Layout                  Layout
	QKV                     Projection // GPT2, NeoX
	Q, K, V                 Projection // Separate
	Out                     Projection // of the context, heads side by side
	Norm                    Norm
	Rotary                  Rotary
}

// Projection names the tensors of x W^T + b.
type Projection struct {
	Weight string
	Bias   string // "": none
	InOut  bool   // the weight lies as [in, out], as GPT-2's do; [out, in] otherwise
}

// Norm names the tensors of what comes before the projections.
type Norm struct {
	Weight  string
	Bias    string // "": none
	RMS     bool   // RMSNorm; LayerNorm otherwise
	Epsilon float64
}

// Rotary are the parameters of RoPE. Dims 0: there is none. The pairs are half-split (i, i + Dims/2) in all families: their
// weights are stored for that.
type Rotary struct {
	Dims    int // the first of HeadDim
	Base    float64
	Scaling Scaling
}

// ScalingKind is how a RoPE is stretched beyond the lengths of training.
type ScalingKind string

const (
	NoScaling  ScalingKind = ""
	Linear     ScalingKind = "linear"
	DynamicNTK ScalingKind = "dynamic"
	Llama3     ScalingKind = "llama3"
	YaRN       ScalingKind = "yarn"
)

// Scaling are the parameters of all kinds; each has its own.
type Scaling struct {
	Kind       ScalingKind
	Factor     float64
	Trained    int     // positions of the training: DynamicNTK, Llama3, YaRN
	Low, High  float64 // turns: low_freq_factor and high_freq_factor of Llama3, beta_slow and beta_fast of YaRN
	Attention  float64 // YaRN: what sine and cosine are multiplied by; 0: 0.1 ln(Factor) + 1
	Fractional bool    // YaRN: the ends of the ramp are not rounded to whole pairs
}

const (
	singleFile = "model.safetensors"
	configFile = "config.json"
)

// OpenModel reads config.json of a directory in the format of Hugging Face's transformers, and the headers of its weights; dir is
// absolute. No weight is read: that is what [Load] is for. Every tensor that the result names is there, of the shape that config.json
// calls for and of a type that Load reads; anything else is an [*Error]. The defaults of fields that may be absent are those of the
// format (transformers, configuration_*.py of each family, and its documentation of rope_parameters).
func OpenModel(dir string) (*Model, error) {
	c, err := readConfig(filepath.Join(dir, configFile))
	if err != nil {
		return nil, &Error{filepath.Join(dir, configFile), err}
	}
	m, err := modelOf(c)
	if err != nil {
		return nil, &Error{filepath.Join(dir, configFile), err}
	}
	m.Dir = dir
	var tensors map[string]safeTensor
	m.Weights, tensors, err = weightsOf(dir)
	if err != nil {
		return nil, &Error{m.Weights, err}
	}
	if err := m.locate(tensors); err != nil {
		return nil, &Error{m.Weights, err}
	}
	return m, nil
}

// families says, of each model_type, how its config.json is read and how its tensors are called.
var families = map[string]struct {
	read   func(*config) *Model
	prefix [2]string // of layer 0; the second where only the body of the model was saved
}{
	"gpt2":     {readGPT2, [2]string{"transformer.h.", "h."}},
	"gpt_neox": {readNeoX, [2]string{"gpt_neox.layers.", "layers."}},
	"llama":    {readLlama, [2]string{"model.layers.", "layers."}},
	"mistral":  {readLlama, [2]string{"model.layers.", "layers."}},
	"qwen2":    {readLlama, [2]string{"model.layers.", "layers."}},
}

// modelOf is what a config.json says; its tensors have the names that follow their layer's prefix, which locate completes.
func modelOf(c *config) (*Model, error) {
	kind := c.text("model_type")
	family, known := families[kind]
	switch {
	case c.err != nil:
		return nil, c.err
	case kind == "":
		return nil, errors.New("no model_type")
	case !known:
		return nil, fmt.Errorf("model_type %.40q: gpt2, gpt_neox, llama, mistral and qwen2 can be read", kind)
	case c.has("quantization_config"):
		return nil, errors.New("a quantization_config: weights that are not plain numbers cannot be read")
	}
	c.family = kind
	m := family.read(c)
	if c.err != nil {
		return nil, c.err
	}
	m.Family = kind
	return m, nil
}
