package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/attnb/attnb/cudaops"
)

// View is a tensor as a picture or a report shows it: one matrix a head, heads first.
type View struct {
	Meta
	H       int   // matrices
	S       int   // rows of each
	D       int   // columns
	Sampled []int // the rows that are looked at, of all matrices; nil: all
}

// ViewOf is the order in which the buffer of x, seen by head, is downloaded.
func ViewOf(m Meta) View {
	if len(m.Shape) == 3 && m.Swapped() {
		m.Shape = []int{m.Shape[1], m.Shape[0], m.Shape[2]}
		m.Axes = []string{m.Axes[1], m.Axes[0], m.Axes[2]}
	}
	a := View{Meta: m}
	a.H, a.S, a.D = Fold(m.Shape)
	return a
}

// Fetch downloads a tensor in the order that ViewOf describes.
func Fetch(d *cudaops.Device, x Operand) ([]float32, error) {
	buf := x.Buf
	if len(x.Shape) == 3 && x.Swapped() {
		t, err := buf.Transpose()
		if err != nil {
			return nil, err
		}
		defer t.Release()
		buf = t
	}
	return d.Download(buf)
}

// RowAxisName names what a matrix runs over.
func (a View) RowAxisName() string {
	if len(a.Axes) < 2 {
		return "row"
	}
	return a.Axes[len(a.Axes)-2]
}

// ColAxisName names what a row runs over.
func (a View) ColAxisName() string { return a.Axes[len(a.Axes)-1] }

// Place is the matrix, row and column of a flat index into what is looked at.
func (a View) Place(i int) (matrix, row, col int) {
	row, col = i/a.D, i%a.D
	if a.Sampled != nil {
		row = a.Sampled[row]
	}
	return row / a.S, row % a.S, col
}

// Panel names matrix i: "head 2", "batch 0, head 2".
func (a View) Panel(i int) string {
	lead := max(0, len(a.Shape)-2)
	words := make([]string, lead)
	for k := lead - 1; k >= 0; k-- {
		words[k] = fmt.Sprintf("%s %d", Singular(a.Axes[k]), i%a.Shape[k])
		i /= a.Shape[k]
	}
	return strings.Join(words, ", ")
}

// Labels gives the token labels of rows and columns. Tokens belong to query, key and seq. Queries behind a cache are the
// last of the tokens: their first one stands where the mask says.
func (a View) Labels(tokens []string) (rows, cols []string, err error) {
	if len(tokens) == 0 {
		return nil, nil, nil
	}
	for _, side := range []struct {
		axis string
		n    int
		to   *[]string
	}{{a.RowAxisName(), a.S, &rows}, {a.ColAxisName(), a.D, &cols}} {
		if side.axis != "query" && side.axis != "key" && side.axis != "seq" {
			continue
		}
		first := 0
		if side.axis == "query" && a.Mask.Causal && len(tokens) > side.n {
			first = a.Mask.Diagonal
		}
		if first >= 0 && first <= len(tokens)-side.n && (first > 0 || len(tokens) == side.n) {
			*side.to = tokens[first : first+side.n]
		}
	}
	if rows == nil && cols == nil {
		return nil, nil, fmt.Errorf("%d tokens fit none of the axes query, key and seq", len(tokens))
	}
	return rows, cols, nil
}

// Where gives the coordinates of a flat index by axis, with tokens.
func (a View) Where(i int, tokens []string) string {
	var words []string
	matrix, row, col := a.Place(i)
	if lead := a.Panel(matrix); lead != "" {
		words = append(words, lead)
	}
	rows, cols, _ := a.Labels(tokens)
	say := func(axis string, n int, labels []string) {
		w := fmt.Sprintf("%s %d", axis, n)
		if labels != nil {
			w += " " + Quote(labels[n])
		}
		words = append(words, w)
	}
	if len(a.Shape) > 1 {
		say(a.RowAxisName(), row, rows)
	}
	say(a.ColAxisName(), col, cols)
	return strings.Join(words, ", ")
}

// differ says that shapes do, and what makes one of the other where that is a matter of how one tensor lies.
func differ(a, b []int) error {
	for _, s := range [][2][]int{{a, b}, {b, a}} {
		switch x, y := s[0], s[1]; {
		case len(x) == 3 && len(y) == 2 && y[0] == x[1] && y[1] == x[0]*x[2]:
			return errors.New("shapes differ: Merge lays the heads of a row side by side")
		case len(x) == 3 && len(y) == 3 && y[0] == x[1] && y[1] == x[0] && y[2] == x[2]:
			return errors.New("shapes differ: where a file has rows before heads, Axes(\"seq heads dim\") says so")
		case len(x) == 4 && x[0] == 1 && slices.Equal(x[1:], y):
			return errors.New("shapes differ: Batch(0) takes the one out of a batch")
		}
	}
	return errors.New("shapes differ")
}

// Align says by which axes expected lies as mine does: those of the same names, or, where the names are others, those in the same
// places, which are then called as in mine. note tells what had to be done.
func Align(mine, expected Meta) (axes []string, note string, err error) {
	order := OrderOf(expected.Axes, mine.Axes)
	if order == nil {
		order = OrderOf(mine.Axes, mine.Axes)
	}
	if len(mine.Shape) != len(expected.Shape) {
		return nil, "", differ(mine.Shape, expected.Shape)
	}
	for i, at := range order {
		if mine.Shape[i] != expected.Shape[at] {
			return nil, "", differ(mine.Shape, expected.Shape)
		}
	}
	switch was := ShapeWords(expected.Shape, expected.Axes); {
	case !slices.IsSorted(order):
		return expected.Axes, fmt.Sprintf("expected is %s: its axes were put into the order of mine, by name", was), nil
	case !slices.Equal(mine.Axes, expected.Axes):
		return mine.Axes, fmt.Sprintf("the axes have other names, expected is %s: compared in the order in which they stand", was), nil
	}
	return expected.Axes, "", nil
}

// OrderOf says where each of the axes to stands in from; nil where the names are not the same.
func OrderOf(from, to []string) []int {
	order := make([]int, len(to))
	for i, axis := range to {
		if order[i] = slices.Index(from, axis); order[i] < 0 {
			return nil
		}
	}
	if len(from) != len(to) {
		return nil
	}
	return order
}

// Permute rearranges data of a shape so that its axis order[i] becomes axis i.
func Permute[T any](data []T, shape, order []int) []T {
	if slices.IsSorted(order) {
		return data
	}
	stride := make([]int, len(shape))
	for i, n := len(shape)-1, 1; i >= 0; i-- {
		stride[i] = n
		n *= shape[i]
	}
	out := make([]T, len(data))
	at := make([]int, len(order))
	for i := range out {
		from := 0
		for k, n := range at {
			from += n * stride[order[k]]
		}
		out[i] = data[from]
		for k := len(at) - 1; k >= 0; k-- {
			if at[k]++; at[k] < shape[order[k]] {
				break
			}
			at[k] = 0
		}
	}
	return out
}

// Widen is x in float64.
func Widen(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}
