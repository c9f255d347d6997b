package chain

import (
	"math"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference/bound"
)

// Scale is the factor of q.k: what was asked for, or 1/sqrt(d). The device multiplies in f32, so a replay must use the f32 value.
func Scale(p wire.Params, dim int) float64 {
	if p.Scale != 0 {
		return float64(float32(p.Scale))
	}
	return float64(float32(1 / math.Sqrt(float64(dim))))
}

func runScores(j *Job, p wire.Params, in []store.Operand) ([]store.Operand, error) {
	q, err := j.Heads("q", in[0])
	if err != nil {
		return nil, err
	}
	k, err := j.Heads("k", in[1])
	if err != nil {
		return nil, err
	}
	h, s, d := q.Shape()
	_, t, _ := k.Shape()
	m := store.Meta{Shape: []int{h, s, t}, Axes: []string{"heads", "query", "key"}, Mask: MaskOf(p, s, t), Quantity: store.Scores}
	if m.Carry, err = numbersOf(p, store.Carried{}, h); err == nil {
		// What goes with the scores is refused here, and not where softmax reads it.
		err = cudaops.Variant{Softcap: m.Carry.Softcap, Slopes: m.Carry.Slopes}.Check(m.Mask, h, t)
	}
	if err != nil {
		return nil, j.refuse([]string{"q", "k"}, "%v", err)
	}
	b, err := j.D.Scores(q, k, Scale(p, d))
	if len(in[0].Shape) < 3 && h == 1 {
		m = m.Without(0)
	}
	return one(b, err, m)
}

func replayScores(p wire.Params, in []Truth) ([]bound.Heads, error) {
	q, err := ByHead(in[0])
	if err != nil {
		return nil, err
	}
	k, err := ByHead(in[1])
	if err != nil {
		return nil, err
	}
	return one1(bound.Scores(q, k, Scale(p, store.Last(in[0].Shape))))
}

func runSoftmax(j *Job, p wire.Params, in []store.Operand) ([]store.Operand, error) {
	x := in[0]
	h, _, t := store.Fold(x.Shape)
	m := store.Meta{Shape: x.Shape, Axes: x.Axes, Mask: SoftmaxMask(p, x.Meta), Quantity: store.Probabilities}
	if len(x.Shape) > 3 && !PlainVariant(p, x.Carry, m.Mask) {
		return nil, j.refuse([]string{"x"}, "%d dimensions are too many: pick one with Batch(i)", len(x.Shape))
	}
	v, cells, err := j.Variant(p, x.Carry, in[1:], h, t)
	if err != nil {
		return nil, err
	}
	m.Allowed = cells
	b, empty, err := j.D.SoftmaxVariant(x.Buf, m.Mask, v)
	m.Empty = empty
	return one(b, err, m)
}

func replaySoftmax(p wire.Params, in []Truth) ([]bound.Heads, error) {
	x := in[0]
	h, _, t := store.Fold(x.Shape)
	m := SoftmaxMask(p, x.Meta)
	if PlainVariant(p, x.Carry, m) {
		return one1(bound.Softmax(x.Heads, Visible(m, t)))
	}
	v, err := boundVariant(p, x.Carry, m.Diagonal, in[1:], h)
	if err != nil {
		return nil, err
	}
	return one1(v.Softmax(x.Heads, Visible(m, t)))
}

func runContext(j *Job, _ wire.Params, in []store.Operand) ([]store.Operand, error) {
	p, err := j.Heads("p", in[0])
	if err != nil {
		return nil, err
	}
	v, err := j.Heads("v", in[1])
	if err != nil {
		return nil, err
	}
	h, s, _ := p.Shape()
	_, _, d := v.Shape()
	b, err := j.D.Context(p, v)
	m := store.Meta{Shape: []int{h, s, d}, Axes: []string{"heads", "seq", "dim"}}
	if len(in[0].Shape) < 3 && h == 1 {
		m = m.Without(0)
	}
	return one(b, err, m)
}

func replayContext(_ wire.Params, in []Truth) ([]bound.Heads, error) {
	p, err := ByHead(in[0])
	if err != nil {
		return nil, err
	}
	v, err := ByHead(in[1])
	if err != nil {
		return nil, err
	}
	return one1(bound.Context(p, v))
}

// qkv sees the three inputs of an attention by head.
func (j *Job) qkv(in []store.Operand) (q, k, v *cudaops.Buffer, err error) {
	if q, err = j.Heads("q", in[0]); err != nil {
		return
	}
	if k, err = j.Heads("k", in[1]); err != nil {
		return
	}
	v, err = j.Heads("v", in[2])
	return
}

func runPrefill(j *Job, p wire.Params, in []store.Operand) ([]store.Operand, error) {
	q, k, v, err := j.qkv(in)
	if err != nil {
		return nil, err
	}
	h, s, d := q.Shape()
	_, t, _ := k.Shape()
	changes, _, err := j.Variant(p, store.Carried{}, in[3:], h, t)
	if err != nil {
		return nil, err
	}
	res, err := j.D.Prefill(q, k, v, cudaops.Attention{Scale: Scale(p, d), Mask: MaskOf(p, s, t), Variant: changes})
	b, err := j.back(res.Context, err, in[0])
	m := alike(in[0], h, s, d)
	m.Empty = res.Empty
	return one(b, err, m)
}

func replayPrefill(p wire.Params, in []Truth) ([]bound.Heads, error) {
	var by [3]bound.Heads
	for i := range by {
		h, err := ByHead(in[i])
		if err != nil {
			return nil, err
		}
		by[i] = h
	}
	s, _ := by[0].Value[0].Dims()
	t, _ := by[1].Value[0].Dims()
	m := MaskOf(p, s, t)
	if PlainVariant(p, store.Carried{}, m) {
		out, err := bound.Attention(by[0], by[1], by[2], Scale(p, store.Last(in[0].Shape)), Visible(m, t))
		return backTo(out, err, in[0])
	}
	v, err := boundVariant(p, store.Carried{}, m.Diagonal, in[3:], len(by[0].Value))
	if err != nil {
		return nil, err
	}
	out, err := v.Attention(by[0], by[1], by[2], Scale(p, store.Last(in[0].Shape)), Visible(m, t))
	return backTo(out, err, in[0])
}

func runDecode(j *Job, p wire.Params, in []store.Operand) ([]store.Operand, error) {
	q, k, v, err := j.qkv(in)
	if err != nil {
		return nil, err
	}
	if p.Mask == wire.MaskDiagonal {
		return nil, j.refuse(nil, "one query sees the whole cache: a diagonal has no place here, cut the cache with Rows")
	}
	h, s, d := q.Shape()
	_, t, _ := k.Shape()
	mask, out := DecodeMask(p, t), alike(in[0], h, s, d)
	if PlainVariant(p, store.Carried{}, mask) {
		b, err := j.D.Decode(q, k, v, Scale(p, d))
		b, err = j.back(b, err, in[0])
		return one(b, err, out)
	}
	if s != 1 {
		return nil, j.refuse([]string{"q"}, "%d query rows a head, must be 1", s)
	}
	changes, _, err := j.Variant(p, store.Carried{}, in[3:], h, t)
	if err != nil {
		return nil, err
	}
	res, err := j.D.Prefill(q, k, v, cudaops.Attention{Scale: Scale(p, d), Mask: mask, Variant: changes})
	b, err := j.back(res.Context, err, in[0])
	out.Empty = res.Empty
	return one(b, err, out)
}

func replayDecode(p wire.Params, in []Truth) ([]bound.Heads, error) {
	p.Mask = wire.MaskNone
	return replayPrefill(p, in)
}
