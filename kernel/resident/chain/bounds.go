package chain

import (
	"fmt"
	"slices"

	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
)

// BoundWords say, for each kind of step that was replayed, what a cell's bound takes for it; docs/tolerances.md derives them. The store's
// lock is held.
func (r *Replay) BoundWords(root *store.Node) []string {
	var lines []string
	seen := map[string]bool{}
	visited := map[*store.Node]bool{}
	var visit func(n *store.Node)
	visit = func(n *store.Node) {
		if visited[n] || r.start[n] != nil {
			return
		}
		visited[n] = true
		for _, in := range r.inputs(n) {
			visit(in)
		}
		if line := boundOf(n); !seen[line] {
			seen[line] = true
			lines = append(lines, line)
		}
	}
	visit(root)
	if r.Rounded {
		lines = append([]string{"values from outside: u |x|, one rounding to f32"}, lines...)
	}
	return lines
}

func boundOf(n *store.Node) string {
	dim := store.Last(n.In[0].Shape)
	switch n.Op {
	case wire.OpAdd:
		return "Add: u |a+b|, one rounding, and the errors of both"
	case wire.OpMultiply:
		return "Multiply: u |a b|, one rounding, and the errors of both"
	case wire.OpGELU, wire.OpGELUTanh:
		return fmt.Sprintf("%v: 5u |x| and 3u |f|, of 1 + erf and of products, and the error of x by the slope of f", n.Op)
	case wire.OpSiLU:
		return "SiLU: 12u |f|, of exponential, sum and division, and the error of x by the slope of f"
	case wire.OpLayerNorm:
		return fmt.Sprintf("LayerNorm: %d roundings of the mean, %d of the mean square, 12u of the root and of products, and the errors of all", dim+2, dim+3)
	case wire.OpRMSNorm:
		return fmt.Sprintf("RMSNorm: %d roundings of the mean square, 12u of the root and of products, and the errors of all", dim+3)
	case wire.OpRoPE:
		if n.Params.Float32Angles {
			return "RoPE: two roundings of each product, f32 angles as they are defined, and the error of x"
		}
		return "RoPE: two roundings of each product, 7u of cosine and sine, and the error of x"
	case wire.OpLinear:
		return fmt.Sprintf("Linear: %d roundings of sum |x||w|, and the errors of both", dim+1)
	case wire.OpScores:
		return fmt.Sprintf("Scores: %d roundings of |scale| sum |q||k|, and the errors of both", dim+4)
	case wire.OpSoftmax:
		return fmt.Sprintf("Softmax: p times the errors of the exponents and up to %d roundings, and the errors of all scores of the row", dim+8) + changeBounds(n.Params, n.In[0].Carry)
	case wire.OpContext:
		return fmt.Sprintf("Context: up to %d roundings of sum p|v|, and the errors of both", dim+4)
	case wire.OpPrefill, wire.OpDecode:
		return fmt.Sprintf("%v: Scores (%d roundings), Softmax (up to %d) and Context (up to %d), one on another", n.Op, dim+4, n.In[1].Rows()+8, n.In[1].Rows()+4) + changeBounds(n.Params, store.Carried{})
	}
	return fmt.Sprintf("%v: nothing, a move is exact", n.Op)
}

// changeBounds say what a variant adds to the errors of scores.
func changeBounds(p wire.Params, c store.Carried) string {
	words := ""
	if c, _ = numbersOf(p, c, 1); c.Softcap != 0 {
		words += "; softcap: what is left of a score's error, and 10 roundings"
	}
	if c.Slopes != nil {
		words += "; ALiBi: 2 roundings of it, and of the sum"
	}
	if slices.Contains(p.Extras, wire.ExtraBias) {
		words += "; bias: its error, and a rounding of the sum"
	}
	if slices.Contains(p.Extras, wire.ExtraSinks) {
		words += "; sinks: as one more column"
	}
	return words
}
