package chain

import (
	"errors"
	"fmt"
	"strings"

	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference"
)

// scalingOf is a scaling as the references take it; nil: none.
func scalingOf(s wire.Scaling, magnitude float64) (reference.Scaling, error) {
	switch s.Kind {
	case wire.ScalingNone:
		return nil, nil
	case wire.ScalingLinear:
		return reference.LinearScaling{Factor: s.Factor}, nil
	case wire.ScalingDynamicNTK:
		return reference.DynamicNTK{Factor: s.Factor, Trained: s.Trained, Length: s.Length}, nil
	case wire.ScalingLlama3:
		return reference.Llama3{Factor: s.Factor, Low: s.Low, High: s.High, Trained: s.Trained}, nil
	case wire.ScalingYaRN:
		return reference.YaRN{Factor: s.Factor, Trained: s.Trained, Slow: s.Low, Fast: s.High, Fractional: s.Fractional, Attention: magnitude}, nil
	}
	return nil, fmt.Errorf("unknown scaling %d", s.Kind)
}

// RoPEOf are the parameters of a rotation, with the frequencies and the magnitude that its scaling makes.
func RoPEOf(p wire.Params) (reference.RoPE, error) {
	r := reference.RoPE{Rotary: p.Rotary, Base: p.Base, Interleaved: p.Interleaved, Offset: p.Offset, Positions: p.Positions,
		InvFreq: p.InvFreq, Float32Angles: p.Float32Angles, Magnitude: p.Magnitude}
	if r.Base == 0 {
		r.Base = DefaultBase
	}
	if p.Scaling == nil {
		return r, nil
	}
	scaling, err := scalingOf(*p.Scaling, p.Magnitude)
	if err != nil || scaling == nil {
		return r, err
	}
	if p.InvFreq != nil {
		return r, errors.New("frequencies are given one by one: there is nothing to scale")
	}
	freq, magnitude, err := scaling.Frequencies(p.Rotary, r.Base)
	var refused *reference.Error
	if errors.As(err, &refused) {
		err = fmt.Errorf("%s: %s", scalingName(*p.Scaling), refused.Detail)
	}
	if r.InvFreq = freq; p.Magnitude == 0 {
		r.Magnitude = magnitude
	}
	return r, err
}

// ReferenceRoPE is RoPEOf for parameters that an op took, or that are validated as a whole later: without its frequencies a rotation
// is refused.
func ReferenceRoPE(p wire.Params) reference.RoPE {
	r, err := RoPEOf(p)
	if err != nil {
		r.InvFreq = []float64{}
	}
	return r
}

func scalingName(s wire.Scaling) string {
	switch s.Kind {
	case wire.ScalingLinear:
		return "linear scaling"
	case wire.ScalingDynamicNTK:
		return "dynamic NTK scaling"
	case wire.ScalingLlama3:
		return "llama3 scaling"
	}
	return "YaRN"
}

// scalingWords say what a rotation is scaled by, from ", " on.
func scalingWords(p wire.Params) string {
	if p.Scaling == nil {
		return ""
	}
	s, err := scalingOf(*p.Scaling, p.Magnitude)
	if err != nil || s == nil {
		return ""
	}
	return ", " + s.String()
}

// RoPEWords say the parameters of a rotation.
func RoPEWords(p wire.Params) string {
	words := []string{fmt.Sprintf("rotary %d", p.Rotary), "half-split"}
	if p.Interleaved {
		words[1] = "interleaved"
	}
	if p.Positions != nil {
		words = append(words, fmt.Sprintf("%d positions", len(p.Positions)))
	} else {
		words = append(words, fmt.Sprintf("offset %d", p.Offset))
	}
	switch {
	case p.InvFreq != nil:
		words = append(words, "given frequencies")
	case p.Base != 0:
		words = append(words, fmt.Sprintf("base %g", p.Base))
	default:
		words = append(words, fmt.Sprintf("base %d", DefaultBase))
	}
	if p.Float32Angles {
		words = append(words, "f32 angles")
	}
	if p.Magnitude != 0 && p.Magnitude != 1 {
		words = append(words, fmt.Sprintf("magnitude %g", p.Magnitude))
	}
	return strings.Join(words, ", ") + scalingWords(p)
}
