package resident

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference/bound"
	"github.com/attnb/attnb/reference/noise"
	"github.com/attnb/attnb/reference/parity"
	"github.com/attnb/attnb/viz"
)

// check replays the lineage of a tensor in float64, from the f32 values of its leaves and the f32 parameters, and compares.
func (c *conn) check(r wire.Request) (wire.Answer, error) {
	const name = "Check"
	if len(r.IDs) != 1 {
		return wire.Answer{}, wire.Errorf(wire.BadRequest, "%s: %d tensors", name, len(r.IDs))
	}
	in, nodes, inputs, done, err := c.use(name, r.IDs, []string{"x"})
	if err != nil {
		return wire.Answer{}, err
	}
	defer done()
	x, root := in[0], nodes[0]
	if root.op == wire.OpNone {
		return wire.Answer{}, wire.Errorf(wire.BadInput, "%s: nothing to replay: the tensor was brought, not computed%s", name, about(nil, inputs))
	}
	st := c.s.store
	st.mu.Lock()
	rep, err := newReplay(root)
	f := finding{name: inputs[0].name, root: root, tokens: r.Labels, show: differenceOf(r)}
	if err == nil {
		f.chain, f.notes = rep.chain(root), rep.notes()
	}
	st.unlock()
	if err != nil {
		return wire.Answer{}, err
	}
	defer func() {
		st.mu.Lock()
		rep.release(st)
		st.unlock()
	}()
	if f.arranged = arrange(x.meta); len(r.Labels) > 0 {
		if _, _, err := f.labels(r.Labels); err != nil {
			return wire.Answer{}, wire.Errorf(wire.BadInput, "%s: %v%s", name, err, about(nil, inputs))
		}
	}
	if err := f.compare(c.ctx, c.d, rep, x); err != nil {
		return wire.Answer{}, explain(name, err, inputs)
	}
	d, err := f.display()
	if err != nil {
		return wire.Answer{}, wire.Errorf(wire.BadInput, "%s: %v%s", name, err, about(nil, inputs))
	}
	id, err := c.s.displays.put(d)
	if err != nil {
		return wire.Answer{}, err
	}
	return wire.Answer{DisplayID: id, Text: f.text(), Verdict: f.verdict()}, nil
}

// notes say what the replay could not reach.
func (r *replay) notes() []string {
	var notes []string
	for _, n := range r.stand {
		notes = append(notes, fmt.Sprintf("checked only from %s %s on: %s, which it came from, was freed",
			n.called(), shapeWords(n.shape, n.axes), r.lostUnder(n).called()))
	}
	return notes
}

// lostUnder is the freed leaf because of which the values of n stand in.
func (r *replay) lostUnder(n *node) *node {
	for _, in := range n.in {
		if leaf := r.lost[in]; leaf != nil {
			return leaf
		}
	}
	return n
}

// finding is what a check found.
type finding struct {
	arranged
	name   string
	root   *node
	chain  []string
	notes  []string
	tokens []string
	judged
	ratios []float32
	worst  parity.Cell
	got    []float32 // what was compared, where the differences are to be shown
	want   []float64
	show   wire.Difference
}

func (f *finding) compare(ctx context.Context, d *cudaops.Device, rep *replay, x operand) error {
	want, err := rep.eval(ctx, d, f.root)
	if err != nil {
		return err
	}
	if len(x.shape) == 3 && x.swapped() {
		spread, err := bound.Swap(want.asNoise().Heads)
		if err != nil {
			return err
		}
		if want.Heads, err = bound.Swap(want.Heads); err != nil {
			return err
		}
		want.noise = spread.Value
	}
	got, err := fetch(d, x)
	if err != nil {
		return err
	}
	value, limit := flat(want.Value), flat(want.Err)
	if f.report, err = parity.Compare(got, value, limit); err != nil {
		return err
	}
	f.limitL2 = noise.Limit(got, value, flat(want.noise))
	for _, r := range parity.Ratio(got, value, limit) {
		f.ratios = append(f.ratios, float32(r))
	}
	w := f.report.Worst
	f.got, f.want = got, value
	f.worst = parity.Cell{Index: w, Got: got[w], Want: value[w], Bound: limit[w], Ratio: f.report.MaxRatio}
	return nil
}

