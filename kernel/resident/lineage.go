package resident

import (
	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/wire"
)

// quantity is what the values of a tensor are, for pictures.
type quantity uint8

const (
	values quantity = iota
	scores
	probabilities
)

// meta is what a tensor is besides its values.
type meta struct {
	shape    []int
	axes     []string
	mask     cudaops.Mask // of scores: not applied yet; of probabilities: applied
	allowed  allowed      // of probabilities: applied
	carry    carried      // of scores: not applied yet
	quantity quantity
	empty    int // rows that saw nothing
}

// node is a step of lineage: what a tensor came from. Tensors and later steps count references to it. A leaf holds its array; a
// step's own array lives only as long as its tensor.
type node struct {
	meta
	op     wire.Op // OpNone: a leaf
	params wire.Params
	in     []*node
	out    int    // which output of the op
	source string // of a leaf: the file and array, or the function
	label  string // the newest name of its tensor, also after that is gone

	leaf  *array // of a leaf: its values, nil after Free
	live  *array // of the tensor, without a reference; nil when that is gone
	refs  int
	depth int // steps above the farthest leaf
}

// maxDepth bounds how far a lineage reaches back, so that a loop that feeds a tensor to itself does not keep every value
// it ever had. A tensor beyond it is a leaf of its own.
const maxDepth = 1 << 16

// newLeaf makes a leaf that holds a. The caller owns the node's one reference.
func newLeaf(m meta, source string, a *array) *node {
	a.refs++
	return &node{meta: m, source: source, leaf: a, refs: 1}
}

// newStep makes a step and counts its inputs.
func newStep(m meta, op wire.Op, p wire.Params, in []*node, out int, a *array) *node {
	depth := 0
	for _, i := range in {
		depth = max(depth, i.depth+1)
	}
	if depth > maxDepth {
		return newLeaf(m, op.String()+" (its lineage is too long to keep)", a)
	}
	for _, i := range in {
		i.refs++
	}
	return &node{meta: m, op: op, params: p, in: in, out: out, refs: 1, depth: depth}
}

// dropNode takes away a reference. It loops instead of recursing: a lineage may be long.
func (s *store) dropNode(n *node) {
	for todo := []*node{n}; len(todo) > 0; {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		n.refs--
		if n.refs > 0 {
			continue
		}
		if n.leaf != nil {
			s.dropArray(n.leaf)
			n.leaf = nil
		}
		todo = append(todo, n.in...)
		n.in = nil
	}
}

// freeLeaf gives a leaf's values back although lineage may need them.
func (s *store) freeLeaf(n *node) {
	if n.leaf != nil {
		s.dropArray(n.leaf)
		n.leaf = nil
	}
}

// made says in one word where a tensor comes from.
func (n *node) made() string {
	if n.op == wire.OpNone {
		return n.source
	}
	return n.op.String()
}
