package viz

import (
	"fmt"
	"image"
	"image/color"
)

// zoomView is what zoom.js draws from.
type zoomView struct {
	ID        string      `json:"id"`
	Title     string      `json:"title"`
	Size      [2]int      `json:"size"` // of the whole matrix
	Rows      [2]int      `json:"rows"` // that the picture shows
	Cols      [2]int      `json:"cols"`
	RowAxis   string      `json:"rowAxis"`
	ColAxis   string      `json:"colAxis"`
	RowLabels []string    `json:"rowLabels"`
	ColLabels []string    `json:"colLabels"`
	Quantity  string      `json:"quantity"`
	By        string      `json:"by"`
	ByWords   string      `json:"byWords"`
	Diverging bool        `json:"diverging"`
	Both      bool        `json:"both"`
	Scale     zoomScale   `json:"scale"`
	Colours   zoomColours `json:"colours"`
	Codes     zoomCodes   `json:"codes"`
	Heads     []zoomHead  `json:"heads"`
	Call      *zoomCall   `json:"call"`
}

type zoomScale struct {
	viewScale
	Open bool `json:"open"`
}

type zoomColours struct {
	viewColours
	Ramp []string `json:"ramp"`
}

// zoomCodes are the palette entries of what has no value.
type zoomCodes struct {
	Masked []int `json:"masked"`
	NaN    int   `json:"nan"`
	PosInf int   `json:"posInf"`
	NegInf int   `json:"negInf"`
}

type zoomHead struct {
	Name   string      `json:"name"`
	Index  int         `json:"index"`
	Sheets []zoomSheet `json:"sheets"`
}

// zoomSheet are stored cells: "f32" (values, then a bit a cell that is masked where one is), "codes" (a palette entry each), both
// gzipped in base64, or "picture": those of the PNG, the first at (X, Y), (DX, DY) pixels apart.
type zoomSheet struct {
	Rows  [2]int     `json:"rows"`
	Cols  [2]int     `json:"cols"`
	H     int        `json:"h"`
	W     int        `json:"w"`
	Form  string     `json:"form"`
	Data  string     `json:"data,omitempty"`
	Scale *zoomScale `json:"scale,omitempty"` // of codes; none: the picture's
	X     int        `json:"x,omitempty"`
	Y     int        `json:"y,omitempty"`
	DX    int        `json:"dx,omitempty"`
	DY    int        `json:"dy,omitempty"`
}

type zoomCall struct {
	Before string `json:"before"`
	Head   bool   `json:"head"`
}

func (s scale) page() zoomScale {
	return zoomScale{viewScale{s.kind == Errors, s.kind == LogProbabilities, s.kind == Steps, s.lo, s.hi, belowOne}, s.open}
}

// view is all but the sheets.
func (z Zoom) view(d *drawing) *zoomView {
	r, c := z.rowSpan(), z.colSpan()
	rows, cols := z.size()
	v := &zoomView{
		ID: z.ID, Title: visible(z.Title), Size: [2]int{rows, cols}, Rows: [2]int{r.From, r.To}, Cols: [2]int{c.From, c.To},
		RowAxis: visible(z.rowAxis()), ColAxis: visible(z.colAxis()), Quantity: z.quantity(), By: z.By, ByWords: or(z.By, "value of the largest magnitude"),
		Diverging: z.Kind == Scores || z.Kind == Signed || z.Kind == Steps, Both: z.Both, Scale: d.scale.page(),
		Colours: zoomColours{viewColours: z.Kind.pageColours()},
		Codes:   zoomCodes{Masked: []int{maskedColour, hatch}, NaN: int(indexOf[nan]), PosInf: int(indexOf[posInf]), NegInf: int(indexOf[negInf])},
	}
	for _, colour := range z.Kind.colours() {
		v.Colours.Ramp = append(v.Colours.Ramp, hex(colour))
	}
	length := 0
	for _, labels := range [][]string{z.RowTokens, z.ColTokens} {
		for _, s := range labels {
			length += len(s) + 3
		}
	}
	if length <= maxLabelText {
		v.RowLabels, v.ColLabels = visibleAll(z.RowTokens), visibleAll(z.ColTokens)
	}
	for i, m := range z.Matrices {
		head := zoomHead{Name: visible(m.Name), Index: i, Sheets: []zoomSheet{}}
		if m.Name == "" {
			head.Name = fmt.Sprintf("matrix %d", i)
		}
		if z.Index != nil {
			head.Index = z.Index[i]
		}
		v.Heads = append(v.Heads, head)
	}
	if z.Call != "" {
		v.Call = &zoomCall{z.Call, z.OneHead}
	}
	return v
}

