package viz

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/go-echarts/go-echarts/v2/charts"
	"github.com/go-echarts/go-echarts/v2/opts"

	"github.com/attnb/attnb/viz/echarts"
)

// sent is what the fragment hands to its script, parsed.
func sent(t *testing.T, h Heatmap) (fragment string, v view) {
	t.Helper()
	fragment, err := h.HTML()
	if err != nil {
		t.Fatal(err)
	}
	const before = "attnbHeatmap(host, "
	_, rest, ok := strings.Cut(fragment, before+"{")
	data, _, ok2 := strings.Cut(rest, fmt.Sprintf(", %q); }", echarts.Packed()))
	if !ok || !ok2 {
		t.Fatal("the fragment does not call its script")
	}
	if err := json.Unmarshal([]byte("{"+data), &v); err != nil {
		t.Fatalf("the data is not JSON: %v", err)
	}
	return fragment, v
}

// NaN, infinities, -0, denormals and the largest values reach the page bit by bit; what is masked does not.
func TestValuesReachThePage(t *testing.T) {
	h := odd()
	_, v := sent(t, h)
	raw, err := base64.StdEncoding.DecodeString(v.Values[0])
	if err != nil {
		t.Fatal(err)
	}
	mask, err := base64.StdEncoding.DecodeString(v.Masks[0])
	if err != nil {
		t.Fatal(err)
	}
	for k, want := range h.Matrices[0].Values {
		hidden := h.Matrices[0].Hidden(k/4, k%4)
		if hidden {
			want = 0
		}
		if got := binary.LittleEndian.Uint32(raw[4*k:]); got != math.Float32bits(want) {
			t.Errorf("cell %d is %08x, want %08x", k, got, math.Float32bits(want))
		}
		if got := mask[k/8]>>(k%8)&1 == 1; got != hidden {
			t.Errorf("cell %d: masked %v", k, got)
		}
	}
	if _, v := sent(t, Heatmap{Matrices: []Matrix{noise(3, 3, 1)}}); v.Masks[0] != "" {
		t.Errorf("a mask of nothing: %q", v.Masks[0])
	}
}

// No label ends the script, begins a tag or reaches the page unescaped.
func TestLabelsRunNothing(t *testing.T) {
	h := odd()
	h.Matrices[0].Name = "</SCRIPT><svg onload=alert(2)>"
	h.RowAxis = "q</script>"
	fragment, v := sent(t, h)
	if n := strings.Count(strings.ToLower(fragment), "</script"); n != 1 {
		t.Errorf("%d closing script tags, want 1", n)
	}
	for _, bad := range []string{"<script>alert", "<svg", "<b>", "<i>", "\u2028", "\x00", "\xff"} {
		if strings.Contains(fragment, bad) {
			t.Errorf("the fragment contains %q", bad)
		}
	}
	if v.ColLabels[0] != h.ColLabels[0] || v.ColLabels[1] != h.ColLabels[1] || v.ColLabels[2] != h.ColLabels[2] {
		t.Errorf("labels arrive as %q", v.ColLabels)
	}
	if want := `🙂 a\u2028b\t\u0000\xff`; v.ColLabels[3] != want {
		t.Errorf("the last label arrives as %q, want %q", v.ColLabels[3], want)
	}
	// the script itself never parses markup
	for _, sink := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("} {
		if strings.Contains(script+pageScript+sheetScript+axesScript+frameScript+zoomScript, sink) {
			t.Errorf("a script uses %s", sink)
		}
	}
}

func TestFragmentIsSelfContained(t *testing.T) {
	fragment, v := sent(t, attention(12, 64))
	if m := regexp.MustCompile(`(?i)https?://|src="[^d]|require\(|define\(|@import`).FindString(fragment); m != "" {
		t.Errorf("the fragment refers to %q", m)
	}
	if len(fragment) > 1e6 {
		t.Errorf("12 heads of 64 x 64 take %d bytes", len(fragment))
	}
	if v.Library != echarts.Global || len(v.Values) != 12 {
		t.Errorf("library %q, %d matrices", v.Library, len(v.Values))
	}
	if !strings.Contains(fragment, `alt="Attention probabilities. 12 heatmaps`) {
		t.Error("the still picture has no description")
	}
	again, err := attention(12, 64).HTML()
	if err != nil || again != fragment {
		t.Errorf("the same heatmap gives another fragment (%v)", err)
	}
}

