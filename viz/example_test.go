package viz_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/attnb/attnb/viz"
)

// A program that has a matrix and no notebook: three lines to a picture in a file.
func Example() {
	values := []float32{1, -2, 0.5, 3}

	h := viz.Heatmap{Title: "Scores", RowAxis: "query", ColAxis: "key", Matrices: []viz.Matrix{{Rows: 2, Cols: 2, Values: values}}}
	png, err := h.PNG()
	if err == nil {
		err = os.WriteFile(filepath.Join(os.TempDir(), "scores.png"), png, 0o644)
	}

	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(h.Alt())
	// Output: Scores. Heatmap of 2 query x 2 key (score). From -2 at query 0, key 1 to 3 at query 1, key 1.
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
