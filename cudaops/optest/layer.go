package optest

import (
	"errors"
	"fmt"
	"math"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/plan"
	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/bound"
	"gonum.org/v1/gonum/mat"
)

// goldens are the captured layers, each run through the device from the projected rows to the context, and on through
// the decode steps behind the cache. They hold the ops, as a chain, to what a framework computes: conventions, above all.
func goldens() []property {
	var all []property
	for _, name := range []string{
		"gpt2_a", "neox_a", "gptj_a", "llama_a", "llama_linear_a", "llama_dynamic_a", "llama_llama3_a", "llama_yarn_a",
	} {
		all = append(all, property{name, func(d *cudaops.Device) error {
			g, err := readGolden(name)
			if err != nil {
				return err
			}
			before := d.InUse()
			l := &layer{golden: g, d: d}
			err = errors.Join(l.run(), release(l.held...))
			if now := d.InUse(); err == nil && now != before {
				err = fmt.Errorf("%d bytes in use, %d before", now, before)
			}
			return err
		}})
	}
	return all
}

// u is half a ULP of f32, relatively.
const u = 0x1p-24

// The captured values carry the framework's own f32 rounding, which the bound of ours does not cover: cosine and sine,
// each within 2 ULP and times the attention factor; and the softmax, of which exponential, sum and quotient are f32.
const (
	turning   = 6 * u // of the length of the pair
	weighting = 8 * u // of the probability
)

// both is an array on the device and what it should be.
type both struct {
	got  *cudaops.Buffer
	want bound.Heads
}

// layer runs one captured layer. It holds every buffer that it makes until the end.
type layer struct {
	*golden
	d    *cudaops.Device
	held []*cudaops.Buffer
}

func (l *layer) keep(b *cudaops.Buffer, err error) (*cudaops.Buffer, error) {
	if err == nil {
		l.held = append(l.held, b)
	}
	return b, err
}

func (l *layer) run() error {
	q, k, v, err := l.project("", 0)
	if err != nil {
		return err
	}
	if err := l.attend(q, k, v, ""); err != nil {
		return err
	}
	if l.has("q_far") {
		q, k, v, err := l.project("", l.meta.Far)
		if err != nil {
			return err
		}
		if err := l.attend(q, k, v, "_far"); err != nil {
			return fmt.Errorf("at position %d: %w", l.meta.Far, err)
		}
	}
	return l.decode(k, v)
}

// project uploads projected rows, splits them and rotates queries and keys, the first row to position at.
func (l *layer) project(suffix string, at int) (q, k, v both, err error) {
	if l.has("qkv" + suffix) {
		q, k, v, err = l.fused("qkv" + suffix)
	} else {
		q, err = l.separate("q_proj"+suffix, l.meta.Heads)
		if err == nil {
			k, err = l.separate("k_proj"+suffix, l.meta.KVHeads)
		}
		if err == nil {
			v, err = l.separate("v_proj"+suffix, l.meta.KVHeads)
		}
	}
	if err != nil || l.meta.Rotary == 0 {
		return q, k, v, err
	}
	if q, err = l.turn(q, at); err == nil {
		k, err = l.turn(k, at)
	}
	return q, k, v, err
}

func (l *layer) upload(name string) (both, error) {
	x, err := l.heads(name)
	if err != nil {
		return both{}, err
	}
	t := single(x)
	b, err := l.keep(l.d.Upload(t.data, t.h, t.s, t.d))
	return both{b, bound.Leaf(x)}, err
}

func (l *layer) fused(name string) (q, k, v both, err error) {
	m := l.meta
	ours, theirs := plan.GPT2, reference.GPT2
	if m.Layout == "neox" {
		ours, theirs = plan.NeoX, reference.NeoX
	}
	x, err := l.upload(name)
	if err != nil {
		return q, k, v, err
	}
	if q.got, k.got, v.got, err = l.d.SplitHeads(x.got, ours, m.Heads, m.KVHeads, m.HeadDim); err != nil {
		return q, k, v, err
	}
	l.held = append(l.held, q.got, k.got, v.got)
	q.want, k.want, v.want, err = bound.Split(x.want, theirs, m.Heads, m.KVHeads, m.HeadDim)
	return q, k, v, err
}

