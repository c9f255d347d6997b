package store

import (
	"fmt"

	"github.com/attnb/attnb/kernel/wire"
)

// Called is how a report names the values of a node.
func (n *Node) Called() string {
	if n.Label != "" {
		return Quote(n.Label)
	}
	return n.Made()
}

// Brought says that the values are the user's: a leaf, or a view of one.
func (n *Node) Brought() bool {
	for isView(n.Op) {
		n = n.In[0]
	}
	return n.Op == wire.OpNone
}

// Restored says that the values come from a file in which a computed tensor was saved, or are a view of such.
func (n *Node) Restored() bool {
	for isView(n.Op) {
		n = n.In[0]
	}
	return n.Op == wire.OpNone && n.Past != nil
}

// isView says that an op has one input and moves its values at most.
func isView(op wire.Op) bool {
	switch op {
	case wire.OpAxes, wire.OpIndex, wire.OpRows, wire.OpSwap, wire.OpHeads, wire.OpMerge, wire.OpSplit:
		return true
	}
	return false
}

// Described is what Called says, but a view without a name of its own is called by what it views.
func (n *Node) Described() string {
	switch {
	case n.Label != "" || !isView(n.Op):
		return n.Called()
	case n.Op == wire.OpAxes:
		return n.In[0].Described()
	case n.Op == wire.OpSplit:
		return SplitNames[n.Out] + " of " + n.In[0].Described()
	}
	return OpName(n.Op, n.Params) + " of " + n.In[0].Described()
}

// SplitNames are what the outputs of a split are called.
var SplitNames = [...]string{"q", "k", "v"}

// What a title says of where values come from is bounded: beyond it only the last op is named.
const (
	maxPhrase      = 48
	maxPhraseSteps = 4
)

// phrase says what the values are, in words: "scores", "head 2 of q", "rotated k of qkv".
func (n *Node) phrase(steps int) string {
	switch {
	case n.Label != "":
		return n.Label
	case steps == 0:
		return n.Made()
	}
	in := func(i int) string { return n.In[i].phrase(steps - 1) }
	p := ""
	switch n.Op {
	case wire.OpNone:
		return n.Source
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
		p = SplitNames[n.Out] + " of " + in(0)
	case wire.OpRoPE:
		p = "rotated " + in(0)
	case wire.OpIndex:
		p = fmt.Sprintf("%s %d of %s", Singular(n.Params.Axis), n.Params.Index, in(0))
	case wire.OpRows:
		axis := n.In[0].Axes[n.In[0].RowAxis()]
		if p = fmt.Sprintf("%s %d of %s", axis, n.Params.Index, in(0)); n.Params.Count > 1 {
			p = fmt.Sprintf("%s %d to %d of %s", axis, n.Params.Index, n.Params.Index+n.Params.Count-1, in(0))
		}
	case wire.OpMerge:
		p = in(0) + ", merged"
	case wire.OpHeads:
		p = in(0) + ", by head"
	case wire.OpSwap:
		p = in(0) + ", swapped"
	case wire.OpAppend:
		p = in(0) + ", appended"
	case wire.OpEmbedding:
		return "embeddings"
	case wire.OpLayerNorm, wire.OpRMSNorm:
		p = in(0) + ", normed"
	case wire.OpGELU, wire.OpGELUTanh, wire.OpSiLU:
		p = n.Op.String() + " of " + in(0)
	case wire.OpMultiply:
		p = in(0) + " * " + in(1)
	case wire.OpLinear:
		p = in(0) + ", projected"
	}
	if p == "" || len(p) > maxPhrase {
		return n.Made()
	}
	return p
}

// Title is what a picture of the node is called: "q [heads 4, seq 9, dim 16]", "scores, causal", "probabilities".
func (n *Node) Title() string {
	what := n.phrase(maxPhraseSteps)
	switch {
	case n.Quantity == Scores && n.Mask.Causal:
		return what + ", causal"
	case n.Quantity == Values:
		return what + " " + ShapeWords(n.Shape, n.Axes)
	}
	return what
}

// OpName is what a message calls an op: Index is Head or Batch to the user.
func OpName(op wire.Op, p wire.Params) string {
	if op == wire.OpIndex {
		switch p.Axis {
		case "heads":
			return "Head"
		case "batch":
			return "Batch"
		}
	}
	return op.String()
}
