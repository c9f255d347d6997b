package resident

import (
	"fmt"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/bound"
)

// operand is an input of an op that runs.
type operand struct {
	buf *cudaops.Buffer
	meta
}

// result is an output of an op.
type result struct {
	buf *cudaops.Buffer
	meta
}

// truth is a value in a replay.
type truth struct {
	bound.Heads
	noise reference.Heads // variance of the error of each cell
	meta
}

// op is one operation: how the device does it, and how a replay does. Both take the same parameters and see the inputs'
// shapes, axes and masks; run alone decides the output's.
type op struct {
	args     []string // what errors call the inputs; the names that cudaops uses
	optional int      // how many of the last ones may be missing
	variant  bool     // takes the tensors of a variant of attention behind them
	run      func(j *job, p wire.Params, in []operand) ([]result, error)
	replay   func(p wire.Params, in []truth) ([]bound.Heads, error)
	noise    func(p wire.Params, in []truth) (reference.Heads, error) // of the result of replay; nil: the op moves values
}

// ops is the table of all operations.
var ops = map[wire.Op]op{
	wire.OpSplit:   {args: []string{"x"}, run: runSplit, replay: replaySplit},
	wire.OpHeads:   {args: []string{"x"}, run: runHeads, replay: replayHeads},
	wire.OpMerge:   {args: []string{"x"}, run: runMerge, replay: replayMerge},
	wire.OpSwap:    {args: []string{"x"}, run: runSwap, replay: replaySwap},
	wire.OpAxes:    {args: []string{"x"}, run: runAxes, replay: replayAxes},
	wire.OpIndex:   {args: []string{"x"}, run: runIndex, replay: replayIndex},
	wire.OpRows:    {args: []string{"x"}, run: runRows, replay: replayRows},
	wire.OpRoPE:    {args: []string{"x"}, run: runRoPE, replay: replayRoPE, noise: noiseRoPE},
	wire.OpScores:  {args: []string{"q", "k"}, run: runScores, replay: replayScores, noise: noiseScores},
	wire.OpSoftmax: {args: []string{"x"}, variant: true, run: runSoftmax, replay: replaySoftmax, noise: noiseSoftmax},
	wire.OpContext: {args: []string{"p", "v"}, run: runContext, replay: replayContext, noise: noiseContext},
	wire.OpPrefill: {args: []string{"q", "k", "v"}, variant: true, run: runPrefill, replay: replayPrefill, noise: noisePrefill},
	wire.OpDecode:  {args: []string{"q", "k", "v"}, variant: true, run: runDecode, replay: replayDecode, noise: noiseDecode},
	wire.OpAppend:  {args: []string{"cache", "rows"}, run: runAppend, replay: replayAppend},
	wire.OpAdd:     {args: []string{"a", "b"}, run: runAdd, replay: replayAdd, noise: noiseAdd},
	wire.OpLinear:  {args: []string{"x", "w", "b"}, optional: 1, run: runLinear, replay: replayLinear, noise: noiseLinear},
}

// job is one run of an op. It releases the views that the op made on its way.
type job struct {
	d     *cudaops.Device
	op    wire.Op
	views []*cudaops.Buffer
}

// view notes a buffer to be released when the job is done.
func (j *job) view(b *cudaops.Buffer, err error) (*cudaops.Buffer, error) {
	if err == nil {
		j.views = append(j.views, b)
	}
	return b, err
}

func (j *job) done() {
	for _, b := range j.views {
		_ = b.Release() // each was made by this job, once
	}
}

// refuse is a refusal of this package; names are those of the op's inputs that it is about.
func (j *job) refuse(names []string, format string, args ...any) error {
	e := &cudaops.InputError{Op: j.op.String(), Reason: fmt.Sprintf(format, args...)}
	for _, n := range names {
		e.Args = append(e.Args, cudaops.Arg{Name: n})
	}
	return e
}

// one wraps the single result of an op.
func one(b *cudaops.Buffer, err error, m meta) ([]result, error) {
	if err != nil {
		return nil, err
	}
	return []result{{b, m}}, nil
}

// one1 wraps the single result of a replay.
func one1(h bound.Heads, err error) ([]bound.Heads, error) { return []bound.Heads{h}, err }

// fold is how a shape lies in the [H, S, D] of a buffer: the last dimension is D, the one before S, the rest H.
func fold(shape []int) (h, s, d int) {
	h, s, d = 1, 1, shape[len(shape)-1]
	if len(shape) > 1 {
		s = shape[len(shape)-2]
	}
	for _, n := range shape[:max(0, len(shape)-2)] {
		h *= n
	}
	return h, s, d
}

// swapped says that the tensor has its heads where a buffer has its rows: [seq, heads, dim], or one row of it, [heads, dim].
func (m meta) swapped() bool {
	switch len(m.shape) {
	case 2:
		return m.axes[0] == "heads"
	case 3:
		return m.axes[1] == "heads"
	}
	return false
}

// rows is the number of rows of each head.
func (m meta) rows() int {
	switch {
	case len(m.shape) == 1 || len(m.shape) == 2 && m.swapped():
		return 1
	case m.swapped():
		return m.shape[0]
	}
	return m.shape[len(m.shape)-2]
}

// heads sees an input as [H, S, d].
func (j *job) heads(name string, x operand) (*cudaops.Buffer, error) {
	if len(x.shape) > 3 {
		return nil, j.refuse([]string{name}, "%d dimensions are too many: pick one with Batch(i)", len(x.shape))
	}
	if !x.swapped() {
		return x.buf, nil
	}
	return j.view(x.buf.Transpose())
}

// back turns a result [H, S, d] into the arrangement of x. It takes over b.
func (j *job) back(b *cudaops.Buffer, err error, x operand) (*cudaops.Buffer, error) {
	if err != nil || !x.swapped() {
		return b, err
	}
	t, err := b.Transpose()
	_ = b.Release()
	return t, err
}

// headsOf and backTo are the same for a replay.
func headsOf(x truth) (bound.Heads, error) {
	if !x.swapped() {
		return x.Heads, nil
	}
	return bound.Swap(x.Heads)
}

func backTo(h bound.Heads, err error, x truth) ([]bound.Heads, error) {
	if err != nil || !x.swapped() {
		return one1(h, err)
	}
	return one1(bound.Swap(h))
}

// alike is the meta of a result that is arranged as x, [H, S, d] with these sizes.
func alike(x operand, h, s, d int) meta {
	m := meta{axes: x.axes}
	switch {
	case len(x.shape) == 1:
		m.shape = []int{d}
	case len(x.shape) == 2 && x.swapped():
		m.shape = []int{h, d}
	case len(x.shape) == 2:
		m.shape = []int{s, d}
	case x.swapped():
		m.shape = []int{s, h, d}
	default:
		m.shape = []int{h, s, d}
	}
	return m
}
