package tensorfile

import (
	"maps"
	"math"
	"slices"
)

// ropeFields are those that a rotation may have. One that is not known here could change the numbers, and is refused.
var ropeFields = map[string]bool{
	"type": true, "rope_type": true, "rope_theta": true, "partial_rotary_factor": true, "finetuned": true,
	"factor": true, "original_max_position_embeddings": true, // of several kinds
	"low_freq_factor": true, "high_freq_factor": true, // llama3
	"attention_factor": true, "beta_fast": true, "beta_slow": true, "mscale": true, "mscale_all_dim": true, "truncate": true, // yarn
}

// rotary reads the parameters of RoPE, which newer files have in rope_parameters and older ones in fields of their own (base, share: their
// names there) and in rope_scaling. What is in the object goes before what is beside it.
func (c *config) rotary(m *Model, l Layer, base, share string, usual float64) Rotary {
	theta, part := c.number(base, 1e4), c.share(share, usual)
	rope := c.object("rope_scaling")
	if rope == nil {
		rope = c.object("rope_parameters")
	}
	r := Rotary{Base: theta}
	if rope != nil && c.err == nil {
		r.Base, part = rope.number("rope_theta", theta), rope.share("partial_rotary_factor", part)
		r.Scaling = c.scaling(m, rope)
		if c.err == nil {
			c.err = rope.err
		}
	}
	if c.err != nil {
		return r
	}
	r.Dims = int(float64(l.HeadDim) * part)
	if r.Dims < 2 || r.Dims%2 != 0 {
		c.fail("RoPE of %d of %d dims: must be an even number from 2", r.Dims, l.HeadDim)
	}
	return r
}

// share is a number above 0, and 1 at most.
func (c *config) share(name string, otherwise float64) float64 {
	v := c.number(name, otherwise)
	if v > 1 {
		c.fail("%s%s is %s, must be at most 1", c.within, name, brief(c.fields[name]))
	}
	return v
}

// scaling reads the object of a rotation. The faults of rope are the caller's to look for.
func (c *config) scaling(m *Model, rope *config) Scaling {
	for _, name := range slices.Sorted(maps.Keys(rope.fields)) {
		if !ropeFields[name] {
			rope.fail("%s%.40q is not known here", rope.within, name)
		}
	}
	kind := rope.text("rope_type")
	if kind == "" {
		kind = rope.text("type")
	}
	s := Scaling{Kind: ScalingKind(kind)}
	switch s.Kind {
	case NoScaling, "default":
		return Scaling{}
	case Linear:
		s.Factor = rope.number("factor", 0)
	case DynamicNTK:
		s.Factor, s.Trained = rope.number("factor", 0), m.Positions
	case Llama3:
		s.Factor, s.Trained = rope.number("factor", 0), c.trained(m, rope)
		s.Low, s.High = rope.number("low_freq_factor", 0), rope.number("high_freq_factor", 0)
		if rope.err == nil && s.Low >= s.High {
			rope.fail("%slow_freq_factor %g is not below high_freq_factor %g", rope.within, s.Low, s.High)
		}
	case YaRN:
		s.Trained = c.trained(m, rope)
		s.Factor = rope.number("factor", float64(m.Positions)/math.Max(1, float64(s.Trained)))
		s.Low, s.High = rope.number("beta_slow", 1), rope.number("beta_fast", 32)
		if rope.err == nil && s.Low >= s.High {
			rope.fail("%sbeta_slow %g is not below beta_fast %g", rope.within, s.Low, s.High)
		}
		s.Fractional = !rope.bool("truncate", true)
		s.Attention = attention(rope, s.Factor)
	default:
		rope.fail("%srope_type %.40q: default, linear, dynamic, llama3 and yarn can be read", rope.within, kind)
	}
	if rope.err == nil && s.Factor < 1 {
		rope.fail("%sfactor %g is below 1", rope.within, s.Factor)
	}
	return s
}

// trained are the positions of the training, which some files have beside the object.
func (c *config) trained(m *Model, rope *config) int {
	const name = "original_max_position_embeddings"
	if c.has(name) {
		return c.count(name, 0, maxLength)
	}
	return rope.count(name, max(m.Positions, 1), maxLength)
}

// attention is YaRN's factor of sine and cosine where the file says it, by itself or as a ratio; 0 where it does not.
func attention(rope *config, factor float64) float64 {
	switch {
	case rope.has("attention_factor"):
		return rope.number("attention_factor", 0)
	case rope.has("mscale") && rope.has("mscale_all_dim") && factor > 1:
		return (0.1*rope.number("mscale", 0)*math.Log(factor) + 1) / (0.1*rope.number("mscale_all_dim", 0)*math.Log(factor) + 1)
	}
	return 0
}
