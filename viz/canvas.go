package viz

import (
	"image"
	"image/color"
	"image/draw"
	"math"

	"golang.org/x/image/font"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// The palette of a picture: the colour map, then these. Blends for the edges of letters follow them.
const (
	paper = steps + iota
	ink
	dim
	line
	white
	black
	hatch
	maskedColour
	nanColour
	posInfColour
	negInfColour
	zeroColour // of LogProbabilities alone
)

// Where a cache is drawn there is no value that is not finite.
const (
	holeColour      = posInfColour
	rewrittenColour = nanColour
)

var named = [maskedColour - steps]color.RGBA{
	paper - steps: {0xFD, 0xFD, 0xFC, 0xFF},
	ink - steps:   {0x1E, 0x22, 0x28, 0xFF},
	dim - steps:   {0x5C, 0x63, 0x6D, 0xFF},
	line - steps:  {0xA9, 0xAE, 0xB6, 0xFF},
	white - steps: {0xFF, 0xFF, 0xFF, 0xFF},
	black - steps: {0x0C, 0x0D, 0x10, 0xFF},
	hatch - steps: hatching,
}

// indexOf is the palette entry of a class without a value.
var indexOf = [classes]uint8{absent: paper, masked: maskedColour, nan: nanColour, posInf: posInfColour, negInf: negInfColour, zero: zeroColour,
	hole: holeColour, rewritten: rewrittenColour}

// canvas is a paletted picture. A palette keeps it small; text is blended to the nearest of its colours.
type canvas struct {
	*image.Paletted
	colours []color.RGBA
	blends  map[blend]uint8
	buffer  sfnt.Buffer
	raster  vector.Rasterizer
	alpha   *image.Alpha
}

type blend struct{ under, ink, alpha uint8 }

// shades is the number of levels that the edge of a letter is blended in.
const shades = 8

func newCanvas(w, h int, k Kind) *canvas {
	c := &canvas{blends: map[blend]uint8{}}
	c.colours = append(append(c.colours, k.colours()...), named[:]...)
	special := []class{masked, nan, posInf, negInf}
	if k == slots {
		special = []class{masked, rewritten, hole, negInf}
	}
	for _, class := range special {
		c.colours = append(c.colours, k.classColours()[class])
	}
	if k == LogProbabilities {
		c.colours = append(c.colours, k.classColours()[zero])
	}
	for _, i := range []uint8{ink, dim} { // greys between paper and text
		for a := 1; a < shades; a++ {
			c.colours = append(c.colours, between(c.colours[paper], c.colours[i], float64(a)/shades))
		}
	}
	for i := 4; i < steps; i += 8 { // letters on the colours of the map
		for a := 1; a < 4; a++ {
			c.colours = append(c.colours, between(c.colours[i], c.colours[c.inkOn(uint8(i))], float64(a)/4))
		}
	}
	palette := make(color.Palette, len(c.colours))
	for i, v := range c.colours {
		palette[i] = v
	}
	c.Paletted = image.NewPaletted(image.Rect(0, 0, w, h), palette)
	c.fill(c.Rect, paper)
	return c
}

func between(a, b color.RGBA, t float64) color.RGBA {
	f := func(x, y uint8) uint8 { return uint8(math.Round(float64(x) + t*(float64(y)-float64(x)))) }
	return color.RGBA{f(a.R, b.R), f(a.G, b.G), f(a.B, b.B), 0xFF}
}

// darkest is the luminance up to which a ground takes white text.
const darkest = 0.22

// inkOn is the text colour that reads best on a palette colour.
func (c *canvas) inkOn(under uint8) uint8 {
	if luminance(c.colours[under]) > darkest {
		return black
	}
	return white
}

func (c *canvas) fill(r image.Rectangle, i uint8) {
	r = r.Intersect(c.Rect)
	if r.Empty() {
		return
	}
	first := c.Pix[c.PixOffset(r.Min.X, r.Min.Y):][:r.Dx()]
	for x := range first {
		first[x] = i
	}
	for y := r.Min.Y + 1; y < r.Max.Y; y++ {
		copy(c.Pix[c.PixOffset(r.Min.X, y):][:r.Dx()], first)
	}
}

// frame draws the border of r, width pixels wide, outside of it.
func (c *canvas) frame(r image.Rectangle, width int, i uint8) {
	o := r.Inset(-width)
	c.fill(image.Rect(o.Min.X, o.Min.Y, o.Max.X, r.Min.Y), i)
	c.fill(image.Rect(o.Min.X, r.Max.Y, o.Max.X, o.Max.Y), i)
	c.fill(image.Rect(o.Min.X, r.Min.Y, r.Min.X, r.Max.Y), i)
	c.fill(image.Rect(r.Max.X, r.Min.Y, o.Max.X, r.Max.Y), i)
}

// fillMasked hatches what has no value. The lines follow the picture's pixels, not the cell's, so they run on from cell to cell.
func (c *canvas) fillMasked(r image.Rectangle) {
	r = r.Intersect(c.Rect)
	for y := r.Min.Y; y < r.Max.Y; y++ {
		row := c.Pix[c.PixOffset(r.Min.X, y):][:r.Dx()]
		for x := range row {
			row[x] = maskedColour
			if (r.Min.X+x+y)%12 < 2 {
				row[x] = hatch
			}
		}
	}
}

// sign marks the cell of a class in shape as well as in colour, where there is room: a cross is not a number, a triangle points
// up or down to its infinity.
func (c *canvas) sign(r image.Rectangle, k class) {
	i := indexOf[k]
	side := min(r.Dx(), r.Dy())
	if side < leastSign {
		return
	}
	with := c.inkOn(i)
	half := min(side*3/10, 12)
	mid := r.Min.Add(r.Max).Div(2)
	for d := -half; d < half; d++ {
		switch k {
		case nan:
			c.fill(image.Rect(mid.X+d, mid.Y+d, mid.X+d+2, mid.Y+d+1), with)
			c.fill(image.Rect(mid.X-d-2, mid.Y+d, mid.X-d, mid.Y+d+1), with)
		case posInf:
			c.fill(image.Rect(mid.X-(d+half)/2, mid.Y+d, mid.X+(d+half)/2, mid.Y+d+1), with)
		case hole: // nothing in it: a frame
			c.fill(image.Rect(mid.X-half, mid.Y+d, mid.X-half+2, mid.Y+d+1), with)
			c.fill(image.Rect(mid.X+half-2, mid.Y+d, mid.X+half, mid.Y+d+1), with)
			c.fill(image.Rect(mid.X+d, mid.Y-half, mid.X+d+1, mid.Y-half+2), with)
			c.fill(image.Rect(mid.X+d, mid.Y+half-2, mid.X+d+1, mid.Y+half), with)
		case negInf:
			c.fill(image.Rect(mid.X-(half-d)/2, mid.Y+d, mid.X+(half-d)/2, mid.Y+d+1), with)
		}
	}
}

// leastSign is the size in pixels from which a cell bears a sign.
const leastSign = 10

// over blends an ink over a pixel.
func (c *canvas) over(under, with, alpha uint8) uint8 {
	level := (uint16(alpha)*shades + 127) / 255
	switch level {
	case 0:
		return under
	case shades:
		return with
	}
	key := blend{under, with, uint8(level)}
	if i, ok := c.blends[key]; ok {
		return i
	}
	want := between(c.colours[under], c.colours[with], float64(level)/shades)
	best, least := 0, math.MaxInt
	for i, v := range c.colours {
		r, g, b := int(v.R)-int(want.R), int(v.G)-int(want.G), int(v.B)-int(want.B)
		if d := 3*r*r + 6*g*g + b*b; d < least {
			best, least = i, d
		}
	}
	c.blends[key] = uint8(best)
	return uint8(best)
}

// style is how a text is set.
type style struct {
	face *typeface
	size float64 // pixels an em
	ink  uint8
	turn float64 // degrees, counter-clockwise
}

// text sets a line with its baseline beginning at (x, y).
func (c *canvas) text(x, y float64, s string, st style) {
	if s == "" {
		return
	}
	sin, cos := math.Sincos(-st.turn * math.Pi / 180)
	length := st.face.width(s, st.size)
	// the box of the turned line, with an em around it
	x0, x1 := min(0, length*cos), max(0, length*cos)
	y0, y1 := min(0, length*sin), max(0, length*sin)
	box := image.Rect(int(x+x0-st.size), int(y+y0-st.size), int(x+x1+st.size)+1, int(y+y1+st.size)+1).Intersect(c.Rect)
	if box.Empty() {
		return
	}
	c.raster.Reset(box.Dx(), box.Dy())
	ox, oy := x-float64(box.Min.X), y-float64(box.Min.Y)
	pen := 0.0
	at := func(p fixed.Point26_6) (float32, float32) {
		px, py := pen+float64(p.X)/64, float64(p.Y)/64
		return float32(ox + px*cos - py*sin), float32(oy + px*sin + py*cos)
	}
	ppem := fixed.Int26_6(st.size * 64)
	for _, r := range s {
		if own, ok := signs[r]; ok {
			c.polygon(own.outline, st.size, at)
			pen += own.advance * st.size
			continue
		}
		g, err := st.face.GlyphIndex(&c.buffer, r)
		if err != nil {
			continue
		}
		segments, err := st.face.LoadGlyph(&c.buffer, g, ppem, nil)
		if err != nil {
			continue
		}
		c.outline(segments, at)
		if a, err := st.face.GlyphAdvance(&c.buffer, g, ppem, font.HintingNone); err == nil {
			pen += float64(a) / 64
		}
	}
	c.ink(box, st.ink)
}

func (c *canvas) outline(segments sfnt.Segments, at func(fixed.Point26_6) (float32, float32)) {
	for _, s := range segments {
		ax, ay := at(s.Args[0])
		switch s.Op {
		case sfnt.SegmentOpMoveTo:
			c.raster.ClosePath()
			c.raster.MoveTo(ax, ay)
		case sfnt.SegmentOpLineTo:
			c.raster.LineTo(ax, ay)
		case sfnt.SegmentOpQuadTo:
			bx, by := at(s.Args[1])
			c.raster.QuadTo(ax, ay, bx, by)
		case sfnt.SegmentOpCubeTo:
			bx, by := at(s.Args[1])
			dx, dy := at(s.Args[2])
			c.raster.CubeTo(ax, ay, bx, by, dx, dy)
		}
	}
	c.raster.ClosePath()
}

func (c *canvas) polygon(points [][2]float64, size float64, at func(fixed.Point26_6) (float32, float32)) {
	for i, p := range points {
		x, y := at(fixed.Point26_6{X: fixed.Int26_6(p[0] * size * 64), Y: fixed.Int26_6(p[1] * size * 64)})
		if i == 0 {
			c.raster.MoveTo(x, y)
		} else {
			c.raster.LineTo(x, y)
		}
	}
	c.raster.ClosePath()
}

// ink lays the rasterized outline over a box of the picture.
func (c *canvas) ink(box image.Rectangle, with uint8) {
	if c.alpha == nil || len(c.alpha.Pix) < box.Dx()*box.Dy() {
		c.alpha = image.NewAlpha(image.Rect(0, 0, box.Dx(), box.Dy()))
	}
	mask := &image.Alpha{Pix: c.alpha.Pix[:box.Dx()*box.Dy()], Stride: box.Dx(), Rect: image.Rect(0, 0, box.Dx(), box.Dy())}
	c.raster.DrawOp = draw.Src
	c.raster.Draw(mask, mask.Rect, image.Opaque, image.Point{})
	for y := range box.Dy() {
		row := c.Pix[c.PixOffset(box.Min.X, box.Min.Y+y):][:box.Dx()]
		for x, a := range mask.Pix[y*mask.Stride:][:box.Dx()] {
			if a != 0 {
				row[x] = c.over(row[x], with, a)
			}
		}
	}
}

// left, centre and right set a level line by its middle height.
func (c *canvas) left(x, midY float64, s string, st style) {
	c.text(x, midY+st.size*capHalf, s, st)
}

func (c *canvas) centre(x, midY float64, s string, st style) {
	c.text(x-st.face.width(s, st.size)/2, midY+st.size*capHalf, s, st)
}

func (c *canvas) right(x, midY float64, s string, st style) {
	c.text(x-st.face.width(s, st.size), midY+st.size*capHalf, s, st)
}

// capHalf is half the height of a capital, in ems: what centres a line of digits on a height.
const capHalf = 0.36
