package resident

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference/noise"
	"github.com/attnb/attnb/reference/parity"
)

// maxStages bounds the stages of one audit.
const maxStages = 256

// audit looks at a chain stage by stage, in float64.
type audit struct {
	root   *node
	name   string
	tokens []string
	stages []*stage
	notes  []string
	share  string // what was looked at, where that is not all

	values map[*node]*array   // of every stage and of what they start from
	made   []*cudaops.Buffer  // those that this audit computed again
	given  map[*node]expected // the user's tensors for some stages
}

// expected is a tensor of the user's for a stage, in the order of the stage's axes.
type expected struct {
	values []float32
	array  *array
	called string
}

// stage is one step, and what was found about it.
type stage struct {
	n      *node
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
func (c *conn) audit(r wire.Request) (wire.Answer, error) {
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
	in, nodes, inputs, done, err := c.use(name, r.IDs, roles)
	if err != nil {
		return wire.Answer{}, err
	}
	defer done()
	if nodes[0].op == wire.OpNone {
		return wire.Answer{}, wire.Errorf(wire.BadInput, "%s: nothing to replay: the tensor was brought, not computed%s", name, about(nil, inputs[:1]))
	}
	a := &audit{root: nodes[0], name: inputs[0].name, tokens: r.Labels, values: map[*node]*array{}, given: map[*node]expected{}}
	defer a.release(c.s.store)
	if err := a.plan(c); err != nil {
		return wire.Answer{}, err
	}
	for i := 1; i < len(in); i += 2 {
		if err := a.give(c, nodes[i], in[i+1], nodes[i+1]); err != nil {
			return wire.Answer{}, explain(name, err, inputs)
		}
	}
	if err := a.run(c); err != nil {
		return wire.Answer{}, explain(name, err, inputs[:1])
	}
	return c.finish(a.outcome())
}

// plan lists the stages, inputs first, and holds the values that are there.
func (a *audit) plan(c *conn) error {
	st := c.s.store
	st.mu.Lock()
	defer st.unlock()
	seen := map[*node]bool{}
	var missing *node
	var visit func(n *node)
	visit = func(n *node) {
		if seen[n] {
			return
		}
		seen[n] = true
		have := n.here()
		switch {
		case n.op == wire.OpNone && have == nil:
			missing = n
			return
		case n.op != wire.OpNone:
			for _, i := range n.in {
				visit(i)
			}
			a.stages = append(a.stages, &stage{n: n, name: n.stageName(), again: have == nil})
		}
		if have != nil {
			a.values[n] = have
			have.refs++
		}
	}
	visit(a.root)
	switch {
	case missing != nil:
		return wire.Errorf(wire.Freed, "Audit: %s cannot be replayed: its leaf %s %s was freed", a.root.called(), missing.called(), shapeWords(missing.shape, missing.axes))
	case len(a.stages) > maxStages:
		return wire.Errorf(wire.Refused, "Audit: %d stages are more than %d: audit a tensor nearer to the start", len(a.stages), maxStages)
	}
	return nil
}

// stageName is what a table calls a step.
func (n *node) stageName() string {
	name := opName(n.op, n.params)
	if n.op == wire.OpSplit {
		name += "." + splitNames[n.out]
	}
	if n.label != "" {
		name += " " + quote(n.label)
	}
	return name
}

// give takes a tensor of the user's for a stage.
func (a *audit) give(c *conn, n *node, x operand, from *node) error {
	for _, s := range a.stages {
		if s.n != n {
			continue
		}
		m := comparison{arranged: arranged{meta: n.meta}, mine: party{operand: operand{nil, n.meta}}, expected: party{operand: x}}
		if err := m.align(); err != nil {
			return wire.Errorf(wire.BadInput, "Audit: %v: the stage is %s, what is expected of it %s", err, shapeWords(n.shape, n.axes), shapeWords(x.shape, x.axes))
		}
		data, err := c.d.Download(x.buf)
		if err != nil {
			return err
		}
		order := orderOf(m.expected.axes, n.axes)
		c.s.store.mu.Lock()
		defer c.s.store.unlock()
		a.given[n] = expected{permute(data, x.shape, order), from.here(), from.described()}
		return nil
	}
	return wire.Errorf(wire.BadInput, "Audit: Stage: %s %s is no stage of what is audited", n.called(), shapeWords(n.shape, n.axes))
}

// release gives back what the audit held and made.
func (a *audit) release(st *store) {
	st.mu.Lock()
	defer st.unlock()
	for _, s := range a.values {
		if s != nil {
			st.dropArray(s)
		}
	}
	st.dead = append(st.dead, a.made...)
}

// restore computes again the values of stages that are gone; the device gives the same bits for the same inputs.
func (a *audit) restore(ctx context.Context, d *cudaops.Device) error {
	again := &rerun{held: a.values, names: map[*node]string{}}
	for _, s := range a.stages {
		if a.values[s.n] != nil {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		x, err := again.step(d, s.n, s.n.params, nil)
		if err != nil {
			return err
		}
		a.made = append(a.made, x.buf)
		a.values[s.n] = &array{buf: x.buf, refs: 2} // released with what was made
	}
	return nil
}

// run judges every stage.
func (a *audit) run(c *conn) error {
	if err := a.restore(c.ctx, c.d); err != nil {
		return err
	}
	whole, err := c.plan("Audit", a.root)
	if err != nil {
		return err
	}
	defer c.over(whole)
	whole.quiet = true
	work := 0.0
	for _, s := range a.stages {
		work += effort(s.n) + 1
	}
	if whole.sampled() {
		a.share = "a sample of the rows of each stage: the first, the last, those of the extreme values, then random ones"
	}
	until := time.Now().Add(c.s.budget.Time)
	behind := 0.0
	for _, s := range a.stages {
		if err := a.judge(c, s, whole, until); err != nil {
			return err
		}
		behind += effort(s.n) + 1
		taskOf(c.ctx).advance(behind / work)
	}
	c.s.store.mu.Lock()
	a.notes = whole.notes()
	c.s.store.unlock()
	return nil
}

// judge finds what enters at a stage, what was carried to it, and the same of what the user gave.
func (a *audit) judge(c *conn, s *stage, whole *replay, until time.Time) error {
	got, err := fetch(c.d, operand{a.values[s.n].buf, s.n.meta})
	if err != nil {
		return err
	}
	step := emptyReplay("Audit")
	step.quiet, step.most = true, whole.most
	step.step[s.n] = true
	for _, i := range s.n.in {
		step.start[i] = a.values[i]
	}
	rows := whole.rowsFor(got, s.n)
	own, looked, err := c.roundingOf(step, s.n, rows, until)
	if err != nil {
		return err
	}
	judging := make(chan error, 1) // on one core, while the other computes
	go func(got []float32) {
		var err error
		s.own, err = judgeCells(got, own)
		if s.n.op == wire.OpSoftmax {
			s.mask = maskOff(got, own)
		}
		judging <- err
	}(pickRows(got, looked, s.n))
	total, looked, err := c.roundingOf(whole, s.n, looked, until)
	if err := errors.Join(<-judging, err); err != nil {
		return err
	}
	if s.total, err = judgeCells(pickRows(got, looked, s.n), total); err != nil {
		return err
	}
	if _, ok := a.given[s.n]; ok {
		return a.judgeTheirs(c, s, got, looked, until)
	}
	return nil
}

// judgeTheirs finds what enters at a stage of the user's: from the nearest tensors given before it, each rounded to f32.
func (a *audit) judgeTheirs(c *conn, s *stage, got []float32, rows []int, until time.Time) error {
	mine := a.given[s.n]
	rep := emptyReplay("Audit")
	rep.rounded, rep.quiet = true, true
	for n, x := range a.given {
		if n != s.n {
			rep.start[n], rep.data[n] = a.values[n], x.values
		}
	}
	if rows != nil {
		rep.most = c.s.budget.largestStage()
	}
	c.s.store.mu.Lock()
	_, err := rep.of(s.n)
	c.s.store.unlock()
	if err != nil {
		return err
	}
	defer c.over(rep)
	values, err := headsFirst(mine.values, s.n)
	if err != nil {
		return err
	}
	limits, rows, err := c.roundingOf(rep, s.n, rows, until)
	if err != nil {
		return err
	}
	values, got = pickRows(values, rows, s.n), pickRows(got, rows, s.n)
	mineRounded := headsFrom(values, []int{len(values)})
	at, spread := flat(roundings(mineRounded)), flat(noise.Rounded(mineRounded).Var)
	for i := range at {
		limits.bound[i] += at[i]
		limits.noise[i] += spread[i]
	}
	s.theirs = &theirs{called: mine.called}
	if s.theirs.own, err = judgeCells(values, limits); err != nil {
		return err
	}
	// Against the resident one, whose leaves may be rounded otherwise: as Compare.
	limits.value = widen(values)
	for i := range at {
		limits.bound[i] *= 2
		limits.noise[i] *= 2
	}
	s.theirs.apart, err = judgeCells(got, limits)
	return err
}

// judgeCells compares values with their truth.
func judgeCells(got []float32, want rounding) (j judged, err error) {
	if j.report, err = parity.Compare(got, want.value, want.bound); err == nil {
		j.limitL2 = noise.Limit(got, want.value, want.noise)
	}
	return j, err
}

// maskOff counts the cells of probabilities that are on the wrong side of the mask: what must be 0 and is not, what must not be and is.
func maskOff(got []float32, want rounding) *maskErrors {
	var m maskErrors
	for i, v := range got {
		switch {
		case want.value[i] == 0 && want.bound[i] == 0 && v != 0:
			m.leaks++
		case v == 0 && want.value[i] > want.bound[i]:
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