// separate sees the heads of plain rows without a copy. As queries alone they are a GPT-2 layout without keys and
// values: head h is the columns from h*d.
func (l *layer) separate(name string, heads int) (both, error) {
	x, err := l.upload(name)
	if err != nil {
		return both{}, err
	}
	b, err := l.keep(x.got.AsHeads(heads))
	if err != nil {
		return both{}, err
	}
	return both{b, bound.Heads{Value: columns(x.want.Value[0], heads), Err: columns(x.want.Err[0], heads)}}, nil
}

func columns(m *mat.Dense, heads int) reference.Heads {
	rows, width := m.Dims()
	x := make(reference.Heads, heads)
	for h := range x {
		x[h] = mat.DenseCopyOf(m.Slice(0, rows, h*width/heads, (h+1)*width/heads))
	}
	return x
}

// rope is the rotation of the layer. The framework computes its angles in f32.
func (l *layer) rope(at int) cudaops.RoPE {
	r := cudaops.RoPE{
		Rotary: l.meta.Rotary, Base: l.meta.Base, Offset: at,
		Angle: cudaops.AngleFloat32, Magnitude: l.meta.Attention,
	}
	if l.meta.Interleave {
		r.Convention = cudaops.Interleaved
	}
	if l.has("inv_freq") {
		r.InvFreq = l.arrays["inv_freq"].data
	}
	return r
}

func (l *layer) turn(x both, at int) (both, error) {
	r := l.rope(at)
	b, err := l.keep(l.d.RoPE(x.got, r))
	if err != nil {
		return both{}, err
	}
	want, err := bound.ApplyRoPE(x.want, referenceRoPE(r))
	if err != nil {
		return both{}, err
	}
	for h, m := range want.Value {
		rows, _ := m.Dims()
		for row := range rows {
			for i := range r.Rotary / 2 {
				a, b := referenceRoPE(r).Pair(i)
				more := turning * math.Hypot(m.At(row, a), m.At(row, b))
				want.Err[h].Set(row, a, want.Err[h].At(row, a)+more)
				want.Err[h].Set(row, b, want.Err[h].At(row, b)+more)
			}
		}
	}
	return both{b, want}, nil
}

// captured compares x with the captured array name, and returns x with that as its value.
func (l *layer) captured(name string, x both) (both, error) {
	value, err := l.heads(name)
	if err != nil {
		return both{}, err
	}
	if len(value) != len(x.want.Value) { // [S, H, d]
		if value, err = reference.Swap(value); err != nil {
			return both{}, err
		}
	}
	return l.agree(name, x, value)
}

func (l *layer) agree(name string, x both, value reference.Heads) (both, error) {
	x.want.Value = value
	got, err := l.d.Download(x.got)
	if err == nil {
		err = within(got, x.want)
	}
	if err != nil {
		return both{}, fmt.Errorf("%s: %w", name, err)
	}
	return x, nil
}

// attend compares q, k, v, the probabilities and, near position 0, the context with the captured arrays.
func (l *layer) attend(q, k, v both, suffix string) (err error) {
	if q, err = l.captured("q"+suffix, q); err != nil {
		return err
	}
	if k, err = l.captured("k"+suffix, k); err != nil {
		return err
	}
	if v, err = l.captured("v", v); err != nil {
		return err
	}
	p, err := l.probabilities(q, k, cudaops.Mask{Causal: true})
	if err != nil {
		return err
	}
	if p, err = l.captured("probs"+suffix, p); err != nil {
		return err
	}
	r, err := l.d.Prefill(q.got, k.got, v.got, cudaops.Attention{Scale: l.meta.Scale, Mask: cudaops.Mask{Causal: true}})
	if _, err = l.keep(r.Context, err); err != nil || suffix != "" {
		return err
	}
	want, err := bound.Context(p.want, v.want)
	if err != nil {
		return err
	}
	_, err = l.captured("ctx", both{r.Context, want})
	return err
}

