// Package viz draws attention: scores, probabilities, differences and error maps, a query on its way to its context, caches over time,
// rotations. It knows matrices, not devices or kernels. A Go program that has a matrix renders it in three lines:
//
//	h := viz.Heatmap{Title: "Scores", Matrices: []viz.Matrix{{Rows: 2, Cols: 2, Values: values}}}
//	err := viz.Save("scores.png", h)                      // a labelled picture at any size
//	err = errors.Join(err, viz.Save("scores.html", h))    // a page: values under the pointer, zoom
//
// What there is to draw:
//
//	[Heatmap]   one matrix or small multiples of several on one stated scale
//	[Plot]      bars, curves and envelopes over one shared axis, as of keys, each chart with its own stated scale
//	[Timeline]  a cache: which slot was written at which step, and holds the row of which position
//	[Sheet]     several of these in one picture
//
// Each has its picture as PNG and the same in words, its Alt. A heatmap is also an interactive view with every cell's exact
// value ([Heatmap.HTML]: go-echarts makes the chart's option, Apache ECharts, embedded, draws it), or panels that a click
// enlarges, without any script ([Heatmap.Gallery]). All of them can be told apart by the colour-blind, and stand on paper of their
// own, on a light page and on a dark one.
//
// # What the colours say
//
// All matrices of a heatmap share one scale, and the colour bar states it. Probabilities run from 0 to the largest value,
// scores and signed values from -m to m, where m is the largest magnitude, errors (error / bound) from 0 over the
// threshold 1. The maps have even perceptual steps and hold for the colour-blind.
//
// LogProbabilities are on a logarithmic scale: what is exactly 0 is white, and counted in the legend. Amounts run from 0 as probabilities do.
// Steps, differences in f32 steps, are diverging and logarithmic beyond the first few. Angles go round a circle: white at 0, blue
// above it, orange below, dark at π, and an arrow in each cell where there is room.
//
// A masked cell has no value, so it is hatched grey and never the colour of 0. NaN, +Inf and -Inf have colours of their own,
// that no map contains, and no part in the scale. The legend counts each. Where cells are pooled, NaN wins over +Inf, that over
// -Inf, that over values, and a value over a masked cell; among values the one of the largest magnitude is drawn, of angles the
// first. A cell that does not exist, as a key that an early step of a run did not have yet, is left as paper ([Matrix.Absent]), and in a
// timeline holes are black and what is overwritten is pink.
//
// # Pictures of any size
//
// [Heatmap.Zooming] is a picture that a page zooms into, down to single cells, with what is stored in it, or with what a kernel supplies
// ([Zoom]). It is one fragment of HTML, of at most 1 MB of a notebook together with its PNG.
//
// # Windows and pooled matrices
//
// A matrix may be a window of a larger one, or its cells may stand for many: [Span] says for which. Axes then show
// the indices of the whole, and the subtitle the window and what a cell is of those that it stands for.
//
// # Labels
//
// Token labels may be any string. A line break shows as ↵, a space at either end as ␣; what is invisible, invalid UTF-8, or (in a
// PNG) missing in the font is escaped as in Go. In the interactive view a label is text, never markup.
package viz
