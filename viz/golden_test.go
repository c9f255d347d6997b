package viz

import (
	"bytes"
	"flag"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/*.png anew")

// A picture may differ from its golden one in few pixels and little: other machines round the edges of letters otherwise.
const (
	channelTolerance = 24   // of 255
	pixelTolerance   = 5e-4 // of all pixels may differ by more
)

func golden() map[string]Heatmap {
	tokens := attention(1, 12)
	tokens.Title, tokens.RowLabels, tokens.ColLabels = "Probabilities, head 3", sentence, sentence

	scores := Heatmap{Title: "Scores, head 0", Kind: Scores, RowAxis: "query", ColAxis: "key", Matrices: []Matrix{noise(9, 9, 2)}}
	scores.Matrices[0].Hidden = causal

	errors := Heatmap{Title: "Context: error / bound", Kind: Errors, RowAxis: "query", ColAxis: "dim", Matrices: []Matrix{noise(24, 40, 0.3)}}
	v := errors.Matrices[0].Values
	for i := range v {
		v[i] = abs(v[i])
	}
	v[0], v[500], v[501], v[502], v[700], v[701] = 1, 55, 12, 1.4, nan32, inf32
	errors.Marks = []Mark{{Row: 500 / 40, Col: 500 % 40, Label: "worst"}}

	pass := Heatmap{Title: "Scores: error / bound", Kind: Errors, RowAxis: "query", ColAxis: "key", Matrices: []Matrix{noise(5, 7, 0.05)}}
	for i, x := range pass.Matrices[0].Values {
		pass.Matrices[0].Values[i] = abs(x)
	}

	row := Heatmap{Title: "Decode", Kind: Probabilities, RowAxis: "query", ColAxis: "key", Matrices: []Matrix{{Rows: 1, Cols: 300, Values: make([]float32, 300)}}}
	for i := range 300 {
		row.Matrices[0].Values[i] = float32(math.Exp(float64(i-300)/50)) / 50
	}

	pooled := Heatmap{Title: "Difference", Kind: Signed, RowAxis: "query", ColAxis: "key", Matrices: []Matrix{noise(40, 1500, 1e-3)}}
	pooled.Marks = []Mark{{Row: 30, Col: 77, Label: "worst"}}

	logarithmic := long(LogProbabilities)
	window := long(Probabilities)
	window.Title, window.RowSpan, window.ColSpan, window.Pooling = "Probabilities, mean", Span{4100, 4500}, Span{3900, 4500}, "mean"
	window.Matrices[0].Hidden = func(row, col int) bool { return 3900+col*600/96 > 4100+(row+1)*400/64-1 }
	window.Marks = []Mark{{Row: 20, Col: 30, Label: "worst"}}

	all := func(row, col int) bool { return true }
	return map[string]Heatmap{
		"tokens": tokens, "scores": scores, "errors": errors, "pass": pass, "row": row, "pooled": pooled, "odd": odd(),
		"heads": attention(12, 20),
		"log":   logarithmic, "window": window,
		"logrow":   {Title: "Few decades", Kind: LogProbabilities, RowLabels: sentence[:2], Matrices: []Matrix{{Rows: 2, Cols: 5, Values: []float32{0.5, 0.25, 0.2, 0.05, 0, 1, 1e-3, nan32, inf32, 1e-30}}}},
		"column":   {Title: "One column, tall", Kind: Signed, RowLabels: sentence, Matrices: []Matrix{noise(12, 1, 3)}},
		"constant": {Title: "Constant", Kind: Probabilities, Matrices: []Matrix{{Rows: 2, Cols: 3, Values: []float32{.5, .5, .5, .5, .5, .5}}}},
		"zeros":    {Title: "Zeros", Kind: Scores, Matrices: []Matrix{{Rows: 2, Cols: 3, Values: make([]float32, 6)}}},
		"masked":   {Title: "All masked", Kind: Scores, Matrices: []Matrix{{Rows: 3, Cols: 3, Values: make([]float32, 9), Hidden: all}}},
		"denormal": {Title: "Denormals", Kind: Signed, Matrices: []Matrix{{Rows: 1, Cols: 4, Values: []float32{1e-45, -1e-44, 0, 3e-45}}}},
	}
}

func TestGolden(t *testing.T) {
	all := kinds()
	for name, h := range golden() {
		all[name] = h
	}
	for name, d := range all {
		t.Run(name, func(t *testing.T) {
			p, err := d.Picture()
			if err != nil {
				t.Fatal(err)
			}
			got := p.PNG
			path := filepath.Join("testdata", name+".png")
			if *update {
				write(t, path, got)
				return
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("%v (make it with -update)", err)
			}
			if bytes.Equal(got, want) {
				return
			}
			share, picture := difference(t, got, want)
			if share <= pixelTolerance {
				return
			}
			out := filepath.Join("..", "build", "viz")
			write(t, filepath.Join(out, name+".got.png"), got)
			write(t, filepath.Join(out, name+".diff.png"), picture)
			where, _ := filepath.Abs(out)
			t.Errorf("%.3g of the pixels differ from %s: see %s.got.png and %s.diff.png in %s", share, path, name, name, where)
		})
	}
}

// difference is the share of pixels that differ, 1 where the sizes do, and a picture of them: black on white.
func difference(t *testing.T, got, want []byte) (float64, []byte) {
	t.Helper()
	g, w := anyPicture(t, got), anyPicture(t, want)
	box := g.Bounds().Union(w.Bounds())
	diff := image.NewGray(box)
	count := 0
	for y := range box.Dy() {
		for x := range box.Dx() {
			i := diff.PixOffset(x, y)
			diff.Pix[i] = 255
			at := image.Pt(x, y)
			if !at.In(g.Bounds()) || !at.In(w.Bounds()) || far(g.At(x, y), w.At(x, y)) {
				diff.Pix[i] = 0
				count++
			}
		}
	}
	var out bytes.Buffer
	if err := png.Encode(&out, diff); err != nil {
		t.Fatal(err)
	}
	if g.Bounds() != w.Bounds() {
		return 1, out.Bytes()
	}
	return float64(count) / float64(len(diff.Pix)), out.Bytes()
}

func far(a, b color.Color) bool {
	x, y := color.RGBAModel.Convert(a).(color.RGBA), color.RGBAModel.Convert(b).(color.RGBA)
	if x == y {
		return false
	}
	d := func(p, q uint8) bool { return max(p, q)-min(p, q) > channelTolerance }
	return d(x.R, y.R) || d(x.G, y.G) || d(x.B, y.B)
}

func anyPicture(t *testing.T, raw []byte) image.Image {
	t.Helper()
	m, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func decoded(t *testing.T, raw []byte) *image.Paletted {
	t.Helper()
	m, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	p, ok := m.(*image.Paletted)
	if !ok {
		t.Fatalf("the picture is %T, want a palette", m)
	}
	return p
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// The comparison itself must fail on a picture that is wrong: one cell of another colour, or another size.
func TestGoldenComparisonCanFail(t *testing.T) {
	h := attention(1, 12)
	a, err := h.PNG()
	if err != nil {
		t.Fatal(err)
	}
	if share, _ := difference(t, a, a); share != 0 {
		t.Errorf("a picture differs from itself in %g", share)
	}
	h.Matrices[0].Values[12*7+3] += 0.4
	b, err := h.PNG()
	if err != nil {
		t.Fatal(err)
	}
	if share, _ := difference(t, a, b); share <= pixelTolerance {
		t.Errorf("one wrong cell of 144 changes %g of the pixels, which passes", share)
	}
	c, err := attention(1, 11).PNG()
	if err != nil {
		t.Fatal(err)
	}
	if share, _ := difference(t, a, c); share != 1 {
		t.Errorf("another size: share %g", share)
	}
}
