package viz

// detailSide is how many cells, each way, of a large matrix lie beside its picture one by one: those around the largest.
const detailSide = 64

// zoomSide is how many cells a picture has at most, each way, from which a page zooms on: more than that is stored beside it.
const zoomSide = 512

// Zooming is the heatmap as a page zooms into it, of matrices of any size that are there: a large one is pooled by the value of the
// largest magnitude (of probabilities and errors the largest), and what it was pooled from is stored as far as an output has
// room. The error is an *[InputError].
//
//	zoom, err := viz.Heatmap{Title: "Scores", Matrices: matrices}.Zooming()
//	picture, html, err := zoom.Render()
func (h Heatmap) Zooming() (Zoom, error) {
	if err := h.check(); err != nil {
		return Zoom{}, err
	}
	z := Zoom{Heatmap: h, Rows: h.rowSpan().To, Cols: h.colSpan().To}
	if h.Kind == Probabilities || h.Kind == LogProbabilities || h.Kind == Errors {
		z.By = "largest"
	}
	if h.RowSpan.From == 0 && h.rowSpan().len() == h.rows() {
		z.RowTokens = h.RowLabels
	}
	if h.ColSpan.From == 0 && h.colSpan().len() == h.cols() {
		z.ColTokens = h.ColLabels
	}
	side := min(PanelSide(len(h.Matrices)), zoomSide)
	if h.rows() <= side && h.cols() <= side {
		return z, nil
	}
	if h.pooled() {
		return Zoom{}, &InputError{Title: h.Title, Matrix: -1, Reason: "its cells are pooled already: give the whole matrix, or fewer cells"}
	}
	z.RowSpan, z.ColSpan, z.Matrices, z.Marks = h.rowSpan(), h.colSpan(), nil, nil
	z.Pooling = or(z.By, "value of the largest magnitude")
	rows, cols := min(h.rows(), side), min(h.cols(), side)
	if rows < h.rows() {
		z.RowLabels = nil
	}
	if cols < h.cols() {
		z.ColLabels = nil
	}
	for _, m := range h.Matrices {
		fine := m.pooledTo(min(2*rows, h.rows()), min(2*cols, h.cols()))
		z.Matrices = append(z.Matrices, m.pooledTo(rows, cols))
		z.Finer = append(z.Finer, []Part{{fine, z.RowSpan, z.ColSpan}, m.detail(z.RowSpan.From, z.ColSpan.From)})
	}
	return z, nil
}

// pooledTo reduces a matrix as [Span] divides it: the highest class, and among finite values that of the largest magnitude.
func (m Matrix) pooledTo(rows, cols int) Matrix {
	out := Matrix{Name: m.Name, Rows: rows, Cols: cols, Values: make([]float32, rows*cols)}
	class := make([]class, rows*cols)
	high, wide := Span{0, m.Rows}, Span{0, m.Cols}
	for i := range rows {
		for j := range cols {
			o := i*cols + j
			for row := high.edge(i, rows); row < high.edge(i+1, rows); row++ {
				for col := wide.edge(j, cols); col < wide.edge(j+1, cols); col++ {
					v, c := m.Values[row*m.Cols+col], m.class(row, col)
					if c > class[o] || c == class[o] && c == finite && abs(v) > abs(out.Values[o]) {
						class[o], out.Values[o] = c, v
					}
				}
			}
		}
	}
	out.Hidden = func(row, col int) bool { return class[row*cols+col] <= masked }
	return out
}

// detail is the part of a matrix around its value of the largest magnitude. from are the indices of its first cell.
func (m Matrix) detail(fromRow, fromCol int) Part {
	best, at := float32(-1), 0
	for i, v := range m.Values {
		if abs(v) > best && m.class(i/m.Cols, i%m.Cols) == finite {
			best, at = abs(v), i
		}
	}
	around := func(mid, n int) (from, to int) {
		from = min(max(mid-detailSide/2, 0), max(n-detailSide, 0))
		return from, min(from+detailSide, n)
	}
	top, bottom := around(at/m.Cols, m.Rows)
	left, right := around(at%m.Cols, m.Cols)
	out := Matrix{Rows: bottom - top, Cols: right - left}
	for row := top; row < bottom; row++ {
		out.Values = append(out.Values, m.Values[row*m.Cols+left:row*m.Cols+right]...)
	}
	out.Hidden = func(row, col int) bool { return m.class(top+row, left+col) <= masked }
	return Part{out, Span{fromRow + top, fromRow + bottom}, Span{fromCol + left, fromCol + right}}
}
