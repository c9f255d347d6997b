package attn

import (
	"os"
	"strings"
	"sync"

	"github.com/attnb/attnb/kernel/wire"
)

// Model is a model in the format of Hugging Face's transformers: where its attention lies, layer by layer. Its weights are loaded when they
// are used, each once in a cell.
type Model struct {
	Family    string // config.json's model_type: gpt2, gpt_neox, llama, mistral or qwen2
	Hidden    int    // width of the residual
	Positions int    // the longest sequence that config.json speaks of
	Layers    []*ModelLayer
	weights   string

	mu     sync.Mutex
	loaded map[string]Tensor
}

// ModelLayer is the attention of one layer.
type ModelLayer struct {
	Heads, KVHeads, HeadDim int     // query head h reads KV head h / (Heads/KVHeads)
	Scale                   float64 // of q.k
	Window                  int     // keys that a query sees, its own included; 0: all up to its own
	Norm                    Norm    // what the residual goes through first
	// Where Fused, one projection QKV makes rows that are taken apart by Layout; else there are Q, K and V.
	Fused   bool
	QKV     Projection
	Layout  Layout
	Q, K, V Projection
	Out     Projection // of the context, heads side by side
	Rotary  int        // dims of a head that Rotation turns; 0: it turns nothing
	// Rotation has the base and the scaling of the model. Where that is DynamicNTK, Rotate fills in the length.
	Rotation Rotation
}

// OpenModel reads config.json of GPT-2, GPT-NeoX (Pythia), Llama, Mistral and Qwen2 models, and the headers of their weights: of a
// directory, or of a repository ("gpt2", "org/name") in the Hugging Face cache, where a revision may be given. Nothing is fetched. What is not there,
// or does not fit config.json, stops the cell.
//
//	m := attn.OpenModel("models/pythia-14m")
//	l := m.Layers[0]
//	q, k, v := l.Project(l.Norm.Of(x)) // x [seq, hidden]
//	out := attn.Prefill(l.Rotate(q), l.Rotate(k), v, l.Options()...)
func OpenModel(dirOrName string, revision ...string) *Model {
	r := wire.Request{Kind: wire.KindModel}
	switch info, err := os.Stat(dirOrName); {
	case len(revision) > 1:
		stop("OpenModel: one revision at most")
	case err == nil && info.IsDir() && len(revision) == 0:
		r.Path = absolute("OpenModel", dirOrName)
	case strings.HasPrefix(dirOrName, "/") || strings.HasPrefix(dirOrName, ".") || dirOrName == "":
		stop("OpenModel: " + dirOrName + ": no such directory")
	default:
		r.Name = dirOrName
		if len(revision) == 1 {
			r.Hash = revision[0]
		}
	}
	a := do(r)
	if a.Model == nil {
		stop("OpenModel: the device process answered no model")
	}
	m := &Model{Family: a.Model.Family, Hidden: a.Model.Hidden, Positions: a.Model.Positions, weights: a.Model.Weights, loaded: map[string]Tensor{}}
	for _, l := range a.Model.Layers {
		m.Layers = append(m.Layers, m.layer(l))
	}
	return m
}

func (m *Model) layer(l wire.ModelLayer) *ModelLayer {
	projection := func(w wire.ModelWeights) Projection { return Projection{m, w} }
	return &ModelLayer{
		Heads: l.Heads, KVHeads: l.KVHeads, HeadDim: l.HeadDim, Scale: l.Scale, Window: l.Window, Norm: Norm{m, l.Norm},
		Fused: l.QKV.Weight != "", QKV: projection(l.QKV), Layout: Layout{l.Layout, l.Heads, l.KVHeads},
		Q: projection(l.Q), K: projection(l.K), V: projection(l.V), Out: projection(l.Out),
		Rotary: l.Rotation.Rotary, Rotation: Rotation{l.Rotation},
	}
}

// Tensor is the weight of that name, as it lies in the files: loaded at the first call in a cell. A matrix has the axes "seq hidden". A name
// that the model does not have stops the cell, with those that it has.
func (m *Model) Tensor(name string) Tensor {
	m.mu.Lock()
	defer m.mu.Unlock()
	x, ok := m.loaded[name]
	if !ok {
		x = one(do(wire.Request{Kind: wire.KindLoad, Path: m.weights, Member: name}))
		m.loaded[name] = x
	}
	return x
}

