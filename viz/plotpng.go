package viz

import (
	"fmt"
	"image"
	"math"
)

func (p Plot) draw() (drawn, error) {
	if err := p.check(); err != nil {
		return drawn{}, err
	}
	charts := p.plotted()
	l := p.layout(charts)
	c := newCanvas(l.size.X, l.size.Y, Signed)
	y := float64(margin)
	room := float64(l.size.X - 2*margin)
	if p.Title != "" {
		c.text(margin, y+titleSize*0.85, bold().fit(printed(bold(), p.Title), titleSize, room), style{face: bold(), size: titleSize, ink: ink})
		y += titleSize * leading
	}
	for _, s := range l.subtitle {
		c.text(margin, y+subtitleSize*0.9, s, style{face: regular(), size: subtitleSize, ink: dim})
		y += subtitleSize * leading
	}
	for i, x := range charts {
		c.chart(l, i, x)
	}
	c.positions(l, p)
	c.entries(l)
	return drawn{c.Paletted, p.describe(charts)}, nil
}

func (p Plot) subtitle(charts []plotted) []string {
	s := []string{fmt.Sprintf("%s %d–%d", printed(regular(), p.axis()), p.From, p.From+p.length()-1)}
	if len(p.Charts) > 1 {
		of := "one scale"
		for _, c := range charts[1:] {
			if c.scale != charts[0].scale {
				of = "each with its own scale"
			}
		}
		s = append(s, fmt.Sprintf("%d charts on one axis, %s", len(p.Charts), of))
	}
	if per := p.per(); per > 1 {
		s = append(s, fmt.Sprintf("pooled: each column is the largest magnitude of %d positions", per))
	}
	return s
}

func (p Plot) layout(charts []plotted) plotLayout {
	n := p.length()
	l := plotLayout{per: p.per()}
	shown := ceilDiv(n, l.per)
	l.step = min(max(plotWide/shown, 1), 72)
	left := 0.0
	for _, c := range charts {
		for _, v := range c.scale.ticks() {
			left = max(left, regular().width(c.scale.text(v), tickSize))
		}
	}
	x := whole(margin + int(left) + lineOf(axisSize) + tickLength + 16)
	y := margin
	if p.Title != "" {
		y += lineOf(titleSize)
	}
	wide := shown * l.step
	width := max(x+wide+margin, minText+2*margin)
	if p.Title != "" {
		width = max(width, min(2*margin+int(bold().width(printed(bold(), p.Title), titleSize))+2, allWide))
	}
	for _, c := range charts {
		width = max(width, min(x+int(c.headWidth())+2+margin, allWide))
	}
	l.subtitle = wrap(p.subtitle(charts), " • ", subtitleSize, float64(width-2*margin))
	y = whole(y + len(l.subtitle)*lineOf(subtitleSize) + 14)
	for i := range charts {
		box := image.Rect(x, y+lineOf(nameSize)+8, x+wide, y+lineOf(nameSize)+8+chartHigh)
		l.boxes = append(l.boxes, box)
		l.ticks = append(l.ticks, layout{bar: inner(box)}.barTicks(charts[i].scale))
		y = box.Max.Y + 22
	}
	axis := Heatmap{ColLabels: p.Labels, ColSpan: Span{p.From, p.From + n}, Matrices: []Matrix{{Rows: 1, Cols: n}}}
	if p.Labels == nil && p.From < 0 { // an index of a heatmap is never below 0; that of a distance may be
		axis.ColSpan = Span{}
	}
	l.columns = layout{cell: image.Pt(l.step, chartHigh), pool: image.Pt(l.per, 1)}
	high := l.columns.columns(axis)
	y = l.boxes[len(l.boxes)-1].Max.Y + tickLength + high + 8 + lineOf(axisSize) + 8
	l.legendAt = y
	for _, e := range p.legendOf(charts) {
		w := e.width()
		if k := len(l.legend) - 1; k >= 0 && lineWidth(l.legend[k])+w <= float64(width-2*margin)+2.5*space {
			l.legend[k] = append(l.legend[k], e)
			continue
		}
		e.text = regular().fit(e.text, legendSize, float64(width-2*margin-swatch-space))
		l.legend = append(l.legend, []entryOf{e})
	}
	y += len(l.legend) * (lineOf(legendSize) + 7)
	l.size = image.Pt(width, y+margin-6)
	return l
}

