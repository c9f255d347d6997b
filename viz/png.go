package viz

import (
	"image"
	"strconv"
)

// PNG renders the heatmap as a labelled picture of its own background. A matrix with more cells than there are pixels for
// is pooled, and the subtitle says so. The error is an *[InputError].
func (h Heatmap) PNG() ([]byte, error) {
	p, err := h.Picture()
	return p.PNG, err
}

// Picture is [Heatmap.PNG] and [Heatmap.Alt] in one pass over the cells, with the size at which to show it.
func (h Heatmap) Picture() (Picture, error) {
	if err := h.check(); err != nil {
		return Picture{}, err
	}
	return h.prepare().picture()
}

// drawing is a heatmap ready to be drawn.
type drawing struct {
	Heatmap
	summary  summary
	scale    scale
	matrices []cells // pooled
	layout   layout
}

func (h Heatmap) prepare() *drawing {
	d := &drawing{Heatmap: h, matrices: make([]cells, len(h.Matrices))}
	across, cell, pool := h.grid()
	for i := range h.Matrices {
		d.matrices[i] = h.pool(i, pool.Y, pool.X, &d.summary)
	}
	if d.scale = h.Kind.scale(d.summary); h.shared != nil {
		d.scale = *h.shared
	}
	d.layout = h.plan(d.scale, h.subtitle(d.summary, pool), h.legend(d.summary, printedLabel), pool, cell, across)
	return d
}

func (d *drawing) picture() (Picture, error) {
	return drawn{d.paint().Paletted, d.describe(d.summary)}.picture(d.Title)
}

// paint draws everything.
func (d *drawing) paint() *canvas {
	l := d.layout
	c := newCanvas(l.width, l.height, d.Kind)
	texts, size := d.numbers()
	for i, m := range d.matrices {
		c.panel(l, i, m, d.scale, texts != nil)
	}
	c.numbers(l, d.matrices, texts, size)
	if d.Kind == Angles {
		c.arrows(l, d.matrices)
	}
	c.marks(l, d.Marks)
	c.labels(l, d.Heatmap)
	c.bar(l, d.scale)
	c.legend(l)
	return c
}

// panel draws the cells of a matrix. Where their values are to be written in them, so are the names of their classes.
func (c *canvas) panel(l layout, i int, m cells, sc scale, written bool) {
	p := l.panels[i]
	c.frame(p, 1, line)
	for row := range m.rows {
		first := image.Rect(p.Min.X, p.Min.Y+row*l.cell.Y, p.Max.X, p.Min.Y+(row+1)*l.cell.Y)
		for col := range m.cols {
			k := row*m.cols + col
			r := image.Rect(p.Min.X+col*l.cell.X, first.Min.Y, p.Min.X+(col+1)*l.cell.X, first.Max.Y)
			switch m.class[k] {
			case absent:
			case masked:
				c.fillMasked(r)
			case finite:
				c.fill(r, uint8(step(sc.norm(float64(m.value[k])), steps)))
			default:
				c.fill(r, indexOf[m.class[k]])
				if !written || m.class[k] == hole {
					c.sign(r, m.class[k])
				}
			}
		}
	}
}

