package attn

import "github.com/attnb/attnb/kernel/wire"

// MapOption is a setting of Map or Trace: a [ViewOption] such as Title or PoolMean, or, of Map(q, k) and Trace, an [Option] such as Causal.
type MapOption interface{ apply(*wire.Request) }

func (o Option) apply(r *wire.Request) {
	if o.set != nil {
		o.set(&r.Params)
	}
	if o.extra != "" {
		r.Params.Extras, r.IDs = append(r.Params.Extras, o.extra), append(r.IDs, o.x.t.ID)
	}
}

func (o ViewOption) apply(r *wire.Request) {
	if o.set != nil {
		o.set(r)
	}
}

// Map shows the attention of queries to keys as a picture, at any length: the matrix is never made. q is [heads, seq, dim], k [kv
// heads, seq, dim]. Of long sequences each cell of the picture stands for many cells of the matrix, and the picture says so.
//
//	attn.Map(q, k, attn.Causal)                                      // probabilities: the largest of each pool
//	attn.Map(q, k, attn.Causal, attn.PoolMean, attn.Log)             // their mean, on a logarithmic scale
//	attn.Map(q, k, attn.Causal, attn.OfScores, attn.OnlyHead(3))     // before the softmax, one head
//	attn.Map(q, k, attn.Causal, attn.Queries(4096, 4160), attn.Keys(4000, 4160))
//
// Without Causal or CausalAt every query sees every key. What is masked takes no part in a pool. Every option of [Prefill] is one of a map of
// queries and keys: Window, KeyPadding, Documents, Softcap, ALiBi, Bias, Allowed, Sinks. With these a map is made of chunks of rows, and
// takes longer: the device makes their scores, the rest is computed in float64 beside it.
//
// On a page the picture zooms (ctrl and the wheel, or the wheel after a click; drag; double click for all; keys), down to single
// cells with their exact values, which the device process computes on demand as long as the picture is live: until its
// cell runs again, or 64 others came after it. q and k stay in memory meanwhile. What is stored in the notebook zooms without
// a kernel; where no script runs there is the picture as it was made.
func Map(q, k Tensor, options ...MapOption) { drawMap(options, q, k) }

// Map shows a matrix that is there, such as scores or probabilities, as [Map] does: pooled, in a window, one head or all.
// Heatmap shows all of it, by the value of the largest magnitude.
func (x Tensor) Map(options ...ViewOption) {
	as := make([]MapOption, len(options))
	for i, o := range options {
		as[i] = o
	}
	drawMap(as, x)
}

func drawMap(options []MapOption, xs ...Tensor) {
	r := wire.Request{Kind: wire.KindMap, Map: &wire.Map{Live: true}}
	for _, x := range xs {
		r.IDs = append(r.IDs, x.t.ID)
	}
	for _, o := range options {
		o.apply(&r)
	}
	check(r)
	publish("", do(r).DisplayID)
}

func ofMap(set func(*wire.Map)) ViewOption {
	return ViewOption{func(r *wire.Request) {
		if r.Map == nil {
			r.Map = new(wire.Map) // which check refuses
		}
		set(r.Map)
	}}
}

func reduce(by wire.Reduce) ViewOption { return ofMap(func(m *wire.Map) { m.Reduce = by }) }

// What one cell of a map is of the visible cells that it stands for. Without one of these it is the largest.
var (
	PoolMax  ViewOption = reduce(wire.ReduceMax)
	PoolMean ViewOption = reduce(wire.ReduceMean)
	PoolSum  ViewOption = reduce(wire.ReduceSum)
	PoolMin  ViewOption = reduce(wire.ReduceMin)
)

// OfScores maps scale * q.k, before mask and softmax, instead of probabilities.
var OfScores ViewOption = ofMap(func(m *wire.Map) { m.Quantity = wire.QuantityScores })

// Log shows probabilities on a logarithmic scale, in a Map or Heatmap: long rows are nearly all dark on a linear one. What is
// exactly 0 has a colour of its own.
var Log ViewOption = ViewOption{func(r *wire.Request) { r.Log = true }}

// OnlyHead shows one head, from 0, in a Map, Trace or Decoding.
func OnlyHead(i int) ViewOption { return ofMap(func(m *wire.Map) { m.Heads = []int{i} }) }

// Queries maps the queries from up to but without to, counted from 0.
func Queries(from, to int) ViewOption {
	return ofMap(func(m *wire.Map) { m.Queries = []int{from, to} })
}

// Keys maps the keys from up to but without to, counted from 0.
func Keys(from, to int) ViewOption { return ofMap(func(m *wire.Map) { m.Keys = []int{from, to} }) }

// Size is how many cells a map has at most, each way, instead of 512. Where several heads share a picture it may be fewer.
func Size(cells int) ViewOption {
	return ofMap(func(m *wire.Map) {
		if cells < 1 {
			cells = -1 // 0 on the wire is the usual size; check refuses
		}
		m.Rows, m.Cols = cells, cells
	})
}