func (e entryOf) width() float64 { return entry{text: e.text}.width() }

func lineWidth(line []entryOf) float64 {
	sum := 0.0
	for _, e := range line {
		sum += e.width()
	}
	return sum
}

// legendOf names the series of charts that have several, each once, and the classes that occur.
func (p Plot) legendOf(charts []plotted) []entryOf {
	var all []entryOf
	seen := map[string]bool{}
	var count [classes]int
	for _, c := range charts {
		k := 0
		for _, s := range c.Series {
			e := entryOf{finite, area, s.Style, printed(regular(), s.Name)}
			if s.Style != Within {
				e.ink = inks[k]
				k++
			}
			if id := fmt.Sprint(e.ink, e.text); e.text != "" && !seen[id] {
				seen[id] = true
				all = append(all, e)
			}
		}
		for class, n := range c.all.count {
			count[class] += n
		}
	}
	for _, class := range []class{masked, nan, posInf, negInf} {
		if n := count[class]; n > 0 {
			text := class.name()
			if class == masked {
				text = or(printed(regular(), p.Hatched), text)
			}
			all = append(all, entryOf{class: class, text: text})
		}
	}
	return all
}

// inner is where values lie in the box of a chart: the thickness of a line clear of its frame.
func inner(b image.Rectangle) image.Rectangle {
	return image.Rect(b.Min.X, b.Min.Y+5, b.Max.X, b.Max.Y-3)
}

// height is where a value lies in a box.
func height(b image.Rectangle, s scale, v float64) float64 {
	b = inner(b)
	return float64(b.Max.Y-1) - s.norm(v)*float64(b.Dy()-1)
}

const beforeNote = 18 // between the name of a chart and its note

// headWidth is what the name and the note of a chart take.
func (x plotted) headWidth() float64 {
	w := bold().width(printed(bold(), x.Name), nameSize)
	if x.Note != "" {
		w += beforeNote + regular().width(printed(regular(), x.Note), tickSize)
	}
	return w
}

func (c *canvas) chart(l plotLayout, i int, x plotted) {
	b := l.boxes[i]
	ticks := style{face: regular(), size: tickSize, ink: dim}
	name := bold().fit(printed(bold(), x.Name), nameSize, float64(c.Rect.Max.X-margin-b.Min.X))
	at := float64(b.Min.Y) - nameSize*0.45
	c.text(float64(b.Min.X), at, name, style{face: bold(), size: nameSize, ink: ink})
	if x.Note != "" {
		from := float64(b.Min.X) + bold().width(name, nameSize) + beforeNote
		c.text(from, at, regular().fit(printed(regular(), x.Note), tickSize, float64(c.Rect.Max.X-margin)-from), ticks)
	}
	c.frame(b, 1, line)
	for _, t := range l.ticks[i] {
		c.fill(image.Rect(b.Min.X-1-tickLength, t.y-1, b.Min.X-1, t.y+1), line)
		c.right(float64(b.Min.X-tickLength-6), float64(t.y), x.scale.text(t.value), ticks)
	}
	k := 0
	zero := int(math.Round(height(b, x.scale, 0)))
	for pass := range 2 { // areas lie behind the rest
		if pass == 1 {
			c.fill(image.Rect(b.Min.X, zero, b.Max.X, zero+1), dim)
			for _, m := range x.series { // before any line: another series may have a value there
				c.gaps(l, b, m)
			}
		}
		for j, s := range x.Series {
			if (s.Style == Within) != (pass == 0) {
				continue
			}
			with := uint8(area)
			if s.Style != Within {
				with = inks[k]
				k++
			}
			c.series(l, b, x.scale, s.Style, x.series[j], with)
		}
	}
	turned := style{face: regular(), size: tickSize, ink: ink, turn: 90}
	quantity := regular().fit(printed(regular(), or(x.Quantity, "value")), tickSize, chartHigh+20)
	c.text(margin+tickSize*0.8, float64(b.Min.Y+b.Dy()/2)+regular().width(quantity, tickSize)/2, quantity, turned)
}