// labels draws titles, names, axes and ticks.
func (c *canvas) labels(l layout, h Heatmap) {
	y := float64(margin)
	for _, s := range l.titleLines {
		c.text(margin, y+titleSize*0.85, s, style{face: bold(), size: titleSize, ink: ink})
		y += titleSize * leading
	}
	for _, s := range l.subtitleLines {
		c.text(margin, y+subtitleSize*0.9, s, style{face: regular(), size: subtitleSize, ink: dim})
		y += subtitleSize * leading
	}
	n := len(l.panels)
	ticks := style{face: regular(), size: tickSize, ink: dim}
	axis := style{face: regular(), size: axisSize, ink: ink}
	for i, p := range l.panels {
		if name := h.Matrices[i].Name; name != "" && l.named {
			c.text(float64(p.Min.X), float64(p.Min.Y-l.noteRoom)-nameSize*0.42,
				bold().fit(printed(bold(), name), nameSize, float64(p.Dx())), style{face: bold(), size: nameSize, ink: ink})
		}
		for k, s := range l.notesOf(i) {
			c.left(float64(p.Min.X), float64(p.Min.Y-l.noteRoom+k*lineOf(tickSize))+tickSize*0.6, s, ticks)
		}
		if i%l.across == 0 {
			for _, t := range l.rowTicks {
				mid := p.Min.Y + centreOf(t.index, l.pool.Y, l.cell.Y)
				c.fill(image.Rect(p.Min.X-1-tickLength, mid-1, p.Min.X-1, mid+1), line)
				c.right(float64(p.Min.X-tickLength-6), float64(mid), t.text, ticks)
			}
			turned := axis
			turned.turn = 90
			name := regular().fit(printed(regular(), h.rowAxis()), axisSize, float64(max(p.Dy(), 160)))
			w := regular().width(name, axisSize)
			c.text(margin+axisSize*0.8, float64(p.Min.Y+p.Dy()/2)+w/2, name, turned)
		}
		if i+l.across >= n {
			low := 0.0
			for _, t := range l.colTicks {
				mid := p.Min.X + centreOf(t.index, l.pool.X, l.cell.X)
				c.fill(image.Rect(mid-1, p.Max.Y+1, mid+1, p.Max.Y+1+tickLength), line)
				low = max(low, c.under(float64(mid), float64(p.Max.Y+tickLength+6), t.text, l.turn, ticks))
			}
			name := regular().fit(printed(regular(), h.colAxis()), axisSize, float64(max(p.Dx(), 160)))
			c.centre(float64(p.Min.X+p.Dx()/2), low+axisSize*0.75, name, axis)
		}
	}
}

// centreOf is where the middle of a row or column lies in a panel, in pixels.
func centreOf(index, pool, cell int) int { return index/pool*cell + cell/2 }

// bar draws the colour bar.
func (c *canvas) bar(l layout, sc scale) {
	b := l.bar
	c.frame(b, 1, line)
	for y := b.Min.Y; y < b.Max.Y; y++ {
		t := 1 - (float64(y-b.Min.Y)+0.5)/float64(b.Dy())
		c.fill(image.Rect(b.Min.X, y, b.Max.X, y+1), uint8(step(sc.barColour(t), steps)))
	}
	st := style{face: regular(), size: tickSize, ink: dim}
	strong := style{face: bold(), size: tickSize, ink: ink}
	c.left(float64(b.Min.X), float64(b.Min.Y)-barNameGap, l.quantity, style{face: regular(), size: tickSize, ink: ink})
	for _, t := range l.barTicks(sc) {
		at := image.Rect(b.Max.X+1, t.y-1, b.Max.X+1+tickLength, t.y+1)
		if t.strong { // across the bar
			at.Min.X = b.Min.X - 4
			c.fill(at, ink)
			c.left(float64(b.Max.X+tickLength+6), float64(t.y), sc.text(t.value), strong)
			continue
		}
		c.fill(at, line)
		c.left(float64(b.Max.X+tickLength+6), float64(t.y), sc.text(t.value), st)
	}
}

// legend draws the signs under the picture.
func (c *canvas) legend(l layout) {
	st := style{face: regular(), size: legendSize, ink: ink}
	y := l.legendTop
	for _, entries := range l.legendLines {
		x := margin
		for _, e := range entries {
			r := image.Rect(x, y, x+swatch, y+swatch)
			switch {
			case e.mark > 0:
				c.ring(r.Inset(5))
				if n := strconv.Itoa(e.mark); e.mark > 1 || severalMarks(l) {
					c.centre(float64(x)+swatch/2, float64(y)+swatch/2, n, style{face: bold(), size: 15, ink: ink})
				}
			case e.class == masked:
				c.fillMasked(r)
				c.frame(r, 1, line)
			default: // of an absent cell paper in a frame
				c.fill(r, indexOf[e.class])
				c.sign(r, e.class)
				c.frame(r, 1, line)
			}
			c.left(float64(x+swatch+space), float64(y)+swatch/2, e.text, st)
			x += int(e.width())
		}
		y += lineOf(legendSize) + 7
	}
}

func severalMarks(l layout) bool {
	for _, line := range l.legendLines {
		for _, e := range line {
			if e.mark > 1 {
				return true
			}
		}
	}
	return false
}
