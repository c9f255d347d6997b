package cudaops

import "fmt"

// Variant is what the field's variants of attention do to scores beside scale and mask, in this order: Softcap, then Bias and
// Slopes, then the mask and Allowed, then the softmax, with Sinks. The zero value is plain attention.
type Variant struct {
	// Softcap c makes c*tanh(s/c) of a score s, which bounds it (Gemma Team, arXiv:2408.00118, section 2). 0: none.
	Softcap float64
	// Slopes, one a head: a score loses slope * |distance| of its column and the row's own column r+Diagonal, whether the
	// mask is causal or not (ALiBi: Press et al., arXiv:2108.12409, section 3). Nil: none.
	Slopes []float64
	// Bias is added to the scores: [H, S, T], and a dimension H or S of 1 serves all heads or rows. Nil: none. A bias of -Inf
	// hides nothing: its column is seen, and weighs 0.
	Bias *Buffer
	// Allowed hides the columns where it is 0, in shape as Bias. Nil: hides none.
	Allowed *Buffer
	// Sinks, [1, 1, H], is one more logit for each head, neither scaled nor capped: it takes its part of the sum and weighs no
	// value, so that rows need not sum to 1 (Xiao et al., arXiv:2309.17453; gpt-oss). Nil: none.
	Sinks *Buffer
}

// Plain says that there is nothing to do.
func (v Variant) Plain() bool {
	return v.Softcap == 0 && v.Slopes == nil && v.Bias == nil && v.Allowed == nil && v.Sinks == nil
}

// Changes are a mask and a variant as a backend takes them.
type Changes struct {
	Mask    Mask
	Softcap float32   // 0: none
	Slopes  []float32 // one a head; nil: none
	// [H, S, T], with stride 0 where one row or head serves all; Mem nil: none.
	Bias, Allowed View
	Sinks         View // [1, 1, H]; Mem nil: none
}

// operands are the buffers of a variant, under the names that errors call them by.
func (v Variant) operands() []operand {
	var in []operand
	for _, o := range []operand{{"bias", v.Bias}, {"allowed", v.Allowed}, {"sinks", v.Sinks}} {
		if o.buf != nil {
			in = append(in, o)
		}
	}
	return in
}

// Check says why a mask and the numbers of a variant do not fit scores of h heads and t columns, or nil. Its tensors are not looked at.
func (v Variant) Check(m Mask, h, t int) error {
	if err := m.check(t); err != nil {
		return err
	}
	if c := float32(v.Softcap); v.Softcap != 0 && (!(c > 0) || !finite(float64(c))) {
		return fmt.Errorf("softcap is %v, must be positive and finite in f32; leave it out for none", v.Softcap)
	}
	if v.Slopes == nil {
		return nil
	}
	if len(v.Slopes) != h {
		return fmt.Errorf("%d ALiBi slopes for %d heads", len(v.Slopes), h)
	}
	for i, slope := range v.Slopes {
		if !finite(float64(float32(slope))) {
			return fmt.Errorf("ALiBi slope %d is %v, must be finite in f32", i, slope)
		}
	}
	return Mask{Causal: true, Diagonal: m.Diagonal}.check(t) // the row's own column is read whatever the mask
}

