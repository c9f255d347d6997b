package judge

import (
	"fmt"
	"math"
	"strings"

	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/resident/trust"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/viz"
)

// outcome says which stage departs first.
func (a *audit) outcome() trust.Outcome {
	var o trust.Outcome
	var first *stage
	for _, s := range a.stages {
		if s.divergent() {
			if first == nil {
				first = s
			}
			o.Faults = append(o.Faults, s.fault())
		}
	}
	end := a.stages[len(a.stages)-1]
	switch {
	case first != nil:
		o.Sentence = fmt.Sprintf("the first stage to depart is %s: %s", first.name, first.fault().Detail)
		o.Facts = append(o.Facts, wire.Fact{Name: "first", Words: []string{first.name}})
	case !end.total.pass():
		o.Sentence = "no stage departs by itself, but the errors that they carry are more than rounding explains: " + end.total.outcome("bound")
		o.Faults = append(o.Faults, wire.Fault{Kind: "carried", Detail: o.Sentence})
	default:
		o.Pass = true
		o.Sentence = fmt.Sprintf("every stage is what f32 arithmetic makes of its inputs; at the end error/bound %.3g", end.total.report.MaxRatio)
	}
	for _, s := range a.stages {
		fact := wire.Fact{Name: "stage", Words: []string{s.name, store.ShapeWords(s.n.Shape, s.n.Axes)}, Numbers: append(s.own.numbers(), s.total.numbers()...)}
		if s.theirs != nil {
			fact.Words = append(fact.Words, s.theirs.called)
			fact.Numbers = append(append(fact.Numbers, s.theirs.own.numbers()...), s.theirs.apart.numbers()...)
		}
		o.Facts = append(o.Facts, fact)
	}
	o.Report = a.text(o)
	o.Picture = a.picture(o.Pass)
	return o
}

// numbers are a judgement on the wire: 1 where it passes, the largest error/bound, relative L2 and its limit.
func (j judged) numbers() []float64 {
	pass := 0.0
	if j.pass() {
		pass = 1
	}
	return []float64{pass, j.report.MaxRatio, j.report.RelL2, j.limitL2}
}

// fault says how a stage departs.
func (s *stage) fault() wire.Fault {
	f := wire.Fault{Kind: strings.ToLower(store.OpName(s.n.Op, s.n.Params))}
	switch mask := s.mask.words(); {
	case mask != "":
		f.Kind, f.Detail = "mask", mask
	case !s.own.pass():
		f.Detail = s.own.outcome("bound")
	default:
		f.Detail = fmt.Sprintf("of %s, by its own inputs: %s", s.theirs.called, s.theirs.own.outcome("bound"))
	}
	return f
}

// cell is a judgement in a table.
func (j judged) cell() string {
	r := j.report
	if r.MaxRatio == 0 && r.RelL2 == 0 {
		return "exact"
	}
	s := fmt.Sprintf("%.2g, L2 %.1e", r.MaxRatio, r.RelL2)
	if j.limitL2 > 0 {
		s += fmt.Sprintf(" of %.1e", j.limitL2)
	}
	if !j.pass() {
		s += " FAIL"
	}
	return s
}

func (a *audit) title() string {
	if a.name != "" {
		return "Audit " + store.Quote(a.name)
	}
	return "Audit " + a.root.Op.String()
}

// text is the table of stages.
func (a *audit) text(o trust.Outcome) string {
	var b strings.Builder
	verdict := "pass"
	if !o.Pass {
		verdict = "FAIL"
	}
	fmt.Fprintf(&b, "%s: %s: %s\n", a.title(), verdict, o.Sentence)
	if a.share != "" {
		fmt.Fprintf(&b, "  %s\n", a.share)
	}
	rows := [][]string{{"", "stage", "shape", "enters here (error/bound, relative L2 of its limit)", "carried to here"}}
	again := false
	for i, s := range a.stages {
		name := s.name
		if s.again {
			name, again = name+" *", true
		}
		rows = append(rows, []string{fmt.Sprint(i + 1), name, store.ShapeWords(s.n.Shape, s.n.Axes), s.own.cell(), s.total.cell()})
		if mask := s.mask.words(); mask != "" {
			rows = append(rows, []string{"", "", "", mask, ""})
		}
		if t := s.theirs; t != nil {
			rows = append(rows, []string{"", "  " + t.called, "", t.own.cell(), "apart " + t.apart.cell()})
		}
	}
	width := make([]int, 5)
	for _, row := range rows {
		for i, w := range row {
			width[i] = max(width[i], len([]rune(w)))
		}
	}
	for _, row := range rows {
		line := " "
		for i, w := range row {
			line += " " + w + strings.Repeat(" ", width[i]-len([]rune(w))+1)
		}
		fmt.Fprintf(&b, "%s\n", strings.TrimRight(line, " "))
	}
	if again {
		b.WriteString("  *: computed again on the device, since the tensor is gone; it gives the same bits\n")
	}
	for _, n := range a.notes {
		fmt.Fprintf(&b, "  note: %s\n", n)
	}
	return b.String()
}

// exactly is the bar of what is exact, and the least of any.
const exactly = -4

// decades is how far a judgement is from what is allowed, in powers of ten: above 0 it fails.
func (j judged) decades() float32 {
	worst := j.report.MaxRatio
	switch {
	case j.limitL2 > 0:
		worst = max(worst, j.report.RelL2/j.limitL2)
	case j.report.RelL2 > 0:
		worst = math.Inf(1)
	}
	return float32(max(exactly, min(-exactly, math.Log10(worst))))
}

// picture is a bar for each stage.
func (a *audit) picture(pass bool) viz.Drawable {
	chart := func(name string, of func(*stage) (judged, bool)) viz.Chart {
		values, none := make([]float32, len(a.stages)), make([]bool, len(a.stages))
		series := viz.Series{Style: viz.Bars, Values: values}
		for i, s := range a.stages {
			if j, there := of(s); there {
				values[i] = j.decades()
			} else {
				none[i] = true
				series.Hidden = func(i int) bool { return none[i] }
			}
		}
		return viz.Chart{Name: name, Note: fmt.Sprintf("0: all that is allowed; above it fails; %d: exact", exactly), Quantity: "decades", Low: exactly, High: 1,
			Series: []viz.Series{series}}
	}
	verdict := "pass"
	if !pass {
		verdict = "FAIL"
	}
	labels := make([]string, len(a.stages))
	for i, s := range a.stages {
		labels[i] = s.name
	}
	charts := []viz.Chart{
		chart("error that enters", func(s *stage) (judged, bool) { return s.own, true }),
		chart("error carried to here", func(s *stage) (judged, bool) { return s.total, true }),
	}
	if len(a.given) > 0 {
		given := chart("error that enters in what was given", func(s *stage) (judged, bool) {
			if s.theirs == nil {
				return judged{}, false
			}
			return s.theirs.own, true
		})
		charts = append(charts, given)
	}
	return viz.Plot{Title: a.title() + ": " + verdict, Axis: "stage", Labels: labels, Hatched: "nothing was given", Charts: charts}
}
