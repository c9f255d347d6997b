package resident

import (
	"math"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/bound"
)

// scale is the factor of q.k: what was asked for, or 1/sqrt(d). The device multiplies in f32, so a replay must use the f32 value.
func scale(p wire.Params, dim int) float64 {
	if p.Scale != 0 {
		return float64(float32(p.Scale))
	}
	return float64(float32(1 / math.Sqrt(float64(dim))))
}

// maskOf is the mask of s queries against t keys.
func maskOf(p wire.Params, s, t int) cudaops.Mask {
	switch p.Mask {
	case wire.MaskCausal:
		return cudaops.Mask{Causal: true, Diagonal: t - s}
	case wire.MaskDiagonal:
		return cudaops.Mask{Causal: true, Diagonal: p.Diagonal}
	}
	return cudaops.Mask{}
}

// shifted is the mask of what remains when the first n rows are gone.
func shifted(m cudaops.Mask, n int) cudaops.Mask {
	if m.Causal {
		m.Diagonal += n
	}
	return m
}

// visible is a mask for a replay.
func visible(m cudaops.Mask) reference.Visible {
	if !m.Causal {
		return nil
	}
	return reference.Causal(m.Diagonal)
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
	b, err := j.d.Scores(q, k, scale(p, d))
	m := meta{shape: []int{h, s, t}, axes: []string{"heads", "query", "key"}, mask: maskOf(p, s, t), quantity: scores}
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

// softmaxMask is the mask asked for, or else the one that the scores carry.
func softmaxMask(p wire.Params, x meta) cudaops.Mask {
	if p.Mask == wire.MaskDefault {
		return x.mask
	}
	_, s, t := fold(x.shape)
	return maskOf(p, s, t)
}

func runSoftmax(j *job, p wire.Params, in []operand) ([]result, error) {
	x := in[0]
	m := meta{shape: x.shape, axes: x.axes, mask: softmaxMask(p, x.meta), quantity: probabilities}
	b, empty, err := j.d.Softmax(x.buf, m.mask)
	m.empty = empty
	return one(b, err, m)
}

func replaySoftmax(p wire.Params, in []truth) ([]bound.Heads, error) {
	return one1(bound.Softmax(in[0].Heads, visible(softmaxMask(p, in[0].meta))))
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
	res, err := j.d.Prefill(q, k, v, cudaops.Attention{Scale: scale(p, d), Mask: maskOf(p, s, t)})
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
	out, err := bound.Attention(by[0], by[1], by[2], scale(p, last(in[0].shape)), visible(maskOf(p, s, t)))
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
	b, err := j.d.Decode(q, k, v, scale(p, d))
	b, err = j.back(b, err, in[0])
	return one(b, err, alike(in[0], h, s, d))
}

func replayDecode(p wire.Params, in []truth) ([]bound.Heads, error) {
	p.Mask = wire.MaskNone
	return replayPrefill(p, in)
}
