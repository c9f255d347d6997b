package optest

import (
	"fmt"
	"math"
	"slices"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/bound"
)

// variant is a mask and a variant of attention with its tensors, those that are there.
type variant struct {
	name                 string
	mask                 cudaops.Mask
	softcap              float64
	slopes               []float64
	bias, allowed, sinks tensor
}

// tensors are the variant's inputs, in the order in which [variant.of] takes them.
func (v variant) tensors() []tensor {
	var all []tensor
	for _, x := range []tensor{v.bias, v.allowed, v.sinks} {
		if x.data != nil {
			all = append(all, x)
		}
	}
	return all
}

// of is the variant for the device, with its tensors as buffers.
func (v variant) of(in []*cudaops.Buffer) cudaops.Variant {
	out := cudaops.Variant{Softcap: v.softcap, Slopes: v.slopes}
	for _, to := range []struct {
		x    tensor
		slot **cudaops.Buffer
	}{{v.bias, &out.Bias}, {v.allowed, &out.Allowed}, {v.sinks, &out.Sinks}} {
		if to.x.data != nil {
			*to.slot, in = in[0], in[1:]
		}
	}
	return out
}

// truth is the same for the references.
func (v variant) truth(in []bound.Heads) bound.Variant {
	out := bound.Variant{Softcap: float64(float32(v.softcap)), Diagonal: v.mask.Diagonal}
	for _, s := range v.slopes {
		out.Slopes = append(out.Slopes, float64(float32(s)))
	}
	if v.bias.data != nil {
		out.Bias, in = in[0], in[1:]
	}
	if v.allowed.data != nil {
		out.Allowed, in = in[0].Value, in[1:]
	}
	if v.sinks.data != nil {
		out.Sinks = in[0]
	}
	return out
}

// sees is any mask as the references take it, field by field.
func sees(m cudaops.Mask, cols int) reference.Visible {
	all := []reference.Visible{visible(m), reference.Padded(m.PadLeft, m.PadRight, cols)}
	if m.Window > 0 {
		all = append(all, reference.Window(m.Diagonal, m.Window))
	}
	if m.Documents != nil {
		all = append(all, reference.Documents(m.Diagonal, m.Documents))
	}
	return reference.All(all...)
}

// empty counts the rows of h heads that see nothing, cell by cell.
func (v variant) empty(h, rows, cols int) int {
	vis, n := sees(v.mask, cols), 0
	for head := range h {
		for r := range rows {
			if !slices.ContainsFunc(upTo(cols), func(j int) bool { return vis(r, j) && v.allows(head, r, j) }) {
				n++
			}
		}
	}
	return n
}

func (v variant) allows(h, row, col int) bool {
	a := v.allowed
	return a.data == nil || *a.at(min(h, a.h-1), min(row, a.s-1), col) != 0
}

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// prefillVariantCase asks for context and LSE.
func prefillVariantCase(name string, q, k, val tensor, scale float64, v variant) testCase {
	return testCase{
		name: name,
		in:   append([]tensor{q, k, val}, v.tensors()...),
		do: func(d *cudaops.Device, in []*cudaops.Buffer) ([]*cudaops.Buffer, error) {
			r, err := d.Prefill(in[0], in[1], in[2], cudaops.Attention{Scale: scale, Mask: v.mask, Variant: v.of(in[3:]), LSE: true})
			if err != nil {
				return nil, err
			}
			if want := v.empty(q.h, q.s, k.s); r.Empty != want {
				err = fmt.Errorf("%d empty rows, want %d", r.Empty, want)
			}
			return []*cudaops.Buffer{r.Context, r.LSE}, err
		},
		want: func(in []bound.Heads) ([]bound.Heads, error) {
			by, vis := v.truth(in[3:]), sees(v.mask, k.s)
			context, err := by.Attention(in[0], in[1], in[2], scale, vis)
			if err != nil {
				return nil, err
			}
			s, err := bound.Scores(in[0], in[1], scale)
			if err != nil {
				return nil, err
			}
			lse, err := by.LSE(s, vis)
			return []bound.Heads{context, lse}, err
		},
	}
}

