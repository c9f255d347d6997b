package resident

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference/noise"
	"github.com/attnb/attnb/reference/parity"
	"github.com/attnb/attnb/viz"
)

// party is one of the two tensors that are compared.
type party struct {
	operand
	node   *node
	called string
	values []float32 // in the order of the comparison, as is bound
	bound  []float64 // how far each value may be from what it stands for
	noise  []float64 // the variance of that
	rep    *replay   // of what made it; nil where that is gone
	why    string    // what bound is
}

// comparison is what a comparison found. It is arranged as mine, heads first.
type comparison struct {
	arranged
	mine, expected party
	within         float64
	show           wire.Difference
	tokens         []string
	cells          []int // the flat indices that are compared; nil: all
	notes          []string
	ratios         []float32 // error / tolerance of each cell, 0 where it is not compared
	judged
}

// compare shows how far two tensors of one shape are apart, and judges that by what f32 arithmetic explains.
func (c *conn) compare(r wire.Request) (wire.Answer, error) {
	const name = "Compare"
	if len(r.IDs) != 2 {
		return wire.Answer{}, wire.Errorf(wire.BadRequest, "%s: %d tensors, it takes 2", name, len(r.IDs))
	}
	in, nodes, inputs, done, err := c.use(name, r.IDs, []string{"mine", "expected"})
	if err != nil {
		return wire.Answer{}, err
	}
	defer done()
	refuse := func(err error) (wire.Answer, error) {
		return wire.Answer{}, wire.Errorf(wire.BadInput, "%s: %v%s", name, err, about(nil, inputs))
	}
	if !(r.Within >= 0) || math.IsInf(r.Within, 0) {
		return refuse(fmt.Errorf("Within(%g): must be 0 or more, and finite", r.Within))
	}
	m := comparison{arranged: arrange(in[0].meta), within: r.Within, tokens: r.Labels, show: differenceOf(r),
		mine: party{operand: in[0], node: nodes[0]}, expected: party{operand: in[1], node: nodes[1]}}
	if err := m.align(); err != nil {
		return refuse(err)
	}
	if _, _, err := m.labels(r.Labels); err != nil {
		return refuse(err)
	}
	if err := m.fetch(c); err != nil {
		return wire.Answer{}, explain(name, err, inputs)
	}
	if err := m.judge(); err != nil {
		return refuse(err)
	}
	d, err := m.display()
	if err != nil {
		return refuse(err)
	}
	id, err := c.s.displays.put(d)
	if err != nil {
		return wire.Answer{}, err
	}
	return wire.Answer{DisplayID: id, Text: m.text(), Verdict: m.verdict()}, nil
}

// align says which axis of expected is which of mine: the one of the same name, or, where the names are others, the one
// in the same place.
func (m *comparison) align() error {
	order := orderOf(m.expected.axes, m.mine.axes)
	if order == nil {
		order = orderOf(m.mine.axes, m.mine.axes)
	}
	if len(m.mine.shape) != len(m.expected.shape) {
		return errors.New("shapes differ")
	}
	for i, at := range order {
		if m.mine.shape[i] != m.expected.shape[at] {
			return errors.New("shapes differ")
		}
	}
	switch was := shapeWords(m.expected.shape, m.expected.axes); {
	case !slices.IsSorted(order):
		m.notes = append(m.notes, fmt.Sprintf("expected is %s: its axes were put into the order of mine, by name", was))
	case !slices.Equal(m.mine.axes, m.expected.axes):
		m.notes = append(m.notes, fmt.Sprintf("the axes have other names, expected is %s: compared in the order in which they stand", was))
		m.expected.axes = m.mine.axes
	}
	return nil
}

// orderOf says where each of the axes to stands in from; nil where the names are not the same.
func orderOf(from, to []string) []int {
	order := make([]int, len(to))
	for i, axis := range to {
		if order[i] = slices.Index(from, axis); order[i] < 0 {
			return nil
		}
	}
	if len(from) != len(to) {
		return nil
	}
	return order
}

// permute rearranges data of a shape so that its axis order[i] becomes axis i.
func permute[T any](data []T, shape, order []int) []T {
	if slices.IsSorted(order) {
		return data
	}
	stride := make([]int, len(shape))
	for i, n := len(shape)-1, 1; i >= 0; i-- {
		stride[i] = n
		n *= shape[i]
	}
	out := make([]T, len(data))
	at := make([]int, len(order))
	for i := range out {
		from := 0
		for k, n := range at {
			from += n * stride[order[k]]
		}
		out[i] = data[from]
		for k := len(at) - 1; k >= 0; k-- {
			if at[k]++; at[k] < shape[order[k]] {
				break
			}
			at[k] = 0
		}
	}
	return out
}

