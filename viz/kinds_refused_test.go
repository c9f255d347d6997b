package viz

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestKindsRefused(t *testing.T) {
	one := []Series{{Values: []float32{1, 2}}}
	slot := func(s ...int) Write { return Write{Slots: s} }
	for _, c := range []struct {
		want string
		d    Drawable
	}{
		{`plot: 0 charts, must be 1 to 16`, Plot{}},
		{`plot "P": 0 charts, must be 1 to 16`, Plot{Title: "P"}},
		{`plot: chart 0 has no series`, Plot{Charts: []Chart{{}}}},
		{`plot: series 0 of chart 0 is empty`, Plot{Charts: []Chart{{Series: []Series{{}}}}}},
		{`plot: series 0 of chart 1 has 1 values, another has 2: charts share their axis`,
			Plot{Charts: []Chart{{Series: one}, {Series: []Series{{Values: []float32{1}}}}}}},
		{`plot: 3 labels for 2 positions`, Plot{Labels: make([]string, 3), Charts: []Chart{{Series: one}}}},
		{`plot: chart 0 goes from 1 to 0`, Plot{Charts: []Chart{{Series: one, Low: 1}}}},
		{`plot: chart 0 goes from NaN to 0`, Plot{Charts: []Chart{{Series: one, Low: math.NaN()}}}},
		{`plot: unknown style 9`, Plot{Charts: []Chart{{Series: []Series{{Style: 9, Values: []float32{1}}}}}}},
		{`plot: chart 0 has 5 series, at most 4 can be told apart`, Plot{Charts: []Chart{{Series: []Series{one[0], one[0], one[0], one[0], one[0]}}}}},
		{`timeline: no step to draw`, Timeline{}},
		{`timeline: no step writes a slot`, Timeline{Steps: []Write{{Trim: true}}}},
		{`timeline: step 0 writes slot -1, must be 0 to 16777215`, Timeline{Steps: []Write{slot(-1)}}},
		{`timeline: step 1 has 1 positions for 2 slots`, Timeline{Steps: []Write{slot(0), {Slots: []int{1, 2}, Positions: []int{1}}}}},
		{`timeline: step 1: positions are known in some steps and not in others`, Timeline{Steps: []Write{slot(0), {Slots: []int{1}, Positions: []int{1}}}}},
		{`timeline: 2 labels for 1 steps`, Timeline{Steps: []Write{slot(0)}, Labels: []string{"a", "b"}}},
		{`timeline: 16777216 slots in 2 steps are too many`, Timeline{Steps: []Write{slot(maxTimeline - 1), {}}}},
		{`timeline: step 0 trims to -1`, Timeline{Steps: []Write{{Trim: true, Length: -1}}}},
		{`sheet: a sheet of 0 pictures, must be 1 to 64`, Sheet{}},
		{`sheet: -1 pictures side by side`, Sheet{Across: -1, Pictures: []Drawable{Plot{}}}},
		{`sheet: picture 0 is none`, Sheet{Pictures: []Drawable{nil}}},
		{`heatmap: no matrix to draw`, Sheet{Pictures: []Drawable{Heatmap{}}}},
	} {
		p, err := c.d.Picture()
		var input *InputError
		if !errors.As(err, &input) || err.Error() != c.want || p.PNG != nil {
			t.Errorf("Picture: %v, want %s", err, c.want)
		}
		if got := c.d.Alt(); got != c.want {
			t.Errorf("Alt: %s, want %s", got, c.want)
		}
	}
}

// What a timeline shows is what its steps did.
func TestTimelineStates(t *testing.T) {
	h, err := cacheSteps().heatmap()
	if err != nil {
		t.Fatal(err)
	}
	m := h.Matrices[0]
	for _, c := range []struct {
		slot, step int
		want       class
		position   float32
	}{
		{0, 0, finite, 0}, {4, 8, finite, 4}, {5, 0, absent, 0}, {5, 1, finite, 5}, {7, 2, absent, 0}, {7, 3, hole, 0}, {7, 6, hole, 0},
		{8, 3, finite, 7}, {9, 4, finite, 8}, {9, 5, rewritten, 9}, {9, 6, finite, 9}, {9, 7, absent, 0}, {7, 7, finite, 7}, {8, 7, absent, 0}, {8, 8, finite, 8},
	} {
		if got := m.class(c.slot, c.step); got != c.want {
			t.Errorf("slot %d at step %d is %s, want %s", c.slot, c.step, got.name(), c.want.name())
		}
		if got := m.Values[c.slot*m.Cols+c.step]; c.want == finite && got != c.position {
			t.Errorf("slot %d at step %d is at %g, want %g", c.slot, c.step, got, c.position)
		}
	}
	if alt := cacheSteps().Alt(); !strings.Contains(alt, "9 slots and 0 holes at the end. 1 row overwritten.") || !strings.Contains(alt, "hole in 4 cells, first at slot 7, step 3.") {
		t.Error(alt)
	}
	unknown := Timeline{Steps: []Write{{Slots: []int{0, 1}}, {Slots: []int{3}}}}
	if alt := unknown.Alt(); !strings.Contains(alt, "(step written)") || !strings.Contains(alt, "4 slots and 1 hole at the end") {
		t.Error(alt)
	}
}

