// Package cudaops holds the resident attention ops.
//
// A [Device] owns the arrays of one backend (the host's cores, or a GPU). Every op is a method of Device: it
// validates its arguments, allocates its output, queues the work and returns a new [Buffer]. An op that refuses
// or fails allocates nothing that stays, publishes nothing and leaves its inputs untouched. The backend below it
// ([Backend]) sees validated arguments only.
//
// All arrays are f32. Everything that an op reads or writes is a [View]: H heads of S rows of D elements, with
// the D elements of a row contiguous and free strides between rows and between heads. So one description covers
// heads-major [H, S, d] (HeadStride S*d, RowStride d), rows-major [S, H*d] read by head (HeadStride d, RowStride
// H*d), a plain matrix (H 1), a batch of score matrices [H, S, T] (D is T) and the KV cache [KV, capacity, d], of
// which a handle sees its own S rows (HeadStride capacity*d).
package cudaops

import "github.com/attnb/attnb/cudaops/plan"

// Memory is a backend's own block of f32 elements. Only the backend that made it looks inside.
type Memory interface {
	// Len is the number of f32 elements.
	Len() int
}

// View addresses a block [H, S, D] in a memory: element (h, s, i) lies at Offset + h*HeadStride + s*RowStride + i.
type View struct {
	Mem                                    Memory
	H, S, D, Offset, HeadStride, RowStride int
}

// Convention says which elements of a head RoPE turns together.
type Convention uint8

// The two pairings in use. r is the number of rotary dims.
const (
	HalfSplit   Convention = iota // pairs (i, i+r/2): NeoX, Hugging Face
	Interleaved                   // pairs (2i, 2i+1): GPT-J, Meta
)

// Angle is the precision in which RoPE computes position * frequency.
type Angle uint8

// Float64 angles are the default. Float32 angles exist for parity with frameworks that compute them so.
const (
	AngleFloat64 Angle = iota
	AngleFloat32
)

// RoPE are the parameters of a rotation. Row s of every head is turned to position Offset+s, or to Positions[s]
// where Positions is set. Pair i turns by position * InvFreq[i], InvFreq[i] = Base^(-2i/Rotary) unless given.
// Elements from Rotary on are copied.
type RoPE struct {
	Rotary     int
	Base       float64
	Convention Convention
	Offset     int
	Positions  []int     // nil: Offset, Offset+1, ...; else one a row
	InvFreq    []float64 // nil: from Base; else Rotary/2 values
	Angle      Angle
	Magnitude  float64 // multiplies cosine and sine; 0 means 1 (YaRN's attention factor)
}

// MaxPosition is above every |position|, and every |position * frequency|: from it on an f64 angle no longer keeps f32
// accuracy after reduction.
const MaxPosition = 1 << 27

// Reduce is how the visible cells of a pool become one.
type Reduce uint8

// A NaN among the visible cells is the result of every one of them.
const (
	Max Reduce = iota
	Mean
	Sum
	Min
)

// Info describes the device behind a backend.
type Info struct {
	Backend     string // "host" or "cuda"
	Device      string // processor or GPU name
	MemoryTotal int64  // bytes; 0 where unknown
}

// Addressable is a backend whose memories the processor reads and writes as its own, and that queues nothing: what moves to and from it needs no copy.
type Addressable interface {
	// Elements is all of m.
	Elements(m Memory) []float32
}

