package files

import (
	"fmt"
	"os"

	"github.com/attnb/attnb/kernel/tensorfile"
	"github.com/attnb/attnb/kernel/wire"
)

// Model answers KindModel: where the attention of a model lies, of which no weight is read.
func Model(r wire.Request) (wire.Answer, error) {
	dir := r.Path
	if dir == "" {
		cache, err := tensorfile.HubCache(os.Getenv)
		if err != nil {
			return wire.Answer{}, refusal("OpenModel", err)
		}
		if dir, err = tensorfile.FindModel(cache, r.Name, r.Hash); err != nil {
			op := "OpenModel"
			if r.Hash == "" {
				op = fmt.Sprintf("OpenModel: no directory %q", r.Name)
			}
			return wire.Answer{}, refusal(op, err)
		}
	}
	m, err := tensorfile.OpenModel(dir)
	if err != nil {
		return wire.Answer{}, refusal("OpenModel", err)
	}
	out := &wire.Model{Family: m.Family, Weights: m.Weights, Hidden: m.Hidden, Positions: m.Positions}
	for _, l := range m.Layers {
		out.Layers = append(out.Layers, layerOf(l))
	}
	return wire.Answer{Model: out}, nil
}

func layerOf(l tensorfile.Layer) wire.ModelLayer {
	weights := func(p tensorfile.Projection) wire.ModelWeights { return wire.ModelWeights(p) }
	out := wire.ModelLayer{
		Heads: l.Heads, KVHeads: l.KVHeads, HeadDim: l.HeadDim, Scale: l.Scale, Window: l.Window,
		QKV: weights(l.QKV), Q: weights(l.Q), K: weights(l.K), V: weights(l.V), Out: weights(l.Out),
		Norm:     wire.ModelNorm{Weight: l.Norm.Weight, Bias: l.Norm.Bias, RMS: l.Norm.RMS, Eps: l.Norm.Epsilon},
		Rotation: wire.Params{Rotary: l.Rotary.Dims, Base: l.Rotary.Base, Scaling: scalingOf(l.Rotary.Scaling), Magnitude: l.Rotary.Scaling.Attention},
	}
	if l.Layout == tensorfile.NeoX {
		out.Layout = wire.LayoutNeoX
	}
	return out
}

var scalingKinds = map[tensorfile.ScalingKind]wire.ScalingKind{
	tensorfile.Linear: wire.ScalingLinear, tensorfile.DynamicNTK: wire.ScalingDynamicNTK, tensorfile.Llama3: wire.ScalingLlama3, tensorfile.YaRN: wire.ScalingYaRN,
}

func scalingOf(s tensorfile.Scaling) *wire.Scaling {
	if s.Kind == tensorfile.NoScaling {
		return nil
	}
	return &wire.Scaling{Kind: scalingKinds[s.Kind], Factor: s.Factor, Trained: s.Trained, Low: s.Low, High: s.High, Fractional: s.Fractional}
}
