package attn

import "github.com/attnb/attnb/kernel/wire"

func ofDrawing(set func(*wire.Drawing)) ViewOption {
	return ViewOption{func(r *wire.Request) {
		if r.Draw == nil {
			r.Draw = new(wire.Drawing)
		}
		set(r.Draw)
	}}
}

var (
	// Statistics puts numbers beside each head of a Heatmap or Interactive of probabilities: entropy (bits), distance attended
	// (keys) and the share of key 0, each the mean over the queries that see anything, computed in float64.
	Statistics ViewOption = ofDrawing(func(d *wire.Drawing) { d.Statistics = true })

	// Enlarge makes the panels of a Heatmap ones to click: a click shows one large, another goes back. It works without a kernel,
	// in a notebook that is trusted.
	Enlarge ViewOption = ViewOption{func(r *wire.Request) { r.Style = wire.StyleGallery }}
)

// What [Layers] shows of each head. Without one of these it is the entropy.
var (
	Entropy   ViewOption = ofDrawing(func(d *wire.Drawing) { d.Statistic = wire.StatisticEntropy })  // bits
	Distance  ViewOption = ofDrawing(func(d *wire.Drawing) { d.Statistic = wire.StatisticDistance }) // keys from the query
	SinkShare ViewOption = ofDrawing(func(d *wire.Drawing) { d.Statistic = wire.StatisticSink })     // weight on key 0
)

// Layers shows one cell a head: layer i is the probabilities [heads, query, key] of layers[i]. Each cell is a mean over the queries
// that see anything, of the entropy, or what [Distance] or [SinkShare] ask for.
func Layers(layers []Tensor, options ...ViewOption) { drawing(wire.SubjectLayers, options, layers) }

// Trace shows one query on its way to the context, on one axis of keys: its scores, what the mask leaves of them, the
// probabilities, how much each value adds (|p| |v|) and its share of the context (p v.c / c.c, which together are 1). scores
// is what [Scores] makes, v [kv heads, seq, dim]. Of several heads, [OnlyHead] picks one. What softcap, ALiBi or a bias make of the scores
// has a chart of its own; the options of [Tensor.Softmax] are options here.
func Trace(scores, v Tensor, query int, options ...MapOption) {
	at := ofDrawing(func(d *wire.Drawing) { d.Query = query })
	drawing(wire.SubjectTrace, append([]MapOption{at}, options...), []Tensor{scores, v})
}

// Decoding shows the probabilities of a decode run as one growing picture: a row a query, step after step. steps[i] is [heads,
// query, key], where keys may become more. Keys that a step did not have yet are left white; masked ones are hatched. Tokens
// are those of the keys of the last step.
func Decoding(steps []Tensor, options ...ViewOption) { drawing(wire.SubjectDecoding, options, steps) }

// Timeline shows when each slot of a cache was written, and to which position its row was rotated, by the calls that made x: rows
// that it began with, [AppendKV], and Rows(0, n), which trims it. Holes and overwritten rows have colours of their own.
func (x Tensor) Timeline(options ...ViewOption) {
	drawing(wire.SubjectTimeline, options, []Tensor{x})
}

// Write is what one step did to a cache: the slots that it wrote, and the positions of their rows, or nil where they are not known.
type Write struct{ Slots, Positions []int }

// Writes shows the timeline of a cache that is not one of this kernel, step by step, as of a paged cache or of one that goes round.
func Writes(steps []Write, options ...ViewOption) {
	all := ofDrawing(func(d *wire.Drawing) {
		for _, s := range steps {
			d.Writes = append(d.Writes, wire.CacheWrite{Slots: s.Slots, Positions: s.Positions})
		}
	})
	drawing(wire.SubjectTimeline, append([]ViewOption{all}, options...), nil)
}

// Phasors shows by which angle each pair of dims turns in the first rows, and under it q.k over the distance of the rows for q and k
// that are all ones, with its envelope. [Beside] adds another setting on the same axes.
func (r Rotation) Phasors(rows int, options ...ViewOption) {
	mine := ofDrawing(func(d *wire.Drawing) {
		d.Rows, d.Rotations = rows, append([]wire.Params{r.p}, d.Rotations...)
	})
	drawing(wire.SubjectRotation, append(append([]ViewOption{}, options...), mine), nil)
}

// Beside shows another setting in the same picture of Phasors.
func Beside(r Rotation) ViewOption {
	return ofDrawing(func(d *wire.Drawing) { d.Rotations = append(d.Rotations, r.p) })
}

var (
	// Differences has Check and Compare show both sides on one scale, and mine - expected on its own, white where they agree. The
	// worst cell is marked.
	Differences ViewOption = ofDrawing(func(d *wire.Drawing) { d.Difference = wire.DifferenceSigned })
	// ULP is Differences in f32 steps (units in the last place), on a scale that is logarithmic beyond the first few.
	ULP ViewOption = ofDrawing(func(d *wire.Drawing) { d.Difference = wire.DifferenceSteps })
)

func drawing[O MapOption](s wire.Subject, options []O, xs []Tensor) {
	r := wire.Request{Kind: wire.KindDraw, Draw: &wire.Drawing{Subject: s}}
	for _, x := range xs {
		r.IDs = append(r.IDs, x.t.ID)
	}
	for _, o := range options {
		o.apply(&r)
	}
	if r.Map != nil { // OnlyHead is one of Map's, too
		r.Draw.Heads, r.Map.Heads = r.Map.Heads, nil
		if m := r.Map; m.Rows == 0 && m.Cols == 0 && m.Queries == nil && m.Keys == nil && m.Quantity == 0 && m.Reduce == 0 {
			r.Map = nil
		}
	}
	check(r)
	publish("", do(r).DisplayID)
}

// checkDrawing stops the cell where an option of a drawing belongs to something else.
func checkDrawing(r wire.Request) {
	if r.Style == wire.StyleGallery && r.Kind != wire.KindPicture {
		stop("Enlarge is an option of Heatmap")
	}
	d := r.Draw
	if d == nil {
		return
	}
	if d.Statistics && r.Kind != wire.KindPicture {
		stop("Statistics is an option of Heatmap and Interactive")
	}
	if d.Difference != 0 && r.Kind != wire.KindCheck && r.Kind != wire.KindCompare {
		stop("Differences and ULP are options of Check and Compare")
	}
	if d.Statistic != 0 && d.Subject != wire.SubjectLayers {
		stop("Entropy, Distance and SinkShare are options of Layers")
	}
	if len(d.Rotations) > 0 && d.Subject != wire.SubjectRotation {
		stop("Beside is an option of Phasors")
	}
	if len(d.Heads) > 0 && d.Subject != wire.SubjectTrace && d.Subject != wire.SubjectDecoding {
		stop("OnlyHead is an option of Map, Trace and Decoding")
	}
	if len(r.Labels) > 0 && r.Kind == wire.KindDraw && d.Subject != wire.SubjectTrace && d.Subject != wire.SubjectDecoding {
		stop("Tokens label nothing in this picture")
	}
}