// gaps draws the positions without a value, each a column of the colour of what it is.
func (c *canvas) gaps(l plotLayout, b image.Rectangle, m cells) {
	for i, class := range m.class {
		col := image.Rect(b.Min.X+i*l.step, b.Min.Y, b.Min.X+(i+1)*l.step, b.Max.Y)
		switch {
		case class == masked:
			c.fillMasked(col)
		case class != finite && class != zero:
			c.fill(col, indexOf[class])
			c.sign(col, class)
		}
	}
}

// series draws one.
func (c *canvas) series(l plotLayout, b image.Rectangle, s scale, st Style, m cells, with uint8) {
	zero := height(b, s, 0)
	var run [][2]float64
	flush := func() {
		if st == Within {
			c.area(run, zero, float64(l.step)/2, with)
			run = nil
			return
		}
		if len(run) == 1 { // alone between gaps
			p := run[0]
			run = [][2]float64{{p[0] - 3, p[1]}, {p[0] + 3, p[1]}}
		}
		c.stroke(run, 3, with)
		run = nil
	}
	for i, v := range m.value {
		col := image.Rect(b.Min.X+i*l.step, b.Min.Y, b.Min.X+(i+1)*l.step, b.Max.Y)
		y := height(b, s, float64(v))
		switch {
		case m.class[i] != finite:
			flush()
		case st == Bars:
			inset := 0
			if l.step >= 6 {
				inset = l.step / 6
			}
			top, low := int(math.Round(min(y, zero))), int(math.Round(max(y, zero)))
			if v > 0 { // what is not 0 shows
				top = min(top, low-2)
			} else if v < 0 {
				low = max(low, top+2)
			}
			c.fill(image.Rect(col.Min.X+inset, top, col.Max.X-inset, low), with)
		default:
			run = append(run, [2]float64{float64(col.Min.X) + float64(l.step)/2, y})
		}
	}
	flush()
}

// area fills what lies between a line and its mirror at a height, half a column beyond its ends.
func (c *canvas) area(points [][2]float64, zero, beyond float64, with uint8) {
	n := len(points)
	if n == 0 {
		return
	}
	line := append([][2]float64{{points[0][0] - beyond, points[0][1]}}, points...)
	line = append(line, [2]float64{points[n-1][0] + beyond, points[n-1][1]})
	for i := len(line) - 1; i >= 0; i-- {
		line = append(line, [2]float64{line[i][0], 2*zero - line[i][1]})
	}
	c.shapes(with, line)
}

// positions draws the shared axis under the last chart.
func (c *canvas) positions(l plotLayout, p Plot) {
	b := l.boxes[len(l.boxes)-1]
	low := 0.0
	for _, t := range l.columns.colTicks {
		mid := b.Min.X + centreOf(t.index, l.per, l.step)
		c.fill(image.Rect(mid-1, b.Max.Y+1, mid+1, b.Max.Y+1+tickLength), line)
		low = max(low, c.under(float64(mid), float64(b.Max.Y+tickLength+6), t.text, l.columns.turn, style{face: regular(), size: tickSize, ink: dim}))
	}
	name := regular().fit(printed(regular(), p.axis()), axisSize, float64(max(b.Dx(), 160)))
	c.centre(float64(b.Min.X+b.Dx()/2), low+axisSize*0.75, name, style{face: regular(), size: axisSize, ink: ink})
}

// entries draws the legend.
func (c *canvas) entries(l plotLayout) {
	y := l.legendAt
	for _, entries := range l.legend {
		x := margin
		for _, e := range entries {
			r := image.Rect(x, y, x+swatch, y+swatch)
			switch {
			case e.class == masked:
				c.fillMasked(r)
				c.frame(r, 1, line)
			case e.class != finite:
				c.fill(r, indexOf[e.class])
				c.sign(r, e.class)
				c.frame(r, 1, line)
			case e.style == Curve:
				c.fill(image.Rect(x, y+swatch/2-2, x+swatch, y+swatch/2+2), e.ink)
			default:
				c.fill(r.Inset(3), e.ink)
			}
			c.left(float64(x+swatch+space), float64(y)+swatch/2, e.text, style{face: regular(), size: legendSize, ink: ink})
			x += int(e.width())
		}
		y += lineOf(legendSize) + 7
	}
}
