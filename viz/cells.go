package viz

import "math"

// class is what a cell holds: a finite value, or why it has none. Where cells are pooled the highest class wins, so that
// nothing abnormal hides behind a neighbour, and a value is seen before a masked cell.
type class uint8

const (
	absent class = iota // there is no such cell
	masked
	zero // on a logarithmic scale
	finite
	negInf
	posInf
	nan
	hole      // of a cache: a slot that was never written, below one that was
	rewritten // of a cache: a slot that is written although it holds a row
	classes
)

// name is the class as the legend says it.
func (c class) name() string {
	return [classes]string{"absent", "masked", "zero", "finite", "-Inf", "+Inf", "NaN", "hole", "overwritten"}[c]
}

func classOf(v float32) class {
	switch {
	case v != v:
		return nan
	case v > math.MaxFloat32:
		return posInf
	case v < -math.MaxFloat32:
		return negInf
	}
	return finite
}

func (m Matrix) class(row, col int) class {
	switch {
	case m.Absent != nil && m.Absent(row, col):
		return absent
	case m.Hidden != nil && m.Hidden(row, col):
		return masked
	case m.state != nil && m.state[row*m.Cols+col] != finite:
		return m.state[row*m.Cols+col]
	}
	return classOf(m.Values[row*m.Cols+col])
}

// at is a cell of a heatmap.
type at struct{ matrix, row, col int }

// summary counts the cells of all matrices by class and finds the extremes of the finite ones.
type summary struct {
	count        [classes]int
	first        [classes]at // the first cell of each class, in order
	min, max     float64     // 0 where no cell is finite
	minAt, maxAt at
}

func (s *summary) value(v float32, matrix, row, col int) {
	f, first := float64(v), s.count[finite]+s.count[rewritten] == 1
	if first || f < s.min {
		s.min, s.minAt = f, at{matrix, row, col}
	}
	if first || f > s.max {
		s.max, s.maxAt = f, at{matrix, row, col}
	}
}

// cells is a matrix as it is drawn: one value and class a cell, pooled if the matrix has more cells than pixels.
type cells struct {
	rows, cols int
	value      []float32
	class      []class
}

// pool reduces blocks of pr x pc cells to one each: the highest class, and among finite values the one of the largest
// magnitude (so the maximum of probabilities and errors), of angles the first. The summary sees every cell.
func (h Heatmap) pool(i, pr, pc int, s *summary) cells {
	m := h.Matrices[i]
	p := cells{rows: ceilDiv(m.Rows, pr), cols: ceilDiv(m.Cols, pc)}
	p.value = make([]float32, p.rows*p.cols)
	p.class = make([]class, p.rows*p.cols)
	for row := range m.Rows {
		line := m.Values[row*m.Cols:][:m.Cols]
		out := row / pr * p.cols
		for col, v := range line {
			c := classOf(v)
			if m.Hidden != nil || m.Absent != nil || m.state != nil {
				c = m.class(row, col)
			}
			if v == 0 && c == finite && h.Kind == LogProbabilities {
				c = zero
			}
			if s.count[c]++; s.count[c] == 1 {
				s.first[c] = at{i, row, col}
			}
			if c == finite || c == rewritten {
				s.value(v, i, row, col)
			}
			o := out + col/pc
			switch old := p.class[o]; {
			case c > old:
				p.class[o], p.value[o] = c, v
			case c == old && c == finite && h.Kind != Angles && abs(v) > abs(p.value[o]):
				p.value[o] = v
			}
		}
	}
	return p
}

func abs(v float32) float32 { return math.Float32frombits(math.Float32bits(v) &^ (1 << 31)) }

func ceilDiv(a, b int) int { return (a + b - 1) / b }