// changes checks a mask and a variant against scores [h, s, t] whose other operands are those before the variant's.
func (c *call) changes(m Mask, v Variant, h, s, t int) (Changes, error) {
	before := len(c.in) - len(v.operands())
	about := make([]int, before)
	for i := range about {
		about[i] = i
	}
	if before > 2 {
		about = about[:2] // q and k
	}
	if err := v.Check(m, h, t); err != nil {
		return Changes{}, c.bad(about, "%s", reason(err))
	}
	out := Changes{Mask: m, Softcap: float32(v.Softcap)}
	for _, slope := range v.Slopes {
		out.Slopes = append(out.Slopes, float32(slope))
	}
	at := before
	for _, o := range []struct {
		given *Buffer
		to    *View
	}{{v.Bias, &out.Bias}, {v.Allowed, &out.Allowed}} {
		if o.given == nil {
			continue
		}
		x := c.views[at]
		if x.D != t || x.S != 1 && x.S != s || x.H != 1 && x.H != h {
			return Changes{}, c.bad([]int{at}, "must fit scores %v: as many columns, and as many rows and heads or 1", [3]int{h, s, t})
		}
		if x.H == 1 {
			x.H, x.HeadStride = h, 0
		}
		if x.S == 1 {
			x.S, x.RowStride = s, 0
		}
		*o.to = x
		at++
	}
	if v.Sinks != nil {
		if x := c.views[at]; x.H != 1 || x.S != 1 || x.D != h {
			return Changes{}, c.bad([]int{at}, "must be [1 1 %d], one a head", h)
		}
		out.Sinks = c.views[at]
	}
	return out, nil
}

// SoftmaxVariant is [Device.Softmax] of scores that v changes first. Sinks take their part of each row's sum, so that a row's
// probabilities come to less than 1.
func (d *Device) SoftmaxVariant(x *Buffer, m Mask, v Variant) (y *Buffer, empty int, err error) {
	if m.Plain() && v.Plain() {
		return d.Softmax(x, m)
	}
	c, err := d.begin("Softmax", append([]operand{{"x", x}}, v.operands()...)...)
	if err != nil {
		return nil, 0, err
	}
	defer c.end()
	vx := c.views[0]
	changes, err := c.changes(m, v, vx.H, vx.S, vx.D)
	if err != nil {
		return nil, 0, err
	}
	y, err = c.run1(like(vx), func(o View) (err error) {
		empty, err = d.backend.SoftmaxChanged(o, vx, changes)
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	return y, empty, nil
}

// prefillVariant is Prefill where the mask or the variant is not plain.
func (d *Device) prefillVariant(q, k, v *Buffer, a Attention) (AttentionResult, error) {
	in := append([]operand{{"q", q}, {"k", k}, {"v", v}}, a.Variant.operands()...)
	c, err := d.begin("Prefill", in...)
	if err != nil {
		return AttentionResult{}, err
	}
	defer c.end()
	vq, vk, vv := c.views[0], c.views[1], c.views[2]
	if err := c.grouped(a.Scale); err != nil {
		return AttentionResult{}, err
	}
	if err := c.aligned(a.Mask); err != nil {
		return AttentionResult{}, err
	}
	changes, err := c.changes(a.Mask, a.Variant, vq.H, vq.S, vk.S)
	if err != nil {
		return AttentionResult{}, err
	}
	var res AttentionResult
	bufs, err := c.run(a.outputs(vq), func(o []View) (err error) {
		res.Empty, err = d.backend.PrefillChanged(o[0], a.lse(o), vq, vk, vv, float32(a.Scale), changes)
		return err
	})
	if err != nil {
		return AttentionResult{}, err
	}
	res.Context = bufs[0]
	if a.LSE {
		res.LSE = bufs[1]
	}
	return res, nil
}

// aligned refuses a causal mask over more queries, operand 0, than keys, operand 1.
func (c *call) aligned(m Mask) error {
	if q, k := c.views[0], c.views[1]; m.Causal && q.S > k.S {
		return c.bad([]int{0, 1}, "%d queries against %d keys: a causal mask needs at least as many keys", q.S, k.S)
	}
	return nil
}

// outputs are the shapes of what a prefill returns, and lse the view of the second, where it is asked for.
func (a Attention) outputs(q View) []shape {
	outs := []shape{{h: q.H, s: q.S, d: q.D}}
	if a.LSE {
		outs = append(outs, shape{h: 1, s: q.H, d: q.S})
	}
	return outs
}

func (a Attention) lse(outs []View) View {
	if a.LSE {
		return outs[1]
	}
	return View{}
}
