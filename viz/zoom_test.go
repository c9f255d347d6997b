package viz

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// zoomSent renders a zooming picture, and returns its parts and what the fragment hands to its script.
func zoomSent(t *testing.T, z Zoom) (Picture, string, zoomView) {
	t.Helper()
	p, fragment, err := z.Render()
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(fragment, "window[name](host, ")
	if at < 0 {
		t.Fatal("the fragment does not call its script")
	}
	var v zoomView
	if err := json.NewDecoder(strings.NewReader(fragment[at+len("window[name](host, "):])).Decode(&v); err != nil {
		t.Fatal(err)
	}
	return p, fragment, v
}

func unzipped(t *testing.T, data string) []byte {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A small matrix arrives bit for bit, and which cells are masked with it; a masked cell's value does not.
func TestZoomHoldsSmallMatrices(t *testing.T) {
	h := attention(2, 40)
	values := h.Matrices[1].Values
	values[40], values[80], values[81] = float32(math.NaN()), float32(math.Inf(1)), float32(math.Copysign(0, -1))
	_, _, v := zoomSent(t, Zoom{Heatmap: h, By: "largest"})
	if len(v.Heads) != 2 || v.Heads[1].Name != "head 1" {
		t.Fatalf("heads %+v", v.Heads)
	}
	s := v.Heads[1].Sheets[0]
	raw := unzipped(t, s.Data)
	if s.Form != "f32" || s.H != 40 || s.W != 40 || len(raw) != 4*1600+200 {
		t.Fatalf("%s of %d x %d in %d bytes", s.Form, s.H, s.W, len(raw))
	}
	for k, want := range values {
		got, hidden := binary.LittleEndian.Uint32(raw[4*k:]), raw[6400+k/8]>>(k%8)&1 == 1
		switch {
		case hidden != causal(k/40, k%40):
			t.Fatalf("cell %d: masked %v", k, hidden)
		case hidden && got != 0:
			t.Fatalf("cell %d: the page has the value of a masked cell", k)
		case !hidden && got != math.Float32bits(want):
			t.Fatalf("cell %d: %x, want %x", k, got, math.Float32bits(want))
		}
	}
}

// The page reads the cells of a large matrix off the picture: at each place that it is told lies the cell's colour.
func TestZoomReadsThePicture(t *testing.T) {
	h := attention(1, 400)
	h.Kind = LogProbabilities
	_, fragment, v := zoomSent(t, Zoom{Heatmap: h})
	s := v.Heads[0].Sheets[0]
	if s.Form != "picture" {
		t.Fatalf("the first sheet is %q", s.Form)
	}
	data := regexp.MustCompile(`data:image/png;base64,([^"]+)`).FindStringSubmatch(fragment)[1]
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	p := img.(*image.Paletted)
	d := h.prepare()
	for row := range 400 {
		for col := range 400 {
			got, cell := int(p.ColorIndexAt(s.X+col*s.DX, s.Y+row*s.DY)), row*400+col
			switch d.matrices[0].class[cell] {
			case masked:
				if got != v.Codes.Masked[0] && got != v.Codes.Masked[1] {
					t.Fatalf("[%d, %d] is masked and has palette entry %d", row, col, got)
				}
			case finite:
				if want := step(d.scale.norm(float64(h.Matrices[0].Values[cell])), steps); got != want && got != want|1 {
					t.Fatalf("[%d, %d] has palette entry %d, want %d", row, col, got, want)
				}
			}
		}
	}
}

// What is finer lies beside the picture, as far as there is room, and an output stays within its limit.
func TestZoomStores(t *testing.T) {
	g := rand.New(rand.NewPCG(1, 2))
	noise := func(n int) Matrix {
		m := Matrix{Rows: n, Cols: n, Values: make([]float32, n*n)}
		for i := range m.Values {
			m.Values[i] = float32(g.NormFloat64())
		}
		return m
	}
	all := Span{0, 8192}
	detail := Part{noise(64), Span{100, 164}, Span{200, 264}}
	z := Zoom{Heatmap: Heatmap{Title: "noise", Kind: Scores, RowSpan: all, ColSpan: all, Pooling: "mean", Matrices: []Matrix{noise(512)}},
		By: "mean", Finer: [][]Part{{{noise(2048), all, all}, {noise(1024), all, all}, detail}}}
	p, fragment, v := zoomSent(t, z)
	var forms []string
	for _, s := range v.Heads[0].Sheets {
		forms = append(forms, fmt.Sprintf("%s %d", s.Form, s.H))
	}
	if got := strings.Join(forms, ", "); got != "picture 512, f32 64" && got != "picture 512, codes 1024, f32 64" {
		t.Errorf("stored %s", got)
	}
	if n := base64.StdEncoding.EncodedLen(len(p.PNG)) + len(fragment); n > maxOutput {
		t.Errorf("%d bytes", n)
	}
	last := v.Heads[0].Sheets[len(v.Heads[0].Sheets)-1]
	if last.Rows != [2]int{100, 164} || last.Cols != [2]int{200, 264} {
		t.Errorf("the detail is of %v, %v", last.Rows, last.Cols)
	}
	if math.Float32frombits(binary.LittleEndian.Uint32(unzipped(t, last.Data))) != detail.Values[0] {
		t.Error("the detail has other values")
	}
}

// Where no cell is pooled an output has 300 kB, of noise too.
func TestZoomIsSmall(t *testing.T) {
	for _, k := range []Kind{Probabilities, LogProbabilities, Scores} {
		h := attention(1, 512)
		h.Kind = k
		g := rand.New(rand.NewPCG(1, 2))
		for i := range h.Matrices[0].Values {
			x := g.NormFloat64()
			if k != Scores {
				x = math.Exp(x)
			}
			h.Matrices[0].Values[i] = float32(x)
		}
		p, fragment, _ := zoomSent(t, Zoom{Heatmap: h, By: "largest"})
		if n := base64.StdEncoding.EncodedLen(len(p.PNG)) + len(fragment); n > maxOneToOne {
			t.Errorf("kind %d: %d bytes", k, n)
		}
	}
}

// A matrix of any size makes a picture without a kernel; each cell of it is what the definition says.
func TestZooming(t *testing.T) {
	const n, k = 1500, 2600
	m := Matrix{Rows: n, Cols: k, Values: make([]float32, n*k), Hidden: func(row, col int) bool { return col > row+k-n }}
	g := rand.New(rand.NewPCG(5, 6))
	for i := range m.Values {
		m.Values[i] = float32(g.NormFloat64())
	}
	m.Values[1400*k+17] = -50
	m.Values[700*k+3] = float32(math.NaN())
	z, err := Heatmap{Title: "large", Kind: Scores, Matrices: []Matrix{m}}.Zooming()
	if err != nil {
		t.Fatal(err)
	}
	small := z.Matrices[0]
	for i := range small.Rows {
		for j := range small.Cols {
			want, seen, bad := float32(0), false, false
			for row := i * n / small.Rows; row < (i+1)*n/small.Rows; row++ {
				for col := j * k / small.Cols; col < (j+1)*k/small.Cols; col++ {
					v := m.Values[row*k+col]
					if m.Hidden(row, col) {
						continue
					}
					seen, bad = true, bad || v != v
					if math.Abs(float64(v)) > math.Abs(float64(want)) {
						want = v
					}
				}
			}
			got := small.Values[i*small.Cols+j]
			if small.Hidden(i, j) == seen || seen && !bad && got != want || bad && got == got {
				t.Fatalf("[%d, %d] is %g, hidden %v; want %g, seen %v, NaN %v", i, j, got, small.Hidden(i, j), want, seen, bad)
			}
		}
	}
	_, _, v := zoomSent(t, z)
	last := v.Heads[0].Sheets[len(v.Heads[0].Sheets)-1]
	if v.Size != [2]int{n, k} || last.Rows[0] > 1400 || last.Rows[1] <= 1400 || last.Cols != [2]int{0, 64} {
		t.Errorf("size %v, detail %v %v", v.Size, last.Rows, last.Cols)
	}
	if _, err := (Heatmap{Matrices: []Matrix{m}, RowSpan: Span{0, 3000}}).Zooming(); err == nil {
		t.Error("pooled twice")
	}
}

// Labels, titles and names reach the page as text.
func TestZoomEscapes(t *testing.T) {
	bad := "</script><script>alert(1)</script><!-- \u2028 \" \\"
	h := attention(2, 3)
	h.Title, h.RowAxis, h.Matrices[0].Name = bad, bad, bad
	_, fragment, v := zoomSent(t, Zoom{Heatmap: h, RowTokens: []string{bad, "b\nc", "🙂"}, ColTokens: []string{bad, "", "x"}, Call: "x.Map(\"" + bad})
	if n := strings.Count(strings.ToLower(fragment), "</script"); n != 1 {
		t.Errorf("%d closing script tags", n)
	}
	if strings.Contains(fragment, "<script>alert") || strings.Contains(fragment, "<!--") {
		t.Error("a label is markup")
	}
	if v.RowLabels[1] != "b↵c" || v.ColLabels[1] != `""` || v.Call.Before != "x.Map(\""+bad {
		t.Errorf("labels %q, %q, call %q", v.RowLabels, v.ColLabels, v.Call.Before)
	}
}

func TestZoomRefuses(t *testing.T) {
	good := attention(1, 4)
	for want, z := range map[string]Zoom{
		"no matrix":                    {},
		"no zooming picture":           {Heatmap: Heatmap{Kind: Angles, Matrices: good.Matrices}},
		"pool them":                    {Heatmap: Heatmap{Matrices: []Matrix{{Rows: 3000, Cols: 1, Values: make([]float32, 3000)}}}},
		"beyond 3 x 4":                 {Heatmap: good, Rows: 3},
		"2 indices for 1 matrices":     {Heatmap: good, Index: []int{1, 2}},
		"finer cells for 2 of 1":       {Heatmap: good, Finer: make([][]Part, 2)},
		"3 row labels for 4 rows":      {Heatmap: good, RowTokens: []string{"a", "b", "c"}},
		"1 column labels for 4":        {Heatmap: good, ColTokens: []string{"a"}},
		"lies beyond 4 x 4":            {Heatmap: good, Finer: [][]Part{{{good.Matrices[0], Span{2, 6}, Span{}}}}},
		"which is not 2 x 2":           {Heatmap: good, Finer: [][]Part{{{Matrix: Matrix{Rows: 2, Cols: 2}}}}},
		"do not stand for the indices": {Heatmap: good, Finer: [][]Part{{{good.Matrices[0], Span{0, 2}, Span{}}}}},
	} {
		_, _, err := z.Render()
		var bad *InputError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A picture is what the standard library decodes, whatever its lines are.
func FuzzEncodePNG(f *testing.F) {
	f.Add(uint8(3), []byte{0, 1, 2, 0, 1, 2})
	f.Add(uint8(200), bytes.Repeat([]byte{1, 1, 2, 2, 9, 9}, 300))
	f.Fuzz(func(t *testing.T, width uint8, pixels []byte) {
		w := int(width)
		if w == 0 || len(pixels) < w {
			return
		}
		p := image.NewPaletted(image.Rect(0, 0, w, len(pixels)/w), nil)
		for i := range 256 {
			p.Palette = append(p.Palette, color.RGBA{uint8(i), uint8(2 * i), uint8(i ^ 90), 255})
		}
		copy(p.Pix, pixels)
		raw, err := encodePNG(p)
		if err != nil {
			t.Fatal(err)
		}
		back, err := png.Decode(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		if got := back.(*image.Paletted); got.Rect != p.Rect || !bytes.Equal(got.Pix, p.Pix) {
			t.Fatal("another picture")
		}
	})
}