// headline is the verdict in one line.
func (f *finding) headline() string {
	what := f.root.op.String()
	if f.name != "" {
		what = quote(f.name)
	}
	return fmt.Sprintf("Check %s: %s", what, f.outcome("bound"))
}

// where gives the coordinates of a flat index by axis, with tokens.
func (a arranged) where(i int, tokens []string) string {
	var words []string
	matrix, row, col := a.place(i)
	if lead := a.panel(matrix); lead != "" {
		words = append(words, lead)
	}
	rows, cols, _ := a.labels(tokens)
	say := func(axis string, n int, labels []string) {
		w := fmt.Sprintf("%s %d", axis, n)
		if labels != nil {
			w += " " + quote(labels[n])
		}
		words = append(words, w)
	}
	if len(a.shape) > 1 {
		say(a.rowAxisName(), row, rows)
	}
	say(a.colAxisName(), col, cols)
	return strings.Join(words, ", ")
}

// text is the whole report.
func (f *finding) text() string {
	var b strings.Builder
	r := f.report
	fmt.Fprintf(&b, "%s\n", f.headline())
	fmt.Fprintf(&b, "  %s %s: %d cells against float64, %d failed\n", f.root.op, shapeWords(f.shape, f.axes), r.N, r.Failed)
	fmt.Fprintf(&b, "  max abs %.3g, max rel %.3g, max ULP %.4g\n", r.MaxAbs, r.MaxRel, r.MaxULP)
	fmt.Fprintf(&b, "  %s\n", f.wordsL2())
	b.WriteString(" ")
	for class, n := range r.Counts {
		if n > 0 {
			fmt.Fprintf(&b, " %d %v", n, parity.Class(class))
		}
	}
	b.WriteByte('\n')
	w := f.worst
	fmt.Fprintf(&b, "  worst cell: %s: got %.9g, float64 %.12g, off by %.3g, bound %.3g\n",
		f.where(w.Index, f.tokens), w.Got, w.Want, math.Abs(float64(w.Got)-w.Want), w.Bound)
	for _, n := range f.notes {
		fmt.Fprintf(&b, "  note: %s\n", n)
	}
	b.WriteString("  replayed:\n")
	for _, line := range f.chain {
		fmt.Fprintf(&b, "    %s\n", line)
	}
	return b.String()
}

// showErrors uncovers the cells under a mask that are not 0, as they should be.
func showErrors(matrices []viz.Matrix) {
	for i := range matrices {
		m := &matrices[i]
		if hidden := m.Hidden; hidden != nil {
			m.Hidden = func(row, col int) bool { return hidden(row, col) && m.Values[row*m.Cols+col] == 0 }
		}
	}
}

// display is error / bound as a heatmap, or the differences.
func (f *finding) display() (wire.Display, error) {
	if f.show != wire.DifferenceRatio {
		names := [2]string{or(f.name, f.root.op.String()), "float64"}
		return f.differences(f.headline(), f.show, names, f.got, f.want, f.worst.Index, f.tokens, f.root.quantity == scores)
	}
	hm, err := f.heatmap(f.headline(), viz.Errors, f.ratios, f.tokens)
	if err != nil {
		return wire.Display{}, err
	}
	showErrors(hm.Matrices)
	if f.root.quantity == scores {
		for i := range hm.Matrices {
			hm.Matrices[i].Hidden = nil // scores under the mask are computed, and checked, all the same
		}
	}
	m, row, col := f.place(f.worst.Index)
	hm.Marks = []viz.Mark{{Matrix: m, Row: row, Col: col, Label: "worst"}}
	return bundle(hm, "")
}
