package show

import (
	"fmt"
	"math"
	"testing"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/viz"
)

// A picture that is pooled from the cells of a finer one is what pooling from the matrix makes.
func TestCoarserIsThePool(t *testing.T) {
	for _, mask := range []cudaops.Mask{{}, {Causal: true, Diagonal: -3}, {Causal: true, Diagonal: 40}, {Causal: true, Diagonal: 5, Window: 9, PadLeft: 2},
		{Window: 12}, {PadLeft: 3, PadRight: 4}} {
		for _, size := range [][2]int{{90, 130}, {33, 64}, {64, 33}, {7, 200}} {
			n, k := size[0], size[1]
			x := make([]float32, n*k)
			for i := range x {
				x[i] = float32(math.Sin(float64(i * i % 101)))
			}
			for reduce := cudaops.Max; reduce <= magnitude; reduce++ {
				v := mapView{reduce: reduce, rows: viz.Span{To: n}, cols: viz.Span{To: k}, look: sightOf(mask, cellsOf(size, mask), n, k), h: min(16, n), w: min(20, k)}
				fine := pooled(v.finer(), x)
				got, want := v.coarser(fine), pooled(v, x)
				for i := range got.Values {
					if d := math.Abs(float64(got.Values[i] - want.Values[i])); !(d <= 1e-6) {
						t.Fatalf("%v, %v, reduction %d: cell %d is %g, want %g", size, mask, reduce, i, got.Values[i], want.Values[i])
					}
				}
				if fmt.Sprint(got.Hidden) != fmt.Sprint(want.Hidden) {
					t.Fatalf("%v, %v: hides %v, want %v", size, mask, got.Hidden, want.Hidden)
				}
			}
		}
	}
}

// cellsOf are allowed cells of a matrix, for some masks.
func cellsOf(size [2]int, mask cudaops.Mask) store.Allowed {
	if mask.PadRight == 0 {
		return store.Allowed{}
	}
	cells := make([]float32, size[0]*size[1])
	for i := range cells {
		if i%3 == 0 || i%7 == 0 {
			cells[i] = 1
		}
	}
	return store.AllowedOf(1, size[0], size[1], cells)
}

// pooled reduces the cells of a matrix by definition.
func pooled(v mapView, x []float32) wire.Tile {
	n, k := v.rows.To, v.cols.To
	t := wire.Tile{Rows: v.h, Cols: v.w, Values: make([]float32, v.h*v.w)}
	hidden := make([]bool, v.h*v.w)
	for i := range v.h {
		for j := range v.w {
			sum, count, best := 0.0, 0, math.NaN()
			for row := i * n / v.h; row < (i+1)*n/v.h; row++ {
				for col := j * k / v.w; col < (j+1)*k/v.w; col++ {
					if !v.look.mask.Sees(row, col, k) || !v.look.allowed.Sees(0, row, col) {
						continue
					}
					f := float64(x[row*k+col])
					sum += f
					count++
					better := map[cudaops.Reduce]bool{cudaops.Max: f > best, cudaops.Min: f < best, magnitude: math.Abs(f) > math.Abs(best)}[v.reduce]
					if better || math.IsNaN(best) {
						best = f
					}
				}
			}
			if hidden[i*v.w+j] = count == 0; count == 0 {
				continue
			}
			switch v.reduce {
			case cudaops.Mean:
				best = sum / float64(count)
			case cudaops.Sum:
				best = sum
			}
			t.Values[i*v.w+j] = float32(best)
		}
	}
	t.Hidden = runs(hidden)
	return t
}
