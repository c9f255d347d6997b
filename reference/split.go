package reference

import "gonum.org/v1/gonum/mat"

// Layout is the order of q, k and v within a fused row of (H+2 KV) d elements.
type Layout uint8

const (
	// GPT2 is all of q, then all of k, then all of v, each in order of heads (OpenAI's gpt-2, c_attn).
	GPT2 Layout = iota
	// NeoX is q, k, v of head 0, then of head 1, and so on (GPT-NeoX, Pythia, BLOOM). KV = H.
	NeoX
	// Grouped is, a KV head at a time, its H/KV query heads, then its k, then its v (Falcon 40B, litgpt).
	Grouped
)

func (l Layout) String() string {
	switch l {
	case GPT2:
		return "GPT2"
	case NeoX:
		return "NeoX"
	case Grouped:
		return "Grouped"
	}
	return "unknown layout"
}

// Split takes fused rows [S, (H+2 KV) d] apart into q [H, S, d], k and v [KV, S, d].
func Split(rows *mat.Dense, l Layout, heads, kvHeads, dim int) (q, k, v Heads, err error) {
	in, err := measure("Split", "rows", Heads{rows})
	if err != nil {
		return nil, nil, nil, err
	}
	switch {
	case heads < 1 || kvHeads < 1 || dim < 1:
		return nil, nil, nil, badArgument("Split", "heads %d, KV heads %d and dim %d must be positive", heads, kvHeads, dim)
	case heads%kvHeads != 0:
		return nil, nil, nil, badArgument("Split", "%d heads are no multiple of %d KV heads", heads, kvHeads)
	case l > Grouped:
		return nil, nil, nil, badArgument("Split", "unknown layout %d", l)
	case l == NeoX && heads != kvHeads:
		return nil, nil, nil, badArgument("Split", "layout NeoX has as many KV heads as heads, not %d and %d", kvHeads, heads)
	// Divided, not multiplied: a product of absurd arguments could overflow into a fit.
	case heads > in.dim || in.dim%dim != 0 || in.dim/dim != heads+2*kvHeads:
		return nil, nil, nil, badShape("Split", "rows [%d, %d] are not %d+2*%d heads of dim %d", in.rows, in.dim, heads, kvHeads, dim)
	}
	q, k, v = make(Heads, heads), make(Heads, kvHeads), make(Heads, kvHeads)
	for h := range q {
		q[h] = columns(rows, queryBlock(l, h, heads, kvHeads)*dim, dim)
	}
	for g := range k {
		kBlock, vBlock := keyValueBlocks(l, g, heads, kvHeads)
		k[g], v[g] = columns(rows, kBlock*dim, dim), columns(rows, vBlock*dim, dim)
	}
	return q, k, v, nil
}

// queryBlock is where in a row, counted in blocks of d, the query of head h lies.
func queryBlock(l Layout, h, heads, kvHeads int) int {
	if l == GPT2 {
		return h
	}
	group := heads / kvHeads // 1 for NeoX
	return h/group*(group+2) + h%group
}

// keyValueBlocks is where in a row, counted in blocks of d, the key and the value of KV head g lie.
func keyValueBlocks(l Layout, g, heads, kvHeads int) (k, v int) {
	if l == GPT2 {
		return heads + g, heads + kvHeads + g
	}
	group := heads / kvHeads
	return g*(group+2) + group, g*(group+2) + group + 1
}

// columns copies columns from..from+n.
func columns(m *mat.Dense, from, n int) *mat.Dense {
	rows, _ := m.Dims()
	return mat.DenseCopyOf(m.Slice(0, rows, from, from+n))
}
