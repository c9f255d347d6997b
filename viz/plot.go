package viz

import (
	"fmt"
	"image"
	"math"
	"strings"
)

// Plot is one or more charts under each other over one shared axis of positions, as the keys of a query. Each chart has a
// scale of its own, which it states.
type Plot struct {
	Title string
	// Axis names the positions, as "key". Empty: "index".
	Axis string
	// From is the first position.
	From int
	// Labels are token labels, one for each position. Nil: numbers.
	Labels []string
	// Hatched is what a hidden position means. Empty: "masked".
	Hatched string
	Charts  []Chart
}

// Chart is one or more series on one scale, which holds 0.
type Chart struct {
	Name     string
	Quantity string // of the scale, with its unit; empty: "value"
	Note     string // stands beside the name
	Series   []Series
	// Low and High extend the scale, where they are not both 0.
	Low, High float64
}

// Series is one value for each position.
type Series struct {
	Name   string
	Style  Style
	Values []float32
	// Hidden says which positions are masked. A masked position has no value. Nil: none.
	Hidden func(i int) bool
}

// Style is how a series is drawn.
type Style uint8

const (
	Bars   Style = iota // from 0
	Curve               // a line through the values
	Within              // the area from -value to value, as of an envelope, behind everything else
)

// Bounds of a plot.
const (
	maxCharts = 16
	maxSeries = 4 // of a chart that is no area: there are as many inks
	plotWide  = 1180
	chartHigh = 190
)

func (p Plot) axis() string { return or(p.Axis, "index") }

func (p Plot) length() int { return len(p.Charts[0].Series[0].Values) }

// check refuses what cannot be drawn.
func (p Plot) check() error {
	bad := func(format string, args ...any) error {
		return &InputError{Title: p.Title, Matrix: -1, Reason: fmt.Sprintf(format, args...), what: "plot"}
	}
	if len(p.Charts) == 0 || len(p.Charts) > maxCharts {
		return bad("%d charts, must be 1 to %d", len(p.Charts), maxCharts)
	}
	for i, c := range p.Charts {
		inks := 0
		if len(c.Series) == 0 {
			return bad("chart %d has no series", i)
		}
		for k, s := range c.Series {
			switch {
			case len(s.Values) == 0:
				return bad("series %d of chart %d is empty", k, i)
			case len(s.Values) != p.length():
				return bad("series %d of chart %d has %d values, another has %d: charts share their axis", k, i, len(s.Values), p.length())
			case s.Style > Within:
				return bad("unknown style %d", s.Style)
			case s.Style != Within:
				inks++
			}
		}
		if inks > maxSeries {
			return bad("chart %d has %d series, at most %d can be told apart", i, inks, maxSeries)
		}
		if !(c.Low <= c.High) || math.IsInf(c.Low, 0) || math.IsInf(c.High, 0) {
			return bad("chart %d goes from %g to %g", i, c.Low, c.High)
		}
	}
	if p.Labels != nil && len(p.Labels) != p.length() {
		return bad("%d labels for %d positions", len(p.Labels), p.length())
	}
	return nil
}

// PNG renders the plot as a labelled picture. The error is an *[InputError].
func (p Plot) PNG() ([]byte, error) {
	made, err := p.Picture()
	return made.PNG, err
}

// Picture is [Plot.PNG] and [Plot.Alt] in one, with the size at which to show it.
func (p Plot) Picture() (Picture, error) {
	d, err := p.draw()
	if err != nil {
		return Picture{}, err
	}
	return d.picture(p.Title)
}

// Alt describes the plot in plain text: the range of each series and where its extremes are.
func (p Plot) Alt() string {
	if err := p.check(); err != nil {
		return err.Error()
	}
	return p.describe(p.plotted())
}

// plotted is a chart with what its values are.
type plotted struct {
	Chart
	series []cells // pooled to what is drawn
	each   []summary
	all    summary
	scale  scale
}

