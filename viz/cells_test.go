package viz

import (
	"math/rand/v2"
	"testing"
)

// Pooling against its definition, on odd shapes with everything mixed in.
func TestPool(t *testing.T) {
	g := rand.New(rand.NewPCG(1, 2))
	special := []float32{nan32, inf32, -inf32, 0, minus0, 1e-45, 3e38}
	for range 200 {
		m := noise(1+g.IntN(40), 1+g.IntN(40), 1)
		for i := range m.Values {
			if g.IntN(6) == 0 {
				m.Values[i] = special[g.IntN(len(special))]
			}
		}
		hide := g.IntN(3)
		m.Hidden = func(row, col int) bool { return hide > 0 && (row*7+col*3)%5 < hide*2 }
		pr, pc := 1+g.IntN(5), 1+g.IntN(5)
		var s summary
		p := Heatmap{Matrices: []Matrix{m}}.pool(0, pr, pc, &s)

		var count [classes]int
		for r := range p.rows {
			for c := range p.cols {
				best, largest := masked, float32(0)
				for row := r * pr; row < min((r+1)*pr, m.Rows); row++ {
					for col := c * pc; col < min((c+1)*pc, m.Cols); col++ {
						k := m.class(row, col)
						count[k]++
						best = max(best, k)
						if v := m.Values[row*m.Cols+col]; k == finite && abs(v) > abs(largest) {
							largest = v
						}
					}
				}
				got, class := p.value[r*p.cols+c], p.class[r*p.cols+c]
				if class != best || best == finite && abs(got) != abs(largest) {
					t.Fatalf("%d x %d by %d x %d, cell [%d, %d]: %s %g, want %s %g", m.Rows, m.Cols, pr, pc, r, c, class.name(), got, best.name(), largest)
				}
			}
		}
		if count != s.count {
			t.Fatalf("counts %v, want %v", s.count, count)
		}
	}
}

func TestSummaryExtremes(t *testing.T) {
	h := Heatmap{Matrices: []Matrix{
		{Rows: 1, Cols: 3, Values: []float32{nan32, 2, -inf32}},
		{Rows: 1, Cols: 3, Values: []float32{-3, 9, 8}, Hidden: func(_, col int) bool { return col == 1 }},
	}}
	var s summary
	for i := range h.Matrices {
		h.pool(i, 1, 1, &s)
	}
	if s.min != -3 || s.minAt != (at{1, 0, 0}) || s.max != 8 || s.maxAt != (at{1, 0, 2}) {
		t.Errorf("%g at %v to %g at %v: the masked 9 and the infinities are no extremes", s.min, s.minAt, s.max, s.maxAt)
	}
	if s.first[nan] != (at{0, 0, 0}) || s.first[negInf] != (at{0, 0, 2}) || s.count[masked] != 1 {
		t.Errorf("%+v", s)
	}
}
