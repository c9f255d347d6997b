package figure

import (
	"math"

	"github.com/attnb/attnb/viz"
)

// maxCompared bounds the heads whose differences one picture shows: each is a line of three panels.
const maxCompared = 16

// Apart is mine - want of each cell. What is alike is 0: also NaN and NaN, and infinities of one sign. Where one side is NaN the
// difference is, where one is infinite it is infinite.
func Apart(mine []float32, want []float64) []float32 {
	return each(mine, want, func(a float32, b float64) float64 { return float64(a) - b })
}

// Steps is the same in f32 steps: mine and want are numbered along the f32 values, want between two of them by its place.
func Steps(mine []float32, want []float64) []float32 {
	return each(mine, want, func(a float32, b float64) float64 { return ordinal(float64(a)) - ordinal(b) })
}

func each(mine []float32, want []float64, apart func(float32, float64) float64) []float32 {
	out := make([]float32, len(mine))
	for i, a := range mine {
		switch b := want[i]; {
		case float64(a) == b || a != a && b != b:
		case a-a != 0 || b-b != 0:
			out[i] = a - float32(b)
		default:
			d := apart(a, b)
			if out[i] = float32(d); out[i]-out[i] != 0 { // finite, but more than an f32 holds
				out[i] = float32(math.Copysign(math.MaxFloat32, d))
			}
		}
	}
	return out
}

// ordinal numbers the f32 values in order: 0 and -0 are 0, the smallest denormals 1 and -1. What lies between two has a
// number between theirs.
func ordinal(x float64) float64 {
	a := math.Abs(x)
	if a > math.MaxFloat32 {
		return math.Copysign(0x7f800000, x) // the number behind the largest
	}
	low := float32(a)
	if float64(low) > a {
		low = math.Nextafter32(low, 0)
	}
	step := float64(math.Nextafter32(low, float32(math.Inf(1)))) - float64(low)
	return math.Copysign(float64(math.Float32bits(low))+(a-float64(low))/step, x)
}

// Compared is a picture of two heatmaps of the same panels, side by side on one scale, and of their difference on its own.
// worst, where not nil, is marked in each.
func Compared(title string, mine, want, apart viz.Heatmap, names [2]string, worst *viz.Mark) viz.Sheet {
	both := mine
	both.Title, both.Columns, both.Matrices, both.Marks = names[0]+" and "+names[1], 2, nil, nil
	apart.Title, apart.Columns, apart.Marks = names[0]+" - "+names[1], 1, nil
	for i := range mine.Matrices {
		a, b := mine.Matrices[i], want.Matrices[i]
		a.Name, b.Name = join(a.Name, names[0]), join(b.Name, names[1])
		both.Matrices = append(both.Matrices, a, b)
	}
	if worst != nil {
		m := *worst
		apart.Marks = []viz.Mark{m}
		m.Matrix *= 2
		both.Marks = append(both.Marks, m)
		m.Matrix++
		both.Marks = append(both.Marks, m)
	}
	return viz.Sheet{Title: title, Pictures: []viz.Drawable{both, apart}}
}

// Comparable says whether so many heads fit one picture.
func Comparable(heads int) bool { return heads <= maxCompared }

func join(panel, name string) string {
	if panel == "" {
		return name
	}
	return panel + ": " + name
}
