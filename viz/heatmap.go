package viz

import (
	"fmt"
	"image"
)

// Kind says what the cells of a heatmap are, and so how they are coloured and pooled.
type Kind uint8

const (
	// Scores are scale * q.k before the mask and softmax: diverging around 0.
	Scores Kind = iota
	// Probabilities are softmax rows: sequential from 0, dark to light.
	Probabilities
	// Errors are error / bound ratios: white at 0, blue up to 1 (within the bound), orange to dark red above it, where the
	// scale is logarithmic. In a picture with numbers only those from 0.1 on are written.
	Errors
	// Signed are differences or any other values of both signs: diverging around 0.
	Signed
	// LogProbabilities are Probabilities on a logarithmic scale, as long rows need it: nearly all of theirs are close to 0. What
	// is exactly 0 has a colour of its own. Values below 0 are refused. Below 1e-12 of the largest all look alike.
	LogProbabilities
	// Amounts have 0 as their least, as an entropy, a distance or a share have: sequential from 0.
	Amounts
	// Steps are differences counted in f32 steps (ULP): diverging around 0, linear within a step or two and logarithmic beyond
	// (the inverse hyperbolic sine), since near 0 a small difference is many steps.
	Steps
	// Angles are radians from -π to π: a cyclic map, and where there is room an arrow in each cell. Of more cells than pixels the
	// first of each block is drawn.
	Angles
	slots // rows of a cache by position: a Timeline's
)

// Matrix is one panel: Rows x Cols f32 values in row-major order. The values are read, never kept or changed.
type Matrix struct {
	Name       string
	Rows, Cols int
	Values     []float32
	// Hidden says which cells are masked. A masked cell has no value: it is drawn in the colour of the mask, whatever
	// Values holds there. Nil: none.
	Hidden func(row, col int) bool
	// Absent says which cells do not exist, as those of keys that a step of a decode run did not have yet. They are left as
	// paper. Nil: none.
	Absent func(row, col int) bool
	// Notes are short facts about the matrix, as "entropy 2.1 bits". They stand under its name where there is room, and in the
	// text.
	Notes []string

	state []class // what the cells of a Timeline are
}

// Mark outlines one cell, as the worst one, and names it in the legend.
type Mark struct {
	Matrix, Row, Col int
	Label            string
}

// Heatmap is one or more matrices of equal shape, drawn as small multiples on one shared scale.
type Heatmap struct {
	Title string
	Kind  Kind
	// RowAxis and ColAxis name the axes, as "query" and "key". Empty: "row" and "column".
	RowAxis, ColAxis string
	// RowLabels and ColLabels are token labels, one for each row or column. Any string will do: what cannot be shown is
	// escaped. Nil: indices from 0.
	RowLabels, ColLabels []string
	// RowSpan and ColSpan say which indices the rows and columns stand for where that is not 0, 1, ...: of a window, or pooled.
	RowSpan, ColSpan Span
	// Pooling is what a cell is of the cells that it stands for, as "mean". It matters where spans pool.
	Pooling string
	// Quantity is what a value is called, with its unit, as "entropy (bits)". Empty: by the kind.
	Quantity string
	// Columns is how many panels stand side by side. 0: as many as look best.
	Columns  int
	Matrices []Matrix
	Marks    []Mark

	room    image.Point                       // of all panels; zero: the usual
	shared  *scale                            // instead of one of its own
	written func(matrix, row, col int) string // instead of values in cells
	said    []string                          // more of the subtitle
}

func (h Heatmap) rows() int { return h.Matrices[0].Rows }
func (h Heatmap) cols() int { return h.Matrices[0].Cols }

func (h Heatmap) rowAxis() string { return or(h.RowAxis, "row") }
func (h Heatmap) colAxis() string { return or(h.ColAxis, "column") }

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// quantity is what the colour bar and the tooltip call a value.
func (k Kind) quantity() string {
	switch k {
	case Scores:
		return "score"
	case Probabilities, LogProbabilities:
		return "probability"
	case Errors:
		return "error / bound"
	case Steps:
		return "f32 steps"
	case Angles:
		return "angle"
	case slots:
		return "position"
	}
	return "value"
}

