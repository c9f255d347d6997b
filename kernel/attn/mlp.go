package attn

import "github.com/attnb/attnb/kernel/wire"

// Embedding is the rows of a table [tokens, hidden] that tokens name, from 0: [seq, hidden]. A token that is not in the table is refused.
func Embedding(table Tensor, tokens []int) Tensor {
	return run1(wire.OpEmbedding, wire.Params{Tokens: tokens}, table)
}

// LayerNorm is (x - mean) / sqrt(mean square deviation + eps) of each row, along the last axis, with an eps above 0; times a weight and plus a
// bias, [hidden] each, where these are given (Ba et al., arXiv:1607.06450).
func LayerNorm(x Tensor, eps float64, weightAndBias ...Tensor) Tensor {
	if len(weightAndBias) > 2 {
		stop("LayerNorm: a weight and a bias at most")
	}
	return run1(wire.OpLayerNorm, wire.Params{Eps: eps}, append([]Tensor{x}, weightAndBias...)...)
}

// RMSNorm is x / sqrt(mean square + eps) of each row, along the last axis, with an eps above 0; times a weight [hidden] where one is given
// (Zhang and Sennrich, arXiv:1910.07467).
func RMSNorm(x Tensor, eps float64, weight ...Tensor) Tensor {
	if len(weight) > 1 {
		stop("RMSNorm: one weight at most")
	}
	return run1(wire.OpRMSNorm, wire.Params{Eps: eps}, append([]Tensor{x}, weight...)...)
}

// GELU is x/2 (1 + erf(x/sqrt 2)) of each element (Hendrycks and Gimpel, arXiv:1606.08415): "gelu" of PyTorch and of a config.json. GPT-NeoX
// has it.
func (x Tensor) GELU() Tensor { return run1(wire.OpGELU, wire.Params{}, x) }

// GELUTanh is GELU's approximation x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))): "gelu_new" and "gelu_pytorch_tanh" of a config.json,
// approximate="tanh" of PyTorch. GPT-2 has it.
func (x Tensor) GELUTanh() Tensor { return run1(wire.OpGELUTanh, wire.Params{}, x) }

// SiLU is x / (1 + e^-x) of each element: "silu", "swish". Llama has it, in a gate: Multiply(gate.SiLU(), up).
func (x Tensor) SiLU() Tensor { return run1(wire.OpSiLU, wire.Params{}, x) }

// Multiply is a * b, element by element. Shapes and axes must be equal.
func Multiply(a, b Tensor) Tensor { return run1(wire.OpMultiply, wire.Params{}, a, b) }