func softmaxVariantCase(name string, x tensor, v variant) testCase {
	return testCase{
		name: name,
		in:   append([]tensor{x}, v.tensors()...),
		do: func(d *cudaops.Device, in []*cudaops.Buffer) ([]*cudaops.Buffer, error) {
			y, empty, err := d.SoftmaxVariant(in[0], v.mask, v.of(in[1:]))
			if err != nil {
				return nil, err
			}
			if want := v.empty(x.h, x.s, x.d); empty != want {
				return one(y, fmt.Errorf("%d empty rows, want %d", empty, want))
			}
			return one(y, nil)
		},
		want: func(in []bound.Heads) ([]bound.Heads, error) {
			return truth(v.truth(in[1:]).Softmax(in[0], sees(v.mask, x.d)))
		},
	}
}

// variants are of n.h heads, n.s queries and n.t keys.
func variants(n dims, amplitude float64) []variant {
	r := source(fmt.Sprint("variants", n, amplitude))
	causal := cudaops.Mask{Causal: true, Diagonal: n.t - n.s}
	if n.s > n.t {
		causal = cudaops.Mask{Diagonal: n.t - n.s}
	}
	with := func(m cudaops.Mask, f func(*cudaops.Mask)) cudaops.Mask { f(&m); return m }
	free := with(causal, func(m *cudaops.Mask) { m.Causal = false })
	slopes := make([]float64, n.h)
	for i := range slopes {
		slopes[i] = math.Exp2(-8 * float64(i+1) / float64(n.h))
	}
	some := func(h, s int) tensor {
		x := fill(h, s, n.t, func(int) float64 { return float64(r.IntN(3)) / 2 })
		for i := range n.t {
			*x.at(h-1, s-1, i) = 0 // a row that sees nothing
		}
		return x
	}
	all := []variant{
		{name: "window 1", mask: with(causal, func(m *cudaops.Mask) { m.Window = 1 })},
		{name: "window 3", mask: with(causal, func(m *cudaops.Mask) { m.Window = 3 })},
		{name: "window 40 both sides", mask: with(free, func(m *cudaops.Mask) { m.Window = 40 })},
		{name: "window past the keys", mask: with(free, func(m *cudaops.Mask) { m.Window, m.Diagonal = 2, n.t-1 })},
		{name: "left padding", mask: with(causal, func(m *cudaops.Mask) { m.PadLeft = (n.t + 1) / 2 })},
		{name: "right padding", mask: with(free, func(m *cudaops.Mask) { m.PadRight = n.t / 3 })},
		{name: "all padding", mask: with(free, func(m *cudaops.Mask) { m.PadLeft, m.PadRight = n.t/2, n.t-n.t/2 })},
		{name: "softcap", mask: causal, softcap: 2.5},
		{name: "softcap wide", mask: free, softcap: 50},
		{name: "ALiBi", mask: causal, slopes: slopes},
		{name: "ALiBi unmasked", mask: free, slopes: slopes},
		{name: "bias", mask: causal, bias: normal(r, 3, n.h, n.s, n.t)},
		{name: "bias of one head", mask: causal, bias: normal(r, 3, 1, n.s, n.t)},
		{name: "bias of one row", mask: free, bias: normal(r, 100, n.h, 1, n.t)},
		{name: "allowed", mask: causal, allowed: some(n.h, n.s)},
		{name: "allowed of one head", mask: free, allowed: some(1, n.s)},
		{name: "allowed of one row", mask: causal, allowed: some(n.h, 1)},
		{name: "sinks", mask: causal, sinks: normal(r, 3, 1, 1, n.h)},
		{name: "sinks alone are left", mask: with(causal, func(m *cudaops.Mask) { m.Diagonal = -n.s }), sinks: normal(r, 3, 1, 1, n.h)},
		{
			name: "all of it", mask: with(causal, func(m *cudaops.Mask) { m.Window, m.PadRight = 30, n.t/5 }), softcap: 4, slopes: slopes,
			bias: normal(r, 1, 1, n.s, n.t), allowed: fill(n.h, 1, n.t, func(i int) float64 { return float64(i % 3) }), sinks: normal(r, 1, 1, 1, n.h),
		},
	}
	if n.t > 1 {
		documents := []int{n.t / 2, n.t - n.t/2}
		if n.t > 4 {
			documents = []int{1, n.t - n.t/2 - 1, 1, n.t/2 - 1}
		}
		all = append(all,
			variant{name: "documents", mask: with(causal, func(m *cudaops.Mask) { m.Documents = documents })},
			variant{name: "documents from outside", mask: with(free, func(m *cudaops.Mask) { m.Documents, m.Diagonal = documents, -1 })})
	}
	return all
}

