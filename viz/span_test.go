package viz

import (
	"fmt"
	"slices"
	"testing"
)

func TestSpan(t *testing.T) {
	for _, c := range []struct {
		s          Span
		n          int
		name, last string
	}{
		{Span{}.of(5), 5, "0", "4"},
		{Span{7, 12}, 5, "7", "11"},
		{Span{0, 8192}, 512, "0–15", "8176–8191"},
		{Span{100, 357}, 64, "100–103", "352–356"},
		{Span{3, 8}, 1, "3–7", "3–7"},
	} {
		if a, b := c.s.name(0, c.n), c.s.name(c.n-1, c.n); a != c.name || b != c.last {
			t.Errorf("%v to %d: %s and %s, want %s and %s", c.s, c.n, a, b, c.name, c.last)
		}
		for at := c.s.From; at < c.s.To; at++ {
			if i := c.s.row(at, c.n); i < 0 || i >= c.n || c.s.edge(i, c.n) > at || c.s.edge(i+1, c.n) <= at {
				t.Fatalf("%v to %d: index %d in row %d", c.s, c.n, at, i)
			}
		}
	}
}

// Ticks of a window and of pooled rows stand at round indices, at the row that holds them.
func TestSpanTicks(t *testing.T) {
	for _, c := range []struct {
		s         Span
		n, stride int
		want      []tick
	}{
		{Span{0, 5}, 5, 2, []tick{{0, "0"}, {2, "2"}, {4, "4"}}},
		{Span{97, 112}, 15, 4, []tick{{3, "100"}, {8, "105"}, {13, "110"}}},
		{Span{0, 8192}, 512, 100, []tick{{0, "0"}, {125, "2000"}, {250, "4000"}, {375, "6000"}, {500, "8000"}}},
		{Span{4100, 4500}, 64, 17, []tick{{16, "4200"}, {48, "4400"}}},
		{Span{101, 104}, 3, 9, nil},
	} {
		got := ticksOf(nil, c.n, c.s, c.stride)
		if len(got) != len(c.want) {
			t.Errorf("%v to %d, stride %d: %v, want %v", c.s, c.n, c.stride, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%v to %d, stride %d: %v, want %v", c.s, c.n, c.stride, got, c.want)
				break
			}
		}
	}
}

// What has room is not pooled again.
func TestPanelSide(t *testing.T) {
	for n := 1; n <= 40; n++ {
		side := PanelSide(n)
		h := Heatmap{}
		for range n {
			h.Matrices = append(h.Matrices, Matrix{Rows: side, Cols: side})
		}
		if _, _, pool := h.grid(); pool.X != 1 || pool.Y != 1 {
			t.Errorf("%d panels of %d: pooled by %v", n, side, pool)
		}
	}
	if PanelSide(1) != oneSide {
		t.Errorf("one panel: %d", PanelSide(1))
	}
}

// The page is told what rows and columns stand for, and that its scale is logarithmic.
func TestSpansReachThePage(t *testing.T) {
	h := Heatmap{Kind: LogProbabilities, RowSpan: Span{64, 96}, ColSpan: Span{0, 10}, Pooling: "mean",
		Matrices: []Matrix{{Rows: 2, Cols: 3, Values: []float32{0, 0.5, 0.25, 1e-3, 1, 0}}}}
	_, v := sent(t, h)
	if !v.Scale.Log || v.Scale.Lo != float64(float32(1e-3)) || v.Scale.Hi != 1 {
		t.Errorf("scale %+v", v.Scale)
	}
	if !slices.Equal(v.RowNames, []string{"64–79", "80–95"}) || !slices.Equal(v.ColNames, []string{"0–2", "3–5", "6–9"}) {
		t.Errorf("rows %q, columns %q", v.RowNames, v.ColNames)
	}
	if len(v.Legend) != 1 || v.Legend[0] != (viewEntry{"zero", "zero: 2 cells"}) || v.Colours.Fixed["zero"] != "#ffffff" {
		t.Errorf("legend %+v, colours %v", v.Legend, v.Colours.Fixed)
	}
	axes, _ := v.Option["yAxis"].([]any)
	if axis, ok := axes[0].(map[string]any); !ok || fmt.Sprint(axis["data"]) != "[64 80]" {
		t.Errorf("row axis %v", axes)
	}
	if _, plain := sent(t, attention(1, 3)); plain.RowNames != nil || plain.Scale.Log {
		t.Errorf("a plain heatmap: rows %q, scale %+v", plain.RowNames, plain.Scale)
	}
}
