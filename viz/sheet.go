package viz

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"slices"
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

// together lays pictures over each other: with a palette where 256 colours hold all that they use, or all but what no eye tells from
// one of them, else without.
func together(box image.Rectangle, parts []image.Image, places []image.Rectangle) image.Image {
	out := image.NewPaletted(box, nil)
	var paletted []*image.Paletted
	var used []color.RGBA
	for _, m := range parts {
		p, ok := m.(*image.Paletted)
		if !ok {
			return flat(box, parts, places)
		}
		paletted, used = append(paletted, p), append(used, colours(p)...)
	}
	index := map[color.RGBA]uint8{}
	for near := range alike + 1 {
		if out.Palette, index = merged(used, near); out.Palette != nil {
			break
		}
	}
	if out.Palette == nil {
		return flat(box, parts, places)
	}
	for i, p := range paletted {
		var as [256]uint8
		for k, c := range p.Palette {
			as[k] = index[color.RGBAModel.Convert(c).(color.RGBA)]
		}
		for y := range p.Rect.Dy() {
			to := out.Pix[out.PixOffset(places[i].Min.X, places[i].Min.Y+y):]
			for x, k := range p.Pix[y*p.Stride:][:p.Rect.Dx()] {
				to[x] = as[k]
			}
		}
	}
	return out
}

// alike is by how much of 255 red, green and blue may differ in two colours that become one: neighbours of a map are as near.
const alike = 4

// colours are those that a picture uses, in the order of its palette.
func colours(p *image.Paletted) []color.RGBA {
	var used [256]bool
	for y := range p.Rect.Dy() {
		for _, i := range p.Pix[y*p.Stride:][:p.Rect.Dx()] {
			used[i] = true
		}
	}
	var out []color.RGBA
	for i, c := range p.Palette {
		if used[i] {
			out = append(out, color.RGBAModel.Convert(c).(color.RGBA))
		}
	}
	return out
}

// merged is a palette for some colours, and where each is in it. Colours that differ by at most near share an entry; nil: there
// are more than 256 entries.
func merged(colours []color.RGBA, near int) (color.Palette, map[color.RGBA]uint8) {
	var kept []color.RGBA
	index := map[color.RGBA]uint8{}
	apart := func(a, b uint8) bool { return max(int(a), int(b))-min(int(a), int(b)) > near }
	for _, c := range colours {
		if _, ok := index[c]; ok {
			continue
		}
		at := slices.IndexFunc(kept, func(k color.RGBA) bool { return !apart(k.R, c.R) && !apart(k.G, c.G) && !apart(k.B, c.B) })
		if at < 0 {
			if at = len(kept); at == 256 {
				return nil, nil
			}
			kept = append(kept, c)
		}
		index[c] = uint8(at)
	}
	palette := make(color.Palette, len(kept))
	for i, c := range kept {
		palette[i] = c
	}
	return palette, index
}

func flat(box image.Rectangle, parts []image.Image, places []image.Rectangle) image.Image {
	all := image.NewNRGBA(box)
	for i, m := range parts {
		draw.Draw(all, places[i], m, image.Point{}, draw.Src)
	}
	return all
}