func (l *layer) probabilities(q, k both, m cudaops.Mask) (both, error) {
	scores, err := l.keep(l.d.Scores(q.got, k.got, l.meta.Scale))
	if err != nil {
		return both{}, err
	}
	y, _, err := l.d.Softmax(scores, m)
	if y, err = l.keep(y, err); err != nil {
		return both{}, err
	}
	s, err := bound.Scores(q.want, k.want, l.meta.Scale)
	if err != nil {
		return both{}, err
	}
	p, err := bound.Softmax(s, visible(m))
	if err != nil {
		return both{}, err
	}
	for h, e := range p.Err {
		e.Apply(func(i, j int, e float64) float64 { return e + weighting*p.Value[h].At(i, j) }, e)
	}
	return both{y, p}, nil
}

// decode appends the further tokens to the cache one by one and compares the context of each, then the probabilities of the last
// and the cache.
func (l *layer) decode(k, v both) error {
	if l.meta.Decode == 0 {
		return nil
	}
	q, newK, newV, err := l.project("_decode", l.meta.Seq)
	if err != nil {
		return err
	}
	if k.got, err = l.keep(l.d.AppendKV(nil, k.got)); err != nil {
		return err
	}
	if v.got, err = l.keep(l.d.AppendKV(nil, v.got)); err != nil {
		return err
	}
	context, err := l.heads("ctx_decode")
	if err != nil {
		return err
	}
	for i := range l.meta.Decode {
		if k, err = l.grow(k, newK, i); err != nil {
			return err
		}
		if v, err = l.grow(v, newV, i); err != nil {
			return err
		}
		one, err := l.row(q, i)
		if err != nil {
			return err
		}
		p, err := l.probabilities(one, k, cudaops.Mask{})
		if err != nil {
			return err
		}
		if i == l.meta.Decode-1 {
			if _, err := l.captured("probs_decode_last", p); err != nil {
				return err
			}
		}
		y, err := l.keep(l.d.Decode(one.got, k.got, v.got, l.meta.Scale))
		if err != nil {
			return err
		}
		want, err := bound.Context(p.want, v.want)
		if err != nil {
			return err
		}
		token := mat.DenseCopyOf(context[0].Slice(i, i+1, 0, l.meta.Heads*l.meta.HeadDim))
		if _, err := l.agree(fmt.Sprintf("ctx_decode row %d", i), both{y, want}, columns(token, l.meta.Heads)); err != nil {
			return err
		}
	}
	if _, err = l.captured("k_all", k); err != nil {
		return err
	}
	_, err = l.captured("v_all", v)
	return err
}

// row is row i of every head.
func (l *layer) row(x both, i int) (both, error) {
	b, err := l.keep(x.got.Rows(i, i+1))
	one := bound.Heads{Value: make(reference.Heads, len(x.want.Value)), Err: make(reference.Heads, len(x.want.Value))}
	for h, m := range x.want.Value {
		_, dim := m.Dims()
		one.Value[h] = mat.DenseCopyOf(m.Slice(i, i+1, 0, dim))
		one.Err[h] = mat.DenseCopyOf(x.want.Err[h].Slice(i, i+1, 0, dim))
	}
	return both{b, one}, err
}

// grow appends row i of the new rows.
func (l *layer) grow(cache, rows both, i int) (both, error) {
	next, err := l.row(rows, i)
	if err != nil {
		return both{}, err
	}
	b, err := l.keep(l.d.AppendKV(cache.got, next.got))
	if err != nil {
		return both{}, err
	}
	want, err := bound.Append(cache.want, next.want)
	return both{b, want}, err
}