// Backend is what a device must do. [Device] calls it with validated arguments from one goroutine at a time, on
// views that lie inside their memories and on outputs that overlap no input. Masks are plain but in [Changes]. No dimension is 0; each, and H*S, fits in 32
// unsigned bits, which strides, offsets and products with D need not. Work may be queued: an error of queued work is
// returned by the next Download or Sync, naming the op. A backend publishes no partial result as success. Its errors wrap
// [ErrOutOfMemory], [ErrUnsupported] or [ErrInterrupted] where those apply; any other error is taken for a fault of
// the device. A backend may implement [Interrupter], [Progresser], [Trimmer] and [Addressable].
type Backend interface {
	Info() Info

	// Alloc returns n uninitialised elements, n > 0. ErrOutOfMemory where they do not fit.
	Alloc(n int) (Memory, error)
	// Free gives m back once the work queued so far is done with it.
	Free(m Memory)
	// InUse is the number of bytes allocated and not freed.
	InUse() int64

	// Upload copies src to dst[offset:]. src may be reused when it returns.
	Upload(dst Memory, offset int, src []float32) error
	// Download waits for the queued work and copies src[offset:offset+len(dst)] to dst.
	Download(dst []float32, src Memory, offset int) error
	// Sync waits for the queued work.
	Sync() error
	Close() error

	// Copy runs the copies of a plan, which do not overlap in dst. dst and src may be one memory: then no element is
	// both read and written.
	Copy(dst, src Memory, copies []plan.PitchedCopy) error
	// Gather copies each src view to the dst view of the same index and dimensions, in one launch.
	Gather(dst, src []View) error
	// RoPE writes the rotated src to dst.
	RoPE(dst, src View, r RoPE) error
	// Softmax writes the softmax of each row of src over the columns that m shows; hidden columns become exactly
	// 0 and so does a row that sees nothing, even where src is NaN.
	Softmax(dst, src View, m Mask) error
	// SoftmaxChanged is Softmax of scores that c changes, and returns how many rows, over all heads, see nothing. A hidden column
	// is never read, nor what would change its score.
	SoftmaxChanged(dst, src View, c Changes) (empty int, err error)
	// Add writes a + b.
	Add(dst, a, b View) error
	// Multiply writes a * b.
	Multiply(dst, a, b View) error
	// Activate writes the activation of each element. -Inf becomes NaN, as the formulas have it.
	Activate(dst, src View, a Activation) error
	// Norm writes each row of x less its mean where n is centred, over the root of the mean square of that plus Epsilon, times w plus b:
	// w and b [1, 1, D], or Mem nil. The mean square is that of the differences, not a difference of mean squares.
	Norm(dst, x, w, b View, n Norm) error
	// Embedding copies row tokens[s] of table [1, V, D] to row s of dst [1, S, D]. A token is 0 to V-1.
	Embedding(dst, table View, tokens []int) error
	// Scores writes scale * q.k: q [H, S, d], k [KV, T, d], dst [H, S, T]; query head h uses KV head h/(H/KV).
	Scores(dst, q, k View, scale float32) error
	// Context writes p.v: p [H, S, T], v [KV, T, d], dst [H, S, d]; head h of p meets head h/(H/KV) of v. A weight of exactly
	// 0 takes no part: NaN or Inf in the row of v that it would weigh does not reach the result.
	Context(dst, p, v View) error
	// Prefill writes softmax(scale * q k^T, m) v: q [H, S, d], k and v [KV, T, d], dst [H, S, d], with no S x T
	// matrix in memory. lse, if Mem is not nil, is [1, H, S] and receives the natural log of each row's sum of
	// exp(scale * q.k), -Inf for a row that sees nothing. A hidden key or value never reaches the result.
	Prefill(dst, lse, q, k, v View, scale float32, m Mask) error
	// PrefillChanged is Prefill with scores that c changes, and returns how many rows, over all heads, see nothing. lse includes the
	// sink where there is one: of a row that sees nothing it is the sink alone.
	PrefillChanged(dst, lse, q, k, v View, scale float32, c Changes) (empty int, err error)
	// Decode is Prefill for one unmasked query row: q and dst [H, 1, d], k and v [KV, T, d].
	Decode(dst, q, k, v View, scale float32) error
	// Linear writes x w^T + b: x [1, S, in], w [1, out, in], dst [1, S, out]; b [1, 1, out], or Mem nil.
	Linear(dst, x, w, b View) error
	// LSE writes the natural log of each row's sum of exp(scale * q.k) over the keys that m shows: q [H, S, d], k [KV, T, d],
	// dst [1, H, S]; -Inf for a row that sees nothing.
	LSE(dst, q, k View, scale float32, m Mask) error
	// Pool writes scores, or probabilities, S x T pooled into dst.S x dst.D: q [H, S, d], k [KV, T, d], dst [H, h, w]
	// with h <= S and w <= T. Cell (i, j) reduces the visible cells among the rows Edge(i, S, h) up to Edge(i+1, S, h) and the
	// columns Edge(j, T, w) up to Edge(j+1, T, w) ([plan.Edge]); it is exactly 0 where none is visible. Cells are
	// scores scale * q.k where lse.Mem is nil, else probabilities exp(score - lse), lse [1, H, S]; a row whose lse is +Inf is
	// NaN. No S x T matrix is made. A hidden key never reaches the result.
	Pool(dst, q, k, lse View, scale float32, m Mask, by Reduce) error
}

// Progresser is a backend that tells how far an op is.
type Progresser interface {
	// Progress is how much of the op that runs is done, from 0 to 1; 0 when none runs. It returns at once, in any goroutine.
	Progress() float64
}

// Trimmer is a backend that keeps the memory of freed arrays for later ones, where other processes could use it.
type Trimmer interface {
	// Trim gives back what is kept and not in use. It does not wait for queued work.
	Trim() error
}

// Interrupter is a backend whose long ops can be stopped from another goroutine.
type Interrupter interface {
	// Interrupt makes the op that runs now fail with ErrInterrupted, as soon as it can. It returns at once, and does
	// nothing when no op runs.
	Interrupt()
}
