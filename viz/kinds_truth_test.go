package viz

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	"strings"
	"testing"
)

// Every new kind of heatmap shows what is not an ordinary value as what it is, at its place.
func TestKindsAreTrue(t *testing.T) {
	least := math.Float32frombits(1)
	for _, k := range []Kind{Amounts, Steps, Angles} {
		h := odd()
		h.Kind, h.Marks = k, nil
		if k == Angles { // radians
			h.Matrices[0].Values[0], h.Matrices[0].Values[1], h.Matrices[0].Values[8] = 3, -3, math.Pi/2
		}
		if k == Amounts {
			h.Matrices[0].Values[1] = 2e38
		}
		h.Matrices[0].Absent = func(row, col int) bool { return row == 2 && col == 2 }
		d := h.prepare()
		p, err := d.picture()
		if err != nil {
			t.Fatal(err)
		}
		m := anyPicture(t, p.PNG)
		at := func(row, col int) color.RGBA {
			c := d.layout.panels[0].Min.Add(image.Pt(col*d.layout.cell.X+5, row*d.layout.cell.Y+9))
			return color.RGBAModel.Convert(m.At(c.X, c.Y)).(color.RGBA)
		}
		special, ramp := k.classColours(), k.colours()
		value := func(v float64) []color.RGBA { return []color.RGBA{ramp[step(d.scale.norm(v), steps)]} }
		for _, c := range []struct {
			name     string
			row, col int
			want     []color.RGBA
		}{
			{"NaN", 0, 2, []color.RGBA{special[nan]}}, {"+Inf", 0, 3, []color.RGBA{special[posInf]}}, {"-Inf", 1, 0, []color.RGBA{special[negInf]}},
			{"masked", 2, 3, []color.RGBA{special[masked], hatching}}, {"absent", 2, 2, []color.RGBA{named[paper-steps]}},
			{"0", 1, 1, value(0)}, {"-0", 1, 2, value(0)}, {"denormal", 1, 3, value(float64(least))},
			{"first", 0, 0, value(float64(h.Matrices[0].Values[0]))}, {"largest", 2, 0, value(float64(h.Matrices[0].Values[8]))},
		} {
			got, ok := at(c.row, c.col), false
			for _, w := range c.want {
				ok = ok || got == w
			}
			if !ok {
				t.Errorf("%s, %s: %v, want %v", k.quantity(), c.name, got, c.want)
			}
		}
		if at(1, 1) == at(0, 0) || k == Steps && at(1, 1) != diverging[steps/2] {
			t.Errorf("%s: 0 has the colour of a value", k.quantity())
		}
		for _, say := range []string{"NaN in 1 cell", "+Inf in 1 cell", "-Inf in 1 cell", "1 of 12 cells masked", "1 cell not there"} {
			if !strings.Contains(p.Alt, say) {
				t.Errorf("%s lacks %q: %s", k.quantity(), say, p.Alt)
			}
		}
	}
}

// Scales of constant, denormal and huge values, and of none, are in order and hold every value.
func TestKindScales(t *testing.T) {
	for _, k := range []Kind{Amounts, Steps, Angles, slots} {
		for _, v := range [][2]float64{{0, 0}, {0, 0.5}, {0.5, 0.5}, {0, 1e-45}, {0, 3.4e38}, {-1, 0}, {-3.4e38, 3.4e38}, {-1e-45, 0}} {
			if k == Angles && math.Abs(v[0])+math.Abs(v[1]) > math.Pi {
				continue
			}
			s := k.scale(summary{min: v[0], max: v[1]})
			last := -1.0
			for i := range 101 {
				n := s.norm(s.lo + (s.hi/100-s.lo/100)*float64(i))
				if !(n >= last && n >= 0 && n <= 1) {
					t.Fatalf("%s of %g to %g: %g after %g", k.quantity(), v[0], v[1], n, last)
				}
				last = n
			}
			if !(s.lo <= v[0] && s.hi >= v[1] && s.lo < s.hi) {
				t.Errorf("%s: [%g, %g] does not hold %g to %g", k.quantity(), s.lo, s.hi, v[0], v[1])
			}
			ticks := s.ticks()
			for i, v := range ticks {
				if !(v >= s.lo && v <= s.hi) || i > 0 && v < ticks[i-1] {
					t.Errorf("%s: ticks %g", k.quantity(), ticks)
				}
			}
			if n := len(ticks); n > 120 {
				t.Errorf("%s of %g to %g: %d ticks", k.quantity(), v[0], v[1], n)
			}
		}
	}
	if s := Steps.scale(summary{min: -4, max: 1000}); s.norm(0) != 0.5 || s.norm(1) < 0.55 || s.norm(10) < 0.68 {
		t.Errorf("one step is at %g, ten at %g", s.norm(1), s.norm(10))
	}
}

