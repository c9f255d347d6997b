package attn

import "github.com/attnb/attnb/kernel/wire"

// Known are the tensors that fused rows should come apart into: those that are known, as a framework computed them.
type Known struct {
	Q, K, V Tensor // [heads, seq, dim]; K and V with the KV heads, or expanded to all heads
	Context Tensor // [heads, seq, dim], causal attention of what the rows hold
	Merged  Tensor // [seq, heads*dim], the same with its heads merged
}

// LayoutFinding is what FindLayout found.
type LayoutFinding struct {
	Diagnosis
	Fits     []string // every hypothesis that gives these numbers, the declared one or the nearest to it first; several are a tie
	Residual float64  // relative L2 error of the best hypothesis
	Floor    float64  // what counts as rounding
	Margin   float64  // residual of the best hypothesis that does not fit, over Floor
}

// FindLayout says how fused rows hold q, k and v: it ranks every known layout, order, head-major and dim-major form, elements within
// a head, repeated and tiled KV heads and ways to merge by its residual against what is known, at least one tensor.
//
//	attn.FindLayout(qkv, attn.GPT2(12), attn.Known{Q: q}) // q from a framework
func FindLayout(rows Tensor, declared Layout, known Known, options ...FindOption) LayoutFinding {
	r := about("layout")
	r.Params = wire.Params{Layout: declared.layout, Heads: declared.heads, KVHeads: declared.kv}
	give(&r, "rows", rows)
	give(&r, "q", known.Q)
	give(&r, "k", known.K)
	give(&r, "v", known.V)
	give(&r, "context", known.Context)
	give(&r, "merged", known.Merged)
	d, f := find("FindLayout", r, nil, options...)
	return LayoutFinding{d, f.of("fits").Words, f.number("residual"), f.number("floor"), f.number("margin")}
}

// OrderFinding is what FindOrder found.
type OrderFinding struct {
	Diagnosis
	Fits []string // every order that gives these numbers; several are a tie, as where an axis has length 1
}

// FindOrder says in which order of axes flat holds the values of x, [heads, seq, dim] by its axes: a cache by heads or by rows, heads
// merged without a transposition. flat may have any shape; declared is what it should be, as "seq heads dim".
func FindOrder(x, flat Tensor, declared string, options ...FindOption) OrderFinding {
	r := about("order")
	give(&r, "x", x)
	give(&r, "flat", flat)
	set(&r, "axes", nil, declared)
	d, f := find("FindOrder", r, nil, options...)
	return OrderFinding{d, f.of("fits").Words}
}

// RoPEFinding is what FindRoPE found. Beside the diagnosis it describes the rotation that explains the numbers, the first of Fits.
type RoPEFinding struct {
	Diagnosis
	Fits        []string // every explanation with the fewest faults; several are a tie
	Undecided   []string // departures from the declaration that would give these numbers too
	Pairing     string
	Rotary      int       // dims that turn
	Frequencies []float64 // radians a position, one a pair
	Spectrum    string    // what these frequencies are: base, scaling
	Positions   []int     // of the rows, up to the first 24
	Magnitude   float64   // of cosine and sine
	Angles      string    // how they were computed
}

// FindRoPE says how before became after, and how that departs from the declared rotation: pairing, rotary dims, denominator, offset and
// positions, base, scaling and its factor, rounded angles, a rotation that is missing or was done twice.
//
//	attn.FindRoPE(q, theirs, attn.HalfSplit(64).Offset(past))
func FindRoPE(before, after Tensor, declared Rotation, options ...FindOption) RoPEFinding {
	r := about("rope")
	give(&r, "before", before)
	give(&r, "after", after)
	rotated(&r, declared)
	d, f := find("FindRoPE", r, nil, options...)
	return RoPEFinding{d, f.of("fits").Words, f.of("undecided").Words, f.word("pairing"), int(f.number("rotary")),
		f.of("frequencies").Numbers, f.word("spectrum"), f.ints("positions"), f.number("magnitude"), f.word("angles")}
}

type emptyRow string

func (e emptyRow) ask(r *wire.Request) { set(r, "empty", nil, string(e)) }