func (h Heatmap) quantity() string { return or(h.Quantity, h.Kind.quantity()) }

// check refuses what cannot be drawn, before anything is allocated.
func (h Heatmap) check() error {
	if h.Kind > slots {
		return &InputError{Title: h.Title, Matrix: -1, Reason: fmt.Sprintf("unknown kind %d", h.Kind)}
	}
	if h.Columns < 0 {
		return &InputError{Title: h.Title, Matrix: -1, Reason: fmt.Sprintf("%d columns of panels", h.Columns)}
	}
	if len(h.Matrices) == 0 {
		return &InputError{Title: h.Title, Matrix: -1, Reason: "no matrix to draw"}
	}
	first := h.Matrices[0]
	for i, m := range h.Matrices {
		switch {
		case m.Rows <= 0 || m.Cols <= 0:
			return &InputError{Title: h.Title, Matrix: i, Reason: fmt.Sprintf("matrix %s is empty: %d x %d", m.called(i), m.Rows, m.Cols)}
		case len(m.Values)/m.Cols != m.Rows || len(m.Values)%m.Cols != 0:
			return &InputError{Title: h.Title, Matrix: i, Reason: fmt.Sprintf("matrix %s has %d values, which is not %d x %d", m.called(i), len(m.Values), m.Rows, m.Cols)}
		case m.Rows != first.Rows || m.Cols != first.Cols:
			return &InputError{Title: h.Title, Matrix: i, Reason: fmt.Sprintf("matrix %s is %d x %d, but matrix %s is %d x %d: small multiples share their axes",
				m.called(i), m.Rows, m.Cols, first.called(0), first.Rows, first.Cols)}
		}
	}
	if h.RowLabels != nil && len(h.RowLabels) != first.Rows {
		return &InputError{Title: h.Title, Matrix: -1, Reason: fmt.Sprintf("%d row labels for %d rows", len(h.RowLabels), first.Rows)}
	}
	if h.ColLabels != nil && len(h.ColLabels) != first.Cols {
		return &InputError{Title: h.Title, Matrix: -1, Reason: fmt.Sprintf("%d column labels for %d columns", len(h.ColLabels), first.Cols)}
	}
	if err := h.checkSpans(); err != nil {
		return err
	}
	for i, m := range h.Marks {
		if m.Matrix < 0 || m.Matrix >= len(h.Matrices) {
			return &InputError{Title: h.Title, Matrix: -1, Reason: fmt.Sprintf("mark %d is in matrix %d of %d", i, m.Matrix, len(h.Matrices))}
		}
		if m.Row < 0 || m.Row >= first.Rows || m.Col < 0 || m.Col >= first.Cols {
			return &InputError{Title: h.Title, Matrix: m.Matrix, Reason: fmt.Sprintf("mark %d is at [%d, %d] of a %d x %d matrix", i, m.Row, m.Col, first.Rows, first.Cols)}
		}
	}
	if h.Kind == LogProbabilities {
		return h.checkLog()
	}
	return nil
}

// checkLog refuses what a logarithmic scale has no place for.
func (h Heatmap) checkLog() error {
	for i, m := range h.Matrices {
		for k, v := range m.Values {
			if row, col := k/m.Cols, k%m.Cols; v < 0 && m.class(row, col) == finite {
				return &InputError{Title: h.Title, Matrix: i, Reason: fmt.Sprintf("matrix %s has %g at [%d, %d], for which a logarithmic scale has no place", m.called(i), v, row, col)}
			}
		}
	}
	return nil
}

func (m Matrix) called(i int) string {
	if m.Name == "" {
		return fmt.Sprintf("%d", i)
	}
	return fmt.Sprintf("%d (%q)", i, m.Name)
}