// A gallery holds every panel once, nothing from elsewhere, and no script; what labels say is text.
func TestGallery(t *testing.T) {
	h := noted(12, 20)
	h.Matrices[1].Name = `</style><script>alert("1")</script>`
	s, err := h.Gallery()
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(s, "data:image/png;base64,"); n != 13 {
		t.Errorf("%d pictures, want 13", n)
	}
	if strings.Contains(s, "<script") || strings.Contains(s, "http") || strings.Count(s, "</style>") != 1 {
		t.Error("there is a script, an address, or a label that ends a style")
	}
	if len(s) > maxGallery {
		t.Errorf("%d bytes", len(s))
	}
	ids := regexp.MustCompile(`<label[^>]* for="([^"]*)"`).FindAllStringSubmatch(s, -1)
	if len(ids) != 24 {
		t.Errorf("%d labels, want one to enlarge and one to go back for each of 12", len(ids))
	}
	for _, id := range ids {
		if strings.Count(s, `id="`+id[1]+`"`) != 1 {
			t.Errorf("the label is for %q, which is not there once", id[1])
		}
	}
	again, err := h.Gallery()
	if err != nil || again == s {
		t.Errorf("the same picture twice in a page shares its names (%v)", err)
	}
	if _, err := (Heatmap{}).Gallery(); err == nil {
		t.Error("of nothing there is a gallery")
	}
}

// The picture of one panel has the scale of all, and one that is too large is pooled until all fit.
func TestGalleryIsTrueAndBounded(t *testing.T) {
	h := attention(3, 8)
	for i := range h.Matrices[1].Values {
		h.Matrices[1].Values[i] /= 100
	}
	all := h.prepare()
	one := h.alone(1, oneSide, all.scale).prepare()
	if one.scale != all.scale || one.scale.hi < 0.5 {
		t.Errorf("scale %+v, want that of all, %+v", one.scale, all.scale)
	}
	if alt := one.describe(one.summary); !strings.Contains(alt, "On the scale of all 3 panels.") {
		t.Error(alt)
	}
	large := Heatmap{Kind: Signed}
	for range 8 {
		large.Matrices = append(large.Matrices, noise(700, 700, 1))
	}
	s, err := large.Gallery()
	if err != nil || len(s) > maxGallery || !strings.Contains(s, "background-image") {
		t.Errorf("%d bytes, %v", len(s), err)
	}
	for range 150 {
		large.Matrices = append(large.Matrices, large.Matrices[0])
	}
	var tooLarge *TooLargeError
	if _, err := large.Gallery(); !errors.As(err, &tooLarge) {
		t.Errorf("158 of them: %v", err)
	}
}

func TestSave(t *testing.T) {
	dir := t.TempDir()
	read := func(name string, d Drawable) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := Save(path, d); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if s := read("a.png", attention(1, 4)); !strings.HasPrefix(s, "\x89PNG") {
		t.Error("not a PNG")
	}
	for name, c := range map[string]struct {
		d    Drawable
		want string
	}{
		"interactive": {attention(2, 4), "attnbHeatmap(host"}, "gallery": {attention(2, 100), "attnb-gallery"},
		"large": {attention(1, 100), `<img src="data:image/png`}, "plot": {stages(5), `<img src="data:image/png`}, "timeline": {cacheSteps(), `<img src="data:image/png`},
	} {
		s := read(name+".html", c.d)
		if !strings.Contains(s, c.want) || !strings.Contains(s, `<meta charset="utf-8">`) {
			t.Errorf("%s lacks %s", name, c.want)
		}
	}
	if err := Save(filepath.Join(dir, "x.gif"), attention(1, 4)); err == nil || !strings.Contains(err.Error(), `".gif" is neither .png nor .html`) {
		t.Error(err)
	}
	for _, name := range []string{"x.png", "x.html"} {
		if err := Save(filepath.Join(dir, name), Heatmap{}); err == nil || err.Error() != "heatmap: no matrix to draw" {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Error("a file was made of nothing")
		}
	}
	if err := Save(filepath.Join(dir, "no", "x.png"), attention(1, 4)); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
