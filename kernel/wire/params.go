package wire

// Op names an operation on tensors. Inputs are listed in order.
type Op uint8

const (
	OpNone      Op = iota
	OpSplit        // fused [seq, hidden] -> q, k, v
	OpRoPE         // x
	OpScores       // q, k
	OpSoftmax      // scores
	OpContext      // probabilities, v
	OpPrefill      // q, k, v
	OpDecode       // q, k, v
	OpAppend       // old, rows
	OpMerge        // [heads, seq, dim] -> [seq, hidden]
	OpHeads        // [seq, hidden] -> [heads, seq, dim], the inverse of Merge
	OpSwap         // exchanges the first two axes: [seq, heads, dim] -> [heads, seq, dim], [out, in] -> [in, out]
	OpAdd          // a, b
	OpLinear       // x, w [, b]
	OpIndex        // entry Index of the axis Axis: one head, one item of a batch
	OpRows         // rows Index .. Index+Count of the sequence
	OpAxes         // the same values, their dimensions called Axes
	OpEmbedding    // table: rows Tokens of it
	OpLayerNorm    // x [, w [, b]]
	OpRMSNorm      // x [, w]
	OpGELU         // x
	OpGELUTanh     // x
	OpSiLU         // x
	OpMultiply     // a, b
	opEnd
)

var opNames = [opEnd]string{"", "SplitHeads", "RoPE", "Scores", "Softmax", "Context", "Prefill", "Decode", "AppendKV",
	"Merge", "Heads", "Swap", "Add", "Linear", "Index", "Rows", "Axes", "Embedding", "LayerNorm", "RMSNorm", "GELU", "GELUTanh", "SiLU", "Multiply"}

// String is the name of the notebook function that does it.
func (o Op) String() string {
	if o < opEnd {
		return opNames[o]
	}
	return "unknown op"
}

// Layout says how Q, K and V share a fused row.
type Layout uint8

const (
	LayoutGPT2    Layout = iota // all of Q, all of K, all of V
	LayoutNeoX                  // q k v of head 0, q k v of head 1, ...
	LayoutGrouped               // for each KV head: its query heads, k, v
)

func (l Layout) String() string {
	switch l {
	case LayoutGPT2:
		return "GPT2"
	case LayoutNeoX:
		return "NeoX"
	case LayoutGrouped:
		return "Grouped"
	}
	return "unknown layout"
}

// Mask says which keys a query sees.
type Mask uint8

const (
	MaskDefault  Mask = iota // what the scores carry, if anything; none elsewhere
	MaskNone                 // every query sees every key
	MaskCausal               // the last query sees the last key (bottom-right): query i sees keys up to T-S+i
	MaskDiagonal             // query i sees keys up to Diagonal+i
	MaskAt                   // every query sees every key, and query i stands at key Diagonal+i: what windows and documents go by
)

// ScalingKind is how a RoPE is stretched to positions beyond those of a model's training.
type ScalingKind uint8

const (
	ScalingNone ScalingKind = iota
	ScalingLinear
	ScalingDynamicNTK
	ScalingLlama3
	ScalingYaRN
)

// Scaling are the parameters of all kinds; each reads its own. What 0 means is said in package reference.
type Scaling struct {
	Kind       ScalingKind
	Factor     float64
	Trained    int     // positions of the training
	Length     int     // ScalingDynamicNTK: rows of the sequence
	Low, High  float64 // turns: ScalingLlama3 low and high, ScalingYaRN slow and fast
	Fractional bool    // ScalingYaRN: the ramp ends within pairs
}

func (x *Scaling) fields(c *codec) {
	enum(c, 1, &x.Kind)
	c.float(2, &x.Factor)
	c.int(3, &x.Trained)
	c.int(4, &x.Length)
	c.float(5, &x.Low)
	c.float(6, &x.High)
	c.bool(7, &x.Fractional)
}

// Tensors that an op takes behind its own inputs, as Params.Extras names them.
const (
	ExtraBias    = "bias"    // [heads or 1, query or 1, key], added to the scores
	ExtraAllowed = "allowed" // in shape as a bias: hides the keys where it is 0
	ExtraSinks   = "sinks"   // [heads], one more logit each
)

// Params holds every parameter of every op, so that a request, a recorded step of lineage and a step that is run
// again with another parameter are the same thing. An op reads its own and ignores the rest.
type Params struct {
	// OpSplit, OpHeads
	Layout  Layout
	Heads   int
	KVHeads int // OpSplit with LayoutGrouped

	// OpRoPE
	Rotary        int
	Base          float64 // 0 means 10000
	Interleaved   bool
	Offset        int
	Positions     []int     // one a row, instead of Offset
	InvFreq       []float64 // Rotary/2 values, instead of Base
	Float32Angles bool
	Magnitude     float64 // 0 means 1, or what the scaling says
	Scaling       *Scaling

	// OpScores, OpSoftmax, OpPrefill, OpDecode
	Scale    float64 // 0 means 1/sqrt(dim)
	Mask     Mask
	Diagonal int

	// The same, for variants of attention. OpScores hands them on to the softmax.
	Window            int // keys, the query's own included; 0: all
	PadLeft, PadRight int // keys that are hidden
	Documents         []int
	Softcap           float64   // 0: none
	ALiBi             bool      // with the usual slopes where Slopes are none
	Slopes            []float64 // one a head
	Extras            []string  // what the tensors are that come behind the op's own; not OpScores
	FirstSink         int       // of the sinks that are given, that of the first head

	// OpIndex, OpRows
	Index, Count int
	Axis         string

	Axes []string // OpAxes

	Tokens []int   // OpEmbedding
	Eps    float64 // OpLayerNorm, OpRMSNorm
}

func (p *Params) fields(c *codec) {
	enum(c, 1, &p.Layout)
	c.int(2, &p.Heads)
	c.int(3, &p.KVHeads)
	c.int(4, &p.Rotary)
	c.float(5, &p.Base)
	c.bool(6, &p.Interleaved)
	c.int(7, &p.Offset)
	c.ints(8, &p.Positions)
	c.floats(9, &p.InvFreq)
	c.bool(10, &p.Float32Angles)
	c.float(11, &p.Magnitude)
	c.float(12, &p.Scale)
	enum(c, 13, &p.Mask)
	c.int(14, &p.Diagonal)
	c.int(15, &p.Index)
	c.int(16, &p.Count)
	c.str(17, &p.Axis)
	c.strs(18, &p.Axes)
	optional(c, 19, &p.Scaling)
	c.int(20, &p.Window)
	c.int(21, &p.PadLeft)
	c.int(22, &p.PadRight)
	c.ints(23, &p.Documents)
	c.float(24, &p.Softcap)
	c.bool(25, &p.ALiBi)
	c.floats(26, &p.Slopes)
	c.strs(27, &p.Extras)
	c.int(28, &p.FirstSink)
	c.ints(29, &p.Tokens)
	c.float(30, &p.Eps)
}