// matrix is a series as one row.
func (s Series) matrix() Matrix {
	m := Matrix{Rows: 1, Cols: len(s.Values), Values: s.Values}
	if s.Hidden != nil {
		m.Hidden = func(_, col int) bool { return s.Hidden(col) }
	}
	return m
}

// per is how many positions one column of pixels stands for.
func (p Plot) per() int { return ceilDiv(p.length(), plotWide) }

func (p Plot) plotted() []plotted {
	out := make([]plotted, len(p.Charts))
	for i, c := range p.Charts {
		x := plotted{Chart: c}
		for _, s := range c.Series {
			var one summary
			x.series = append(x.series, Heatmap{Kind: Signed, Matrices: []Matrix{s.matrix()}}.pool(0, 1, p.per(), &one))
			x.each = append(x.each, one)
			low, high := one.min, one.max
			if s.Style == Within {
				high = max(math.Abs(low), math.Abs(high))
				low = -high
			}
			x.all.min, x.all.max = min(x.all.min, low), max(x.all.max, high)
			for k, n := range one.count {
				x.all.count[k] += n
			}
		}
		x.scale = scale{kind: Signed, lo: min(x.all.min, c.Low), hi: max(x.all.max, c.High)}
		if x.scale.lo == x.scale.hi {
			x.scale.hi = 1
		}
		out[i] = x
	}
	return out
}

func (p Plot) describe(charts []plotted) string {
	var b strings.Builder
	if p.Title != "" {
		fmt.Fprintf(&b, "%s. ", visible(p.Title))
	}
	fmt.Fprintf(&b, "%s over %d %s.", counted(len(charts), "chart"), p.length(), visible(p.axis()))
	for _, c := range charts {
		for k, s := range c.Series {
			name := c.Name
			if len(c.Series) > 1 {
				name = strings.Trim(name+", "+s.Name, ", ")
			}
			fmt.Fprintf(&b, " %s (%s):", visible(or(name, "chart")), visible(or(c.Quantity, "value")))
			switch one := c.each[k]; {
			case one.count[finite] == 0:
				b.WriteString(" no finite value.")
			case one.min == one.max:
				fmt.Fprintf(&b, " all %s.", exact(one.min))
			default:
				fmt.Fprintf(&b, " from %s at %s to %s at %s.", exact(one.min), p.where(one.minAt.col, visible), exact(one.max), p.where(one.maxAt.col, visible))
			}
			for _, class := range []class{masked, nan, posInf, negInf} {
				if n := c.each[k].count[class]; n > 0 {
					name := class.name()
					if class == masked {
						name = visible(or(p.Hatched, name))
					}
					fmt.Fprintf(&b, " %s: %s, first %s.", name, counted(n, "position"), p.where(c.each[k].first[class].col, visible))
				}
			}
		}
		if c.Note != "" {
			fmt.Fprintf(&b, " %s.", visible(c.Note))
		}
	}
	return b.String()
}

// where names a position: `key 3 “cat”`.
func (p Plot) where(i int, quote func(string) string) string {
	s := fmt.Sprintf("%s %d", quote(p.axis()), p.From+i)
	if p.Labels != nil {
		s += fmt.Sprintf(" “%s”", quote(p.Labels[i]))
	}
	return s
}

// inks of the series of a chart, in order: places in the diverging map that hold on paper for the colour-blind.
var inks = [maxSeries]uint8{steps / 8, steps * 13 / 16, ink, steps * 3 / 8}

// area is the ink of what lies within an envelope.
const area = steps*3/8 + 8

// plotLayout says where everything is.
type plotLayout struct {
	subtitle []string
	step     int // pixels of a column
	per      int // positions of a column
	boxes    []image.Rectangle
	ticks    [][]barTick
	columns  layout // of the shared axis: colTicks, turn
	legend   [][]entryOf
	legendAt int
	size     image.Point
}

// entryOf is a series or a class in the legend.
type entryOf struct {
	class class
	ink   uint8
	style Style
	text  string
}
