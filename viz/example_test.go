package viz_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/attnb/attnb/viz"
)

// A program that has a matrix and no notebook: three lines to a picture and a page.
func Example() {
	values, dir := []float32{1, -2, 0.5, 3}, os.TempDir()

	h := viz.Heatmap{Title: "Scores", RowAxis: "query", ColAxis: "key", Matrices: []viz.Matrix{{Rows: 2, Cols: 2, Values: values}}}
	err := viz.Save(filepath.Join(dir, "scores.png"), h)
	err = errors.Join(err, viz.Save(filepath.Join(dir, "scores.html"), h))

	fmt.Println(err)
	fmt.Println(h.Alt())
	// Output:
	// <nil>
	// Scores. Heatmap of 2 query x 2 key (score). From -2 at query 0, key 1 to 3 at query 1, key 1.
}

// Scores of a query and what the mask leaves of them, on one axis of keys.
func ExamplePlot() {
	scores := []float32{1, -2, 3}
	future := func(key int) bool { return key > 1 }
	p := viz.Plot{Title: "Query 1", Axis: "key", Labels: []string{"the", " cat", " sat"}, Charts: []viz.Chart{
		{Name: "scores", Quantity: "score", Series: []viz.Series{{Values: scores}}},
		{Name: "masked", Quantity: "score", Series: []viz.Series{{Values: scores, Hidden: future}}},
	}}
	fmt.Println(p.Alt())
	// Output: Query 1. 2 charts over 3 key. scores (score): from -2 at key 1 “␣cat” to 3 at key 2 “␣sat”. masked (score): from -2 at key 1 “␣cat” to 1 at key 0 “the”. masked: 1 position, first key 2 “␣sat”.
}

// A cache of three slots that goes round: its fourth row lies where the first one was.
func ExampleTimeline() {
	var t viz.Timeline
	for position := range 4 {
		t.Steps = append(t.Steps, viz.Write{Slots: []int{position % 3}, Positions: []int{position}})
	}
	fmt.Println(t.Alt())
	// Output: Heatmap of 3 slot x 4 step (position). From 0 at slot 0, step 0 to 3 at slot 0, step 3. 3 cells not there. overwritten in 1 cell, first at slot 0, step 3. A number stands where a slot is written. 3 slots and 0 holes at the end. 1 row overwritten.
}

// Two matrices on one scale, and beside them their difference on its own.
func ExampleSheet() {
	mine, theirs, apart := []float32{1, 2}, []float32{1, 1.5}, []float32{0, 0.5}
	row := func(name string, v []float32) viz.Matrix { return viz.Matrix{Name: name, Rows: 1, Cols: 2, Values: v} }
	s := viz.Sheet{Title: "Compared", Pictures: []viz.Drawable{
		viz.Heatmap{Kind: viz.Signed, Columns: 2, Matrices: []viz.Matrix{row("mine", mine), row("theirs", theirs)}},
		viz.Heatmap{Kind: viz.Signed, Columns: 1, Matrices: []viz.Matrix{row("mine - theirs", apart)}, Marks: []viz.Mark{{Col: 1, Label: "worst"}}},
	}}
	fmt.Println(viz.Save(filepath.Join(os.TempDir(), "compared.png"), s))
	// Output: <nil>
}

// A page with every head, interactive: values on hover.
func ExampleHeatmap_HTML() {
	causal := func(row, col int) bool { return col > row }
	h := viz.Heatmap{Title: "Probabilities", Kind: viz.Probabilities, Matrices: []viz.Matrix{
		{Name: "head 0", Rows: 2, Cols: 2, Values: []float32{1, 0, 0.5, 0.5}, Hidden: causal},
		{Name: "head 1", Rows: 2, Cols: 2, Values: []float32{1, 0, 0.9, 0.1}, Hidden: causal},
	}}
	page, err := h.HTML()
	if err == nil {
		err = os.WriteFile(filepath.Join(os.TempDir(), "probabilities.html"), []byte("<!doctype html><meta charset=utf-8>"+page), 0o644)
	}
	fmt.Println(err)
	// Output: <nil>
}
