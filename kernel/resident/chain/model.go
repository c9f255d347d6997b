package chain

import (
	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/bound"
	"github.com/attnb/attnb/reference/noise"
)

// What a model has beside its attention. All of it works on rows by themselves, so heads and batches need no care.

func runEmbedding(j *Job, p wire.Params, in []store.Operand) ([]store.Operand, error) {
	if len(in[0].Shape) != 2 {
		return nil, j.refuse([]string{"table"}, "a table has 2 dimensions: [tokens, hidden]")
	}
	b, err := j.D.Embedding(in[0].Buf, p.Tokens)
	return one(b, err, store.Meta{Shape: []int{len(p.Tokens), in[0].Shape[1]}, Axes: []string{"seq", "hidden"}})
}

func replayEmbedding(p wire.Params, in []Truth) ([]bound.Heads, error) {
	return one1(bound.Embedding(in[0].Heads, p.Tokens))
}

// affine are the weight and the bias behind x, nil where there is none.
func (j *Job) affine(in []store.Operand) (w, b *cudaops.Buffer, err error) {
	for i, name := range []string{"w", "b"}[:len(in)-1] {
		if len(in[i+1].Shape) != 1 {
			return nil, nil, j.refuse([]string{name}, "weights and biases of a norm have 1 dimension")
		}
	}
	if len(in) > 1 {
		w = in[1].Buf
	}
	if len(in) > 2 {
		b = in[2].Buf
	}
	return w, b, nil
}

func runLayerNorm(j *Job, p wire.Params, in []store.Operand) ([]store.Operand, error) {
	w, b, err := j.affine(in)
	if err != nil {
		return nil, err
	}
	y, err := j.D.LayerNorm(in[0].Buf, w, b, p.Eps)
	return one(y, err, same(in[0]))
}

func runRMSNorm(j *Job, p wire.Params, in []store.Operand) ([]store.Operand, error) {
	w, _, err := j.affine(in)
	if err != nil {
		return nil, err
	}
	y, err := j.D.RMSNorm(in[0].Buf, w, p.Eps)
	return one(y, err, same(in[0]))
}

// same is the meta of other values in the place of those of x.
func same(x store.Operand) store.Meta { return store.Meta{Shape: x.Shape, Axes: x.Axes} }

// present are the inputs that there are, and empty ones behind them.
func present(in []Truth) (all [3]Truth) {
	copy(all[:], in)
	return all
}

func replayLayerNorm(p wire.Params, in []Truth) ([]bound.Heads, error) {
	x := present(in)
	return one1(bound.LayerNorm(x[0].Heads, x[1].Heads, x[2].Heads, p.Eps))
}

func noiseLayerNorm(p wire.Params, in []Truth) (reference.Heads, error) {
	x := present(in)
	return noise.LayerNorm(flatNoise(x[0]), flatNoise(x[1]), flatNoise(x[2]), p.Eps)
}

func replayRMSNorm(p wire.Params, in []Truth) ([]bound.Heads, error) {
	x := present(in)
	return one1(bound.RMSNorm(x[0].Heads, x[1].Heads, p.Eps))
}

func noiseRMSNorm(p wire.Params, in []Truth) (reference.Heads, error) {
	x := present(in)
	return noise.RMSNorm(flatNoise(x[0]), flatNoise(x[1]), p.Eps)
}

// activation is the op of one function of each element.
func activation(a cudaops.Activation, r reference.Activation) op {
	return op{
		args: []string{"x"},
		run: func(j *Job, _ wire.Params, in []store.Operand) ([]store.Operand, error) {
			y, err := j.D.Activate(in[0].Buf, a)
			return one(y, err, same(in[0]))
		},
		replay: func(_ wire.Params, in []Truth) ([]bound.Heads, error) { return one1(bound.Activate(in[0].Heads, r)) },
		noise:  func(_ wire.Params, in []Truth) (reference.Heads, error) { return noise.Activate(flatNoise(in[0]), r) },
	}
}

func runMultiply(j *Job, _ wire.Params, in []store.Operand) ([]store.Operand, error) {
	return j.pairwise(in, j.D.Multiply)
}

func replayMultiply(_ wire.Params, in []Truth) ([]bound.Heads, error) {
	return one1(bound.Multiply(in[0].Heads, in[1].Heads))
}

func noiseMultiply(_ wire.Params, in []Truth) (reference.Heads, error) {
	return noise.Multiply(flatNoise(in[0]), flatNoise(in[1]))
}
