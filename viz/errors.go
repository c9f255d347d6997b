package viz

import "fmt"

// InputError is a heatmap that cannot be drawn: empty, ragged, mislabelled or marked outside of itself.
type InputError struct {
	Title  string
	Matrix int // the offending matrix, -1 where it is none in particular
	Reason string
}

func (e *InputError) Error() string {
	if e.Title == "" {
		return "heatmap: " + e.Reason
	}
	return fmt.Sprintf("heatmap %q: %s", e.Title, e.Reason)
}

// TooLargeError is a heatmap that [Heatmap.HTML] cannot show cell by cell. [Heatmap.PNG] can: it pools.
type TooLargeError struct {
	Title                string
	Matrices, Rows, Cols int
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("heatmap %q: %d of %d x %d is too large for the interactive view, which holds %d cells a matrix and %d in all: draw it as PNG",
		e.Title, e.Matrices, e.Rows, e.Cols, maxCells, maxAll)
}
