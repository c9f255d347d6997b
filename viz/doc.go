// Package viz draws matrices as heatmaps: attention scores, probabilities, differences and error maps. It knows matrices, not
// devices or kernels.
//
// A [Heatmap] renders in three ways: [Heatmap.PNG] is a labelled picture at any size, [Heatmap.HTML] an interactive view with
// every cell's exact value (go-echarts makes the chart's option, Apache ECharts, embedded, draws it), and [Heatmap.Alt]
// the same in words.
//
//	h := viz.Heatmap{Title: "Scores", Matrices: []viz.Matrix{{Rows: 2, Cols: 2, Values: values}}}
//	png, err := h.PNG()
//
// # What the colours say
//
// All matrices of a heatmap share one scale, and the colour bar states it. Probabilities run from 0 to the largest value,
// scores and signed values from -m to m, where m is the largest magnitude, errors (error / bound) from 0 over the
// threshold 1. The maps have even perceptual steps and hold for the colour-blind.
//
// LogProbabilities are on a logarithmic scale: what is exactly 0 is white, and counted in the legend.
//
// A masked cell has no value, so it is hatched grey and never the colour of 0. NaN, +Inf and -Inf have colours of their own,
// that no map contains, and no part in the scale. The legend counts each. Where cells are pooled, NaN wins over +Inf, that over
// -Inf, that over values, and a value over a masked cell; among values the one of the largest magnitude is drawn.
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
