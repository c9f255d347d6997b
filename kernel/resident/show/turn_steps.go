package show

import (
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
)

// chainSteps lists the steps from which root came, inputs first, and which RoPE steps turn its queries or its keys.
type chainSteps struct {
	root      *store.Node
	all       []*store.Node
	sides     map[*store.Node]map[side]bool
	attention bool
}

func stepsOf(root *store.Node) chainSteps {
	c := chainSteps{root: root, sides: map[*store.Node]map[side]bool{}}
	seen := map[*store.Node]bool{}
	var visit func(n *store.Node)
	visit = func(n *store.Node) {
		if seen[n] || n.Op == wire.OpNone {
			return
		}
		seen[n] = true
		for _, i := range n.In {
			visit(i)
		}
		c.all = append(c.all, n)
	}
	visit(root)
	for _, n := range c.all {
		if isAttention(n.Op) {
			c.attention = true
			c.mark(n.In[0], querySide, map[*store.Node]bool{})
			c.mark(n.In[1], keySide, map[*store.Node]bool{})
		}
	}
	return c
}

func isAttention(op wire.Op) bool {
	return op == wire.OpScores || op == wire.OpPrefill || op == wire.OpDecode
}

// mark goes from an input of an attention step back to the attention before it.
func (c chainSteps) mark(n *store.Node, s side, seen map[*store.Node]bool) {
	if seen[n] || isAttention(n.Op) {
		return
	}
	seen[n] = true
	if n.Op == wire.OpRoPE {
		if c.sides[n] == nil {
			c.sides[n] = map[side]bool{}
		}
		c.sides[n][s] = true
	}
	for _, i := range n.In {
		c.mark(i, s, seen)
	}
}

func (c chainSteps) rope(s side) []*store.Node {
	return c.where(func(n *store.Node) bool { return n.Op == wire.OpRoPE && (s == everySide || c.sides[n][s]) })
}

func (c chainSteps) where(is func(*store.Node) bool) []*store.Node {
	var found []*store.Node
	for _, n := range c.all {
		if is(n) {
			found = append(found, n)
		}
	}
	return found
}
