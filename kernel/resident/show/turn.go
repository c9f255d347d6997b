package show

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/attnb/attnb/kernel/resident/chain"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
)

// maxControls bounds what stands beside one picture.
const maxControls = 16

// knob is a control and what it does to the steps that it is about. A knob without steps picks a head.
type knob struct {
	wire.Control
	steps []*store.Node
	set   func(p *wire.Params, n *store.Node, v float64)
}

// A side says which RoPE steps a knob turns.
type side uint8

const (
	everySide side = iota
	querySide
	keySide
)

var sides = map[string]side{"query": querySide, "key": keySide, "common": everySide}

// parameterNames are those that a control may name, without a side, in the order in which a picture that asks for none gets them.
var parameterNames = []string{"offset", "shift", "rotary", "base", "scaling", "factor", "pairing", "layout", "scale", "mask", "diagonal", "window", "softcap", "head"}

// sideless are those that do not belong to queries or keys.
var sideless = []string{"layout", "scale", "mask", "diagonal", "window", "softcap", "head"}

// knob makes the knob that a control asks for. From and To are both 0 where the usual range will do.
func (c chainSteps) knob(ask wire.Control) (knob, error) {
	k := knob{Control: wire.Control{Name: ask.Name, Label: ask.Name}}
	s, name := everySide, ask.Name
	if word, rest, ok := strings.Cut(name, " "); ok {
		known := false
		if s, known = sides[word]; !known || slices.Contains(sideless, rest) {
			return k, c.unknown(ask.Name)
		}
		name = rest
	} else if (name == "offset" || name == "shift") && c.attention {
		// Scores depend on the distance of query and key alone: what moves them is to move one of the two.
		s, k.Label = querySide, "query "+name
	}
	var err error
	switch name {
	case "offset":
		err = k.offset(c.rope(s))
	case "shift":
		err = k.shift(c.rope(s))
	case "rotary":
		err = k.rotary(c.rope(s))
	case "base":
		err = k.base(c.rope(s))
	case "scaling":
		err = k.scaling(c.rope(s))
	case "factor":
		err = k.factor(c.rope(s))
	case "pairing":
		k.Options = []string{"half-split", "interleaved"}
		err = k.of("RoPE", c.rope(s), func(n *store.Node) float64 { return float64(b2i(n.Params.Interleaved)) },
			func(p *wire.Params, _ *store.Node, v float64) { p.Interleaved = v != 0 })
	case "layout":
		k.Options = []string{wire.LayoutGPT2.String(), wire.LayoutNeoX.String(), wire.LayoutGrouped.String()}
		err = k.of("SplitHeads", c.where(func(n *store.Node) bool { return n.Op == wire.OpSplit }),
			func(n *store.Node) float64 { return float64(n.Params.Layout) },
			func(p *wire.Params, _ *store.Node, v float64) { p.Layout = wire.Layout(v) })
	case "scale":
		err = k.scale(c.where(func(n *store.Node) bool { return isAttention(n.Op) }))
	case "mask":
		err = k.mask(c.where(func(n *store.Node) bool { return n.Op == wire.OpScores || n.Op == wire.OpPrefill }))
	case "diagonal":
		err = k.diagonal(c.where(func(n *store.Node) bool {
			return (n.Params.Mask == wire.MaskCausal || n.Params.Mask == wire.MaskDiagonal) &&
				(n.Op == wire.OpScores || n.Op == wire.OpSoftmax || n.Op == wire.OpPrefill)
		}))
	case "window":
		err = k.window(c.where(func(n *store.Node) bool { return masks(n.Op) && n.Params.Window > 0 }))
	case "softcap":
		err = k.softcap(c.where(func(n *store.Node) bool { return masks(n.Op) && n.Params.Softcap > 0 }))
	case "head":
		err = k.head(store.ViewOf(c.root.Meta))
	default:
		err = c.unknown(ask.Name)
	}
	if err == nil {
		err = k.span(ask)
	}
	return k, err
}

