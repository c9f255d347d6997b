package show

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/attnb/attnb/kernel/resident/chain"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
)

// maxCode bounds the Go that is written for one setting, in steps.
const maxCode = 64

// coder writes the Go that makes a tensor, a statement a step.
type coder struct {
	params  map[*store.Node]wire.Params // in place of those recorded
	turned  map[*store.Node]bool        // steps that are written out although their result has a name
	names   map[*store.Node]string
	splits  map[string]*splitLine
	used    map[string]int
	lines   []string
	given   []string // what variables are that the line does not make
	unknown bool     // there is something that no Go here says
}

// splitLine is the statement of a split, whose outputs are nodes of their own: what is used of them has a variable.
type splitLine struct {
	at   int // of the lines
	call string
	vars [3]string
}

// goLine is Go that makes root under these parameters and shows it, in one line; empty where there is none. Names stand for themselves, by
// attn.Get, and files by attn.Load; another tensor without a name is a variable, and a comment says which. The store's lock is held.
func goLine(root *store.Node, turned map[*store.Node]bool, params map[*store.Node]wire.Params) string {
	c := coder{params: params, turned: map[*store.Node]bool{root: true}, names: map[*store.Node]string{}, splits: map[string]*splitLine{}, used: map[string]int{}}
	after := map[*store.Node]bool{}
	var reach func(n *store.Node) bool
	reach = func(n *store.Node) bool {
		if on, seen := after[n]; seen {
			return on
		}
		after[n] = turned[n]
		for _, i := range n.In {
			if reach(i) {
				after[n] = true
			}
		}
		return after[n]
	}
	reach(root)
	for n, on := range after {
		c.turned[n] = c.turned[n] || on
	}
	last := c.name(root)
	for _, s := range c.splits {
		for i, v := range s.vars {
			if v == "" {
				s.vars[i] = "_"
			}
		}
		c.lines[s.at] = strings.Join(s.vars[:], ", ") + " := " + s.call
	}
	c.lines = append(c.lines, last+".Heatmap()")
	if c.unknown || len(c.lines) > maxCode {
		return ""
	}
	line := strings.Join(c.lines, "; ")
	if len(c.given) > 0 {
		line += " // " + strings.Join(c.given, "; ")
	}
	return line
}

// fresh is a variable that no other has.
func (c *coder) fresh(name string) string {
	c.used[name]++
	if n := c.used[name]; n > 1 {
		return name + strconv.Itoa(n)
	}
	return name
}

// name is the variable that holds n, after the statements that make it.
func (c *coder) name(n *store.Node) string {
	if v, ok := c.names[n]; ok {
		return v
	}
	v := ""
	switch {
	case n.Label != "" && !c.turned[n]:
		v = fmt.Sprintf("attn.Get(%s)", store.Quote(n.Label))
	case n.Op == wire.OpNone:
		switch v = c.fresh("x"); {
		case n.Label != "":
			v = fmt.Sprintf("attn.Get(%s)", store.Quote(n.Label))
		case filepath.IsAbs(n.Path):
			of := store.Quote(n.Path)
			if n.Member != "" {
				of += ", " + store.Quote(n.Member)
			}
			c.lines = append(c.lines, v+" := attn.Load("+of+")")
		default:
			c.given = append(c.given, fmt.Sprintf("%s is %s %s", v, strings.ReplaceAll(n.Source, "\n", " "), store.ShapeWords(n.Shape, n.Axes)))
		}
	case n.Op == wire.OpSplit:
		v = c.split(n)
	default:
		expression := c.step(n)
		v = c.fresh(variables[n.Op])
		c.lines = append(c.lines, v+" := "+expression)
	}
	c.names[n] = v
	return v
}

// variables are what results are called.
var variables = map[wire.Op]string{wire.OpRoPE: "turned", wire.OpScores: "s", wire.OpSoftmax: "p", wire.OpContext: "out", wire.OpPrefill: "out", wire.OpDecode: "out",
	wire.OpAppend: "cache", wire.OpMerge: "rows", wire.OpHeads: "heads", wire.OpSwap: "swapped", wire.OpAdd: "sum", wire.OpLinear: "y", wire.OpIndex: "one", wire.OpRows: "part", wire.OpAxes: "named",
	wire.OpEmbedding: "x", wire.OpLayerNorm: "normed", wire.OpRMSNorm: "normed", wire.OpGELU: "active", wire.OpGELUTanh: "active", wire.OpSiLU: "active", wire.OpMultiply: "gated"}

func (c *coder) of(n *store.Node) wire.Params {
	if p, ok := c.params[n]; ok {
		return p
	}
	return n.Params
}

// split writes one statement for the three outputs of a split, each a node of its own.
func (c *coder) split(n *store.Node) string {
	p := c.of(n)
	heads, kv, _ := chain.SplitSizes(p, n.In[0].Shape[1])
	layout := fmt.Sprintf("attn.%v(%d)", p.Layout, heads)
	switch {
	case p.Layout == wire.LayoutGrouped:
		layout = fmt.Sprintf("attn.Grouped(%d, %d)", heads, kv)
	case kv != heads:
		layout += fmt.Sprintf(".KV(%d)", kv)
	}
	from := c.name(n.In[0])
	call := fmt.Sprintf("%s.SplitHeads(%s)", from, layout)
	s, ok := c.splits[call]
	if !ok {
		s = &splitLine{at: len(c.lines), call: call}
		c.splits[call] = s
		c.lines = append(c.lines, "")
	}
	if s.vars[n.Out] == "" {
		s.vars[n.Out] = c.fresh(store.SplitNames[n.Out])
	}
	return s.vars[n.Out]
}

