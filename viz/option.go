package viz

import (
	"encoding/json"
	"fmt"
	"image"
	"strconv"

	"github.com/go-echarts/go-echarts/v2/charts"
	"github.com/go-echarts/go-echarts/v2/opts"
)

// option is the ECharts option that go-echarts makes for the heatmap, without the cells: heatmap.js fills those in from the
// f32 values. JSON knows no NaN and no infinity, and go-echarts drops the whole option, silently, at the first one.
func (h Heatmap) option(l layout) (map[string]any, error) {
	chart := charts.NewHeatMap()
	chart.XAxisList, chart.YAxisList = nil, nil
	colours := h.Kind.colours()
	ramp := make([]string, len(colours))
	for i, c := range colours {
		ramp[i] = hex(c)
	}
	chart.SetGlobalOptions(
		charts.WithAnimation(false),
		charts.WithTooltipOpts(opts.Tooltip{Show: opts.Bool(true), Trigger: "item"}),
		charts.WithVisualMapOpts(opts.VisualMap{
			Type: "continuous", Orient: "vertical", Calculable: opts.Bool(false), Dimension: "2",
			Left: px(l.bar.Min.X), Top: px(l.bar.Min.Y), InRange: &opts.VisualMapInRange{Color: ramp},
		}),
		charts.WithDataZoomOpts(
			opts.DataZoom{Type: "inside", FilterMode: "filter", XAxisIndex: "all"},
			opts.DataZoom{Type: "inside", FilterMode: "filter", YAxisIndex: "all"}),
	)
	rows, cols := display(h.RowLabels, h.rows(), h.rowSpan()), display(h.ColLabels, h.cols(), h.colSpan())
	for i, p := range l.panels {
		chart.GridList = append(chart.GridList, opts.Grid{
			Show: opts.Bool(true), Left: px(p.Min.X), Top: px(p.Min.Y), Width: px(p.Dx()), Height: px(p.Dy()),
		})
		x := opts.XAxis{GridIndex: i, Type: "category", Data: cols, AxisTick: &opts.AxisTick{Show: opts.Bool(false)}, AxisLabel: &opts.AxisLabel{Show: opts.Bool(false)}}
		y := opts.YAxis{GridIndex: i, Type: "category", Data: rows, Inverse: opts.Bool(true), AxisLabel: &opts.AxisLabel{Show: opts.Bool(false)}}
		if i+l.across >= len(l.panels) {
			x.Name, x.NameLocation, x.NameGap = h.colAxis(), "middle", l.colRoom/density+12
			x.AxisLabel = &opts.AxisLabel{Show: opts.Bool(true), Rotate: l.turn, HideOverlap: opts.Bool(true)}
			x.AxisTick = &opts.AxisTick{Show: opts.Bool(true), AlignWithLabel: opts.Bool(true)}
		}
		if i%l.across == 0 {
			y.Name, y.NameLocation, y.NameGap = h.rowAxis(), "middle", l.rowRoom/density+16
			y.AxisLabel = &opts.AxisLabel{Show: opts.Bool(true), HideOverlap: opts.Bool(true)}
		}
		chart.ExtendXAxis(x)
		chart.ExtendYAxis(y)
		chart.AddSeries(h.Matrices[i].Name, []opts.HeatMapData{},
			charts.WithHeatMapChartOpts(opts.HeatMapChart{XAxisIndex: i, YAxisIndex: i}),
			charts.WithEmphasisOpts(opts.Emphasis{ItemStyle: &opts.ItemStyle{BorderColor: "#ff8c00", BorderWidth: 2}}))
	}
	for _, m := range h.Marks {
		chart.AddSeries("", []opts.HeatMapData{}, charts.WithHeatMapChartOpts(opts.HeatMapChart{XAxisIndex: m.Matrix, YAxisIndex: m.Matrix}))
	}
	chart.Validate()
	return repaired(chart.JSON(), l)
}

// repaired writes into the option what go-echarts cannot say or says wrongly: bounds of 0, which it drops (ECharts then takes
// 0 to 200), progressive drawing of a series, which makes heatmaps slow, and what it has no fields for.
func repaired(made map[string]any, l layout) (map[string]any, error) {
	raw, err := json.Marshal(made)
	if err != nil {
		return nil, fmt.Errorf("heatmap: chart option: %w", err)
	}
	var o map[string]any
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, fmt.Errorf("heatmap: chart option: %w", err)
	}
	for _, unused := range []string{"legend", "toolbox", "title", "color"} {
		delete(o, unused)
	}
	set(o["visualMap"], map[string]any{
		"min": 0, "max": 1, "dimension": 2, "itemWidth": l.bar.Dx() / density, "itemHeight": l.bar.Dy() / density, "padding": 0, "text": []string{"", ""},
		"textGap": 0, "indicatorSize": 0, "hoverLink": false, // its label would show the place in the map, not the value
	})
	set(o["dataZoom"], map[string]any{"zoomOnMouseWheel": "ctrl", "moveOnMouseMove": true, "moveOnMouseWheel": false})
	set(o["series"], map[string]any{"progressive": 0})
	series := o["series"].([]any)
	set(series[len(l.panels):], map[string]any{"z": 4, "silent": false})
	for i, axis := range o["yAxis"].([]any) {
		set(axis, map[string]any{"axisTick": map[string]any{"show": i%l.across == 0, "alignWithLabel": true}})
	}
	set(o["tooltip"], map[string]any{"confine": true, "transitionDuration": 0})
	return o, nil
}

// set writes fields into an object, or into every object of a list.
func set(into any, fields map[string]any) {
	switch o := into.(type) {
	case map[string]any:
		for k, v := range fields {
			o[k] = v
		}
	case []any:
		for _, e := range o {
			set(e, fields)
		}
	}
}

// display are the labels of an axis; without labels the indices, of pooled rows the first.
func display(labels []string, n int, s Span) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = strconv.Itoa(s.edge(i, n))
		if labels != nil {
			out[i] = shortened(visible(labels[i]))
		}
	}
	return out
}

// visible makes a label readable where any font may show it.
func visible(label string) string { return shown(label, func(rune) bool { return true }) }

// shortened keeps a label on the axis; the tooltip has all of it.
func shortened(s string) string {
	const most = 20
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// px is a length of the layout in CSS pixels.
func px(v int) string { return strconv.FormatFloat(float64(v)/density, 'f', -1, 64) }

func css(p image.Point) (x, y float64) { return float64(p.X) / density, float64(p.Y) / density }
