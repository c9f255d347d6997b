package detect

import (
	"fmt"
	"strings"

	"github.com/attnb/attnb/reference"
)

// Major says what runs slowest within a shard of a fused row.
type Major uint8

const (
	HeadMajor     Major = iota // a head's elements side by side: what every known layout does
	DimMajorPart               // q as [d, heads], then k, then v
	DimMajorShard              // [d, blocks] over all blocks of the shard
	DimMajorRow                // [d, blocks] over all blocks of the row
	majors        = int(iota)
)

// Values of Arrangement.Permute and Merge.
const (
	toPairs, toHalves, permutations         = 1, 2, 3
	mergeFlat, mergeDimMajor, mergeVariants = 1, 2, 3
	orderQKV                                = "qkv"
)

// Arrangement is a hypothesis about fused rows and what was made of them. A row consists of Shards equal parts; each holds its
// share of the query heads, key heads and value heads, in this Order. One shard is GPT-2's layout; a shard for each KV head
// is NeoX's (H = KV) and the grouped one.
type Arrangement struct {
	Shards  int
	Order   string // "qkv" and its permutations
	Major   Major
	Permute int  // 1: heads of q and k hold (0, d/2, 1, d/2+1, ...); 2: (0, 2, 4, ..., 1, 3, ...)
	Tiled   bool // query head h reads KV head h mod KV
	Merge   int  // 1: [H, S, d] read as rows without transposing; 2: [S, d, H]

	heads, kvHeads int
}

// declaredArrangement is what d says.
func declaredArrangement(d Fused) Arrangement {
	a := Arrangement{Shards: 1, Order: orderQKV, heads: d.Heads, kvHeads: d.KVHeads}
	if d.Layout != reference.GPT2 {
		a.Shards = d.KVHeads
	}
	return a
}

// arrangements are all hypotheses that the parts given can see.
func arrangements(d Fused, want Parts) []Arrangement {
	rightOf := func(yes bool, n int) int {
		if yes {
			return n
		}
		return 1
	}
	tiles := rightOf(d.Heads != d.KVHeads && (len(want.K) == d.Heads || len(want.V) == d.Heads || want.Context != nil || want.Merged != nil), 2)
	permutes := rightOf(d.Dim > 2 && d.Dim%2 == 0, permutations)
	merges := rightOf(want.Merged != nil, mergeVariants)
	var out []Arrangement
	for shards := 1; shards <= d.KVHeads; shards++ {
		if d.KVHeads%shards != 0 {
			continue
		}
		for _, order := range []string{"qkv", "qvk", "kqv", "kvq", "vqk", "vkq"} {
			for major := range majors {
				if one := d.Heads == shards && d.KVHeads == shards; one && Major(major) == DimMajorPart || shards == 1 && Major(major) == DimMajorRow {
					continue // a part of one head has no order of heads, and one shard is the row: the same arrangement by another name
				}
				for permute := range permutes {
					for tile := range tiles {
						for merge := range merges {
							out = append(out, Arrangement{shards, order, Major(major), permute, tile == 1, merge, d.Heads, d.KVHeads})
						}
					}
				}
			}
		}
	}
	return out
}

// column is where in a row element i of head h of a part ('q', 'k' or 'v') lies.
func (a Arrangement) column(part byte, h, i, dim int) int {
	qs, kvs := a.heads/a.Shards, a.kvHeads/a.Shards
	blocks := qs + 2*kvs
	per := kvs
	if part == 'q' {
		per = qs
	}
	if part != 'v' {
		switch half := dim / 2; a.Permute {
		case toPairs:
			i = i%half*2 + i/half
		case toHalves:
			i = i%2*half + i/2
		}
	}
	shard, local, first := h/per, h%per, 0
	for _, c := range []byte(a.Order) {
		if c == part {
			break
		}
		if c == 'q' {
			first += qs
		} else {
			first += kvs
		}
	}
	start := shard * blocks * dim
	switch a.Major {
	case DimMajorPart:
		return start + first*dim + i*per + local
	case DimMajorShard:
		return start + i*blocks + first + local
	case DimMajorRow:
		return i*blocks*a.Shards + shard*blocks + first + local
	}
	return start + (first+local)*dim + i
}