// outIn is a projection's weight as [out, in].
func (m *Model) outIn(w wire.ModelWeights) Tensor {
	x, key := m.Tensor(w.Weight), w.Weight+" [out in]"
	m.mu.Lock()
	defer m.mu.Unlock()
	turned, ok := m.loaded[key]
	switch {
	case ok:
		return turned
	case w.InOut:
		x = x.Axes("in out").Swap()
	default:
		x = x.Axes("out in")
	}
	m.loaded[key] = x
	return x
}

// Projection is x W^T + b of a model.
type Projection struct {
	model *Model
	names wire.ModelWeights
}

// Weight is W, [out, in], whichever way it lies in the file: GPT-2 has [in, out]. A projection that the model has not, as Q where it is fused,
// stops the cell.
func (p Projection) Weight() Tensor {
	if p.names.Weight == "" {
		stop("Weight: the model has no such projection: see Fused")
	}
	return p.model.outIn(p.names)
}

// Bias is b, [out]; ok is false where there is none.
func (p Projection) Bias() (b Tensor, ok bool) {
	if p.names.Bias == "" {
		return Tensor{}, false
	}
	return p.model.Tensor(p.names.Bias), true
}

// Of is x W^T + b of rows [seq, in]: [seq, out].
func (p Projection) Of(x Tensor) Tensor {
	w := p.Weight()
	if b, ok := p.Bias(); ok {
		return Linear(x, w, b)
	}
	return Linear(x, w)
}

// Norm is a LayerNorm, or an RMSNorm, of a model.
type Norm struct {
	model *Model
	names wire.ModelNorm
}

// RMS says whether it is an RMSNorm.
func (n Norm) RMS() bool { return n.names.RMS }

// Eps is what is added to the mean square: the eps of [LayerNorm] and [RMSNorm].
func (n Norm) Eps() float64 { return n.names.Eps }

// Of is the norm of each row of x, [seq, hidden].
func (n Norm) Of(x Tensor) Tensor {
	w := n.model.Tensor(n.names.Weight)
	switch {
	case n.names.RMS:
		return RMSNorm(x, n.names.Eps, w)
	case n.names.Bias == "":
		return LayerNorm(x, n.names.Eps, w)
	}
	return LayerNorm(x, n.names.Eps, w, n.model.Tensor(n.names.Bias))
}

// Project makes q [heads, seq, dim], k and v [kv heads, seq, dim] of rows that the norm has seen. They are not rotated yet.
func (l *ModelLayer) Project(x Tensor) (q, k, v Tensor) {
	if l.Fused {
		return l.QKV.Of(x).SplitHeads(l.Layout)
	}
	return l.Q.Of(x).Heads(l.Heads), l.K.Of(x).Heads(l.KVHeads), l.V.Of(x).Heads(l.KVHeads)
}

// Rotate turns queries or keys, the first row at position 0 or the one given. Where the model turns nothing it is x.
func (l *ModelLayer) Rotate(x Tensor, position ...int) Tensor {
	if l.Rotary == 0 {
		return x
	}
	if len(position) > 1 {
		stop("Rotate: one position at most")
	}
	r := l.Rotation
	if len(position) == 1 {
		r = r.Offset(position[0])
	}
	if s := r.p.Scaling; s != nil && s.Kind == wire.ScalingDynamicNTK && s.Length == 0 {
		if shape := x.Shape(); len(shape) == 3 {
			r = r.DynamicNTK(s.Factor, s.Trained, max(1, r.p.Offset+shape[1]))
		}
	}
	return x.RoPE(r)
}

// Options are those of Scores, Prefill and Decode: the causal mask, the scale, and the window where there is one.
func (l *ModelLayer) Options() []Option {
	o := []Option{Causal, Scale(l.Scale)}
	if l.Window > 0 {
		o = append(o, Window(l.Window))
	}
	return o
}

// Attend is what the layer's attention adds to its residual x, [seq, hidden], whose first row is at position 0.
func (l *ModelLayer) Attend(x Tensor) Tensor {
	q, k, v := l.Project(l.Norm.Of(x))
	return l.Out.Of(Prefill(l.Rotate(q), l.Rotate(k), v, l.Options()...).Merge())
}
