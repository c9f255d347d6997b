package viz

import (
	"image"
	"math"
)

// leastArrow is the side in pixels of a cell from which it bears an arrow.
const leastArrow = 16

// arrows draws each angle as a phasor: to the right at 0, counter-clockwise as it grows.
func (c *canvas) arrows(l layout, matrices []cells) {
	side := min(l.cell.X, l.cell.Y)
	if side < leastArrow || l.pool != image.Pt(1, 1) {
		return
	}
	length := 0.4 * float64(min(side, 52))
	for i, m := range matrices {
		p := l.panels[i]
		for k, v := range m.value {
			if m.class[k] != finite {
				continue
			}
			x := float64(p.Min.X+k%m.cols*l.cell.X) + float64(l.cell.X)/2
			y := float64(p.Min.Y+k/m.cols*l.cell.Y) + float64(l.cell.Y)/2
			c.arrow(x, y, float64(v), length, c.inkOn(c.Pix[c.PixOffset(int(x), int(y))]))
		}
	}
}

// arrow draws one around (x, y), half of it on either side.
func (c *canvas) arrow(x, y, angle, length float64, with uint8) {
	sin, cos := math.Sincos(angle)
	at := func(along, across float64) [2]float64 {
		return [2]float64{x + along*cos + across*sin, y - along*sin + across*cos}
	}
	thick := max(length*0.09, 0.9)
	head := length * 0.8
	c.shapes(with, [][2]float64{
		at(-length, -thick), at(length-head/2, -thick), at(length-head, -head*0.55), at(length, 0),
		at(length-head, head*0.55), at(length-head/2, thick), at(-length, thick),
	})
}

// shapes fills polygons with an ink.
func (c *canvas) shapes(with uint8, polygons ...[][2]float64) {
	x0, y0, x1, y1 := math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	for _, p := range polygons {
		for _, v := range p {
			x0, x1, y0, y1 = min(x0, v[0]), max(x1, v[0]), min(y0, v[1]), max(y1, v[1])
		}
	}
	box := image.Rect(int(x0)-1, int(y0)-1, int(x1)+2, int(y1)+2).Intersect(c.Rect)
	if box.Empty() {
		return
	}
	c.raster.Reset(box.Dx(), box.Dy())
	for _, p := range polygons {
		for i, v := range p {
			x, y := float32(v[0]-float64(box.Min.X)), float32(v[1]-float64(box.Min.Y))
			if i == 0 {
				c.raster.MoveTo(x, y)
			} else {
				c.raster.LineTo(x, y)
			}
		}
		c.raster.ClosePath()
	}
	c.ink(box, with)
}

// stroke draws a line through points, width pixels wide, as one outline: there along its left side, back along its right.
func (c *canvas) stroke(points [][2]float64, width float64, with uint8) {
	n := len(points)
	if n < 2 {
		return
	}
	side := make([][2]float64, n) // from a point to the left side
	for i := range points {
		ax, ay := direction(points[max(i-1, 0)], points[max(i, 1)])
		bx, by := direction(points[min(i, n-2)], points[min(i+1, n-1)])
		x, y, long := ax+bx, ay+by, math.Hypot(ax+bx, ay+by) // long is 2 cos of half the turn
		if long < 0.5 {                                      // nearly back: a tip would be far away
			x, y, long = bx, by, math.Sqrt2
		}
		side[i] = [2]float64{-y / (long * long) * width, x / (long * long) * width}
	}
	var outline [][2]float64
	for i, p := range points {
		outline = append(outline, [2]float64{p[0] + side[i][0], p[1] + side[i][1]})
	}
	for i := n - 1; i >= 0; i-- {
		outline = append(outline, [2]float64{points[i][0] - side[i][0], points[i][1] - side[i][1]})
	}
	c.shapes(with, outline)
}

// direction is from a to b, of length 1.
func direction(a, b [2]float64) (x, y float64) {
	x, y = b[0]-a[0], b[1]-a[1]
	d := math.Hypot(x, y)
	if d == 0 {
		return 1, 0
	}
	return x / d, y / d
}
