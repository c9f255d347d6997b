package viz

import (
	"image"
	"math"
	"strconv"
)

// under sets a column label below (x, y), turned, and returns how low it reaches.
func (c *canvas) under(x, y float64, s string, turn float64, st style) float64 {
	w := st.face.width(s, st.size)
	if turn == 0 {
		c.centre(x, y+st.size*0.5, s, st)
		return y + st.size*1.1
	}
	st.turn = turn
	sin, cos := math.Sincos(turn * math.Pi / 180)
	// the end of the line comes to lie under the tick; half a letter's height across the line centres it there
	half := st.size * capHalf
	c.text(x-w*cos+half*sin, y+w*sin+half*cos, s, st)
	return y + w*sin + st.size*0.7
}

// leastValue and mostValue bound the size of numbers written in cells.
const (
	leastValue = 17
	mostValue  = 23
)

func roomForNumbers(cell image.Point) bool { return cell.Y >= leastValue*3/2 && cell.X >= leastValue*2 }

// worthSaying is the share of its bound from which a cell's error is written: of a check that passes hundreds of small numbers say nothing.
const worthSaying = 0.1

// numbers are the texts of all cells and the size that they fit in; nil where they do not fit.
func (d *drawing) numbers() (texts [][]string, size float64) {
	l := d.layout
	if d.Kind == Angles || l.pool != image.Pt(1, 1) || !roomForNumbers(l.cell) {
		return nil, 0
	}
	write := formatFor(d.scale)
	longest := 0.0
	for i, m := range d.matrices {
		t := make([]string, len(m.value))
		for k, v := range m.value {
			switch {
			case d.written != nil:
				t[k] = d.written(i, k/m.cols, k%m.cols)
			case m.class[k] <= masked:
				continue
			case d.Kind == Errors && m.class[k] <= finite && v < worthSaying:
				continue
			case m.class[k] == zero:
				t[k] = "0"
			case m.class[k] == finite:
				t[k] = write(float64(v))
			default:
				t[k] = m.class[k].name()
			}
			longest = max(longest, regular().width(t[k], 1))
		}
		texts = append(texts, t)
	}
	if longest == 0 {
		return nil, 0
	}
	size = min(mostValue, float64(l.cell.X-10)/longest, float64(l.cell.Y)*0.55)
	if size < leastValue {
		return nil, 0
	}
	return texts, size
}

// numbers writes the texts of all panels into their cells.
func (c *canvas) numbers(l layout, matrices []cells, all [][]string, size float64) {
	for i, texts := range all {
		p := l.panels[i]
		for k, s := range texts {
			x := p.Min.X + k%matrices[i].cols*l.cell.X + l.cell.X/2
			y := p.Min.Y + k/matrices[i].cols*l.cell.Y + l.cell.Y/2
			under := c.Pix[c.PixOffset(x, y)]
			c.centre(float64(x), float64(y), s, style{face: regular(), size: size, ink: c.inkOn(under)})
		}
	}
}

// formatFor writes values of a scale shortly: fixed decimals by its size, or powers of ten. Exactly zero is "0", so that
// "0.00" is a value that is not.
func formatFor(sc scale) func(float64) string {
	most := max(math.Abs(sc.lo), math.Abs(sc.hi))
	return func(v float64) string {
		switch {
		case v == 0:
			return strconv.FormatFloat(v, 'g', 1, 64)
		case sc.kind == Steps && v == math.Trunc(v) && math.Abs(v) < 1e5:
			return strconv.FormatFloat(v, 'f', 0, 64)
		case sc.kind == LogProbabilities || sc.kind == Steps || most >= 1e5 || most < 0.01:
			return number(v, 2)
		case most >= 1000:
			return strconv.FormatFloat(v, 'f', 0, 64)
		case most >= 100:
			return strconv.FormatFloat(v, 'f', 1, 64)
		}
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
}

// leastRing is the smallest outline, so that one pixel can be found.
const leastRing = 16

// marks outlines the marked cells and points at their row and column from the panel's edge.
func (c *canvas) marks(l layout, marks []Mark) {
	for i, m := range marks {
		p := l.panels[m.Matrix]
		x := p.Min.X + m.Col/l.pool.X*l.cell.X
		y := p.Min.Y + m.Row/l.pool.Y*l.cell.Y
		r := image.Rect(x, y, x+l.cell.X, y+l.cell.Y)
		if d := leastRing - r.Dx(); d > 0 {
			r.Min.X, r.Max.X = r.Min.X-d/2, r.Max.X+d-d/2
		}
		if d := leastRing - r.Dy(); d > 0 {
			r.Min.Y, r.Max.Y = r.Min.Y-d/2, r.Max.Y+d-d/2
		}
		c.ring(r)
		if len(marks) > 1 {
			n := strconv.Itoa(i + 1)
			tag := image.Rect(r.Max.X+2, r.Min.Y-4, r.Max.X+2+24, r.Min.Y+20)
			if tag.Max.X > p.Max.X {
				tag = tag.Sub(image.Pt(r.Dx()+28, 0))
			}
			c.fill(tag, white)
			c.frame(tag, 1, black)
			c.centre(float64(tag.Min.X)+12, float64(tag.Min.Y)+12, n, style{face: bold(), size: 18, ink: black})
		}
	}
}

// ring is a black outline between two white ones: visible on every colour.
func (c *canvas) ring(r image.Rectangle) {
	c.frame(r, 5, white)
	c.frame(r, 4, black)
	c.frame(r, 1, white)
}
