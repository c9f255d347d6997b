package show

import (
	"fmt"

	"github.com/attnb/attnb/kernel/resident/figure"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/viz"
)

// DifferenceOf is how a check is to be shown.
func DifferenceOf(r wire.Request) wire.Difference {
	if r.Draw == nil {
		return wire.DifferenceRatio
	}
	return r.Draw.Difference
}

// WholeOnly says why a sample of rows is shown by its errors, where differences were asked for.
func WholeOnly(show wire.Difference) string {
	if show == wire.DifferenceRatio {
		return ""
	}
	return " Differences are shown where all rows are checked."
}

// uncover shows the cells under a mask whose difference is not 0, as it should be.
func uncover(m *viz.Matrix, apart []float32) {
	if hidden := m.Hidden; hidden != nil {
		m.Hidden = func(row, col int) bool { return hidden(row, col) && apart[row*m.Cols+col] == 0 }
	}
}

// Differences shows both sides of a comparison on one scale, and mine - want on its own, on the same axes. The worst cell is marked. whole:
// what lies under a mask is shown as well.
func Differences(a store.View, title string, show wire.Difference, names [2]string, mine []float32, want []float64, worst int, tokens []string, whole bool) (wire.Display, error) {
	if show > wire.DifferenceSteps {
		return wire.Display{}, fmt.Errorf("unknown difference %d", show)
	}
	if !figure.Comparable(a.H) {
		return wire.Display{}, fmt.Errorf("differences of %d matrices in one picture are too many: pick one with Head(i) or Batch(i)", a.H)
	}
	apart, kind := figure.Apart(mine, want), viz.Signed
	if show == wire.DifferenceSteps {
		apart, kind = figure.Steps(mine, want), viz.Steps
	}
	rounded := make([]float32, len(want))
	for i, v := range want {
		rounded[i] = float32(v)
	}
	var sides [3]viz.Heatmap
	for i, side := range []struct {
		kind   viz.Kind
		values []float32
	}{{kindOf(a.Quantity), mine}, {kindOf(a.Quantity), rounded}, {kind, apart}} {
		var err error
		if sides[i], err = Heatmap(a, "", side.kind, side.values, tokens); err != nil {
			return wire.Display{}, err
		}
	}
	for i := range sides {
		for k := range sides[i].Matrices {
			if whole {
				sides[i].Matrices[k].Hidden = nil
			} else if a.Quantity != store.Scores { // which are not compared under the mask
				uncover(&sides[i].Matrices[k], sides[2].Matrices[k].Values)
			}
		}
	}
	var mark *viz.Mark
	if apart[worst] != 0 {
		matrix, row, col := a.Place(worst)
		mark = &viz.Mark{Matrix: matrix, Row: row, Col: col, Label: "worst by its bound"}
	}
	return Bundle(figure.Compared(title, sides[0], sides[1], sides[2], names, mark), "")
}

// ShowErrors uncovers the cells under a mask that are not 0, as they should be.
func ShowErrors(matrices []viz.Matrix) {
	for i := range matrices {
		m := &matrices[i]
		if hidden := m.Hidden; hidden != nil {
			m.Hidden = func(row, col int) bool { return hidden(row, col) && m.Values[row*m.Cols+col] == 0 }
		}
	}
}
