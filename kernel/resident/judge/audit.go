package judge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/resident/chain"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference/noise"
	"github.com/attnb/attnb/reference/parity"
)

// maxStages bounds the stages of one audit.
const maxStages = 256

// audit looks at a chain stage by stage, in float64.
type audit struct {
	root   *store.Node
	name   string
	tokens []string
	stages []*stage
	notes  []string
	share  string // what was looked at, where that is not all

	values map[*store.Node]*store.Array // of every stage and of what they start from
	made   []*cudaops.Buffer            // those that this audit computed again
	given  map[*store.Node]expected     // the user's tensors for some stages
}

// expected is a tensor of the user's for a stage, in the order of the stage's axes.
type expected struct {
	values []float32
	array  *store.Array
	called string
}

// stage is one step, and what was found about it.
type stage struct {
	n      *store.Node
	name   string
	again  bool   // its values were gone, and were computed again
	own    judged // the error that enters here: the step in float64 on the resident inputs, against its resident output
	total  judged // the error carried to here: the chain in float64 from its start
	mask   *maskErrors
	theirs *theirs // nil: nothing was given for it
}

// theirs is what was found about a tensor of the user's.
type theirs struct {
	called string
	own    judged // the step in float64 on the user's tensors, as near as they were given, against this one
	apart  judged // this one against the resident one
}

// maskErrors are the cells of probabilities that are on the wrong side of the mask.
type maskErrors struct{ leaks, lost int }

func (s *stage) divergent() bool {
	return !s.own.pass() || s.theirs != nil && !s.theirs.own.pass()
}

// audit answers the question which stage of a chain departs from float64.
func (j *Judge) audit(r wire.Request) (wire.Answer, error) {
	const name = "Audit"
	roles := r.Question.Roles
	for i, role := range roles {
		if want := [2]string{"expected", "stage"}[i%2]; i == 0 && role != "out" || i > 0 && role != want {
			return wire.Answer{}, wire.Errorf(wire.BadRequest, "%s: tensor %d is %q", name, i, role)
		}
	}
	if len(roles)%2 == 0 {
		return wire.Answer{}, wire.Errorf(wire.BadRequest, "%s: %d tensors", name, len(roles))
	}
	in, nodes, inputs, done, err := j.Use(name, r.IDs, roles)
	if err != nil {
		return wire.Answer{}, err
	}
	defer done()
	if nodes[0].Op == wire.OpNone {
		return wire.Answer{}, wire.Errorf(wire.BadInput, "%s: nothing to replay: the tensor was brought, not computed%s", name, store.About(nil, inputs[:1]))
	}
	a := &audit{root: nodes[0], name: inputs[0].Name, tokens: r.Labels, values: map[*store.Node]*store.Array{}, given: map[*store.Node]expected{}}
	defer a.release(j.Store)
	if err := a.plan(j); err != nil {
		return wire.Answer{}, err
	}
	for i := 1; i < len(in); i += 2 {
		if err := a.give(j, nodes[i], in[i+1], nodes[i+1]); err != nil {
			return wire.Answer{}, store.Explain(name, err, inputs)
		}
	}
	if err := a.run(j); err != nil {
		return wire.Answer{}, store.Explain(name, err, inputs[:1])
	}
	return j.finish(a.outcome())
}

// plan lists the stages, inputs first, and holds the values that are there.
func (a *audit) plan(j *Judge) error {
	st := j.Store
	st.Lock()
	defer st.Unlock()
	seen := map[*store.Node]bool{}
	var missing *store.Node
	var visit func(n *store.Node)
	visit = func(n *store.Node) {
		if seen[n] {
			return
		}
		seen[n] = true
		have := n.Here()
		switch {
		case n.Op == wire.OpNone && have == nil:
			missing = n
			return
		case n.Op != wire.OpNone:
			for _, i := range n.In {
				visit(i)
			}
			a.stages = append(a.stages, &stage{n: n, name: stageName(n), again: have == nil})
		}
		if have != nil {
			a.values[n] = have
			have.Hold()
		}
	}
	visit(a.root)
	switch {
	case missing != nil:
		return wire.Errorf(wire.Freed, "Audit: %s cannot be replayed: its leaf %s %s was freed", a.root.Called(), missing.Called(), store.ShapeWords(missing.Shape, missing.Axes))
	case len(a.stages) > maxStages:
		return wire.Errorf(wire.Refused, "Audit: %d stages are more than %d: audit a tensor nearer to the start", len(a.stages), maxStages)
	}
	return nil
}