// step is the call of any other op.
func (c *coder) step(n *store.Node) string {
	p := c.of(n)
	in := make([]string, len(n.In))
	for i, x := range n.In {
		in[i] = c.name(x)
	}
	method := func(name, format string, args ...any) string {
		return in[0] + "." + name + "(" + fmt.Sprintf(format, args...) + ")"
	}
	switch n.Op {
	case wire.OpRoPE:
		return method("RoPE", "%s", c.rotation(p))
	case wire.OpScores, wire.OpSoftmax, wire.OpPrefill, wire.OpDecode:
		own := len(in) - len(p.Extras)
		all := append(in[:own:own], c.options(n.Op, p, in[own:])...)
		if n.Op == wire.OpSoftmax {
			return method("Softmax", "%s", strings.Join(all[1:], ", "))
		}
		return "attn." + n.Op.String() + "(" + strings.Join(all, ", ") + ")"
	case wire.OpEmbedding:
		return "attn.Embedding(" + in[0] + ", []int{" + list(p.Tokens, strconv.Itoa) + "})"
	case wire.OpLayerNorm, wire.OpRMSNorm:
		all := append([]string{in[0], number(p.Eps)}, in[1:]...)
		return "attn." + n.Op.String() + "(" + strings.Join(all, ", ") + ")"
	case wire.OpContext, wire.OpAppend, wire.OpAdd, wire.OpMultiply, wire.OpLinear:
		return "attn." + n.Op.String() + "(" + strings.Join(in, ", ") + ")"
	case wire.OpHeads:
		return method("Heads", "%d", p.Heads)
	case wire.OpMerge, wire.OpSwap, wire.OpGELU, wire.OpGELUTanh, wire.OpSiLU:
		return method(n.Op.String(), "")
	case wire.OpAxes:
		return method("Axes", "%s", store.Quote(strings.Join(p.Axes, " ")))
	case wire.OpRows:
		return method("Rows", "%d, %d", p.Index, p.Index+p.Count)
	case wire.OpIndex:
		if name := store.OpName(n.Op, p); name != n.Op.String() {
			return method(name, "%d", p.Index)
		}
	}
	c.unknown = true
	return ""
}

func (c *coder) rotation(p wire.Params) string {
	s := fmt.Sprintf("attn.HalfSplit(%d)", p.Rotary)
	if p.Interleaved {
		s = fmt.Sprintf("attn.Interleaved(%d)", p.Rotary)
	}
	if p.Base != 0 && p.Base != chain.DefaultBase {
		s += ".Base(" + number(p.Base) + ")"
	}
	if p.Offset != 0 {
		s += fmt.Sprintf(".Offset(%d)", p.Offset)
	}
	if p.Positions != nil {
		s += ".Positions(" + list(p.Positions, strconv.Itoa) + ")"
	}
	if p.InvFreq != nil {
		s += ".InvFreq(" + list(p.InvFreq, number) + ")"
	}
	if p.Float32Angles {
		s += ".Float32Angles()"
	}
	if p.Magnitude != 0 && p.Magnitude != 1 {
		s += ".Magnitude(" + number(p.Magnitude) + ")"
	}
	if x := p.Scaling; x != nil {
		switch x.Kind {
		case wire.ScalingNone:
		case wire.ScalingLinear:
			s += ".Linear(" + number(x.Factor) + ")"
		case wire.ScalingDynamicNTK:
			s += fmt.Sprintf(".DynamicNTK(%s, %d, %d)", number(x.Factor), x.Trained, x.Length)
		case wire.ScalingLlama3:
			s += fmt.Sprintf(".Llama3(%s, %s, %s, %d)", number(x.Factor), number(x.Low), number(x.High), x.Trained)
		case wire.ScalingYaRN:
			s += fmt.Sprintf(".YaRN(%s, %d)", number(x.Factor), x.Trained)
			if x.Low != 0 || x.High != 0 {
				s += fmt.Sprintf(".Ramp(%s, %s)", number(x.High), number(x.Low))
			}
			if x.Fractional {
				s += ".Untruncated()"
			}
		default:
			c.unknown = true
		}
	}
	return s
}

// options are those of attention; extras are the tensors behind its own.
func (c *coder) options(op wire.Op, p wire.Params, extras []string) []string {
	var o []string
	switch p.Mask {
	case wire.MaskNone:
		o = append(o, "attn.Unmasked")
	case wire.MaskCausal:
		if op != wire.OpPrefill { // whose usual mask it is
			o = append(o, "attn.Causal")
		}
	case wire.MaskDiagonal:
		o = append(o, fmt.Sprintf("attn.CausalAt(%d)", p.Diagonal))
	case wire.MaskAt:
		c.unknown = true
	}
	add := func(on bool, name, args string) {
		if on {
			o = append(o, "attn."+name+"("+args+")")
		}
	}
	add(p.Scale != 0, "Scale", number(p.Scale))
	add(p.Window > 0, "Window", strconv.Itoa(p.Window))
	add(p.PadLeft > 0 || p.PadRight > 0, "KeyPadding", fmt.Sprintf("%d, %d", p.PadLeft, p.PadRight))
	add(p.Documents != nil, "Documents", list(p.Documents, strconv.Itoa))
	add(p.Softcap != 0, "Softcap", number(p.Softcap))
	add(p.ALiBi, "ALiBi", list(p.Slopes, number))
	for i, x := range extras {
		name, ok := map[string]string{wire.ExtraBias: "Bias", wire.ExtraAllowed: "Allowed", wire.ExtraSinks: "Sinks"}[p.Extras[i]]
		c.unknown = c.unknown || !ok
		add(ok, name, x)
	}
	return slices.Clip(o)
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func list[T any](vs []T, word func(T) string) string {
	words := make([]string, len(vs))
	for i, v := range vs {
		words[i] = word(v)
	}
	return strings.Join(words, ", ")
}