func variantCases() []testCase {
	var all []testCase
	for _, n := range []struct {
		dims
		amplitude float64
	}{
		{dims{1, 1, 1, 1, 1}, 1}, {dims{4, 2, 5, 9, 8}, 1}, {dims{3, 1, 7, 7, 5}, 8}, {dims{6, 3, 1, 31, 7}, 1}, {dims{3, 1, 9, 5, 8}, 1},
		{dims{2, 1, 37, 131, 24}, 4}, {dims{2, 2, 65, 300, 16}, 1}, {dims{1, 1, 3, 1030, 64}, 1},
	} {
		for _, v := range variants(n.dims, n.amplitude) {
			name := fmt.Sprintf("variant/%v amplitude%v %s", n.dims, n.amplitude, v.name)
			q, k, values := n.random(name, n.amplitude)
			all = append(all, prefillVariantCase(name, q, k, values, n.scale(), v))
			x := normal(source(name), n.amplitude, n.h, n.s, n.t)
			all = append(all, softmaxVariantCase("softmax "+name, x, v))
		}
	}
	for _, d := range []int{1, 2, 31, 33, 96, 128, 256, 257, 300} {
		n := dims{2, 1, 3, 70, d}
		name := fmt.Sprintf("variant/%v", n)
		q, k, v := n.random(name, 1)
		by := variant{mask: cudaops.Mask{Causal: true, Diagonal: 67, Window: 37}, softcap: 3, sinks: normal(source(name), 1, 1, 1, 2)}
		all = append(all, prefillVariantCase(name, q, k, v, n.scale(), by))
	}
	return append(all, poisonedVariants()...)
}