// stageName is what a table calls a step.
func stageName(n *store.Node) string {
	name := store.OpName(n.Op, n.Params)
	if n.Op == wire.OpSplit {
		name += "." + store.SplitNames[n.Out]
	}
	if n.Label != "" {
		name += " " + store.Quote(n.Label)
	}
	return name
}

// give takes a tensor of the user's for a stage.
func (a *audit) give(j *Judge, n *store.Node, x store.Operand, from *store.Node) error {
	for _, s := range a.stages {
		if s.n != n {
			continue
		}
		axes, _, err := store.Align(n.Meta, x.Meta)
		if err != nil {
			return wire.Errorf(wire.BadInput, "Audit: %v: the stage is %s, what is expected of it %s", err, store.ShapeWords(n.Shape, n.Axes), store.ShapeWords(x.Shape, x.Axes))
		}
		data, err := j.Device.Download(x.Buf)
		if err != nil {
			return err
		}
		order := store.OrderOf(axes, n.Axes)
		j.Store.Lock()
		defer j.Store.Unlock()
		a.given[n] = expected{store.Permute(data, x.Shape, order), from.Here(), from.Described()}
		return nil
	}
	return wire.Errorf(wire.BadInput, "Audit: Stage: %s %s is no stage of what is audited", n.Called(), store.ShapeWords(n.Shape, n.Axes))
}

// release gives back what the audit held and made.
func (a *audit) release(st *store.Store) {
	st.Lock()
	defer st.Unlock()
	for _, s := range a.values {
		if s != nil {
			st.DropArray(s)
		}
	}
	st.Bury(a.made...)
}

