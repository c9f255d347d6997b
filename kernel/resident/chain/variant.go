package chain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/bound"
	"github.com/attnb/attnb/reference/noise"
)

// Scores stay scale * q.k. What a variant of attention does to them afterwards (softcap, ALiBi) goes with them, as the mask does, and
// softmax applies it; its tensors (bias, allowed, sinks) are inputs of the softmax itself. So Scores, Softmax and Context are
// Prefill step by step.

// names are what errors call the inputs of an op with these parameters, or why it does not take them.
func (o op) names(p wire.Params) ([]string, error) {
	if len(p.Extras) == 0 {
		return o.args, nil
	}
	if !o.variant {
		return nil, fmt.Errorf("%s is an option of Softmax, Prefill and Decode: scores stay scale * q.k, and softmax changes them", strings.Join(p.Extras, " or "))
	}
	for i, e := range p.Extras {
		if e != wire.ExtraBias && e != wire.ExtraAllowed && e != wire.ExtraSinks {
			return nil, fmt.Errorf("unknown tensor %.20q", e)
		}
		if slices.Contains(p.Extras[:i], e) {
			return nil, fmt.Errorf("%s is given twice", e)
		}
	}
	return append(slices.Clone(o.args), p.Extras...), nil
}

// MaskOf is the mask of s queries against t keys.
func MaskOf(p wire.Params, s, t int) cudaops.Mask {
	return maskOver(p, cudaops.Mask{Diagonal: t - s}, s, t)
}

// maskOver is a mask with the parts that were asked for in place of its own.
func maskOver(p wire.Params, m cudaops.Mask, s, t int) cudaops.Mask {
	switch p.Mask {
	case wire.MaskNone:
		m.Causal = false
	case wire.MaskCausal:
		m.Causal, m.Diagonal = true, t-s
	case wire.MaskDiagonal:
		m.Causal, m.Diagonal = true, p.Diagonal
	case wire.MaskAt:
		m.Causal, m.Diagonal = false, p.Diagonal
	}
	if p.Window != 0 {
		m.Window = p.Window
	}
	if p.PadLeft != 0 || p.PadRight != 0 {
		m.PadLeft, m.PadRight = p.PadLeft, p.PadRight
	}
	if len(p.Documents) > 0 {
		m.Documents = p.Documents
	}
	return m
}

// SoftmaxMask is the scores' own mask, with what is asked for in place of the same of it.
func SoftmaxMask(p wire.Params, x store.Meta) cudaops.Mask {
	_, s, t := store.Fold(x.Shape)
	if x.Quantity != store.Scores {
		return MaskOf(p, s, t)
	}
	return maskOver(p, x.Mask, s, t)
}

// DecodeMask is the mask of one query behind t keys.
func DecodeMask(p wire.Params, t int) cudaops.Mask {
	p.Mask = wire.MaskNone
	return MaskOf(p, 1, t)
}

// masked puts a whole mask into parameters.
func masked(p wire.Params, m cudaops.Mask) wire.Params {
	p.Mask, p.Diagonal = wire.MaskAt, m.Diagonal
	if m.Causal {
		p.Mask = wire.MaskDiagonal
	}
	p.Window, p.PadLeft, p.PadRight, p.Documents = m.Window, m.PadLeft, m.PadRight, m.Documents
	return p
}

// Shifted is the mask of what remains when the first n rows are gone.
func Shifted(m cudaops.Mask, n int) cudaops.Mask {
	m.Diagonal += n
	return m
}

// Visible is a mask over cols columns for a replay.
func Visible(m cudaops.Mask, cols int) reference.Visible {
	var all []reference.Visible
	if m.Causal {
		all = append(all, reference.Causal(m.Diagonal))
	}
	if m.Window > 0 {
		all = append(all, reference.Window(m.Diagonal, m.Window))
	}
	if m.PadLeft > 0 || m.PadRight > 0 {
		all = append(all, reference.Padded(m.PadLeft, m.PadRight, cols))
	}
	if m.Documents != nil {
		all = append(all, reference.Documents(m.Diagonal, m.Documents))
	}
	return reference.All(all...)
}

