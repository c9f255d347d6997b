package store

import (
	"github.com/attnb/attnb/kernel/wire"
)

// Node is a step of lineage: what a tensor came from. Tensors and later steps count references to it. A leaf holds its array; a
// step's own array lives only as long as its tensor.
type Node struct {
	Meta
	Op     wire.Op     // OpNone: a leaf
	Params wire.Params // of the op
	In     []*Node     // its inputs
	Out    int         // which output of the op
	Origin             // of a leaf
	Label  string      // the newest name of its tensor, also after that is gone
	Past   []string    // of a leaf that was restored: the steps that made it, before it was saved

	leaf  *Array // of a leaf: its values, nil after Free
	live  *Array // of the tensor, without a reference; nil when that is gone
	refs  int
	depth int // steps above the farthest leaf
}

// Origin is where the values of a leaf come from.
type Origin struct {
	Source       string // in words: the file and array, or the function
	Path, Member string // what Load was given, where it was Load
}

// maxDepth bounds how far a lineage reaches back, so that a loop that feeds a tensor to itself does not keep every value
// it ever had. A tensor beyond it is a leaf of its own.
const maxDepth = 1 << 16

// newLeaf makes a leaf that holds a. The caller owns the node's one reference. The store's lock is held.
func newLeaf(m Meta, from Origin, a *Array) *Node {
	a.refs++
	return &Node{Meta: m, Origin: from, leaf: a, refs: 1}
}

// NewStep makes a step and counts its inputs. The store's lock is held.
func NewStep(m Meta, op wire.Op, p wire.Params, in []*Node, out int, a *Array) *Node {
	depth := 0
	for _, i := range in {
		depth = max(depth, i.depth+1)
	}
	if depth > maxDepth {
		return newLeaf(m, Origin{Source: op.String() + " (its lineage is too long to keep)"}, a)
	}
	for _, i := range in {
		i.refs++
	}
	return &Node{Meta: m, Op: op, Params: p, In: in, Out: out, refs: 1, depth: depth}
}

// Hold takes a reference. The store's lock is held.
func (n *Node) Hold() { n.refs++ }

// DropNode takes away a reference. It loops instead of recursing: a lineage may be long. The store's lock is held.
func (s *Store) DropNode(n *Node) {
	for todo := []*Node{n}; len(todo) > 0; {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		n.refs--
		if n.refs > 0 {
			continue
		}
		if n.leaf != nil {
			s.DropArray(n.leaf)
			n.leaf = nil
		}
		todo = append(todo, n.In...)
		n.In = nil
	}
}

// freeLeaf gives a leaf's values back although lineage may need them. The store's lock is held.
func (s *Store) freeLeaf(n *Node) {
	if n.leaf != nil {
		s.DropArray(n.leaf)
		n.leaf = nil
	}
}

// Made says in one word where a tensor comes from.
func (n *Node) Made() string {
	if n.Op == wire.OpNone {
		return n.Source
	}
	return n.Op.String()
}

// Here is the array of a node that has one, else nil. The store's lock is held.
func (n *Node) Here() *Array {
	if n.live != nil {
		return n.live
	}
	return n.leaf
}

// SameRows says that a step moves or picks heads, and that its rows are those of its input.
func (n *Node) SameRows() bool {
	switch n.Op {
	case wire.OpAxes, wire.OpSwap, wire.OpIndex:
		return n.In[0].RowAxis() >= 0 && n.In[0].Rows() == n.Rows()
	}
	return false
}

// Appended says that appends made the rows of n, or those of which it kept the first.
func (n *Node) Appended() bool {
	for n.SameRows() || n.Op == wire.OpRows {
		n = n.In[0]
	}
	return n.Op == wire.OpAppend
}
