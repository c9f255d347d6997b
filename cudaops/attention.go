package cudaops

// Scores are scale * q.k for every query and key: q [H, S, d], k [KV, T, d], H a multiple of KV. The result is
// [H, S, T]; query head h meets key head h/(H/KV).
func (d *Device) Scores(q, k *Buffer, scale float64) (*Buffer, error) {
	c, err := d.begin("Scores", operand{"q", q}, operand{"k", k})
	if err != nil {
		return nil, err
	}
	defer c.end()
	vq, vk := c.views[0], c.views[1]
	if err := c.grouped(scale); err != nil {
		return nil, err
	}
	return c.run1(shape{h: vq.H, s: vq.S, d: vk.S}, func(o View) error {
		return d.backend.Scores(o, vq, vk, float32(scale))
	})
}

// Context weighs values: p v, with p [H, S, T], v [KV, T, d], H a multiple of KV. The result is [H, S, d]; head h of p meets
// head h/(H/KV) of v. A value whose weight is exactly 0 does not reach the result, even where it is NaN.
func (d *Device) Context(p, v *Buffer) (*Buffer, error) {
	c, err := d.begin("Context", operand{"p", p}, operand{"v", v})
	if err != nil {
		return nil, err
	}
	defer c.end()
	vp, vv := c.views[0], c.views[1]
	switch {
	case vp.D != vv.S:
		return nil, c.bad([]int{0, 1}, "probabilities of %d keys, values of %d", vp.D, vv.S)
	case vp.H%vv.H != 0:
		return nil, c.bad([]int{0, 1}, "%d heads are not a multiple of %d KV heads", vp.H, vv.H)
	}
	return c.run1(shape{h: vp.H, s: vp.S, d: vv.D}, func(o View) error { return d.backend.Context(o, vp, vv) })
}

// grouped checks what q and k, operands 0 and 1, must share, and v, operand 2, where there is one.
func (c *call) grouped(scale float64) error {
	q, k := c.views[0], c.views[1]
	switch {
	case q.D != k.D:
		return c.bad([]int{0, 1}, "head dims %d and %d differ", q.D, k.D)
	case q.H%k.H != 0:
		return c.bad([]int{0, 1}, "%d heads are not a multiple of %d KV heads", q.H, k.H)
	case !finite(float64(float32(scale))):
		return c.bad([]int{0, 1}, "scale is %v, must be finite in f32", scale)
	}
	if len(c.views) < 3 {
		return nil
	}
	if v := c.views[2]; v.H != k.H || v.S != k.S || v.D != k.D {
		return c.bad([]int{1, 2}, "keys and values differ in shape")
	}
	return nil
}

// Attention are the parameters of a prefill.
type Attention struct {
	Scale   float64 // multiplies q.k; usually 1/sqrt(d)
	Mask    Mask    // bottom-right causal is {Causal: true, Diagonal: T-S}
	LSE     bool    // also return the log of each row's sum of exponentials, sinks included
	Variant Variant // what else changes the scores
}

// AttentionResult is what a prefill returns.
type AttentionResult struct {
	Context *Buffer // [H, S, d]
	LSE     *Buffer // [1, H, S], natural logarithm, -Inf for an empty row without a sink; nil unless asked for
	Empty   int     // rows that see nothing, over all heads: their context is 0
}

// Prefill is softmax(scale * q k^T, mask) v: q [H, S, d], k and v [KV, T, d]. Under a causal mask S must not be over T.
// No S x T matrix is made. A key or value that no query sees does not reach the result, even where it is NaN.
//
// A decode step of a variant is a prefill of one row, whose own column is the last: Mask.Diagonal T-1.
func (d *Device) Prefill(q, k, v *Buffer, a Attention) (AttentionResult, error) {
	if !a.Mask.Plain() || !a.Variant.Plain() {
		return d.prefillVariant(q, k, v, a)
	}
	c, err := d.begin("Prefill", operand{"q", q}, operand{"k", k}, operand{"v", v})
	if err != nil {
		return AttentionResult{}, err
	}
	defer c.end()
	if err := c.grouped(a.Scale); err != nil {
		return AttentionResult{}, err
	}
	vq, vk, vv := c.views[0], c.views[1], c.views[2]
	if err := c.aligned(a.Mask); err != nil {
		return AttentionResult{}, err
	}
	if err := a.Mask.check(vk.S); err != nil {
		return AttentionResult{}, c.bad([]int{0, 1}, "%s", reason(err))
	}
	bufs, err := c.run(a.outputs(vq), func(o []View) error {
		return d.backend.Prefill(o[0], a.lse(o), vq, vk, vv, float32(a.Scale), a.Mask)
	})
	if err != nil {
		return AttentionResult{}, err
	}
	res := AttentionResult{Context: bufs[0], Empty: vq.H * a.Mask.Empty(vq.S, vk.S)}
	if a.LSE {
		res.LSE = bufs[1]
	}
	return res, nil
}

// Decode is the attention of one query row a head, q [H, 1, d], to all rows of a cache, k and v [KV, T, d]. The result is
// [H, 1, d].
func (d *Device) Decode(q, k, v *Buffer, scale float64) (*Buffer, error) {
	c, err := d.begin("Decode", operand{"q", q}, operand{"k", k}, operand{"v", v})
	if err != nil {
		return nil, err
	}
	defer c.end()
	vq, vk, vv := c.views[0], c.views[1], c.views[2]
	if vq.S != 1 {
		return nil, c.bad([]int{0}, "%d query rows a head, must be 1", vq.S)
	}
	if err := c.grouped(scale); err != nil {
		return nil, err
	}
	return c.run1(shape{h: vq.H, s: 1, d: vq.D}, func(o View) error {
		return d.backend.Decode(o, vq, vk, vv, float32(scale))
	})
}