// name is the name of the layout as the field knows it.
func (a Arrangement) name() string {
	order := strings.ToUpper(strings.Join(strings.Split(a.Order, ""), " "))
	switch {
	case a.Shards == 1 && a.Order == orderQKV:
		return "GPT2 (all of q, then k, then v)"
	case a.Shards == 1:
		return "GPT2 in the order " + order
	case a.Shards == a.kvHeads && a.heads == a.kvHeads && a.Order == orderQKV:
		return "NeoX (q k v of each head)"
	case a.Shards == a.kvHeads && a.heads == a.kvHeads:
		return "NeoX in the order " + order
	case a.Shards == a.kvHeads && a.Order == orderQKV:
		return "Grouped (q heads, k, v of each KV head)"
	case a.Shards == a.kvHeads:
		return "Grouped in the order " + order
	}
	return fmt.Sprintf("%d shards, each %s", a.Shards, order)
}

func (a Arrangement) String() string {
	s := a.name()
	switch a.Major {
	case DimMajorPart:
		s += ", dim-major in each part"
	case DimMajorShard:
		s += ", dim-major over q, k and v of a shard"
	case DimMajorRow:
		s += ", dim-major over the whole row"
	}
	switch a.Permute {
	case toPairs:
		s += ", halves of each q and k head interleaved"
	case toHalves:
		s += ", pairs of each q and k head taken apart into halves"
	}
	if a.Tiled {
		s += ", KV heads tiled"
	}
	switch a.Merge {
	case mergeFlat:
		s += ", merged without transposing"
	case mergeDimMajor:
		s += ", merged dim-major"
	}
	return s
}

// faults are how a departs from the declared arrangement.
func (a Arrangement) faults(right Arrangement, d Fused) Faults {
	var out Faults
	if a.Shards != right.Shards {
		out = append(out, Fault{WrongLayout, fmt.Sprintf("%s, declared %s", Arrangement{Shards: a.Shards, Order: a.Order, heads: a.heads, kvHeads: a.kvHeads}.name(), right.name()), "declare the layout found"})
	}
	if a.Order != right.Order {
		out = append(out, Fault{WrongOrder, fmt.Sprintf("%s, declared %s", strings.ToUpper(a.Order), strings.ToUpper(right.Order)), "exchange the parts after splitting"})
	}
	if a.Major != right.Major {
		out = append(out, Fault{DimMajorHeads, "a row runs over dims first, then over heads", "reshape to [dim, heads] and transpose"})
	}
	if a.Permute != right.Permute {
		detail := "the halves of each q and k head are interleaved: weights meant for interleaved RoPE"
		if a.Permute == toHalves {
			detail = "the pairs of each q and k head are taken apart into halves: weights meant for half-split RoPE"
		}
		out = append(out, Fault{PermutedHead, detail, "undo the permutation, or use that pairing for RoPE"})
	}
	if a.Tiled != right.Tiled {
		out = append(out, Fault{TiledKV, fmt.Sprintf("query head h uses KV head h mod %d", d.KVHeads),
			fmt.Sprintf("use KV head h/%d: repeat, not tile", d.Heads/d.KVHeads)})
	}
	switch a.Merge {
	case mergeFlat:
		out = append(out, Fault{WrongMerge, "[H, S, d] was read as [S, H d]", "transpose to [S, H, d] before the reshape"})
	case mergeDimMajor:
		out = append(out, Fault{WrongMerge, "[S, d, H] was read as [S, H d]", "transpose to [S, H, d] before the reshape"})
	}
	return out
}
