package show

import (
	"errors"
	"fmt"

	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/viz"
)

// Bounds of one drawing.
const (
	maxLayers = 1 << 10
	maxSteps  = 1 << 14
)

// subject is one kind of drawing: what errors call it, how many tensors it takes, and how it is made. Its makers refuse with plain
// errors, which draw explains.
type subject struct {
	name      string
	least     int
	most      int
	make      func(c *store.Client, r wire.Request, in []store.Operand, nodes []*store.Node) (viz.Drawable, error)
	arguments []string // of the tensors; the last one of all that follow
}

var subjects = map[wire.Subject]subject{
	wire.SubjectLayers:   {"Layers", 1, maxLayers, drawLayers, []string{"layer"}},
	wire.SubjectTrace:    {"Trace", 2, 2, drawTrace, []string{"scores", "v"}},
	wire.SubjectDecoding: {"Decoding", 1, maxSteps, drawDecoding, []string{"step"}},
	wire.SubjectTimeline: {"Timeline", 0, 1, drawTimeline, []string{"cache"}},
	wire.SubjectRotation: {"Phasors", 0, 0, drawRotation, nil},
}

// Draw makes one of the other kinds of picture.
func (g *Gallery) Draw(c *store.Client, r wire.Request) (wire.Answer, error) {
	if r.Draw == nil {
		return wire.Answer{}, wire.Errorf(wire.BadRequest, "Draw: no settings")
	}
	s, ok := subjects[r.Draw.Subject]
	if !ok {
		return wire.Answer{}, wire.Errorf(wire.BadRequest, "Draw: unknown subject %d", r.Draw.Subject)
	}
	extras := r.Params.Extras
	if r.Draw.Subject != wire.SubjectTrace && len(extras) > 0 {
		return wire.Answer{}, wire.Errorf(wire.BadInput, "%s: %s is no option of it", s.name, extras[0])
	}
	if n := len(r.IDs) - len(extras); n < s.least || n > s.most {
		return wire.Answer{}, wire.Errorf(wire.BadInput, "%s: %d tensors, it takes %d to %d", s.name, n, s.least, s.most)
	}
	args := make([]string, len(r.IDs))
	for i := range args {
		if at := i - (len(r.IDs) - len(extras)); at >= 0 {
			args[i] = extras[at]
			continue
		}
		if args[i] = s.arguments[min(i, len(s.arguments)-1)]; s.most > len(s.arguments) {
			args[i] = fmt.Sprintf("%s %d", args[i], i)
		}
	}
	in, nodes, inputs, done, err := c.Use(s.name, r.IDs, args)
	if err != nil {
		return wire.Answer{}, err
	}
	defer done()
	made, err := s.make(c, r, in, nodes)
	if err != nil {
		return wire.Answer{}, store.Explain(s.name, refusedBy(err), inputs)
	}
	d, err := Bundle(made, "")
	if err != nil {
		return wire.Answer{}, store.Explain(s.name, refusedBy(err), inputs)
	}
	id, err := g.Put(d)
	return wire.Answer{DisplayID: id}, err
}

// plain is an error of a maker: the input does not fit.
type plain struct {
	reason string
	arg    []string
}

func (p *plain) Error() string { return p.reason }

// unfit refuses input on account of the argument called arg, or of all where it is empty.
func unfit(arg, format string, args ...any) error {
	p := &plain{reason: fmt.Sprintf(format, args...)}
	if arg != "" {
		p.arg = []string{arg}
	}
	return p
}

// heads are the heads of a tensor of queries and keys that a picture of some of them shows.
func headsAsked(a store.View, asked []int) ([]int, error) {
	all := asked
	if all == nil {
		for i := range a.H {
			all = append(all, i)
		}
	}
	for _, h := range all {
		if h < 0 || h >= a.H {
			return nil, unfit("", "head %d is not within 0 to %d", h, a.H-1)
		}
	}
	if len(all) > maxPanels {
		return nil, unfit("", "%d heads are more than %d: pick one with OnlyHead(i)", len(all), maxPanels)
	}
	return all, nil
}

// plainly turns what package figure refuses into an error that draw explains.
func plainly[T viz.Drawable](d T, err error) (viz.Drawable, error) {
	if err != nil {
		return nil, unfit("", "%v", err)
	}
	return d, nil
}

// refusedBy turns a refusal of this file or of viz into one that explain knows.
func refusedBy(err error) error {
	var p *plain
	var input *viz.InputError
	switch {
	case errors.As(err, &p):
		return bad(p.arg, "%s", p.reason)
	case errors.As(err, &input):
		return bad(nil, "%s", input.Reason)
	}
	return err
}