// numbersOf are softcap and slopes for h heads, of which each is what was asked for, or else what the scores carry. The device
// computes in f32, so a replay must use the f32 values.
func numbersOf(p wire.Params, c store.Carried, h int) (store.Carried, error) {
	if p.Softcap != 0 {
		c.Softcap = p.Softcap
	}
	c.Softcap = single(c.Softcap)
	switch {
	case len(p.Slopes) > 0:
		c.Slopes = p.Slopes
	case p.ALiBi:
		usual, err := reference.ALiBiSlopes(h)
		if err != nil {
			return c, err
		}
		c.Slopes = usual
	}
	if c.Slopes != nil {
		c.Slopes = slices.Clone(c.Slopes)
		for i, s := range c.Slopes {
			c.Slopes[i] = single(s)
		}
	}
	return c, nil
}

// single is x as f32 holds it, or x where that is no positive number any more: the device refuses it by its own name.
func single(x float64) float64 {
	if y := float64(float32(x)); y != 0 && y-y == 0 {
		return y
	}
	return x
}

// Variant is what the device is to do to the scores of h heads with t keys, and which cells that allows.
func (j *Job) Variant(p wire.Params, c store.Carried, extras []store.Operand, h, t int) (v cudaops.Variant, cells store.Allowed, err error) {
	c, err = numbersOf(p, c, h)
	if err != nil {
		return v, cells, j.refuse(nil, "%v", err)
	}
	if p.FirstSink != 0 { // of parts of a replay alone
		return v, cells, j.refuse(nil, "the sinks begin with that of head 0")
	}
	v = cudaops.Variant{Softcap: c.Softcap, Slopes: c.Slopes}
	for i, name := range p.Extras {
		switch name {
		case wire.ExtraBias:
			v.Bias, err = j.Heads(name, extras[i])
		case wire.ExtraAllowed:
			if v.Allowed, err = j.Heads(name, extras[i]); err == nil && store.Last(extras[i].Shape) == t { // else the device refuses it
				cells, err = j.allowedCells(v.Allowed)
			}
		case wire.ExtraSinks:
			v.Sinks = extras[i].Buf
		}
		if err != nil {
			return v, cells, err
		}
	}
	return v, cells, nil
}

// PlainVariant says that neither mask nor scores need more than plain attention has.
func PlainVariant(p wire.Params, c store.Carried, m cudaops.Mask) bool {
	return m.Plain() && len(p.Extras) == 0 && p.Softcap == 0 && !p.ALiBi && len(p.Slopes) == 0 && c.None()
}

// boundVariant is the variant for a replay of h heads, and noiseVariant for its noise.
func boundVariant(p wire.Params, c store.Carried, diagonal int, extras []Truth, h int) (v bound.Variant, err error) {
	c, err = numbersOf(p, c, h)
	if err != nil {
		return v, err
	}
	v = bound.Variant{Softcap: c.Softcap, Slopes: c.Slopes, Diagonal: diagonal}
	for i, name := range p.Extras {
		var x bound.Heads
		switch name {
		case wire.ExtraBias:
			v.Bias, err = ByHead(extras[i])
		case wire.ExtraAllowed:
			x, err = ByHead(extras[i])
			v.Allowed = x.Value
		case wire.ExtraSinks:
			v.Sinks = bound.Heads{Value: sinksOf(extras[i].Value, p.FirstSink, h), Err: sinksOf(extras[i].Err, p.FirstSink, h)}
		}
		if err != nil {
			return v, err
		}
	}
	return v, nil
}

func noiseVariant(p wire.Params, c store.Carried, diagonal int, extras []Truth, h int) (v noise.Variant, err error) {
	exact, err := boundVariant(p, c, diagonal, extras, h)
	if err != nil {
		return v, err
	}
	moved := make([]Truth, len(extras))
	for i, x := range extras {
		moved[i] = x.asNoise()
	}
	spread, err := boundVariant(p, c, diagonal, moved, h)
	v = noise.Variant{Softcap: exact.Softcap, Slopes: exact.Slopes, Diagonal: diagonal, Allowed: exact.Allowed,
		Bias: noise.Heads{Value: exact.Bias.Value, Var: spread.Bias.Value}, Sinks: noise.Heads{Value: exact.Sinks.Value, Var: spread.Sinks.Value}}
	return v, err
}

