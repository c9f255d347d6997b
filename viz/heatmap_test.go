package viz

import (
	"errors"
	"strings"
	"testing"
)

func TestRefused(t *testing.T) {
	ok := noise(2, 3, 1)
	named := ok
	named.Name = "head 1"
	for _, c := range []struct {
		want string
		h    Heatmap
	}{
		{`heatmap: no matrix to draw`, Heatmap{}},
		{`heatmap "S": no matrix to draw`, Heatmap{Title: "S"}},
		{`heatmap: unknown kind 9`, Heatmap{Kind: 9, Matrices: []Matrix{ok}}},
		{`heatmap: matrix 0 is empty: 0 x 3`, Heatmap{Matrices: []Matrix{{Cols: 3}}}},
		{`heatmap: matrix 0 is empty: 2 x -1`, Heatmap{Matrices: []Matrix{{Rows: 2, Cols: -1}}}},
		{`heatmap: matrix 0 ("x") has 5 values, which is not 2 x 3`, Heatmap{Matrices: []Matrix{{Name: "x", Rows: 2, Cols: 3, Values: make([]float32, 5)}}}},
		{`heatmap: matrix 0 has 0 values, which is not 4611686018427387904 x 4`, Heatmap{Matrices: []Matrix{{Rows: 1 << 62, Cols: 4}}}},
		{`heatmap: matrix 1 ("head 1") is 2 x 3, but matrix 0 is 3 x 2: small multiples share their axes`, Heatmap{Matrices: []Matrix{noise(3, 2, 1), named}}},
		{`heatmap: 1 row labels for 2 rows`, Heatmap{Matrices: []Matrix{ok}, RowLabels: []string{"a"}}},
		{`heatmap: 4 column labels for 3 columns`, Heatmap{Matrices: []Matrix{ok}, ColLabels: make([]string, 4)}},
		{`heatmap: 2 rows do not stand for the indices from 5 up to 6`, Heatmap{Matrices: []Matrix{ok}, RowSpan: Span{5, 6}}},
		{`heatmap: 3 columns do not stand for the indices from -1 up to 9`, Heatmap{Matrices: []Matrix{ok}, ColSpan: Span{-1, 9}}},
		{`heatmap: labels of single columns, which are pooled`, Heatmap{Matrices: []Matrix{ok}, ColSpan: Span{0, 9}, ColLabels: make([]string, 3)}},
		{`heatmap: matrix 0 has -0.5 at [1, 0], for which a logarithmic scale has no place`, Heatmap{Kind: LogProbabilities, Matrices: []Matrix{{Rows: 2, Cols: 1, Values: []float32{0, -0.5}}}}},
		{`heatmap: mark 0 is in matrix 1 of 1`, Heatmap{Matrices: []Matrix{ok}, Marks: []Mark{{Matrix: 1}}}},
		{`heatmap: mark 1 is at [0, 3] of a 2 x 3 matrix`, Heatmap{Matrices: []Matrix{ok}, Marks: []Mark{{}, {Col: 3}}}},
		{`heatmap: mark 0 is at [-1, 0] of a 2 x 3 matrix`, Heatmap{Matrices: []Matrix{ok}, Marks: []Mark{{Row: -1}}}},
	} {
		p, err := c.h.PNG()
		var input *InputError
		if !errors.As(err, &input) || err.Error() != c.want || p != nil {
			t.Errorf("PNG: %v, want %s", err, c.want)
		}
		s, err := c.h.HTML()
		if !errors.As(err, &input) || err.Error() != c.want || s != "" {
			t.Errorf("HTML: %v, want %s", err, c.want)
		}
		if got := c.h.Alt(); got != c.want {
			t.Errorf("Alt: %s, want %s", got, c.want)
		}
	}
}

func TestAlt(t *testing.T) {
	one := Heatmap{Title: "Scores", RowAxis: "query", ColAxis: "key", ColLabels: []string{"The", " cat", "\n"},
		Matrices: []Matrix{{Rows: 2, Cols: 3, Values: []float32{1, -2, nan32, 0.1, inf32, 9}, Hidden: func(row, col int) bool { return row == 1 && col == 2 }}},
		Marks:    []Mark{{Col: 1, Label: "worst"}, {Row: 1, Col: 2}}}
	many := Heatmap{Kind: Probabilities, Matrices: []Matrix{{Name: "head 0", Rows: 1, Cols: 2, Values: []float32{0.25, 0.75}}, {Rows: 1, Cols: 2, Values: []float32{0, 1}}}}
	for want, h := range map[string]Heatmap{
		`Scores. Heatmap of 2 query x 3 key (score). From -2 at query 0, key 1 “␣cat” to 1 at query 0, key 0 “The”. 1 of 6 cells masked. ` +
			`NaN in 1 cell, first at query 0, key 2 “↵”. +Inf in 1 cell, first at query 1, key 1 “␣cat”. ` +
			`Marked: worst, query 0, key 1 “␣cat” (-2). Marked: query 1, key 2 “↵” (masked).`: one,
		`2 heatmaps on one scale, each of 1 row x 2 column (probability). From 0 at matrix 1, row 0, column 0 to 1 at matrix 1, row 0, column 1.`: many,
		`Means. Heatmap of 2 query x 3 key (probability). Query 4096–4111, key 0–8191; pooled: each cell is the mean of 8 × up to 2731. ` +
			`From 0.125 at query 4096–4103, key 0–2729 to 0.5 at query 4104–4111, key 5461–8191. 1 of 6 cells masked. Zero in 2 cells.`: {
			Title: "Means", Kind: LogProbabilities, RowAxis: "query", ColAxis: "key", RowSpan: Span{4096, 4112}, ColSpan: Span{0, 8192}, Pooling: "mean",
			Matrices: []Matrix{{Rows: 2, Cols: 3, Values: []float32{0.125, 0, 7, 0, 0.25, 0.5}, Hidden: func(row, col int) bool { return row < col-1 }}}},
		`Heatmap of 1 row x 1 column (probability). No value but zero.`: {Kind: LogProbabilities, Matrices: []Matrix{{Rows: 1, Cols: 1, Values: []float32{0}}}},
		`Heatmap of 1 row x 2 column (value). All -0.5.`:                {Kind: Signed, Matrices: []Matrix{{Rows: 1, Cols: 2, Values: []float32{-0.5, -0.5}}}},
		`Heatmap of 1 row x 1 column (score). No finite value. NaN in 1 cell, first at row 0, column 0.`: {
			Matrices: []Matrix{{Rows: 1, Cols: 1, Values: []float32{nan32}}}},
	} {
		if got := h.Alt(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	if got := odd().Alt(); strings.ContainsAny(got, "\n\t\x00") {
		t.Errorf("%q is not one line", got)
	}
}