// A chart shows each odd value as a column of its class, never as a bar, and a bar as high as its value says.
func TestPlotIsTrue(t *testing.T) {
	v := []float32{1, -1, nan32, inf32, -inf32, 0, minus0, 0.5, 9}
	p := Plot{Axis: "key", Charts: []Chart{{Name: "x", Series: []Series{{Values: v, Hidden: func(i int) bool { return i == 8 }}}}}}
	charts := p.plotted()
	l := p.layout(charts)
	made, err := p.Picture()
	if err != nil {
		t.Fatal(err)
	}
	m := anyPicture(t, made.PNG)
	special, bar := Signed.classColours(), diverging[inks[0]]
	b, s := l.boxes[0], charts[0].scale
	at := func(i int, value float64) color.RGBA {
		return color.RGBAModel.Convert(m.At(b.Min.X+i*l.step+l.step/3, int(height(b, s, value)))).(color.RGBA)
	}
	for i, want := range map[int]color.RGBA{2: special[nan], 3: special[posInf], 4: special[negInf]} {
		for _, h := range []float64{-0.9, -0.4, 0.4, 0.9} {
			if got := at(i, h); got != want {
				t.Errorf("value %d is %v at %g, want %v", i, got, h, want)
			}
		}
	}
	paper := named[paper-steps]
	for _, c := range []struct {
		i    int
		at   float64
		want color.RGBA
	}{{0, .9, bar}, {0, -.1, paper}, {1, -.9, bar}, {1, .1, paper}, {5, .1, paper}, {5, -.1, paper}, {6, .1, paper}, {6, -.1, paper}, {7, .4, bar}, {7, .6, paper}} {
		if got := at(c.i, c.at); got != c.want {
			t.Errorf("value %d is %v at %g, want %v", c.i, got, c.at, c.want)
		}
	}
	if got := at(8, .5); got != special[masked] && got != hatching {
		t.Errorf("what is masked is %v", got)
	}
	for _, say := range []string{"masked: 1 position, first key 8", "NaN: 1 position, first key 2", "+Inf: 1 position, first key 3", "-Inf: 1 position, first key 4", "from -1 at key 1 to 1 at key 0"} {
		if !strings.Contains(made.Alt, say) {
			t.Errorf("lacks %q: %s", say, made.Alt)
		}
	}
}

// All that is drawn keeps to its size, whatever it holds, and stays on its picture.
func TestKindSizes(t *testing.T) {
	long := stages(20000)
	many := Timeline{}
	for i := range 3000 {
		many.Steps = append(many.Steps, Write{Slots: []int{i % 2000}, Positions: []int{i - 1500}})
	}
	for name, d := range map[string]Drawable{"long": long, "one": stages(4), "timeline": many, "negative": Timeline{Steps: []Write{{Slots: []int{0}, Positions: []int{-7}}}},
		"one pair": turning(1, 1), "wide": turning(2, 9000), "sheet of sheets": Sheet{Pictures: []Drawable{Sheet{Pictures: []Drawable{stages(3)}}, layers()}}} {
		p, err := d.Picture()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if p.Width > 1100 || p.Height > 1100 || p.Width < 100 {
			t.Errorf("%s: %d x %d", name, p.Width, p.Height)
		}
		if p.Alt == "" || p.Alt != d.Alt() || strings.ContainsAny(p.Alt, "\n") {
			t.Errorf("%s: alt %q", name, p.Alt)
		}
	}
}

// A picture of many colours is kept whole, without a palette.
func TestManyColours(t *testing.T) {
	s := Sheet{Pictures: []Drawable{noted(2, 40), Heatmap{Kind: Signed, Matrices: []Matrix{noise(40, 40, 1)}}, Heatmap{Kind: Errors, Matrices: []Matrix{noise(40, 40, 1)}}, turning(8, 60)}}
	p, err := s.Picture()
	if err != nil {
		t.Fatal(err)
	}
	m, err := png.Decode(bytes.NewReader(p.PNG))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := m.(*image.Paletted); ok {
		t.Fatal("it fits a palette: this proves nothing")
	}
	one, err := Sheet{Pictures: s.Pictures[:1]}.Picture()
	if err != nil {
		t.Fatal(err)
	}
	small := anyPicture(t, one.PNG)
	if got, want := color.RGBAModel.Convert(m.At(40, 40)), color.RGBAModel.Convert(small.At(40, 40)); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// The circle of angles closes, and its quarters tell apart for everyone.
func TestCyclicMap(t *testing.T) {
	for who, m := range seen {
		if d := distance(as(cyclic[0], m), as(cyclic[steps-1], m)); d > 0.09 {
			t.Errorf("%s: -π and π are %.3f apart", who, d)
		}
		for _, q := range [][2]float64{{-math.Pi / 2, math.Pi / 2}, {0, math.Pi}, {0, math.Pi / 2}, {0, -math.Pi / 2}, {math.Pi / 2, math.Pi}, {-math.Pi / 2, math.Pi}} {
			place := func(v float64) color.RGBA { return cyclic[step((v+math.Pi)/2/math.Pi, steps)] }
			if d := distance(as(place(q[0]), m), as(place(q[1]), m)); d < 0.15 {
				t.Errorf("%s: %.2f and %.2f are %.3f apart", who, q[0], q[1], d)
			}
		}
		special := slots.classColours()
		for i, v := range sequential {
			for _, c := range []class{hole, rewritten} {
				if d := distance(as(v, m), as(special[c], m)); d < 0.11 {
					t.Errorf("%s: %s is %.3f from step %d of positions", who, c.name(), d, i)
				}
			}
		}
	}
}

// A chart of few positions is as wide as its head: what a short chart says is not cut. What hides a position has the plot's own word.
func TestHeadOfNarrowCharts(t *testing.T) {
	p := Plot{Hatched: "nothing was given", Charts: []Chart{{Name: "error that enters in what was given", Note: "0: all that is allowed; above it fails; -4: exact",
		Series: []Series{{Values: []float32{1, 2}, Hidden: func(i int) bool { return i == 0 }}}}}}
	charts := p.plotted()
	l := p.layout(charts)
	if room := float64(l.size.X - margin - l.boxes[0].Min.X); charts[0].headWidth() > room {
		t.Errorf("name and note take %.0f of %.0f pixels", charts[0].headWidth(), room)
	}
	if text := p.describe(charts); !strings.Contains(text, "nothing was given: 1 position") || strings.Contains(text, "masked") {
		t.Error(text)
	}
	if legend := p.legendOf(charts); len(legend) != 1 || legend[0].text != "nothing was given" {
		t.Errorf("legend %v", legend)
	}
}