// onPage is the picture inside the fragment: its PNG, and by how much it is smaller than the drawing.
type onPage struct {
	png    []byte
	shrunk int
}

// largePNG is the size from which pictures are stored at one pixel of theirs for one of the page. Of one with more than mostPNG then, twice
// in an output that should have 300 kB, neighbouring colours are made one.
const (
	largePNG = 100_000
	mostPNG  = 100_000
)

// still draws the picture for the output, and the one inside the fragment, from which the page reads cells.
func (z Zoom) still(d *drawing) (Picture, onPage, error) {
	whole := d.paint().Paletted
	full, err := encodePNG(whole)
	if err != nil {
		return Picture{}, onPage{}, fmt.Errorf("heatmap %q: %w", z.Title, err)
	}
	p := Picture{full, d.layout.width / density, d.layout.height / density, d.describe(d.summary)}
	shown := onPage{full, 1}
	if d.layout.shrinks() {
		half := shrunk(whole)
		small, err := encodePNG(half)
		if err == nil && !z.pooled() && len(full) > largePNG && len(small) > mostPNG {
			for i, c := range half.Pix {
				if c < steps {
					half.Pix[i] = c | 1 // of two colours one
				}
			}
			small, err = encodePNG(half)
		}
		if err != nil {
			return Picture{}, onPage{}, fmt.Errorf("heatmap %q: %w", z.Title, err)
		}
		shown = onPage{small, density}
		if len(full) > largePNG {
			p.PNG = small
		}
	}
	return p, shown, nil
}

// shrinks reports whether every cell is whole pixels of a picture of half the size.
func (l layout) shrinks() bool {
	even := func(p image.Point) bool { return p.X%density == 0 && p.Y%density == 0 }
	for _, p := range l.panels {
		if !even(p.Min) {
			return false
		}
	}
	return even(l.cell)
}

// shrunk is a picture at half of its size. Blocks of one colour keep it, masked ones are masked; others, the edges of letters, become
// the palette's nearest to their mean.
func shrunk(p *image.Paletted) *image.Paletted {
	out := image.NewPaletted(image.Rect(0, 0, p.Rect.Dx()/density, p.Rect.Dy()/density), p.Palette)
	near := map[[density * density]uint8]uint8{}
	for y := range out.Rect.Dy() {
		for x := range out.Rect.Dx() {
			at := p.PixOffset(x*density, y*density)
			block := [4]uint8{p.Pix[at], p.Pix[at+1], p.Pix[at+p.Stride], p.Pix[at+p.Stride+1]}
			i := block[0]
			if block != [4]uint8{i, i, i, i} {
				var ok bool
				if hatched, all := ofMask(block); all {
					i = hatched
				} else if i, ok = near[block]; !ok {
					var sum [3]uint32
					for _, k := range block {
						r, g, b, _ := p.Palette[k].RGBA()
						sum[0], sum[1], sum[2] = sum[0]+r>>8, sum[1]+g>>8, sum[2]+b>>8
					}
					i = uint8(p.Palette.Index(color.RGBA{uint8(sum[0] / 4), uint8(sum[1] / 4), uint8(sum[2] / 4), 0xFF}))
					near[block] = i
				}
			}
			out.Pix[y*out.Stride+x] = i
		}
	}
	return out
}

// ofMask says whether a block lies in masked cells, and which colour of theirs it has most of.
func ofMask(block [density * density]uint8) (most uint8, all bool) {
	lines := 0
	for _, c := range block {
		switch c {
		case hatch:
			lines++
		case maskedColour:
		default:
			return 0, false
		}
	}
	if 2*lines >= len(block) {
		return hatch, true
	}
	return maskedColour, true
}
