package chain

import (
	"fmt"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/bound"
)

// Truth is a value in a replay.
type Truth struct {
	bound.Heads
	noise reference.Heads // variance of the error of each cell
	store.Meta
}

// op is one operation: how the device does it, and how a replay does. Both take the same parameters and see the inputs'
// shapes, axes and masks; run alone decides the output's.
type op struct {
	args     []string // what errors call the inputs; the names that cudaops uses
	optional int      // how many of the last ones may be missing
	variant  bool     // takes the tensors of a variant of attention behind them
	run      func(j *Job, p wire.Params, in []store.Operand) ([]store.Operand, error)
	replay   func(p wire.Params, in []Truth) ([]bound.Heads, error)
	noise    func(p wire.Params, in []Truth) (reference.Heads, error) // of the result of replay; nil: the op moves values
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

	wire.OpEmbedding: {args: []string{"table"}, run: runEmbedding, replay: replayEmbedding},
	wire.OpLayerNorm: {args: []string{"x", "w", "b"}, optional: 2, run: runLayerNorm, replay: replayLayerNorm, noise: noiseLayerNorm},
	wire.OpRMSNorm:   {args: []string{"x", "w"}, optional: 1, run: runRMSNorm, replay: replayRMSNorm, noise: noiseRMSNorm},
	wire.OpGELU:      activation(cudaops.GELU, reference.GELU),
	wire.OpGELUTanh:  activation(cudaops.GELUTanh, reference.GELUTanh),
	wire.OpSiLU:      activation(cudaops.SiLU, reference.SiLU),
	wire.OpMultiply:  {args: []string{"a", "b"}, run: runMultiply, replay: replayMultiply, noise: noiseMultiply},
}

// Job is one run of an op. It releases the views that the op made on its way.
type Job struct {
	D     *cudaops.Device // does the work
	op    wire.Op
	views []*cudaops.Buffer
}

// NewJob is a run of op on d. The caller ends it by Done.
func NewJob(d *cudaops.Device, op wire.Op) *Job { return &Job{D: d, op: op} }

// Keep notes a buffer to be released when the job is done.
func (j *Job) Keep(b *cudaops.Buffer, err error) (*cudaops.Buffer, error) {
	if err == nil {
		j.views = append(j.views, b)
	}
	return b, err
}

// Done releases the views.
func (j *Job) Done() {
	for _, b := range j.views {
		_ = b.Release() // each was made by this job, once
	}
}

// refuse is a refusal of this package; names are those of the op's inputs that it is about.
func (j *Job) refuse(names []string, format string, args ...any) error {
	e := &cudaops.InputError{Op: j.op.String(), Reason: fmt.Sprintf(format, args...)}
	for _, n := range names {
		e.Args = append(e.Args, cudaops.Arg{Name: n})
	}
	return e
}

// one wraps the single result of an op.
func one(b *cudaops.Buffer, err error, m store.Meta) ([]store.Operand, error) {
	if err != nil {
		return nil, err
	}
	return []store.Operand{{Buf: b, Meta: m}}, nil
}

// one1 wraps the single result of a replay.
func one1(h bound.Heads, err error) ([]bound.Heads, error) { return []bound.Heads{h}, err }

// Heads sees an input as [H, S, d].
func (j *Job) Heads(name string, x store.Operand) (*cudaops.Buffer, error) {
	if len(x.Shape) > 3 {
		return nil, j.refuse([]string{name}, "%d dimensions are too many: pick one with Batch(i)", len(x.Shape))
	}
	if !x.Swapped() {
		return x.Buf, nil
	}
	return j.Keep(x.Buf.Transpose())
}

// back turns a result [H, S, d] into the arrangement of x. It takes over b.
func (j *Job) back(b *cudaops.Buffer, err error, x store.Operand) (*cudaops.Buffer, error) {
	if err != nil || !x.Swapped() {
		return b, err
	}
	t, err := b.Transpose()
	_ = b.Release()
	return t, err
}

// ByHead sees a value as [H, S, d], and backTo is the inverse.
func ByHead(x Truth) (bound.Heads, error) {
	if !x.Swapped() {
		return x.Heads, nil
	}
	return bound.Swap(x.Heads)
}

func backTo(h bound.Heads, err error, x Truth) ([]bound.Heads, error) {
	if err != nil || !x.Swapped() {
		return one1(h, err)
	}
	return one1(bound.Swap(h))
}

// alike is the meta of a result that is arranged as x, [H, S, d] with these sizes.
func alike(x store.Operand, h, s, d int) store.Meta {
	m := store.Meta{Axes: x.Axes}
	switch {
	case len(x.Shape) == 1:
		m.Shape = []int{d}
	case len(x.Shape) == 2 && x.Swapped():
		m.Shape = []int{h, d}
	case len(x.Shape) == 2:
		m.Shape = []int{s, d}
	case x.Swapped():
		m.Shape = []int{s, h, d}
	default:
		m.Shape = []int{h, s, d}
	}
	return m
}
