package viz

import "fmt"

// InputError is a picture that cannot be drawn: empty, ragged, mislabelled or marked outside of itself.
type InputError struct {
	Title  string
	Matrix int // the offending matrix, -1 where it is none in particular
	Reason string

	what string // empty: a heatmap
}

func (e *InputError) Error() string {
	what := or(e.what, "heatmap")
	if e.Title == "" {
		return what + ": " + e.Reason
	}
	return fmt.Sprintf("%s %q: %s", what, e.Title, e.Reason)
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