// EmptyRow declares what a row of probabilities holds that sees nothing: "0", as without it, "NaN", "uniform", "all weight on key 0" or
// "as if unmasked".
func EmptyRow(holds string) FindOption { return emptyRow(holds) }

// MaskFinding is what FindMask or Probe found.
type MaskFinding struct {
	Diagnosis
	Scale        float64   // NaN where no row tells
	Softcap      float64   // 0: none
	Slopes       []float64 // of ALiBi, one a head; nil: none
	Sinks        []float64 // one a head
	LastVisible  []float64 // key - query of the last visible key lies between these two; infinite where none is hidden
	FirstVisible []float64 // the same of the first
	EmptyRows    int       // rows, of all heads, that see nothing
	Empty        string    // what they hold
	HiddenKeys   []int     // keys that no row sees, though the mask would let it
	Documents    []int     // first keys of packed documents
	Undecided    []string  // what the data cannot tell
}

// FindMask says by which rule probabilities p [heads, query, key] came from q and k, rotated as the scores saw them: scale, softcap, ALiBi,
// bias, sink, alignment and diagonal of the mask, window, padding, packed documents, allowed cells, what rows hold that see nothing. The
// options declare it, all of those of [Prefill]; without any every query sees every key, at scale 1/sqrt(dim).
//
//	attn.FindMask(q, k, p, attn.Causal, attn.Window(4096))
func FindMask(q, k, p Tensor, declared ...FindOption) MaskFinding {
	r := about("mask")
	give(&r, "q", q)
	give(&r, "k", k)
	give(&r, "p", p)
	d, f := find("FindMask", r, nil, declared...)
	return maskFinding(d, f)
}

func maskFinding(d Diagnosis, f facts) MaskFinding {
	return MaskFinding{d, f.number("scale"), f.number("softcap"), f.of("slopes").Numbers, f.of("sinks").Numbers, f.of("last visible").Numbers, f.of("first visible").Numbers,
		int(f.number("empty rows")), f.word("empty"), f.ints("hidden keys"), f.ints("documents"), f.of("undecided").Words}
}

// CacheFinding is what CheckCache found: which row each slot holds (-1: none of them), and to which position it is rotated.
type CacheFinding struct {
	Diagnosis
	Rows, Positions []int
}

// CheckCache says what the slots of a cache [kv heads, seq, dim] hold. rows are all that were to be cached, in order, before RoPE; slot i
// is to hold row i. [RotatedBy] says how keys are rotated before they are cached; without it they are not, as values.
func CheckCache(rows, cache Tensor, options ...FindOption) CacheFinding {
	r := about("cache")
	give(&r, "rows", rows)
	give(&r, "cache", cache)
	d, f := find("CheckCache", r, nil, options...)
	return CacheFinding{d, f.ints("rows"), f.ints("positions")}
}

// WritesFinding is what CheckWrites found.
type WritesFinding struct {
	Diagnosis
	Length             int
	Holes, Overwritten []int // slots
}

// CheckWrites follows the writes to a cache, in order: slots that were never written, or twice, and rows rotated to a position that is not
// their slot's. No comparison of values sees the first.
func CheckWrites(steps []Write) WritesFinding {
	r := about("writes")
	for _, w := range steps {
		if w.Positions != nil && len(w.Positions) != len(w.Slots) {
			stop("CheckWrites: a write has as many positions as slots, or none")
		}
		for i, slot := range w.Slots {
			position := -1
			if w.Positions != nil {
				position = w.Positions[i]
			}
			set(&r, "write", numbers(slot, 1, position))
		}
	}
	return writesFinding(r)
}

// CheckWrites is [CheckWrites] of the calls that made x: the rows that it began with, [AppendKV], and Rows(0, n), which trims it. It finds rows
// rotated twice or never, too.
func (x Tensor) CheckWrites() WritesFinding {
	r := about("appends")
	give(&r, "cache", x)
	return writesFinding(r)
}

func writesFinding(r wire.Request) WritesFinding {
	d, f := find("CheckWrites", r, nil)
	return WritesFinding{d, int(f.number("length")), f.ints("holes"), f.ints("overwritten")}
}
