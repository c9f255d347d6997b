package judge

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/attnb/attnb/kernel/resident/chain"
	"github.com/attnb/attnb/kernel/resident/show"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference/noise"
	"github.com/attnb/attnb/reference/parity"
	"github.com/attnb/attnb/viz"
)

// party is one of the two tensors that are compared.
type party struct {
	store.Operand
	node   *store.Node
	called string
	values []float32     // in the order of the comparison, as is bound
	bound  []float64     // how far each value may be from what it stands for
	noise  []float64     // the variance of that
	rep    *chain.Replay // of what made it; nil where that is gone
	why    string        // what bound is
}

// comparison is what a comparison found. It is arranged as mine, heads first.
type comparison struct {
	store.View
	mine, expected party
	within         float64
	show           wire.Difference
	tokens         []string
	cells          []int // the flat indices that are compared; nil: all
	notes          []string
	ratios         []float32 // error / tolerance of each cell, 0 where it is not compared
	judged
}

// Compare shows how far two tensors of one shape are apart, and judges that by what f32 arithmetic explains.
func (j *Judge) Compare(r wire.Request) (wire.Answer, error) {
	const name = "Compare"
	if len(r.IDs) != 2 {
		return wire.Answer{}, wire.Errorf(wire.BadRequest, "%s: %d tensors, it takes 2", name, len(r.IDs))
	}
	in, nodes, inputs, done, err := j.Use(name, r.IDs, []string{"mine", "expected"})
	if err != nil {
		return wire.Answer{}, err
	}
	defer done()
	refuse := func(err error) (wire.Answer, error) {
		return wire.Answer{}, wire.Errorf(wire.BadInput, "%s: %v%s", name, err, store.About(nil, inputs))
	}
	if !(r.Within >= 0) || math.IsInf(r.Within, 0) {
		return refuse(fmt.Errorf("Within(%g): must be 0 or more, and finite", r.Within))
	}
	m := comparison{View: store.ViewOf(in[0].Meta), within: r.Within, tokens: r.Labels, show: show.DifferenceOf(r),
		mine: party{Operand: in[0], node: nodes[0]}, expected: party{Operand: in[1], node: nodes[1]}}
	axes, note, err := store.Align(m.mine.Meta, m.expected.Meta)
	if err != nil {
		return refuse(err)
	}
	if m.expected.Axes = axes; note != "" {
		m.notes = append(m.notes, note)
	}
	if _, _, err := m.Labels(r.Labels); err != nil {
		return refuse(err)
	}
	if err := m.fetch(j); err != nil {
		return wire.Answer{}, store.Explain(name, err, inputs)
	}
	if err := m.judge(); err != nil {
		return refuse(err)
	}
	d, err := m.display()
	if err != nil {
		return refuse(err)
	}
	id, err := j.gallery.Put(d)
	if err != nil {
		return wire.Answer{}, err
	}
	return wire.Answer{DisplayID: id, Text: m.text(), Verdict: m.verdict()}, nil
}

// fetch downloads both sides and finds what each may be off by: in every cell, or, where computing that for one side goes beyond the
// budget, in the rows of a sample.
func (m *comparison) fetch(j *Judge) error {
	sampled := false
	for _, p := range []*party{&m.mine, &m.expected} {
		data, err := j.Device.Download(p.Buf)
		if err != nil {
			return err
		}
		p.values = store.Permute(data, p.Shape, store.OrderOf(p.Axes, m.Axes))
		j.Store.Lock()
		p.called = p.node.Described()
		j.Store.Unlock()
		if p.rep, err = chain.Plan(j.Store, j.budget, "Compare", p.node); err != nil {
			p.rep = nil // its leaves are gone
			continue
		}
		defer p.rep.Close(j.Store)
		p.rep.Rounded = true
		sampled = sampled || p.rep.Sampled()
	}
	if sampled {
		if m.mine.Axes[len(m.mine.Axes)-1] != m.expected.Axes[len(m.expected.Axes)-1] {
			return wire.Errorf(wire.Refused, "Compare: too large to look at all of it, and a row of one side is no row of the other: take a head or some rows")
		}
		m.Sampled = sampleOf(m.mine.values, m.D)
	}
	for _, p := range []*party{&m.mine, &m.expected} {
		if err := p.limits(j, m); err != nil {
			return err
		}
	}
	if m.Sampled == nil {
		return nil
	}
	for _, p := range []*party{&m.mine, &m.expected} {
		n := len(m.Sampled) * m.D
		p.values, p.bound, p.noise = gather(p.values, m.Sampled, m.D), p.bound[:n], p.noise[:n]
	}
	m.notes = append(m.notes, sampleWords(m.View))
	return nil
}

