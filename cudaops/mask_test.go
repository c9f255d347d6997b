package cudaops_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/attnb/attnb/cudaops"
)

func TestIntervals(t *testing.T) {
	for _, test := range []struct {
		mask cudaops.Mask
		cols int
		want [][2]int
	}{
		{cudaops.Mask{}, 3, [][2]int{{0, 3}, {0, 3}}},
		{cudaops.Mask{Causal: true, Diagonal: -3}, 2, [][2]int{{0, 0}, {0, 0}, {0, 0}, {0, 1}, {0, 2}}},
		// A window counts the row itself: row 5 sees 3, 4 and 5.
		{cudaops.Mask{Causal: true, Window: 3}, 7, [][2]int{{0, 1}, {0, 2}, {0, 3}, {1, 4}, {2, 5}, {3, 6}, {4, 7}}},
		{cudaops.Mask{Window: 2}, 5, [][2]int{{0, 2}, {0, 3}, {1, 4}, {2, 5}, {3, 5}}},
		{cudaops.Mask{Window: 2, Diagonal: 3}, 5, [][2]int{{2, 5}, {3, 5}, {4, 5}, {0, 0}}},
		{cudaops.Mask{Causal: true, Window: 2, Diagonal: -2}, 3, [][2]int{{0, 0}, {0, 0}, {0, 1}, {0, 2}}},
		// Left padding: the rows of padding see nothing.
		{cudaops.Mask{Causal: true, PadLeft: 2}, 5, [][2]int{{0, 0}, {0, 0}, {2, 3}, {2, 4}, {2, 5}}},
		{cudaops.Mask{PadLeft: 1, PadRight: 2}, 5, [][2]int{{1, 3}, {1, 3}}},
		{cudaops.Mask{PadLeft: 1, PadRight: 2}, 3, [][2]int{{0, 0}}},
		{cudaops.Mask{Causal: true, Documents: []int{2, 3}}, 5, [][2]int{{0, 1}, {0, 2}, {2, 3}, {2, 4}, {2, 5}}},
		{cudaops.Mask{Documents: []int{2, 3}, Diagonal: 1}, 5, [][2]int{{0, 2}, {2, 5}, {2, 5}, {2, 5}, {0, 0}}},
		{cudaops.Mask{Documents: []int{5}, Diagonal: -1, PadRight: 1, Window: 3}, 5, [][2]int{{0, 0}, {0, 3}, {0, 4}}},
	} {
		var got [][2]int
		empty := 0
		for r := range test.want {
			lo, hi := test.mask.Interval(r, test.cols)
			got = append(got, [2]int{lo, hi})
			if hi == 0 {
				empty++
			}
		}
		if !slices.Equal(got, test.want) || test.mask.Empty(len(test.want), test.cols) != empty {
			t.Errorf("%+v of %d columns: %v, %d empty, want %v, %d", test.mask, test.cols, got, test.mask.Empty(len(test.want), test.cols), test.want, empty)
		}
	}
}

// An interval is exactly what the fields show one by one.
func TestIntervalsAreTheFields(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		rows, cols := 1+r.IntN(9), 1+r.IntN(9)
		m := cudaops.Mask{Causal: r.IntN(2) == 0, Diagonal: r.IntN(13) - 6, Window: r.IntN(5), PadLeft: r.IntN(cols + 1)}
		m.PadRight = r.IntN(cols - m.PadLeft + 1)
		document := make([]int, cols)
		if r.IntN(2) == 0 {
			for left := cols; left > 0; left = cols - sum(m.Documents) {
				m.Documents = append(m.Documents, 1+r.IntN(left))
			}
			at := 0
			for i, n := range m.Documents {
				for range n {
					document[at], at = i, at+1
				}
			}
		}
		all := m.Intervals(rows, cols)
		for row := range rows {
			lo, hi := m.Interval(row, cols)
			if all[row] != [2]int{lo, hi} {
				t.Fatalf("%+v: row %d of %d columns: %v among all, %d to %d alone", m, row, cols, all[row], lo, hi)
			}
			own := row + m.Diagonal
			for j := range cols {
				want := j >= m.PadLeft && j < cols-m.PadRight
				if m.Causal {
					want = want && j <= own
				}
				if m.Window > 0 {
					want = want && j > own-m.Window && (m.Causal || j < own+m.Window)
				}
				if m.Documents != nil {
					want = want && own >= 0 && own < cols && document[j] == document[own]
				}
				if got := j >= lo && j < hi; got != want {
					t.Fatalf("%+v: row %d, column %d of %d: %v, want %v", m, row, j, cols, got, want)
				}
			}
		}
	}
}

func sum(x []int) (n int) {
	for _, v := range x {
		n += v
	}
	return n
}
