package viz

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"strings"
	"sync"
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
	n := len(s.Pictures)
	parts, texts, failed := make([]image.Image, n), make([]string, n), make([]error, n)
	across := s.Across
	if across == 0 {
		across = len(s.Pictures)
	}
	var wait sync.WaitGroup
	for i, p := range s.Pictures {
		if h, ok := p.(Heatmap); ok && across > 1 {
			p = h.beside(across, s.columns(across))
		}
		wait.Go(func() {
			d, err := p.draw()
			parts[i], texts[i], failed[i] = d.image, d.alt, err
		})
	}
	wait.Wait()
	for _, err := range failed {
		if err != nil {
			return drawn{}, err
		}
	}
	places, size := s.places(parts, across)
	c := newCanvas(size.X, size.Y, Scores)
	if s.Title != "" {
		c.text(margin, margin+titleSize*0.85, bold().fit(printed(bold(), s.Title), titleSize, float64(size.X-2*margin)),
			style{face: bold(), size: titleSize, ink: ink})
	}
	parts, places = append([]image.Image{c.Paletted}, parts...), append([]image.Rectangle{c.Rect}, places...)
	return drawn{together(c.Rect, parts, places), s.describe(texts)}, nil
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

// together lays pictures over each other: with a palette where 256 colours hold all that they use, else without.
func together(box image.Rectangle, parts []image.Image, places []image.Rectangle) image.Image {
	out := image.NewPaletted(box, nil)
	index := map[color.RGBA]uint8{}
	for i, m := range parts {
		p, ok := m.(*image.Paletted)
		if !ok || !join(out, index, p, places[i].Min) {
			return flat(box, parts, places)
		}
	}
	return out
}

// join copies a picture and adds the colours that it uses, where there is room for them.
func join(out *image.Paletted, index map[color.RGBA]uint8, p *image.Paletted, at image.Point) bool {
	var used [256]bool
	for y := range p.Rect.Dy() {
		for _, i := range p.Pix[y*p.Stride:][:p.Rect.Dx()] {
			used[i] = true
		}
	}
	var as [256]uint8
	for i, c := range p.Palette {
		if !used[i] {
			continue
		}
		v := color.RGBAModel.Convert(c).(color.RGBA)
		n, ok := index[v]
		if !ok {
			if len(out.Palette) == 256 {
				return false
			}
			n = uint8(len(out.Palette))
			index[v], out.Palette = n, append(out.Palette, v)
		}
		as[i] = n
	}
	for y := range p.Rect.Dy() {
		to := out.Pix[out.PixOffset(at.X, at.Y+y):]
		for x, i := range p.Pix[y*p.Stride:][:p.Rect.Dx()] {
			to[x] = as[i]
		}
	}
	return true
}

func flat(box image.Rectangle, parts []image.Image, places []image.Rectangle) image.Image {
	all := image.NewNRGBA(box)
	for i, m := range parts {
		draw.Draw(all, places[i], m, image.Point{}, draw.Src)
	}
	return all
}