// restore computes again the values of stages that are gone; the device gives the same bits for the same inputs.
func (a *audit) restore(ctx context.Context, d *cudaops.Device) error {
	for _, s := range a.stages {
		if a.values[s.n] != nil {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		x, err := chain.StepAgain(d, s.n, a.values)
		if err != nil {
			return err
		}
		a.made = append(a.made, x.Buf)
		a.values[s.n] = store.NewArray(x.Buf)
		a.values[s.n].Hold() // for what was made, with which it is released
	}
	return nil
}

// run judges every stage.
func (a *audit) run(j *Judge) error {
	if err := a.restore(j.Ctx, j.Device); err != nil {
		return err
	}
	whole, err := chain.Plan(j.Store, j.budget, "Audit", a.root)
	if err != nil {
		return err
	}
	defer whole.Close(j.Store)
	whole.Quiet = true
	work := 0.0
	for _, s := range a.stages {
		work += chain.Effort(s.n) + 1
	}
	if whole.Sampled() {
		a.share = "a sample of the rows of each stage: the first, the last, those of the extreme values, then random ones"
	}
	until := time.Now().Add(j.budget.Time)
	behind := 0.0
	for _, s := range a.stages {
		if err := a.judge(j, s, whole, until); err != nil {
			return err
		}
		behind += chain.Effort(s.n) + 1
		store.ProgressOf(j.Ctx).Advance(behind / work)
	}
	j.Store.Lock()
	a.notes = whole.Notes()
	j.Store.Unlock()
	return nil
}

// judge finds what enters at a stage, what was carried to it, and the same of what the user gave.
func (a *audit) judge(j *Judge, s *stage, whole *chain.Replay, until time.Time) error {
	got, err := store.Fetch(j.Device, store.Operand{Buf: a.values[s.n].Buf, Meta: s.n.Meta})
	if err != nil {
		return err
	}
	step := chain.NewReplay("Audit")
	step.Quiet, step.Most = true, whole.Most
	step.Only(s.n)
	for _, i := range s.n.In {
		step.StartAt(i, a.values[i], nil)
	}
	rows := rowsFor(whole, got, s.n)
	own, looked, err := step.RoundingOf(j.Client, s.n, rows, until)
	if err != nil {
		return err
	}
	judging := make(chan error, 1) // on one core, while the other computes
	go func(got []float32) {
		var err error
		s.own, err = judgeCells(got, own)
		if s.n.Op == wire.OpSoftmax {
			s.mask = maskOff(got, own)
		}
		judging <- err
	}(pickRows(got, looked, s.n))
	total, looked, err := whole.RoundingOf(j.Client, s.n, looked, until)
	if err := errors.Join(<-judging, err); err != nil {
		return err
	}
	if s.total, err = judgeCells(pickRows(got, looked, s.n), total); err != nil {
		return err
	}
	if _, ok := a.given[s.n]; ok {
		return a.judgeTheirs(j, s, got, looked, until)
	}
	return nil
}

// judgeTheirs finds what enters at a stage of the user's: from the nearest tensors given before it, each rounded to f32.
func (a *audit) judgeTheirs(j *Judge, s *stage, got []float32, rows []int, until time.Time) error {
	mine := a.given[s.n]
	rep := chain.NewReplay("Audit")
	rep.Rounded, rep.Quiet = true, true
	for n, x := range a.given {
		if n != s.n {
			rep.StartAt(n, a.values[n], x.values)
		}
	}
	if rows != nil {
		rep.Most = j.budget.LargestStage()
	}
	j.Store.Lock()
	_, err := rep.Of(s.n)
	j.Store.Unlock()
	if err != nil {
		return err
	}
	defer rep.Close(j.Store)
	values, err := headsFirst(mine.values, s.n)
	if err != nil {
		return err
	}
	limits, rows, err := rep.RoundingOf(j.Client, s.n, rows, until)
	if err != nil {
		return err
	}
	values, got = pickRows(values, rows, s.n), pickRows(got, rows, s.n)
	mineRounded := chain.HeadsFrom(values, []int{len(values)})
	at, spread := chain.Flat(chain.Roundings(mineRounded)), chain.Flat(noise.Rounded(mineRounded).Var)
	for i := range at {
		limits.Bound[i] += at[i]
		limits.Noise[i] += spread[i]
	}
	s.theirs = &theirs{called: mine.called}
	if s.theirs.own, err = judgeCells(values, limits); err != nil {
		return err
	}
	// Against the resident one, whose leaves may be rounded otherwise: as Compare.
	limits.Value = store.Widen(values)
	for i := range at {
		limits.Bound[i] *= 2
		limits.Noise[i] *= 2
	}
	s.theirs.apart, err = judgeCells(got, limits)
	return err
}

// judgeCells compares values with their truth.
func judgeCells(got []float32, want chain.Rounding) (j judged, err error) {
	if j.report, err = parity.Compare(got, want.Value, want.Bound); err == nil {
		j.limitL2 = noise.Limit(got, want.Value, want.Noise)
	}
	return j, err
}

// maskOff counts the cells of probabilities that are on the wrong side of the mask: what must be 0 and is not, what must not be and is.
func maskOff(got []float32, want chain.Rounding) *maskErrors {
	var m maskErrors
	for i, v := range got {
		switch {
		case want.Value[i] == 0 && want.Bound[i] == 0 && v != 0:
			m.leaks++
		case v == 0 && want.Value[i] > want.Bound[i]:
			m.lost++
		}
	}
	return &m
}

// words say what is wrong with a mask.
func (m *maskErrors) words() string {
	if m == nil || m.leaks+m.lost == 0 {
		return ""
	}
	return fmt.Sprintf("the mask: %d hidden cells have weight, %d visible ones have none", m.leaks, m.lost)
}