// The faults of go-echarts 2.6.7 that repaired works around, first shown to be there.
func TestRepairsGoEcharts(t *testing.T) {
	chart := charts.NewHeatMap()
	chart.SetGlobalOptions(
		charts.WithVisualMapOpts(opts.VisualMap{Min: -20, Max: 0}),
		charts.WithProgressive(500),
	)
	chart.Validate()
	raw, err := json.Marshal(chart.JSON())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), `"max"`) || !strings.Contains(string(raw), `"progressive":null`) {
		t.Errorf("go-echarts no longer drops a bound of 0, or writes progressive: %s", raw)
	}
	chart.AddSeries("", []opts.HeatMapData{{Value: []any{0, 0, math.NaN()}}})
	if got := string(chart.JSONNotEscaped()); strings.TrimSpace(got) != "" {
		t.Errorf("go-echarts no longer empties a chart with a NaN: %s", got)
	}

	// scores that end at 0, as logarithms do, with a NaN and a -Inf among them
	_, v := sent(t, Heatmap{Kind: Scores, Matrices: []Matrix{
		{Rows: 1, Cols: 4, Values: []float32{-20, 0, nan32, -inf32}}, {Rows: 1, Cols: 4, Values: []float32{-1, -2, -3, -4}},
	}, Marks: []Mark{{Matrix: 1, Col: 2}}})
	if v.Scale.Lo != -20 || v.Scale.Hi != 20 || v.Scale.Errors {
		t.Errorf("scale %+v", v.Scale)
	}
	maps := v.Option["visualMap"].([]any)
	if len(maps) != 1 {
		t.Fatalf("%d visual maps", len(maps))
	}
	m := maps[0].(map[string]any)
	if m["min"] != 0.0 || m["max"] != 1.0 || m["dimension"] != 2.0 {
		t.Errorf("visual map %v to %v of dimension %v", m["min"], m["max"], m["dimension"])
	}
	if n := len(m["inRange"].(map[string]any)["color"].([]any)); n != steps {
		t.Errorf("%d colours", n)
	}
	series := v.Option["series"].([]any)
	if len(series) != 3 {
		t.Fatalf("%d series, want one a matrix and one a mark", len(series))
	}
	for i, s := range series {
		if s := s.(map[string]any); s["progressive"] != 0.0 || s["type"] != "heatmap" {
			t.Errorf("series %d: type %v, progressive %v", i, s["type"], s["progressive"])
		}
	}
	if n := len(v.Option["grid"].([]any)); n != 2 {
		t.Errorf("%d grids", n)
	}
	if _, ok := v.Option["progressive"]; ok {
		t.Error("the option sets progressive for the whole chart")
	}
}

func TestTooLarge(t *testing.T) {
	for _, c := range []struct {
		heads, rows, cols int
		fits              bool
	}{{1, 64, 64, true}, {1, 65, 64, false}, {16, 64, 64, true}, {17, 64, 64, false}, {1, 1, 1000, true}, {1, 1, 4000, false}} {
		h := Heatmap{Title: "big", Kind: Signed}
		for range c.heads {
			h.Matrices = append(h.Matrices, noise(c.rows, c.cols, 1))
		}
		got, err := h.HTML()
		var tooLarge *TooLargeError
		if fits := err == nil; fits != c.fits || !fits && !errors.As(err, &tooLarge) || !fits && got != "" {
			t.Errorf("%d of %d x %d: %v", c.heads, c.rows, c.cols, err)
		}
		if tooLarge != nil && (tooLarge.Rows != c.rows || tooLarge.Cols != c.cols || tooLarge.Matrices != c.heads) {
			t.Errorf("%+v", tooLarge)
		}
	}
}
