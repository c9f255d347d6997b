package wire

// Op names an operation on tensors. Inputs are listed in order.
type Op uint8

const (
	OpNone    Op = iota
	OpSplit      // fused [seq, hidden] -> q, k, v
	OpRoPE       // x
	OpScores     // q, k
	OpSoftmax    // scores
	OpContext    // probabilities, v
	OpPrefill    // q, k, v
	OpDecode     // q, k, v
	OpAppend     // old, rows
	OpMerge      // [heads, seq, dim] -> [seq, hidden]
	OpHeads      // [seq, hidden] -> [heads, seq, dim], the inverse of Merge
	OpSwap       // exchanges the first two axes: [seq, heads, dim] -> [heads, seq, dim], [out, in] -> [in, out]
	OpAdd        // a, b
	OpLinear     // x, w [, b]
	OpIndex      // entry Index of the axis Axis: one head, one item of a batch
	OpRows       // rows Index .. Index+Count of the sequence
	OpAxes       // the same values, their dimensions called Axes
	opEnd
)

var opNames = [opEnd]string{"", "SplitHeads", "RoPE", "Scores", "Softmax", "Context", "Prefill", "Decode", "AppendKV",
	"Merge", "Heads", "Swap", "Add", "Linear", "Index", "Rows", "Axes"}

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
	Magnitude     float64 // 0 means 1

	// OpScores, OpSoftmax, OpPrefill, OpDecode
	Scale    float64 // 0 means 1/sqrt(dim)
	Mask     Mask
	Diagonal int

	// OpIndex, OpRows
	Index, Count int
	Axis         string

	Axes []string // OpAxes
}

func (p *Params) encode(e *encoder) {
	e.int(1, int(p.Layout))
	e.int(2, p.Heads)
	e.int(3, p.KVHeads)
	e.int(4, p.Rotary)
	e.float(5, p.Base)
	e.bool(6, p.Interleaved)
	e.int(7, p.Offset)
	e.ints(8, p.Positions)
	e.floats(9, p.InvFreq)
	e.bool(10, p.Float32Angles)
	e.float(11, p.Magnitude)
	e.float(12, p.Scale)
	e.int(13, int(p.Mask))
	e.int(14, p.Diagonal)
	e.int(15, p.Index)
	e.int(16, p.Count)
	e.str(17, p.Axis)
	e.strs(18, p.Axes)
}

func (p *Params) decode(d *decoder) {
	for {
		t, ok := d.more()
		if !ok {
			return
		}
		switch t {
		case 1:
			p.Layout = Layout(d.small())
		case 2:
			p.Heads = d.int()
		case 3:
			p.KVHeads = d.int()
		case 4:
			p.Rotary = d.int()
		case 5:
			p.Base = d.float()
		case 6:
			p.Interleaved = d.bool()
		case 7:
			p.Offset = d.int()
		case 8:
			p.Positions = d.ints()
		case 9:
			p.InvFreq = d.floats()
		case 10:
			p.Float32Angles = d.bool()
		case 11:
			p.Magnitude = d.float()
		case 12:
			p.Scale = d.float()
		case 13:
			p.Mask = Mask(d.small())
		case 14:
			p.Diagonal = d.int()
		case 15:
			p.Index = d.int()
		case 16:
			p.Count = d.int()
		case 17:
			p.Axis = d.str()
		case 18:
			p.Axes = d.strs()
		default:
			d.unknown()
		}
	}
}