func (c chainSteps) unknown(name string) error {
	if near := store.Nearest(name, parameterNames); near != "" {
		return fmt.Errorf("no parameter is called %.40q: did you mean %q?", name, near)
	}
	return fmt.Errorf("no parameter is called %.40q: there are %s", name, strings.Join(parameterNames, ", "))
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// of sets what k turns. Where the steps were recorded with the same value, k begins there and sets it; where they differ,
// an error: there is no one value to begin with.
func (k *knob) of(what string, steps []*store.Node, value func(*store.Node) float64, set func(*wire.Params, *store.Node, float64)) error {
	if len(steps) == 0 {
		return fmt.Errorf("%q turns nothing: no %s step made this", k.Name, what)
	}
	k.steps, k.set, k.Value = steps, set, value(steps[0])
	for _, n := range steps {
		if v := value(n); v != k.Value {
			return fmt.Errorf("%q would turn %s steps that differ: %g and %g", k.Name, what, k.Value, v)
		}
	}
	return nil
}

// offset moves positions. Steps with different offsets, or with positions of their own, are all moved by the same amount.
func (k *knob) offset(steps []*store.Node) error {
	same := true
	for _, n := range steps {
		same = same && n.Params.Positions == nil && n.Params.Offset == steps[0].Params.Offset
	}
	recorded := func(n *store.Node) float64 { return float64(n.Params.Offset) }
	if !same {
		k.Label += " +"
		recorded = func(*store.Node) float64 { return 0 }
	}
	k.Step = 1
	err := k.of("RoPE", steps, recorded, func(p *wire.Params, n *store.Node, v float64) { move(p, int(v)-int(recorded(n))) })
	k.From, k.To = k.Value-64, k.Value+64
	return err
}

// move adds to the positions of a RoPE step.
func move(p *wire.Params, by int) {
	if p.Positions == nil {
		p.Offset += by
		return
	}
	p.Positions = slices.Clone(p.Positions)
	for i := range p.Positions {
		p.Positions[i] += by
	}
}

// shift moves positions as offset does, and on top of it, by a number that is typed: as far as positions go.
func (k *knob) shift(steps []*store.Node) error {
	k.Step, k.From, k.To, k.Typed = 1, -maxShift, maxShift, true
	return k.of("RoPE", steps, func(*store.Node) float64 { return 0 }, func(p *wire.Params, _ *store.Node, v float64) { move(p, int(v)) })
}

const maxShift = 1 << 26

// mask is none or causal: that of steps which were recorded with one of them.
func (k *knob) mask(steps []*store.Node) error {
	k.Options = []string{"none", "causal"}
	for _, n := range steps {
		if n.Params.Mask == wire.MaskDiagonal || n.Params.Mask == wire.MaskAt {
			return fmt.Errorf("%q turns nothing: the diagonal was given", k.Name)
		}
	}
	return k.of("Scores or Prefill", steps, func(n *store.Node) float64 { return float64(b2i(n.Params.Mask == wire.MaskCausal)) }, func(p *wire.Params, _ *store.Node, v float64) {
		p.Mask = wire.MaskNone
		if v != 0 {
			p.Mask = wire.MaskCausal
		}
	})
}

func (k *knob) rotary(steps []*store.Node) error {
	for _, n := range steps {
		if n.Params.InvFreq != nil {
			return fmt.Errorf("%q turns nothing: the frequencies were given one by one", k.Name)
		}
	}
	k.From, k.Step = 2, 2
	err := k.of("RoPE", steps, func(n *store.Node) float64 { return float64(n.Params.Rotary) },
		func(p *wire.Params, _ *store.Node, v float64) { p.Rotary = int(v) })
	if err != nil {
		return err
	}
	dim := store.Last(steps[0].Shape)
	for _, n := range steps {
		dim = min(dim, store.Last(n.Shape))
	}
	k.To = float64(dim - dim%2)
	if k.To < 4 {
		return fmt.Errorf("%q turns nothing: heads have %d dims", k.Name, dim)
	}
	return nil
}

func (k *knob) base(steps []*store.Node) error {
	for _, n := range steps {
		if n.Params.InvFreq != nil {
			return fmt.Errorf("%q turns nothing: the frequencies were given one by one", k.Name)
		}
	}
	err := k.of("RoPE", steps, func(n *store.Node) float64 {
		if n.Params.Base == 0 {
			return chain.DefaultBase
		}
		return n.Params.Base
	}, func(p *wire.Params, _ *store.Node, v float64) { p.Base = v })
	k.From, k.To = min(100, k.Value), max(1e7, k.Value)
	return err
}

func (k *knob) scale(steps []*store.Node) error {
	err := k.of("attention", steps, func(n *store.Node) float64 { return chain.Scale(n.Params, store.Last(n.In[0].Shape)) },
		func(p *wire.Params, _ *store.Node, v float64) { p.Scale = v })
	if err == nil && !(k.Value > 0) {
		err = fmt.Errorf("%q turns nothing: the scale is %g", k.Name, k.Value)
	}
	k.From, k.To = k.Value/16, k.Value*16
	return err
}

func (k *knob) diagonal(steps []*store.Node) error {
	k.Step = 1
	recorded := func(n *store.Node) float64 {
		if n.Op == wire.OpPrefill {
			return float64(chain.MaskOf(n.Params, n.In[0].Rows(), n.In[1].Rows()).Diagonal)
		}
		return float64(n.Mask.Diagonal)
	}
	err := k.of("masked", steps, recorded, func(p *wire.Params, _ *store.Node, v float64) { p.Mask, p.Diagonal = wire.MaskDiagonal, int(v) })
	k.From, k.To = k.Value-64, k.Value+64
	return err
}

func masks(op wire.Op) bool { return isAttention(op) || op == wire.OpSoftmax }

// window goes from the query alone to every key.
func (k *knob) window(steps []*store.Node) error {
	k.Step = 1
	err := k.of("windowed", steps, func(n *store.Node) float64 { return float64(n.Params.Window) },
		func(p *wire.Params, _ *store.Node, v float64) { p.Window = int(v) })
	if err != nil {
		return err
	}
	k.From, k.To = 1, max(2, k.Value)
	for _, n := range steps {
		keys := store.Last(n.Shape)
		if n.Op == wire.OpPrefill || n.Op == wire.OpDecode {
			keys = n.In[1].Rows()
		}
		k.To = max(k.To, float64(keys))
	}
	return nil
}

func (k *knob) softcap(steps []*store.Node) error {
	err := k.of("capped", steps, func(n *store.Node) float64 { return n.Params.Softcap },
		func(p *wire.Params, _ *store.Node, v float64) { p.Softcap = v })
	k.From, k.To = k.Value/16, k.Value*16
	return err
}

// head picks one of the matrices to look at. As a list it begins with all of them.
func (k *knob) head(a store.View) error {
	if a.H < 2 || a.H > maxPanels {
		return fmt.Errorf("%q picks nothing: there are %d matrices", k.Name, a.H)
	}
	k.Options = []string{"all"}
	for i := range a.H {
		k.Options = append(k.Options, a.Panel(i))
	}
	k.From, k.To, k.Step = 0, float64(a.H-1), 1
	return nil
}

// span narrows k to the range asked for.
func (k *knob) span(ask wire.Control) error {
	if ask.From == 0 && ask.To == 0 {
		if k.Options != nil {
			k.From, k.To, k.Step = 0, float64(len(k.Options)-1), 1
		}
		return nil
	}
	if k.Options != nil && k.Step == 0 {
		return fmt.Errorf("%q is one of %s: use Choice", k.Name, strings.Join(k.Options, ", "))
	}
	from, to := ask.From, ask.To
	switch {
	case !(from < to) || math.IsInf(from, 0) || math.IsInf(to, 0):
		return fmt.Errorf("%q from %g to %g: the first must be less than the second", k.Name, from, to)
	case k.Step != 0 && (from != math.Trunc(from) || to != math.Trunc(to) || math.Abs(from) > 1<<40 || math.Abs(to) > 1<<40):
		return fmt.Errorf("%q from %g to %g: whole numbers only", k.Name, from, to)
	case k.Step == 0 && from <= 0:
		return fmt.Errorf("%q from %g to %g: must be above 0", k.Name, from, to)
	case (ask.Name == "head" || ask.Name == "window" || k.Step == 2) && (from < k.From || to > k.To):
		return fmt.Errorf("%q from %g to %g: it goes from %g to %g", k.Name, from, to, k.From, k.To)
	case k.steps == nil:
		k.Value = from
	case k.Value < from || k.Value > to:
		return fmt.Errorf("%q from %g to %g: it was %g when this was made", k.Name, from, to, k.Value)
	}
	k.From, k.To, k.Options = from, to, nil
	return nil
}

// accept refuses a value that the control does not have.
func (k *knob) accept(v float64) error {
	switch {
	case !(v >= k.From && v <= k.To):
		return fmt.Errorf("%s %g is not within %g to %g", k.Label, v, k.From, k.To)
	case k.Step != 0 && v != math.Trunc(v):
		return fmt.Errorf("%s %g is not a whole number", k.Label, v)
	}
	return nil
}
