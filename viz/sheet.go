package viz

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"strings"
)

// Sheet lays pictures out in one: side by side up to Across of them, then in a further line. Each keeps its own scale and legend.
type Sheet struct {
	Title    string
	Across   int // 0: all side by side
	Pictures []Drawable
}

// sheetWide is about how wide pictures are that stand side by side; beside is what a heatmap takes besides its panels.
const (
	sheetWide = 2140
	beside    = 250
)

// maxOnSheet bounds the pictures of a sheet.
const maxOnSheet = 64

// PNG renders the sheet. The error is that of the first picture that cannot be drawn.
func (s Sheet) PNG() ([]byte, error) {
	p, err := s.Picture()
	return p.PNG, err
}

// Picture is [Sheet.PNG] and [Sheet.Alt] in one, with the size at which to show it.
func (s Sheet) Picture() (Picture, error) {
	d, err := s.draw()
	if err != nil {
		return Picture{}, err
	}
	return d.picture(s.Title)
}

// Alt is the descriptions of all its pictures.
func (s Sheet) Alt() string {
	if err := s.check(); err != nil {
		return err.Error()
	}
	texts := make([]string, len(s.Pictures))
	for i, p := range s.Pictures {
		texts[i] = p.Alt()
	}
	return s.describe(texts)
}

func (s Sheet) check() error {
	if n := len(s.Pictures); n == 0 || n > maxOnSheet {
		return &InputError{Title: s.Title, Matrix: -1, Reason: fmt.Sprintf("a sheet of %d pictures, must be 1 to %d", n, maxOnSheet), what: "sheet"}
	}
	if s.Across < 0 {
		return &InputError{Title: s.Title, Matrix: -1, Reason: fmt.Sprintf("%d pictures side by side", s.Across), what: "sheet"}
	}
	for i, p := range s.Pictures {
		if p == nil {
			return &InputError{Title: s.Title, Matrix: -1, Reason: fmt.Sprintf("picture %d is none", i), what: "sheet"}
		}
	}
	return nil
}

func (s Sheet) describe(texts []string) string {
	all := strings.Join(texts, " ")
	if s.Title == "" {
		return all
	}
	return visible(s.Title) + ". " + all
}

func (s Sheet) draw() (drawn, error) {
	if err := s.check(); err != nil {
		return drawn{}, err
	}
	var parts []image.Image
	var texts []string
	across := s.Across
	if across == 0 {
		across = len(s.Pictures)
	}
	for _, p := range s.Pictures {
		if h, ok := p.(Heatmap); ok && across > 1 {
			p = h.beside(across, s.columns(across))
		}
		d, err := p.draw()
		if err != nil {
			return drawn{}, err
		}
		parts, texts = append(parts, d.image), append(texts, d.alt)
	}
	places, size := s.places(parts, across)
	c := newCanvas(size.X, size.Y, Scores)
	if s.Title != "" {
		c.text(margin, margin+titleSize*0.85, bold().fit(printed(bold(), s.Title), titleSize, float64(size.X-2*margin)),
			style{face: bold(), size: titleSize, ink: ink})
	}
	all := image.NewNRGBA(c.Rect)
	draw.Draw(all, all.Rect, c, image.Point{}, draw.Src)
	for i, m := range parts {
		draw.Draw(all, places[i], m, image.Point{}, draw.Src)
	}
	return drawn{palettedOf(all), s.describe(texts)}, nil
}

// columns is how many columns of panels stand side by side.
func (s Sheet) columns(across int) int {
	most := across
	for i := 0; i < len(s.Pictures); i += across {
		sum := 0
		for _, p := range s.Pictures[i:min(i+across, len(s.Pictures))] {
			h, _ := p.(Heatmap)
			sum += max(h.Columns, 1)
		}
		most = max(most, sum)
	}
	return most
}

// beside is a heatmap with its share of a sheet's width: panels of one shape come out equally large in all pictures of a line whose
// panels stand in as many lines.
func (h Heatmap) beside(across, columns int) Heatmap {
	mine := max(h.Columns, 1)
	unit := max((sheetWide-across*beside)/columns-gap, thin)
	down := 1
	if h.Columns > 0 {
		down = ceilDiv(len(h.Matrices), h.Columns)
	}
	h.room = image.Pt(mine*(unit+gap)-gap, down*(unit+gap)-gap)
	return h
}

// places says where each picture stands, and how large the whole is.
func (s Sheet) places(parts []image.Image, across int) ([]image.Rectangle, image.Point) {
	var places []image.Rectangle
	y, width := 0, 0
	if s.Title != "" {
		y = whole(margin + lineOf(titleSize))
		width = 2*margin + int(min(bold().width(printed(bold(), s.Title), titleSize)+2, allWide))
	}
	for i := 0; i < len(parts); i += across {
		x, high := 0, 0
		for _, m := range parts[i:min(i+across, len(parts))] {
			size := m.Bounds().Size()
			places = append(places, image.Rect(x, y, x+size.X, y+size.Y))
			x, high = x+size.X, max(high, size.Y)
		}
		y, width = y+high, max(width, x)
	}
	return places, image.Pt(width, y)
}

// palettedOf is a picture with a palette where 256 colours hold all of its own, and as it is elsewhere.
func palettedOf(m *image.NRGBA) image.Image {
	p := image.NewPaletted(m.Rect, nil)
	index := map[color.NRGBA]uint8{}
	for y := range m.Rect.Dy() {
		for x := range m.Rect.Dx() {
			v := m.NRGBAAt(x, y)
			i, ok := index[v]
			if !ok {
				if len(index) == 256 {
					return m
				}
				i = uint8(len(index))
				index[v] = i
				p.Palette = append(p.Palette, color.RGBA{v.R, v.G, v.B, v.A})
			}
			p.Pix[p.PixOffset(x, y)] = i
		}
	}
	return p
}