// poisonedVariants hide NaN and infinities, in keys, values, scores and biases, by every kind of mask.
func poisonedVariants() []testCase {
	var all []testCase
	n := dims{4, 2, 6, 75, 8}
	// Nobody sees keys 0 to 2, 30 to 39 and the last two.
	hides := func(j int) bool { return j < 3 || j >= 30 && j < 40 || j >= n.t-2 }
	allowed := fill(1, 1, n.t, func(j int) float64 {
		if hides(j) {
			return 0
		}
		return 1
	})
	for _, bad := range strange {
		name := fmt.Sprintf("variant/%v hidden", bad)
		q, k, values := n.random(name, 1)
		bias := normal(source(name+" bias"), 1, 1, n.s, n.t)
		x := normal(source(name+" scores"), 1, n.h, n.s, n.t)
		for j := range n.t {
			if !hides(j) {
				continue
			}
			for h := range k.h {
				*k.at(h, j, j%n.d), *values.at(h, j, j%n.d) = bad, bad
			}
			for s := range n.s {
				*bias.at(0, s, j) = bad
				for h := range n.h {
					*x.at(h, s, j) = bad
				}
			}
		}
		v := variant{softcap: 5, bias: bias, allowed: allowed, mask: cudaops.Mask{PadLeft: 2}}
		all = append(all, prefillVariantCase(name, q, k, values, n.scale(), v), softmaxVariantCase(name+", softmax", x, v))

		// A query that sees one key alone, and that one is bad.
		name = fmt.Sprintf("variant/%v seen alone", bad)
		q, k, values = n.random(name, 1)
		*k.at(0, n.t-2, 1) = bad
		alone := variant{mask: cudaops.Mask{Causal: true, Diagonal: n.t - n.s, Window: 1}}
		if bad != math.MaxFloat32 { // whose score f32 and f64 rightly differ in
			all = append(all, prefillVariantCase(name, q, k, values, n.scale(), alone))
		}
		x = normal(source(name+" scores"), 1, n.h, n.s, n.t)
		*x.at(1, n.s-2, n.t-2) = bad
		all = append(all, softmaxVariantCase(name+", softmax", x, alone))

		name = fmt.Sprintf("variant/%v seen", bad)
		q, k, values = n.random(name, 1)
		*values.at(0, 20, 1) = bad
		v.bias, v.softcap = tensor{}, 0
		all = append(all, prefillVariantCase(name+" in values", q, k, values, n.scale(), v))
		_, _, values = n.random(name, 1)
		if bad != math.MaxFloat32 {
			v.bias = bias
			v.bias.data = slices.Clone(bias.data)
			*v.bias.at(0, 4, 21) = bad // row 4 of every head is NaN, or weighs one key alone, or one key less
			all = append(all, prefillVariantCase(name+" in a bias", q, k, values, n.scale(), v))
			v.bias = tensor{}
			v.sinks = tensor{1, 1, n.h, []float32{1, bad, 0, -1}}
			all = append(all, prefillVariantCase(name+" in a sink", q, k, values, n.scale(), v))
		}
	}
	return all
}

// variantsAgree holds that Scores, SoftmaxVariant and Context come to what Prefill does, and a decode step to its last row.
func variantsAgree(d *cudaops.Device) error {
	n := dims{4, 2, 5, 41, 16}
	q, k, values := n.random("variants agree", 2)
	in, err := placements[0].uploadAll(d, []tensor{q, k, values})
	if err != nil {
		return err
	}
	defer func() { _ = release(in...) }()
	for _, v := range variants(n, 1) {
		extra, err := placements[0].uploadAll(d, v.tensors())
		if err != nil {
			return err
		}
		made, err := bothWays(d, in, v, v.of(extra), n)
		if err := firstError(err, release(append(made, extra...)...)); err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
	}
	return nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func bothWays(d *cudaops.Device, in []*cudaops.Buffer, v variant, by cudaops.Variant, n dims) (made []*cudaops.Buffer, err error) {
	whole, err := d.Prefill(in[0], in[1], in[2], cudaops.Attention{Scale: n.scale(), Mask: v.mask, Variant: by})
	if err != nil {
		return nil, err
	}
	made = append(made, whole.Context)
	s, err := d.Scores(in[0], in[1], n.scale())
	if err != nil {
		return made, err
	}
	made = append(made, s)
	p, empty, err := d.SoftmaxVariant(s, v.mask, by)
	if err != nil {
		return made, err
	}
	made = append(made, p)
	if empty != whole.Empty {
		return made, fmt.Errorf("%d empty rows by matrices, %d by Prefill", empty, whole.Empty)
	}
	c, err := d.Context(p, in[2])
	if err != nil {
		return made, err
	}
	made = append(made, c)
	got, err := d.Download(c)
	if err != nil {
		return made, err
	}
	want, err := d.Download(whole.Context)
	if err != nil {
		return made, err
	}
	for i := range got {
		if off := math.Abs(float64(got[i] - want[i])); !(off <= 2e-6) {
			return made, fmt.Errorf("element %d: %v by matrices, %v by Prefill", i, got[i], want[i])
		}
	}
	return made, nil
}
