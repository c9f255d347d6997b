package cudaops_test

import (
	"testing"

	"github.com/attnb/attnb/cudaops"
)

// Pooled tells which pooled cells hold something visible, as counting does.
func TestPooledMask(t *testing.T) {
	for _, m := range []cudaops.Mask{{}, {Causal: true}, {Causal: true, Diagonal: 5}, {Causal: true, Diagonal: -4}, {Causal: true, Diagonal: -40}, {Causal: true, Diagonal: 40}} {
		for _, c := range [][4]int{{9, 14, 9, 14}, {9, 14, 2, 5}, {14, 9, 5, 9}, {1, 7, 1, 2}} {
			s, columns, h, w := c[0], c[1], c[2], c[3]
			for i := range h {
				got := m.Pooled(i, s, h, columns, w)
				for j := range w {
					seen := false
					for row := i * s / h; row < (i+1)*s/h; row++ {
						for col := j * columns / w; col < (j+1)*columns/w; col++ {
							seen = seen || !m.Causal || col <= row+m.Diagonal
						}
					}
					if seen != (j < got) {
						t.Errorf("%+v, %d x %d to %d x %d: row %d sees %d columns, column %d: %v", m, s, columns, h, w, i, got, j, seen)
					}
				}
			}
		}
	}
}
