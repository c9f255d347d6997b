package chain

import (
	"fmt"
	"strings"

	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
)

// maxChain bounds the lines that a report lists.
const maxChain = 40

// Lines lists what is replayed, in order: "3 RoPE(2): rotary 8, half-split, offset 0 -> [heads 4, seq 9, dim 16]".
func (r *Replay) Lines(root *store.Node) []string {
	var lines []string
	number := map[*store.Node]int{}
	var visit func(n *store.Node)
	visit = func(n *store.Node) {
		if number[n] != 0 {
			return
		}
		var in []*store.Node
		if r.start[n] == nil {
			in = r.inputs(n)
		}
		for _, i := range in {
			visit(i)
		}
		number[n] = len(number) + 1
		lines = append(lines, fmt.Sprintf("%d %s", number[n], r.line(n, in, number)))
	}
	visit(root)
	if over := len(lines) - maxChain; over > 0 {
		lines = append(lines[:maxChain/2:maxChain/2], append([]string{fmt.Sprintf("... %d more", over)}, lines[len(lines)-maxChain/2:]...)...)
	}
	return lines
}

// History lists the steps that made a node, as Lines does, from leaves on whose values may be gone. The store's lock is held.
func History(root *store.Node) []string {
	r := NewReplay("")
	for todo := []*store.Node{root}; len(todo) > 0; {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if n.Op != wire.OpNone && !r.step[n] {
			r.step[n] = true
			todo = append(todo, n.In...)
		}
	}
	return r.Lines(root)
}

func (r *Replay) line(n *store.Node, in []*store.Node, number map[*store.Node]int) string {
	shape := store.ShapeWords(n.Shape, n.Axes)
	if r.start[n] != nil || n.Op == wire.OpNone {
		if n.Label != "" {
			return fmt.Sprintf("%s %s: %s", store.Quote(n.Label), shape, n.Made())
		}
		return fmt.Sprintf("%s %s", n.Made(), shape)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s(", store.OpName(n.Op, n.Params))
	if n.Op == wire.OpAppend && len(in) > 3 {
		fmt.Fprintf(&b, "%d, %d to %d in %d steps", number[in[0]], number[in[1]], number[in[len(in)-1]], len(in)-1)
	} else {
		for i, x := range in {
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprint(&b, number[x])
		}
	}
	b.WriteByte(')')
	if n.Op == wire.OpSplit {
		b.WriteString("." + []string{"q", "k", "v"}[n.Out])
	}
	if p := paramWords(n); p != "" {
		b.WriteString(": " + p)
	}
	b.WriteString(" -> " + shape)
	if n.Label != "" {
		b.WriteString(" " + store.Quote(n.Label))
	}
	return b.String()
}

// paramWords says the parameters of a step.
func paramWords(n *store.Node) string {
	p := n.Params
	switch n.Op {
	case wire.OpSplit:
		heads, kv, dim := SplitSizes(p, n.In[0].Shape[1])
		return fmt.Sprintf("%v, %d heads, %d KV heads, dim %d", p.Layout, heads, kv, dim)
	case wire.OpRoPE:
		return RoPEWords(p)
	case wire.OpScores:
		return fmt.Sprintf("scale %.6g", Scale(p, store.Last(n.In[0].Shape)))
	case wire.OpSoftmax:
		return MaskWords(n.Mask) + VariantWords(p, n.In[0].Carry)
	case wire.OpPrefill:
		m := MaskOf(p, n.In[0].Rows(), n.In[1].Rows())
		return fmt.Sprintf("scale %.6g, %s", Scale(p, store.Last(n.In[0].Shape)), MaskWords(m)) + VariantWords(p, store.Carried{})
	case wire.OpDecode:
		words := fmt.Sprintf("scale %.6g", Scale(p, store.Last(n.In[0].Shape))) + VariantWords(p, store.Carried{})
		if m := DecodeMask(p, n.In[1].Rows()); !m.Plain() {
			words += ", " + MaskWords(m)
		}
		return words
	case wire.OpEmbedding:
		return fmt.Sprintf("%d tokens", len(p.Tokens))
	case wire.OpLayerNorm, wire.OpRMSNorm:
		return fmt.Sprintf("eps %g", p.Eps)
	case wire.OpIndex:
		return fmt.Sprintf("%s %d", p.Axis, p.Index)
	case wire.OpRows:
		return fmt.Sprintf("%d to %d", p.Index, p.Index+p.Count)
	}
	return ""
}
