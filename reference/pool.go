package reference

import "math"

// Reduction is how the visible cells of a pool become one.
type Reduction uint8

// The extremes are NaN where a visible cell is.
const (
	Max Reduction = iota
	Mean
	Sum
	Min
)

// Pool reduces each matrix [S, T] to rows x cols: cell (i, j) is the reduction of the visible cells among the rows from
// floor(i*S/rows) up to floor((i+1)*S/rows) and the columns from floor(j*T/cols) up to floor((j+1)*T/cols). Where none is
// visible it is exactly 0.
func Pool(x Heads, v Visible, by Reduction, rows, cols int) (Heads, error) {
	in, err := measure("Pool", "x", x)
	if err != nil {
		return nil, err
	}
	if err := checkPool(in, by, rows, cols); err != nil {
		return nil, err
	}
	out := zeros(shape{in.heads, rows, cols})
	for h, m := range x {
		for i := range rows {
			for j := range cols {
				var seen []float64
				for row := i * in.rows / rows; row < (i+1)*in.rows/rows; row++ {
					for col := j * in.dim / cols; col < (j+1)*in.dim/cols; col++ {
						if v.sees(row, col) {
							seen = append(seen, m.At(row, col))
						}
					}
				}
				out[h].Set(i, j, by.of(seen))
			}
		}
	}
	return out, nil
}

func checkPool(in shape, by Reduction, rows, cols int) error {
	switch {
	case by > Min:
		return badArgument("Pool", "unknown reduction %d", by)
	case rows < 1 || rows > in.rows || cols < 1 || cols > in.dim:
		return badArgument("Pool", "x %v does not pool into %d x %d", in, rows, cols)
	}
	return nil
}

// of is the reduction of some cells, 0 of none.
func (by Reduction) of(cells []float64) float64 {
	if len(cells) == 0 {
		return 0
	}
	r := cells[0]
	for _, c := range cells[1:] {
		switch {
		case math.IsNaN(r) || math.IsNaN(c): // before math.Max, for which +Inf outdoes NaN
			r = math.NaN()
		case by == Max:
			r = math.Max(r, c)
		case by == Min:
			r = math.Min(r, c)
		default:
			r += c
		}
	}
	if by == Mean {
		r /= float64(len(cells))
	}
	return r
}
