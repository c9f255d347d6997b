package resident

import (
	"math"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference/bound"
)

// scale is the factor of q.k: what was asked for, or 1/sqrt(d). The device multiplies in f32, so a replay must use the f32 value.
func scale(p wire.Params, dim int) float64 {
	if p.Scale != 0 {
		return float64(float32(p.Scale))
	}
	return float64(float32(1 / math.Sqrt(float64(dim))))
}

func runScores(j *job, p wire.Params, in []operand) ([]result, error) {
	q, err := j.heads("q", in[0])
	if err != nil {
		return nil, err
	}
	k, err := j.heads("k", in[1])
	if err != nil {
		return nil, err
	}
	h, s, d := q.Shape()
	_, t, _ := k.Shape()
	m := meta{shape: []int{h, s, t}, axes: []string{"heads", "query", "key"}, mask: maskOf(p, s, t), quantity: scores}
	if m.carry, err = numbersOf(p, carried{}, h); err == nil {
		// What goes with the scores is refused here, and not where softmax reads it.
		err = cudaops.Variant{Softcap: m.carry.softcap, Slopes: m.carry.slopes}.Check(m.mask, h, t)
	}
	if err != nil {
		return nil, j.refuse([]string{"q", "k"}, "%v", err)
	}
	b, err := j.d.Scores(q, k, scale(p, d))
	if len(in[0].shape) < 3 && h == 1 {
		m = m.without(0)
	}
	return one(b, err, m)
}

func replayScores(p wire.Params, in []truth) ([]bound.Heads, error) {
	q, err := headsOf(in[0])
	if err != nil {
		return nil, err
	}
	k, err := headsOf(in[1])
	if err != nil {
		return nil, err
	}
	return one1(bound.Scores(q, k, scale(p, last(in[0].shape))))
}

func last(shape []int) int { return shape[len(shape)-1] }

func runSoftmax(j *job, p wire.Params, in []operand) ([]result, error) {
	x := in[0]
	h, _, t := fold(x.shape)
	m := meta{shape: x.shape, axes: x.axes, mask: softmaxMask(p, x.meta), quantity: probabilities}
	if len(x.shape) > 3 && !plainVariant(p, x.carry, m.mask) {
		return nil, j.refuse([]string{"x"}, "%d dimensions are too many: pick one with Batch(i)", len(x.shape))
	}
	v, cells, err := j.variant(p, x.carry, in[1:], h, t)
	if err != nil {
		return nil, err
	}
	m.allowed = cells
	b, empty, err := j.d.SoftmaxVariant(x.buf, m.mask, v)
	m.empty = empty
	return one(b, err, m)
}

func replaySoftmax(p wire.Params, in []truth) ([]bound.Heads, error) {
	x := in[0]
	h, _, t := fold(x.shape)
	m := softmaxMask(p, x.meta)
	if plainVariant(p, x.carry, m) {
		return one1(bound.Softmax(x.Heads, visible(m, t)))
	}
	v, err := boundVariant(p, x.carry, m.Diagonal, in[1:], h)
	if err != nil {
		return nil, err
	}
	return one1(v.Softmax(x.Heads, visible(m, t)))
}

func runContext(j *job, _ wire.Params, in []operand) ([]result, error) {
	p, err := j.heads("p", in[0])
	if err != nil {
		return nil, err
	}
	v, err := j.heads("v", in[1])
	if err != nil {
		return nil, err
	}
	h, s, _ := p.Shape()
	_, _, d := v.Shape()
	b, err := j.d.Context(p, v)
	m := meta{shape: []int{h, s, d}, axes: []string{"heads", "seq", "dim"}}
	if len(in[0].shape) < 3 && h == 1 {
		m = m.without(0)
	}
	return one(b, err, m)
}

func replayContext(_ wire.Params, in []truth) ([]bound.Heads, error) {
	p, err := headsOf(in[0])
	if err != nil {
		return nil, err
	}
	v, err := headsOf(in[1])
	if err != nil {
		return nil, err
	}
	return one1(bound.Context(p, v))
}

// qkv sees the three inputs of an attention by head.
func (j *job) qkv(in []operand) (q, k, v *cudaops.Buffer, err error) {
	if q, err = j.heads("q", in[0]); err != nil {
		return
	}
	if k, err = j.heads("k", in[1]); err != nil {
		return
	}
	v, err = j.heads("v", in[2])
	return
}

func runPrefill(j *job, p wire.Params, in []operand) ([]result, error) {
	q, k, v, err := j.qkv(in)
	if err != nil {
		return nil, err
	}
	h, s, d := q.Shape()
	_, t, _ := k.Shape()
	changes, _, err := j.variant(p, carried{}, in[3:], h, t)
	if err != nil {
		return nil, err
	}
	res, err := j.d.Prefill(q, k, v, cudaops.Attention{Scale: scale(p, d), Mask: maskOf(p, s, t), Variant: changes})
	b, err := j.back(res.Context, err, in[0])
	m := alike(in[0], h, s, d)
	m.empty = res.Empty
	return one(b, err, m)
}

func replayPrefill(p wire.Params, in []truth) ([]bound.Heads, error) {
	var by [3]bound.Heads
	for i := range by {
		h, err := headsOf(in[i])
		if err != nil {
			return nil, err
		}
		by[i] = h
	}
	s, _ := by[0].Value[0].Dims()
	t, _ := by[1].Value[0].Dims()
	m := maskOf(p, s, t)
	if plainVariant(p, carried{}, m) {
		out, err := bound.Attention(by[0], by[1], by[2], scale(p, last(in[0].shape)), visible(m, t))
		return backTo(out, err, in[0])
	}
	v, err := boundVariant(p, carried{}, m.Diagonal, in[3:], len(by[0].Value))
	if err != nil {
		return nil, err
	}
	out, err := v.Attention(by[0], by[1], by[2], scale(p, last(in[0].shape)), visible(m, t))
	return backTo(out, err, in[0])
}

func runDecode(j *job, p wire.Params, in []operand) ([]result, error) {
	q, k, v, err := j.qkv(in)
	if err != nil {
		return nil, err
	}
	if p.Mask == wire.MaskDiagonal {
		return nil, j.refuse(nil, "one query sees the whole cache: a diagonal has no place here, cut the cache with Rows")
	}
	h, s, d := q.Shape()
	_, t, _ := k.Shape()
	mask, out := decodeMask(p, t), alike(in[0], h, s, d)
	if plainVariant(p, carried{}, mask) {
		b, err := j.d.Decode(q, k, v, scale(p, d))
		b, err = j.back(b, err, in[0])
		return one(b, err, out)
	}
	if s != 1 {
		return nil, j.refuse([]string{"q"}, "%d query rows a head, must be 1", s)
	}
	changes, _, err := j.variant(p, carried{}, in[3:], h, t)
	if err != nil {
		return nil, err
	}
	res, err := j.d.Prefill(q, k, v, cudaops.Attention{Scale: scale(p, d), Mask: mask, Variant: changes})
	b, err := j.back(res.Context, err, in[0])
	out.empty = res.Empty
	return one(b, err, out)
}

func replayDecode(p wire.Params, in []truth) ([]bound.Heads, error) {
	p.Mask = wire.MaskNone
	return replayPrefill(p, in)
}