// sinksOf are those of h heads, from the first on.
func sinksOf(x reference.Heads, first, h int) reference.Heads {
	all := Flat(x)
	return reference.Heads{mat.NewDense(1, h, all[first:first+h])}
}

// partsOf are the parts of the extras of a step that part at of its scores takes, and the parameters that go with it. at is by head, as
// the device sees it.
func partsOf(n *store.Node, own int, at Part, p *wire.Params) []Part {
	if at.h >= 0 {
		p.FirstSink = at.h
		if len(p.Slopes) == 0 && p.ALiBi {
			p.Slopes, _ = reference.ALiBiSlopes(HeadsIn(n.In[0].Meta)) // as many heads as there are, so no error
		}
		if len(p.Slopes) > 0 {
			p.Slopes = p.Slopes[at.h : at.h+1]
		}
	}
	var parts []Part
	for i, name := range p.Extras {
		x := n.In[own+i].Meta
		if name == wire.ExtraSinks {
			parts = append(parts, everything)
			continue
		}
		parts = append(parts, at.Turned(x).of(x)) // one head or one row serves all
	}
	return parts
}

// RowVariant is what a Softmax, Prefill or Decode does to one row of one head's scores, which carry what c says, beside their mask m.
func (r *Replay) RowVariant(ctx context.Context, d *cudaops.Device, n *store.Node, c store.Carried, m cudaops.Mask, head, row int) (v reference.Variant, err error) {
	own := 3
	if n.Op == wire.OpSoftmax {
		own = 1
	}
	p := n.Params
	parts := partsOf(n, own, Part{head, row}, &p)
	extras := make([]Truth, len(parts))
	for i, at := range parts {
		if extras[i], err = r.EvalPart(ctx, d, n.In[own+i], at); err != nil {
			return v, err
		}
	}
	b, err := boundVariant(p, c.Head(head), m.Diagonal+row, extras, 1)
	if err != nil {
		return v, err
	}
	v = reference.Variant{Softcap: b.Softcap, Bias: b.Bias.Value, Slopes: b.Slopes, Diagonal: b.Diagonal, Allowed: b.Allowed}
	if b.Sinks.Value != nil {
		v.Sinks = b.Sinks.Value[0].RawRowView(0)
	}
	return v, nil
}

// MaskWords says what a mask shows.
func MaskWords(m cudaops.Mask) string {
	words := []string{"no mask"}
	if m.Causal {
		words[0] = fmt.Sprintf("causal, diagonal %d", m.Diagonal)
	}
	if m.Window > 0 {
		words = append(words, fmt.Sprintf("window %d", m.Window))
	}
	if m.PadLeft > 0 || m.PadRight > 0 {
		words = append(words, fmt.Sprintf("%d and %d keys of padding", m.PadLeft, m.PadRight))
	}
	if m.Documents != nil {
		words = append(words, fmt.Sprintf("%d documents", len(m.Documents)))
	}
	if len(words) > 1 && !m.Causal {
		words = words[1:]
	}
	return strings.Join(words, ", ")
}

// VariantWords says what else is done to scores, from ", " on.
func VariantWords(p wire.Params, c store.Carried) string {
	words := ""
	if c, _ = numbersOf(p, c, 1); c.Softcap != 0 {
		words += fmt.Sprintf(", softcap %g", c.Softcap)
	}
	if c.Slopes != nil {
		words += ", ALiBi"
	}
	for _, e := range p.Extras {
		words += ", " + e
	}
	return words
}

// allowedCells reads a tensor of allowed cells. One that looks like a mask to be added is refused: it would hide what it means to show.
func (j *Job) allowedCells(b *cudaops.Buffer) (store.Allowed, error) {
	data, err := j.D.Download(b)
	if err != nil {
		return store.Allowed{}, err
	}
	h, s, t := b.Shape()
	for _, x := range data {
		if !(x >= 0) {
			return store.Allowed{}, j.refuse([]string{wire.ExtraAllowed}, "holds %v, where a cell is 0 or not: a mask that is added to scores is a Bias", x)
		}
	}
	return store.AllowedOf(h, s, t, data), nil
}
