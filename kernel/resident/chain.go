package resident

import (
	"fmt"
	"strings"

	"github.com/attnb/attnb/kernel/wire"
)

// maxChain bounds the lines that a report lists.
const maxChain = 40

// chain lists what is replayed, in order: "3 RoPE(2): rotary 8, half-split, offset 0 -> [heads 4, seq 9, dim 16]".
func (r *replay) chain(root *node) []string {
	var lines []string
	number := map[*node]int{}
	var visit func(n *node)
	visit = func(n *node) {
		if number[n] != 0 {
			return
		}
		var in []*node
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

func (r *replay) line(n *node, in []*node, number map[*node]int) string {
	shape := shapeWords(n.shape, n.axes)
	if r.start[n] != nil {
		if n.label != "" {
			return fmt.Sprintf("%s %s: %s", quote(n.label), shape, n.made())
		}
		return fmt.Sprintf("%s %s", n.made(), shape)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s(", opName(n.op, n.params))
	if n.op == wire.OpAppend && len(in) > 3 {
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
	if n.op == wire.OpSplit {
		b.WriteString("." + []string{"q", "k", "v"}[n.out])
	}
	if p := paramWords(n); p != "" {
		b.WriteString(": " + p)
	}
	b.WriteString(" -> " + shape)
	if n.label != "" {
		b.WriteString(" " + quote(n.label))
	}
	return b.String()
}

// paramWords says the parameters of a step.
func paramWords(n *node) string {
	p := n.params
	switch n.op {
	case wire.OpSplit:
		heads, kv, dim := splitSizes(p, n.in[0].shape[1])
		return fmt.Sprintf("%v, %d heads, %d KV heads, dim %d", p.Layout, heads, kv, dim)
	case wire.OpRoPE:
		return ropeWords(p)
	case wire.OpScores:
		return fmt.Sprintf("scale %.6g", scale(p, last(n.in[0].shape)))
	case wire.OpSoftmax:
		return maskWords(n.mask) + variantWords(p, n.in[0].carry)
	case wire.OpPrefill:
		m := maskOf(p, n.in[0].rows(), n.in[1].rows())
		return fmt.Sprintf("scale %.6g, %s", scale(p, last(n.in[0].shape)), maskWords(m)) + variantWords(p, carried{})
	case wire.OpDecode:
		words := fmt.Sprintf("scale %.6g", scale(p, last(n.in[0].shape))) + variantWords(p, carried{})
		if m := decodeMask(p, n.in[1].rows()); !m.Plain() {
			words += ", " + maskWords(m)
		}
		return words
	case wire.OpIndex:
		return fmt.Sprintf("%s %d", p.Axis, p.Index)
	case wire.OpRows:
		return fmt.Sprintf("%d to %d", p.Index, p.Index+p.Count)
	}
	return ""
}

func ropeWords(p wire.Params) string {
	words := []string{fmt.Sprintf("rotary %d", p.Rotary), "half-split"}
	if p.Interleaved {
		words[1] = "interleaved"
	}
	if p.Positions != nil {
		words = append(words, fmt.Sprintf("%d positions", len(p.Positions)))
	} else {
		words = append(words, fmt.Sprintf("offset %d", p.Offset))
	}
	switch {
	case p.InvFreq != nil:
		words = append(words, "given frequencies")
	case p.Base != 0:
		words = append(words, fmt.Sprintf("base %g", p.Base))
	default:
		words = append(words, fmt.Sprintf("base %d", defaultBase))
	}
	if p.Float32Angles {
		words = append(words, "f32 angles")
	}
	if p.Magnitude != 0 && p.Magnitude != 1 {
		words = append(words, fmt.Sprintf("magnitude %g", p.Magnitude))
	}
	return strings.Join(words, ", ") + scalingWords(p)
}
