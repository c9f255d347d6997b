package resident

import (
	"fmt"

	"github.com/attnb/attnb/kernel/wire"
)

// called is how a report names the values of a node.
func (n *node) called() string {
	if n.label != "" {
		return quote(n.label)
	}
	return n.made()
}

// brought says that the values are the user's: a leaf, or a view of one.
func (n *node) brought() bool {
	for isView(n.op) {
		n = n.in[0]
	}
	return n.op == wire.OpNone
}

// isView says that an op has one input and moves its values at most.
func isView(op wire.Op) bool {
	switch op {
	case wire.OpAxes, wire.OpIndex, wire.OpRows, wire.OpSwap, wire.OpHeads, wire.OpMerge, wire.OpSplit:
		return true
	}
	return false
}

// described is called, but a view without a name of its own is called by what it views.
func (n *node) described() string {
	switch {
	case n.label != "" || !isView(n.op):
		return n.called()
	case n.op == wire.OpAxes:
		return n.in[0].described()
	case n.op == wire.OpSplit:
		return splitNames[n.out] + " of " + n.in[0].described()
	}
	return opName(n.op, n.params) + " of " + n.in[0].described()
}

var splitNames = [...]string{"q", "k", "v"}

// What a title says of where values come from is bounded: beyond it only the last op is named.
const (
	maxPhrase      = 48
	maxPhraseSteps = 4
)

// phrase says what the values are, in words: "scores", "head 2 of q", "rotated k of qkv".
func (n *node) phrase(steps int) string {
	switch {
	case n.label != "":
		return n.label
	case steps == 0:
		return n.made()
	}
	in := func(i int) string { return n.in[i].phrase(steps - 1) }
	p := ""
	switch n.op {
	case wire.OpNone:
		return n.source
	case wire.OpScores:
		return "scores"
	case wire.OpSoftmax:
		return "probabilities"
	case wire.OpContext, wire.OpPrefill, wire.OpDecode:
		return "context"
	case wire.OpAdd:
		p = in(0) + " + " + in(1)
	case wire.OpAxes:
		return in(0)
	case wire.OpSplit:
		p = splitNames[n.out] + " of " + in(0)
	case wire.OpRoPE:
		p = "rotated " + in(0)
	case wire.OpIndex:
		p = fmt.Sprintf("%s %d of %s", singular(n.params.Axis), n.params.Index, in(0))
	case wire.OpRows:
		axis := n.in[0].axes[n.in[0].rowAxis()]
		if p = fmt.Sprintf("%s %d of %s", axis, n.params.Index, in(0)); n.params.Count > 1 {
			p = fmt.Sprintf("%s %d to %d of %s", axis, n.params.Index, n.params.Index+n.params.Count-1, in(0))
		}
	case wire.OpMerge:
		p = in(0) + ", merged"
	case wire.OpHeads:
		p = in(0) + ", by head"
	case wire.OpSwap:
		p = in(0) + ", swapped"
	case wire.OpAppend:
		p = in(0) + ", appended"
	case wire.OpLinear:
		p = in(0) + ", projected"
	}
	if p == "" || len(p) > maxPhrase {
		return n.made()
	}
	return p
}

// title is what a picture of the node is called: "q [heads 4, seq 9, dim 16]", "scores, causal", "probabilities".
func (n *node) title() string {
	what := n.phrase(maxPhraseSteps)
	switch {
	case n.quantity == scores && n.mask.Causal:
		return what + ", causal"
	case n.quantity == values:
		return what + " " + shapeWords(n.shape, n.axes)
	}
	return what
}
