package viz

import (
	"bytes"
	"image"
	"image/color"
	"testing"
)

// Every class of cells has its own colour in the picture, at the place where the cell is.
func TestCellColours(t *testing.T) {
	h := odd()
	h.Marks = nil
	d := h.prepare()
	p, err := d.picture()
	if err != nil {
		t.Fatal(err)
	}
	m := decoded(t, p.PNG)
	corner := func(row, col int) color.RGBA { // clear of the number in the middle
		at := d.layout.panels[0].Min.Add(image.Pt(col*d.layout.cell.X+5, row*d.layout.cell.Y+9))
		return color.RGBAModel.Convert(m.At(at.X, at.Y)).(color.RGBA)
	}
	special := h.Kind.classColours()
	zero := diverging[steps/2]
	for _, c := range []struct {
		name     string
		row, col int
		want     []color.RGBA
	}{
		{"NaN", 0, 2, []color.RGBA{special[nan]}},
		{"+Inf", 0, 3, []color.RGBA{special[posInf]}},
		{"-Inf", 1, 0, []color.RGBA{special[negInf]}},
		{"masked", 2, 3, []color.RGBA{special[masked], hatching}},
		{"0", 1, 1, []color.RGBA{zero}},
		{"-0", 1, 2, []color.RGBA{zero}},
		{"denormal beside 3.4e38", 1, 3, []color.RGBA{zero}},
		{"largest", 2, 0, []color.RGBA{diverging[steps-1]}},
		{"1e38", 0, 0, []color.RGBA{diverging[step(0.5+0.5/3.4, steps)]}},
		{"-1e38", 0, 1, []color.RGBA{diverging[step(0.5-0.5/3.4, steps)]}},
	} {
		got := corner(c.row, c.col)
		ok := false
		for _, w := range c.want {
			ok = ok || got == w
		}
		if !ok {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// A picture is shown at half its size; the PNG itself says nothing about that.
func TestDisplaySize(t *testing.T) {
	p, err := attention(3, 16).Picture()
	if err != nil {
		t.Fatal(err)
	}
	size := decoded(t, p.PNG).Bounds().Size()
	if p.Width != size.X/2 || p.Height != size.Y/2 || p.Width > 1000 {
		t.Errorf("a picture of %v pixels is shown at %d x %d", size, p.Width, p.Height)
	}
	if bytes.Contains(p.PNG, []byte("pHYs")) {
		t.Error("the PNG states a physical size")
	}
	if p.Alt != attention(3, 16).Alt() {
		t.Error("the picture's description is not the heatmap's")
	}
}

// However many cells there are, the picture keeps to its size, and says that it is pooled.
func TestSizes(t *testing.T) {
	for _, c := range []struct {
		heads, rows, cols int
		pooled            bool
	}{
		{1, 1, 1, false}, {1, 1, 64, false}, {1, 577, 3, false}, {1, 1100, 1100, false}, {1, 1101, 1100, true}, {1, 3, 5000, true},
		{144, 16, 16, false}, {12, 577, 577, true}, {7, 1, 9, false}, {300, 2, 2, false},
	} {
		h := Heatmap{Kind: Signed}
		for range c.heads {
			h.Matrices = append(h.Matrices, Matrix{Rows: c.rows, Cols: c.cols, Values: make([]float32, c.rows*c.cols)})
		}
		d := h.prepare()
		if got := d.layout.pool != image.Pt(1, 1); got != c.pooled {
			t.Errorf("%d of %d x %d: pooled %v, want %v", c.heads, c.rows, c.cols, got, c.pooled)
		}
		if says := bytes.Contains([]byte(d.layout.subtitleLines[len(d.layout.subtitleLines)-1]), []byte("pooled")); says != c.pooled {
			t.Errorf("%d of %d x %d: the subtitle is %q", c.heads, c.rows, c.cols, d.layout.subtitleLines)
		}
		if d.layout.width > 2100 || d.layout.height > 2100 {
			t.Errorf("%d of %d x %d: %d x %d pixels", c.heads, c.rows, c.cols, d.layout.width, d.layout.height)
		}
		for i, p := range d.layout.panels {
			if !p.In(image.Rect(0, 0, d.layout.width, d.layout.height)) {
				t.Fatalf("%d of %d x %d: panel %d at %v lies outside", c.heads, c.rows, c.cols, i, p)
			}
			if i > 0 && p.Overlaps(d.layout.panels[i-1]) {
				t.Fatalf("%d of %d x %d: panels %d and %d overlap", c.heads, c.rows, c.cols, i-1, i)
			}
		}
		if _, err := d.picture(); err != nil {
			t.Error(err)
		}
	}
}
