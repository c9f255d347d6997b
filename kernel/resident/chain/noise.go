package chain

import (
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/bound"
	"github.com/attnb/attnb/reference/noise"
)

// noiseOf is the noise of output out of an op. Where the op has no noise of its own it moves that of its input.
func noiseOf(def op, p wire.Params, in []Truth, out int) (reference.Heads, error) {
	if def.noise != nil {
		return def.noise(p, in)
	}
	moved := make([]Truth, len(in))
	for i, x := range in {
		moved[i] = x.asNoise()
	}
	outs, err := def.replay(p, moved)
	if err != nil {
		return nil, err
	}
	return outs[out].Value, nil
}

// asNoise has the variances in place of the values.
func (x Truth) asNoise() Truth {
	x.Heads = bound.Heads{Value: x.noise, Err: x.noise}
	return x
}

// noisy sees a truth by head, as ByHead does.
func noisy(x Truth) (noise.Heads, error) {
	value, err := ByHead(x)
	if err != nil {
		return noise.Heads{}, err
	}
	variance, err := ByHead(x.asNoise())
	return noise.Heads{Value: value.Value, Var: variance.Value}, err
}

// noiseBackTo is backTo for variances.
func noiseBackTo(v reference.Heads, err error, x Truth) (reference.Heads, error) {
	outs, err := backTo(bound.Heads{Value: v, Err: v}, err, x)
	if err != nil {
		return nil, err
	}
	return outs[0].Value, nil
}

// flatNoise are values and variances in the order in which they lie.
func flatNoise(x Truth) noise.Heads { return noise.Heads{Value: x.Value, Var: x.noise} }

func noiseRoPE(p wire.Params, in []Truth) (reference.Heads, error) {
	x, err := noisy(in[0])
	if err != nil {
		return nil, err
	}
	v, err := noise.RoPE(x, ReferenceRoPE(p))
	return noiseBackTo(v, err, in[0])
}

func noiseScores(p wire.Params, in []Truth) (reference.Heads, error) {
	q, err := noisy(in[0])
	if err != nil {
		return nil, err
	}
	k, err := noisy(in[1])
	if err != nil {
		return nil, err
	}
	return noise.Scores(q, k, Scale(p, store.Last(in[0].Shape)))
}

func noiseSoftmax(p wire.Params, in []Truth) (reference.Heads, error) {
	x := in[0]
	h, _, t := store.Fold(x.Shape)
	m := SoftmaxMask(p, x.Meta)
	if PlainVariant(p, x.Carry, m) {
		return noise.Softmax(flatNoise(x), Visible(m, t))
	}
	v, err := noiseVariant(p, x.Carry, m.Diagonal, in[1:], h)
	if err != nil {
		return nil, err
	}
	return v.Softmax(flatNoise(x), Visible(m, t))
}

func noiseContext(_ wire.Params, in []Truth) (reference.Heads, error) {
	p, err := noisy(in[0])
	if err != nil {
		return nil, err
	}
	v, err := noisy(in[1])
	if err != nil {
		return nil, err
	}
	return noise.Context(p, v)
}

func noisePrefill(p wire.Params, in []Truth) (reference.Heads, error) {
	var by [3]noise.Heads
	for i := range by {
		x, err := noisy(in[i])
		if err != nil {
			return nil, err
		}
		by[i] = x
	}
	s, _ := by[0].Value[0].Dims()
	t, _ := by[1].Value[0].Dims()
	m := MaskOf(p, s, t)
	if PlainVariant(p, store.Carried{}, m) {
		v, err := noise.Attention(by[0], by[1], by[2], Scale(p, store.Last(in[0].Shape)), Visible(m, t))
		return noiseBackTo(v, err, in[0])
	}
	variant, err := noiseVariant(p, store.Carried{}, m.Diagonal, in[3:], len(by[0].Value))
	if err != nil {
		return nil, err
	}
	v, err := variant.Attention(by[0], by[1], by[2], Scale(p, store.Last(in[0].Shape)), Visible(m, t))
	return noiseBackTo(v, err, in[0])
}

func noiseDecode(p wire.Params, in []Truth) (reference.Heads, error) {
	p.Mask = wire.MaskNone
	return noisePrefill(p, in)
}

func noiseAdd(_ wire.Params, in []Truth) (reference.Heads, error) {
	return noise.Add(flatNoise(in[0]), flatNoise(in[1]))
}

func noiseLinear(_ wire.Params, in []Truth) (reference.Heads, error) {
	var b noise.Heads
	if len(in) > 2 {
		b = flatNoise(in[2])
	}
	return noise.Linear(flatNoise(in[0]), flatNoise(in[1]), b)
}
