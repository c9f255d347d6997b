package show

import (
	"fmt"
	"math"
	"testing"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/viz"
)

// A picture that is pooled from the cells of a finer one is what pooling from the matrix makes.
func TestCoarserIsThePool(t *testing.T) {
	for _, mask := range []cudaops.Mask{{}, {Causal: true, Diagonal: -3}, {Causal: true, Diagonal: 40}} {
		for _, size := range [][2]int{{90, 130}, {33, 64}, {64, 33}, {7, 200}} {
			n, k := size[0], size[1]
			x := make([]float32, n*k)
			for i := range x {
				x[i] = float32(math.Sin(float64(i * i % 101)))
			}
			for reduce := cudaops.Max; reduce <= magnitude; reduce++ {
				v := mapView{reduce: reduce, rows: viz.Span{To: n}, cols: viz.Span{To: k}, mask: mask, h: min(16, n), w: min(20, k)}
				fine := pooled(v.finer(), x)
				got, want := v.coarser(fine), pooled(v, x)
				for i := range got.Values {
					if d := math.Abs(float64(got.Values[i] - want.Values[i])); !(d <= 1e-6) {
						t.Fatalf("%v, %v, reduction %d: cell %d is %g, want %g", size, mask, reduce, i, got.Values[i], want.Values[i])
					}
				}
				if fmt.Sprint(got.Seen) != fmt.Sprint(want.Seen) {
					t.Fatalf("%v, %v: sees %v, want %v", size, mask, got.Seen, want.Seen)
				}
			}
		}
	}
}

// pooled reduces the cells of a matrix by definition.
func pooled(v mapView, x []float32) wire.Tile {
	n, k := v.rows.To, v.cols.To
	t := wire.Tile{Rows: v.h, Cols: v.w, Values: make([]float32, v.h*v.w), Seen: make([]int, v.h)}
	for i := range v.h {
		for j := range v.w {
			sum, count, best := 0.0, 0, math.NaN()
			for row := i * n / v.h; row < (i+1)*n/v.h; row++ {
				for col := j * k / v.w; col < (j+1)*k/v.w; col++ {
					if col >= v.mask.Visible(row, k) {
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
			if count == 0 {
				continue
			}
			t.Seen[i] = j + 1
			switch v.reduce {
			case cudaops.Mean:
				best = sum / float64(count)
			case cudaops.Sum:
				best = sum
			}
			t.Values[i*v.w+j] = float32(best)
		}
	}
	return t
}