// fetch downloads both sides and finds what each may be off by: in every cell, or, where computing that for one side goes beyond the
// budget, in the rows of a sample.
func (m *comparison) fetch(c *conn) error {
	sampled := false
	for _, p := range []*party{&m.mine, &m.expected} {
		data, err := c.d.Download(p.buf)
		if err != nil {
			return err
		}
		p.values = permute(data, p.shape, orderOf(p.axes, m.axes))
		c.s.store.mu.Lock()
		p.called = p.node.described()
		c.s.store.unlock()
		if p.rep, err = c.plan("Compare", p.node); err != nil {
			p.rep = nil // its leaves are gone
			continue
		}
		defer c.over(p.rep)
		p.rep.rounded = true
		sampled = sampled || p.rep.sampled()
	}
	if sampled {
		if m.mine.axes[len(m.mine.axes)-1] != m.expected.axes[len(m.expected.axes)-1] {
			return wire.Errorf(wire.Refused, "Compare: too large to look at all of it, and a row of one side is no row of the other: take a head or some rows")
		}
		m.rows = sampleOf(m.mine.values, m.d)
	}
	for _, p := range []*party{&m.mine, &m.expected} {
		if err := p.limits(c, m); err != nil {
			return err
		}
	}
	if m.rows == nil {
		return nil
	}
	for _, p := range []*party{&m.mine, &m.expected} {
		n := len(m.rows) * m.d
		p.values, p.bound, p.noise = gather(p.values, m.rows, m.d), p.bound[:n], p.noise[:n]
	}
	m.notes = append(m.notes, m.share())
	return nil
}

// limits finds what a side may be off by. Numbers that others computed start from inputs that were not rounded to f32 as the leaves
// here were, so a leaf may be off by one rounding, also where it is compared itself.
func (p *party) limits(c *conn, m *comparison) error {
	switch {
	case p.rep == nil || m.rows != nil && p.node.op == wire.OpNone:
		values := p.values
		if m.rows != nil {
			values = gather(values, m.rows, m.d)
		}
		brought := headsFrom(values, []int{len(values)})
		p.bound, p.noise = flat(roundings(brought)), flat(noise.Rounded(brought).Var)
	case m.rows != nil:
		made, rows, err := p.rep.sampleRounding(c, p.node, m.rows, time.Now().Add(c.s.budget.Time/2))
		if err != nil {
			return err
		}
		p.bound, p.noise, m.rows = made.bound, made.noise, rows
	default:
		want, err := p.rep.eval(c.ctx, c.d, p.node)
		if err != nil {
			return err
		}
		order := orderOf(p.axes, m.axes)
		p.bound, p.noise = permute(flat(want.Err), p.shape, order), permute(flat(want.noise), p.shape, order)
	}
	switch {
	case p.rep == nil:
		p.why = p.called + " rounded to f32: what it came from was freed"
	case len(p.rep.stand) > 0:
		p.why = "f32 bound of the last steps of " + p.called + ": what they came from was freed"
	case len(p.rep.large) > 0:
		p.why = "f32 bound of the last steps of " + p.called + ": the others take too long to compute again"
	case p.node.brought():
		p.why = p.called + " rounded to f32"
	default:
		p.why = "f32 bound of " + p.called
	}
	return nil
}

func (m *comparison) judge() (err error) {
	got, want := m.mine.values, widen(m.expected.values)
	limit, spread := make([]float64, len(got)), make([]float64, len(got))
	for i := range limit {
		limit[i] = m.mine.bound[i] + m.expected.bound[i] + m.within
		spread[i] = m.mine.noise[i] + m.expected.noise[i] + m.within*m.within/(noise.Factor*noise.Factor)
	}
	if m.quantity == scores && m.mask.Hides() {
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
		if _, row, col := m.place(i); m.mask.Sees(row, col, m.d) {
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

func widen(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
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
	fmt.Fprintf(&b, "  %s: %d cells compared, %d failed\n", shapeWords(m.shape, m.axes), r.N, r.Failed)
	m.write(&b, m.arranged, m.mine.values, "tolerance")
	mine, expected := m.mine, m.expected
	fmt.Fprintf(&b, "  worst cell: %s: %s %.9g, %s %.9g, off by %.3g\n", m.where(w, m.tokens), mine.called, mine.values[w],
		expected.called, expected.values[w], math.Abs(float64(mine.values[w])-float64(expected.values[w])))
	fmt.Fprintf(&b, "  its tolerance %.3g = %.3g (%s) + %.3g (%s)", mine.bound[w]+expected.bound[w]+m.within,
		mine.bound[w], mine.why, expected.bound[w], expected.why)
	if m.within > 0 {
		fmt.Fprintf(&b, " + %g (allowed)", m.within)
	}
	b.WriteByte('\n')
	m.writeWorst(&b, func(i int) string { return m.where(i, m.tokens) })
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
	if m.rows != nil {
		hm := m.drawSample(m.headline(), viz.Errors, m.ratios)
		if m.report.MaxRatio > 0 {
			hm.Marks = m.mark(m.report.Worst, "worst")
		}
		return bundle(hm, " "+m.share()+wholeOnly(m.show))
	}
	if m.show != wire.DifferenceRatio {
		names := [2]string{m.mine.called, m.expected.called}
		return m.differences(m.headline(), m.show, names, m.mine.values, widen(m.expected.values), m.report.Worst, m.tokens, false)
	}
	hm, err := m.heatmap(m.headline(), viz.Errors, m.ratios, m.tokens)
	if err != nil {
		return wire.Display{}, err
	}
	if m.cells == nil {
		showErrors(hm.Matrices)
	}
	if m.report.MaxRatio > 0 {
		hm.Marks = m.mark(m.report.Worst, "worst")
	}
	return bundle(hm, "")
}
