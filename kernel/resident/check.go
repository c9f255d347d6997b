package resident

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

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
	f := finding{name: inputs[0].name, root: root, tokens: r.Labels, show: differenceOf(r)}
	rep, err := c.plan(name, root)
	if err != nil {
		return wire.Answer{}, err
	}
	defer c.over(rep)
	if f.arranged = arrange(x.meta); len(r.Labels) > 0 {
		if _, _, err := f.labels(r.Labels); err != nil {
			return wire.Answer{}, wire.Errorf(wire.BadInput, "%s: %v%s", name, err, about(nil, inputs))
		}
	}
	if err := f.compare(c, rep, x); err != nil {
		return wire.Answer{}, explain(name, err, inputs)
	}
	c.s.store.mu.Lock()
	f.chain, f.notes, f.bounds = rep.chain(root), rep.notes(), rep.boundWords(root)
	c.s.store.unlock()
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

// plan makes the replay of a tensor: of all of it, or, where that goes beyond the budget, one that rows are asked of.
func (c *conn) plan(job string, root *node) (*replay, error) {
	st := c.s.store
	st.mu.Lock()
	defer st.unlock()
	rep, err := emptyReplay(job).of(root)
	if err != nil || !rep.heavy(c.s.budget) {
		return rep, err
	}
	rep.release(st)
	rep = emptyReplay(job)
	rep.most = c.s.budget.largestStage()
	return rep.of(root)
}

// over gives back what a replay held.
func (c *conn) over(rep *replay) {
	c.s.store.mu.Lock()
	defer c.s.store.unlock()
	rep.release(c.s.store)
}

// sampled says that a replay is asked for rows.
func (r *replay) sampled() bool { return r.most > 0 }

// notes say what the replay could not reach.
func (r *replay) notes() []string {
	var notes []string
	for _, n := range r.stand {
		notes = append(notes, fmt.Sprintf("checked only from %s %s on: %s, which it came from, was freed",
			n.called(), shapeWords(n.shape, n.axes), r.lostUnder(n).called()))
	}
	for _, n := range r.large {
		notes = append(notes, fmt.Sprintf("checked only from %s %s on, which takes too long to compute again: check it by itself",
			n.called(), shapeWords(n.shape, n.axes)))
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
	bounds []string // what the bound is made of
	notes  []string
	tokens []string
	judged
	ratios []float32
	worst  parity.Cell
	got    []float32 // what was compared, where the differences are to be shown
	want   []float64
	show   wire.Difference
}

func (f *finding) compare(c *conn, rep *replay, x operand) error {
	got, err := fetch(c.d, x)
	if err != nil {
		return err
	}
	var limits rounding
	if rep.sampled() {
		limits, f.rows, err = rep.sampleRounding(c, f.root, sampleOf(got, f.d), time.Now().Add(c.s.budget.Time))
		got = gather(got, f.rows, f.d)
	} else {
		limits, err = rep.rounding(c.ctx, c.d, f.root)
	}
	if err != nil {
		return err
	}
	value, limit := limits.value, limits.bound
	if f.report, err = parity.Compare(got, value, limit); err != nil {
		return err
	}
	f.limitL2 = noise.Limit(got, value, limits.noise)
	for _, r := range parity.Ratio(got, value, limit) {
		f.ratios = append(f.ratios, float32(r))
	}
	f.fail(f.ratios)
	w := f.report.Worst
	f.got, f.want = got, value
	f.worst = parity.Cell{Index: w, Got: got[w], Want: value[w], Bound: limit[w], Ratio: f.report.MaxRatio}
	return nil
}

// rounding is the truth of cells, heads first, with what an f32 result may be off by.
type rounding struct{ value, bound, noise []float64 }

func (t truth) rounding() rounding { return rounding{flat(t.Value), flat(t.Err), flat(t.noise)} }

// rounding is that of the whole tensor.
func (r *replay) rounding(ctx context.Context, d *cudaops.Device, n *node) (rounding, error) {
	t, err := r.eval(ctx, d, n)
	if err != nil {
		return rounding{}, err
	}
	if len(n.shape) == 3 && n.swapped() {
		spread, err := bound.Swap(t.asNoise().Heads)
		if err != nil {
			return rounding{}, err
		}
		if t.Heads, err = bound.Swap(t.Heads); err != nil {
			return rounding{}, err
		}
		t.noise = spread.Value
	}
	return t.rounding(), nil
}

// sampleRounding is that of as many rows as there is time for, and which they are.
func (r *replay) sampleRounding(c *conn, n *node, rows []int, until time.Time) (rounding, []int, error) {
	done, err := r.rowsOf(c.ctx, c.d, n, rows, until)
	var all rounding
	for _, t := range done {
		one := t.rounding()
		all = rounding{append(all.value, one.value...), append(all.bound, one.bound...), append(all.noise, one.noise...)}
	}
	return all, rows[:len(done)], err
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
	fmt.Fprintf(&b, "%s\n", f.headline())
	fmt.Fprintf(&b, "  %s %s: %d cells against float64, %d failed\n", f.root.op, shapeWords(f.shape, f.axes), f.report.N, f.report.Failed)
	if f.rows != nil {
		fmt.Fprintf(&b, "  %s\n", f.share())
	}
	f.write(&b, f.arranged, f.got, "bound")
	w := f.worst
	fmt.Fprintf(&b, "  worst cell: %s: got %.9g, float64 %.12g, off by %.3g, bound %.3g\n",
		f.where(w.Index, f.tokens), w.Got, w.Want, math.Abs(float64(w.Got)-w.Want), w.Bound)
	f.writeWorst(&b, func(i int) string { return f.where(i, f.tokens) })
	for _, n := range f.notes {
		fmt.Fprintf(&b, "  note: %s\n", n)
	}
	b.WriteString("  replayed:\n")
	for _, line := range f.chain {
		fmt.Fprintf(&b, "    %s\n", line)
	}
	b.WriteString("  the bound of a cell is what these may add up to (u = 2^-24):\n")
	for _, line := range f.bounds {
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
	if f.rows != nil {
		hm := f.drawSample(f.headline(), viz.Errors, f.ratios)
		hm.Marks = f.mark(f.worst.Index, "worst")
		return bundle(hm, " "+f.share()+wholeOnly(f.show))
	}
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
	hm.Marks = f.mark(f.worst.Index, "worst")
	return bundle(hm, "")
}
