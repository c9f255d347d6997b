package judge

import (
	"cmp"
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

// Check replays the lineage of a tensor in float64, from the f32 values of its leaves and the f32 parameters, and compares.
func (j *Judge) Check(r wire.Request) (wire.Answer, error) {
	const name = "Check"
	if len(r.IDs) != 1 {
		return wire.Answer{}, wire.Errorf(wire.BadRequest, "%s: %d tensors", name, len(r.IDs))
	}
	in, nodes, inputs, done, err := j.Use(name, r.IDs, []string{"x"})
	if err != nil {
		return wire.Answer{}, err
	}
	defer done()
	x, root := in[0], nodes[0]
	switch {
	case root.Op == wire.OpNone && root.Past != nil:
		return wire.Answer{}, wire.Errorf(wire.BadInput, "%s: nothing to replay: the tensor was %s, where its values are kept and not the tensors that they were computed from%s", name, root.Source, store.About(nil, inputs))
	case root.Op == wire.OpNone:
		return wire.Answer{}, wire.Errorf(wire.BadInput, "%s: nothing to replay: the tensor was brought, not computed%s", name, store.About(nil, inputs))
	}
	f := finding{name: inputs[0].Name, root: root, tokens: r.Labels, show: show.DifferenceOf(r)}
	rep, err := chain.Plan(j.Store, j.budget, name, root)
	if err != nil {
		return wire.Answer{}, err
	}
	defer rep.Close(j.Store)
	if f.View = store.ViewOf(x.Meta); len(r.Labels) > 0 {
		if _, _, err := f.Labels(r.Labels); err != nil {
			return wire.Answer{}, wire.Errorf(wire.BadInput, "%s: %v%s", name, err, store.About(nil, inputs))
		}
	}
	if err := f.compare(j, rep, x); err != nil {
		return wire.Answer{}, store.Explain(name, err, inputs)
	}
	j.Store.Lock()
	f.chain, f.notes, f.bounds = rep.Lines(root), rep.Notes(), rep.BoundWords(root)
	j.Store.Unlock()
	d, err := f.display()
	if err != nil {
		return wire.Answer{}, wire.Errorf(wire.BadInput, "%s: %v%s", name, err, store.About(nil, inputs))
	}
	id, err := j.gallery.Put(d)
	if err != nil {
		return wire.Answer{}, err
	}
	return wire.Answer{DisplayID: id, Text: f.text(), Verdict: f.verdict()}, nil
}

// finding is what a check found.
type finding struct {
	store.View
	name   string
	root   *store.Node
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

func (f *finding) compare(j *Judge, rep *chain.Replay, x store.Operand) error {
	got, err := store.Fetch(j.Device, x)
	if err != nil {
		return err
	}
	var limits chain.Rounding
	if rep.Sampled() {
		limits, f.Sampled, err = rep.SampleRounding(j.Client, f.root, sampleOf(got, f.D), time.Now().Add(j.budget.Time))
		got = gather(got, f.Sampled, f.D)
	} else {
		limits, err = rep.Rounding(j.Ctx, j.Device, f.root)
	}
	if err != nil {
		return err
	}
	value, limit := limits.Value, limits.Bound
	if f.report, err = parity.Compare(got, value, limit); err != nil {
		return err
	}
	f.limitL2 = noise.Limit(got, value, limits.Noise)
	for _, r := range parity.Ratio(got, value, limit) {
		f.ratios = append(f.ratios, float32(r))
	}
	f.fail(f.ratios)
	w := f.report.Worst
	f.got, f.want = got, value
	f.worst = parity.Cell{Index: w, Got: got[w], Want: value[w], Bound: limit[w], Ratio: f.report.MaxRatio}
	return nil
}

// headline is the verdict in one line.
func (f *finding) headline() string {
	what := f.root.Op.String()
	if f.name != "" {
		what = store.Quote(f.name)
	}
	return fmt.Sprintf("Check %s: %s", what, f.outcome("bound"))
}

// text is the whole report.
func (f *finding) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", f.headline())
	fmt.Fprintf(&b, "  %s %s: %d cells against float64, %d failed\n", f.root.Op, store.ShapeWords(f.Shape, f.Axes), f.report.N, f.report.Failed)
	if f.Sampled != nil {
		fmt.Fprintf(&b, "  %s\n", sampleWords(f.View))
	}
	f.write(&b, f.View, f.got, "bound")
	w := f.worst
	fmt.Fprintf(&b, "  worst cell: %s: got %.9g, float64 %.12g, off by %.3g, bound %.3g\n",
		f.Where(w.Index, f.tokens), w.Got, w.Want, math.Abs(float64(w.Got)-w.Want), w.Bound)
	f.writeWorst(&b, func(i int) string { return f.Where(i, f.tokens) })
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

// display is error / bound as a heatmap, or the differences.
func (f *finding) display() (wire.Display, error) {
	if f.Sampled != nil {
		hm := drawSample(f.View, f.headline(), viz.Errors, f.ratios)
		hm.Marks = markOf(f.View, f.worst.Index, "worst")
		return show.Bundle(hm, " "+sampleWords(f.View)+show.WholeOnly(f.show))
	}
	if f.show != wire.DifferenceRatio {
		names := [2]string{cmp.Or(f.name, f.root.Op.String()), "float64"}
		return show.Differences(f.View, f.headline(), f.show, names, f.got, f.want, f.worst.Index, f.tokens, f.root.Quantity == store.Scores)
	}
	hm, err := show.Heatmap(f.View, f.headline(), viz.Errors, f.ratios, f.tokens)
	if err != nil {
		return wire.Display{}, err
	}
	show.ShowErrors(hm.Matrices)
	if f.root.Quantity == store.Scores {
		for i := range hm.Matrices {
			hm.Matrices[i].Hidden = nil // scores under the mask are computed, and checked, all the same
		}
	}
	hm.Marks = markOf(f.View, f.worst.Index, "worst")
	return show.Bundle(hm, "")
}