// limits finds what a side may be off by. Numbers that others computed start from inputs that were not rounded to f32 as the leaves
// here were, so a leaf may be off by one rounding, also where it is compared itself.
func (p *party) limits(j *Judge, m *comparison) error {
	switch {
	case p.rep == nil || m.Sampled != nil && p.node.Op == wire.OpNone:
		values := p.values
		if m.Sampled != nil {
			values = gather(values, m.Sampled, m.D)
		}
		brought := chain.HeadsFrom(values, []int{len(values)})
		p.bound, p.noise = chain.Flat(chain.Roundings(brought)), chain.Flat(noise.Rounded(brought).Var)
	case m.Sampled != nil:
		made, rows, err := p.rep.SampleRounding(j.Client, p.node, m.Sampled, time.Now().Add(j.budget.Time/2))
		if err != nil {
			return err
		}
		p.bound, p.noise, m.Sampled = made.Bound, made.Noise, rows
	default:
		want, err := p.rep.Eval(j.Ctx, j.Device, p.node)
		if err != nil {
			return err
		}
		order := store.OrderOf(p.Axes, m.Axes)
		made := want.Rounding()
		p.bound, p.noise = store.Permute(made.Bound, p.Shape, order), store.Permute(made.Noise, p.Shape, order)
	}
	freed, large := 0, 0
	if p.rep != nil {
		freed, large = p.rep.Stood()
	}
	switch {
	case p.rep == nil:
		p.why = p.called + " rounded to f32: what it came from was freed"
	case freed > 0:
		p.why = "f32 bound of the last steps of " + p.called + ": what they came from was freed"
	case large > 0:
		p.why = "f32 bound of the last steps of " + p.called + ": the others take too long to compute again"
	case p.node.Restored():
		p.why = p.called + " as it was saved: how far off it was then is not counted"
	case p.node.Brought():
		p.why = p.called + " rounded to f32"
	default:
		p.why = "f32 bound of " + p.called
	}
	return nil
}

func (m *comparison) judge() (err error) {
	got, want := m.mine.values, store.Widen(m.expected.values)
	limit, spread := make([]float64, len(got)), make([]float64, len(got))
	for i := range limit {
		limit[i] = m.mine.bound[i] + m.expected.bound[i] + m.within
		spread[i] = m.mine.noise[i] + m.expected.noise[i] + m.within*m.within/(noise.Factor*noise.Factor)
	}
	if m.Quantity == store.Scores && m.Mask.Hides() {
		m.visibleOnly(len(got))
		got, want, limit, spread = pick(got, m.cells), pick(want, m.cells), pick(limit, m.cells), pick(spread, m.cells)
	}
	if len(got) == 0 {
		return errors.New("every cell is hidden by the mask")
	}
	m.limitL2 = noise.Limit(got, want, spread)
	m.ratios = make([]float32, len(m.mine.values))
	for i, r := range parity.Ratio(got, want, limit) {
		if m.cells != nil {
			i = m.cells[i]
		}
		m.ratios[i] = float32(r)
	}
	m.fail(m.ratios)
	if m.report, err = parity.Compare(got, want, limit); err == nil && m.cells != nil {
		m.report.Worst = m.cells[m.report.Worst]
		for i := range m.report.Cells {
			m.report.Cells[i].Index = m.cells[m.report.Cells[i].Index]
		}
	}
	return err
}

// visibleOnly leaves out the scores under the mask: they are not masked yet, and what others keep there is no score.
func (m *comparison) visibleOnly(n int) {
	m.cells = []int{}
	for i := range n {
		if _, row, col := m.Place(i); m.Mask.Sees(row, col, m.D) {
			m.cells = append(m.cells, i)
		}
	}
	m.notes = append(m.notes, fmt.Sprintf("%d scores under the mask are not compared: softmax does not see them", n-len(m.cells)))
}

