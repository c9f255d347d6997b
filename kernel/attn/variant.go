package attn

import "github.com/attnb/attnb/kernel/wire"

// Window lets a query see the n keys up to its own, itself among them; without Causal as many on the other side too. Window(3):
// query 5 sees keys 3, 4 and 5.
func Window(n int) Option {
	if n < 1 {
		stop("Window: must be at least 1, the query itself; leave it out for none")
	}
	return number(func(p *wire.Params) { p.Window = n })
}

// KeyPadding hides the first left and the last right keys from every query. A query that then sees nothing has probabilities and context 0.
func KeyPadding(left, right int) Option {
	return number(func(p *wire.Params) { p.PadLeft, p.PadRight = left, right })
}

// Documents are the lengths of documents packed one behind the other; a query sees its own alone. Together they are all keys.
func Documents(lengths ...int) Option {
	if len(lengths) == 0 {
		stop("Documents: no lengths")
	}
	return number(func(p *wire.Params) { p.Documents = append([]int{}, lengths...) })
}

// Softcap makes c*tanh(s/c) of each score s, so that none is beyond c (Gemma 2: 50). Leave it out for none.
func Softcap(c float64) Option {
	if !(c > 0) {
		stop("Softcap: must be above 0; leave it out for none")
	}
	return number(func(p *wire.Params) { p.Softcap = c })
}

// ALiBi takes slope * distance of query and key from each score, one slope a head (Press et al., arXiv:2108.12409). Without slopes
// they are the usual ones, 2^(-8 i/heads), i from 1.
func ALiBi(slopes ...float64) Option {
	return number(func(p *wire.Params) { p.ALiBi, p.Slopes = true, append([]float64{}, slopes...) })
}

// Bias is added to the scores: [heads, query, key], where one head or one query may serve all. Of Softmax, Prefill and Decode.
func Bias(b Tensor) Option { return Option{extra: wire.ExtraBias, x: b} }

// Allowed hides the keys where m is 0, and shows those where it is anything else: [heads, query, key], where one head or one query may
// serve all. Of Softmax, Prefill and Decode. A mask that is added, of 0 and -Inf, means the opposite: it is a [Bias], and refused here.
func Allowed(m Tensor) Option { return Option{extra: wire.ExtraAllowed, x: m} }

// Sinks are one more logit for each head, [heads], which takes its part of the softmax and weighs no value: probabilities
// come to less than 1 (gpt-oss). Of Softmax, Prefill and Decode.
func Sinks(s Tensor) Option { return Option{extra: wire.ExtraSinks, x: s} }

func number(set func(*wire.Params)) Option { return Option{set: set} }

// with are the parameters that options make of p, and the tensors that they bring.
func with(p wire.Params, options []Option) (wire.Params, []Tensor) {
	var more []Tensor
	for _, o := range options {
		if o.set != nil {
			o.set(&p)
		}
		if o.extra != "" {
			p.Extras, more = append(p.Extras, o.extra), append(more, o.x)
		}
	}
	return p, more
}

// runWith is run1 with options.
func runWith(op wire.Op, p wire.Params, options []Option, in ...Tensor) Tensor {
	p, more := with(p, options)
	return run1(op, p, append(in, more...)...)
}

// How a rotation is stretched to positions beyond those of a model's training. Each sets the frequencies, and the magnitude where
// there is one; formulas and sources are in package reference.

func (r Rotation) scaled(s wire.Scaling) Rotation {
	r.p.Scaling = &s
	return r
}

// Linear divides every position by factor (Chen et al., arXiv:2306.15595).
func (r Rotation) Linear(factor float64) Rotation {
	return r.scaled(wire.Scaling{Kind: wire.ScalingLinear, Factor: factor})
}

// DynamicNTK raises the base where length, the rows of the whole sequence, is over the trained ones. Rows that were cached when it was shorter
// keep other frequencies, so decoding differs from prefill.
func (r Rotation) DynamicNTK(factor float64, trained, length int) Rotation {
	return r.scaled(wire.Scaling{Kind: wire.ScalingDynamicNTK, Factor: factor, Trained: trained, Length: length})
}

// Llama3 divides by factor the frequencies of pairs that turn less than low times in the trained positions, keeps those above high, and
// mixes between. Llama 3.1 has Llama3(8, 1, 4, 8192).
func (r Rotation) Llama3(factor, low, high float64, trained int) Rotation {
	return r.scaled(wire.Scaling{Kind: wire.ScalingLlama3, Factor: factor, Low: low, High: high, Trained: trained})
}

// YaRN divides the slow frequencies by factor, keeps the fast ones, and mixes between, along a ramp from pairs that turn 32 times in the
// trained positions to those that turn once ([Rotation.Ramp]). Cosine and sine are multiplied by 0.1 ln(factor) + 1, or what
// Magnitude says.
func (r Rotation) YaRN(factor float64, trained int) Rotation {
	return r.scaled(wire.Scaling{Kind: wire.ScalingYaRN, Factor: factor, Trained: trained})
}

// Ramp is where the mixing of YaRN begins and ends, in turns ("beta_fast" and "beta_slow").
func (r Rotation) Ramp(fast, slow float64) Rotation {
	return r.yarn("Ramp", func(s *wire.Scaling) { s.High, s.Low = fast, slow })
}

// Untruncated lets the ramp of YaRN end between pairs ("truncate": false).
func (r Rotation) Untruncated() Rotation {
	return r.yarn("Untruncated", func(s *wire.Scaling) { s.Fractional = true })
}

func (r Rotation) yarn(name string, set func(*wire.Scaling)) Rotation {
	if r.p.Scaling == nil || r.p.Scaling.Kind != wire.ScalingYaRN {
		stop(name + ": belongs behind YaRN")
	}
	s := *r.p.Scaling
	set(&s)
	return r.scaled(s)
}