func pick[T any](from []T, cells []int) []T {
	out := make([]T, len(cells))
	for i, at := range cells {
		out[i] = from[at]
	}
	return out
}

// headline is the verdict in one line.
func (m *comparison) headline() string {
	return fmt.Sprintf("Compare %s with %s: %s", m.mine.called, m.expected.called, m.outcome("tolerance"))
}

// text is the whole report.
func (m *comparison) text() string {
	var b strings.Builder
	r, w := m.report, m.report.Worst
	fmt.Fprintf(&b, "%s\n", m.headline())
	if odd := m.unlike(); odd != "" {
		fmt.Fprintf(&b, "  %s\n", odd)
	}
	fmt.Fprintf(&b, "  %s: %d cells compared, %d failed\n", store.ShapeWords(m.Shape, m.Axes), r.N, r.Failed)
	m.write(&b, m.View, m.mine.values, "tolerance")
	mine, expected := m.mine, m.expected
	fmt.Fprintf(&b, "  worst cell: %s: %s %.9g, %s %.9g, off by %.3g\n", m.Where(w, m.tokens), mine.called, mine.values[w],
		expected.called, expected.values[w], math.Abs(float64(mine.values[w])-float64(expected.values[w])))
	fmt.Fprintf(&b, "  its tolerance %.3g = %.3g (%s) + %.3g (%s)", mine.bound[w]+expected.bound[w]+m.within,
		mine.bound[w], mine.why, expected.bound[w], expected.why)
	if m.within > 0 {
		fmt.Fprintf(&b, " + %g (allowed)", m.within)
	}
	b.WriteByte('\n')
	m.writeWorst(&b, func(i int) string { return m.Where(i, m.tokens) })
	for _, n := range m.notes {
		fmt.Fprintf(&b, "  note: %s\n", n)
	}
	return b.String()
}

// unlike says in how many cells one side is finite and the other is not, or both are not and differ.
func (m *comparison) unlike() string {
	mine, expected, both := 0, 0, 0
	count := func(i int) {
		a, b := m.mine.values[i], m.expected.values[i]
		switch {
		case a-a == 0 && b-b == 0 || a == b || a != a && b != b:
		case b-b == 0:
			mine++
		case a-a == 0:
			expected++
		default:
			both++
		}
	}
	if m.cells == nil {
		for i := range m.mine.values {
			count(i)
		}
	}
	for _, i := range m.cells {
		count(i)
	}
	if mine+expected+both == 0 {
		return ""
	}
	return fmt.Sprintf("NaN and Inf are not in the same places: %d cells of %s alone, %d of %s alone, %d where they differ",
		mine, m.mine.called, expected, m.expected.called, both)
}

// display is error / tolerance as a heatmap, or what was asked for: a picture of the differences themselves, on a scale of their
// own, makes the noise of rounding look like a fault.
func (m *comparison) display() (wire.Display, error) {
	if m.Sampled != nil {
		hm := drawSample(m.View, m.headline(), viz.Errors, m.ratios)
		if m.report.MaxRatio > 0 {
			hm.Marks = markOf(m.View, m.report.Worst, "worst")
		}
		return show.Bundle(hm, " "+sampleWords(m.View)+show.WholeOnly(m.show))
	}
	if m.show != wire.DifferenceRatio {
		names := [2]string{m.mine.called, m.expected.called}
		return show.Differences(m.View, m.headline(), m.show, names, m.mine.values, store.Widen(m.expected.values), m.report.Worst, m.tokens, false)
	}
	hm, err := show.Heatmap(m.View, m.headline(), viz.Errors, m.ratios, m.tokens)
	if err != nil {
		return wire.Display{}, err
	}
	if m.cells == nil {
		show.ShowErrors(hm.Matrices)
	}
	if m.report.MaxRatio > 0 {
		hm.Marks = markOf(m.View, m.report.Worst, "worst")
	}
	return show.Bundle(hm, "")
}
