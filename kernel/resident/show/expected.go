package show

import (
	"fmt"
	"math"

	"github.com/attnb/attnb/kernel/resident/figure"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/viz"
)

// goal is the tensor that an exploration is to come to, in the order of what it explores.
type goal struct {
	called string
	values []float32
	most   float64 // the largest magnitude of finite values
}

// goalFor fetches the tensor that x is to come to, and refuses one of another shape.
func goalFor(c *store.Client, x store.Meta, r wire.Request) (*goal, error) {
	in, nodes, inputs, done, err := c.Use("Explore", []int{r.Expected}, []string{"expected"})
	if err != nil {
		return nil, err
	}
	defer done()
	axes, _, err := store.Align(x, in[0].Meta)
	if err != nil {
		return nil, wire.Errorf(wire.BadInput, "Explore: %v (x: %s, expected: %s)", err, store.ShapeWords(x.Shape, x.Axes), store.ShapeWords(in[0].Shape, in[0].Axes))
	}
	data, err := c.Device.Download(in[0].Buf)
	if err != nil {
		return nil, store.Explain("Explore", err, inputs)
	}
	c.Store.Lock()
	g := &goal{called: nodes[0].Described()}
	c.Store.Unlock()
	g.values = store.Permute(data, in[0].Shape, store.OrderOf(axes, store.ViewOf(x).Axes))
	for _, v := range g.values {
		if v-v == 0 {
			g.most = max(g.most, math.Abs(float64(v)))
		}
	}
	return g, nil
}

// agreeing is how large an error, as a share of the largest expected value, the picture shows as 1: pale below, red above.
const agreeing = 1e-4

// against is the error of values against g as a picture that goes white where they agree, and how far they are apart in words.
func (g *goal) against(a store.View, values []float32, tokens []string) (viz.Heatmap, error) {
	if len(values) != len(g.values) {
		return viz.Heatmap{}, fmt.Errorf("there are %d values, and %s has %d", len(values), g.called, len(g.values))
	}
	unit := g.most * agreeing
	if unit == 0 {
		unit = agreeing
	}
	apart := figure.Apart(values, store.Widen(g.values))
	errors, of := 0.0, 0.0
	for i, d := range apart {
		_, row, col := a.Place(i)
		if a.Quantity == store.Scores && !a.Mask.Sees(row, col, a.D) {
			apart[i] = 0 // which softmax does not see
			continue
		}
		errors += float64(d) * float64(d)
		if v := float64(g.values[i]); v-v == 0 {
			of += v * v
		}
		apart[i] = float32(math.Abs(float64(d)) / unit)
	}
	hm, err := Heatmap(a, fmt.Sprintf("error against %s: %s", g.called, inWords(errors, of)), viz.Errors, apart, tokens)
	hm.Quantity = "|error| / (1e-4 of the largest)"
	if a.Quantity != store.Scores {
		ShowErrors(hm.Matrices)
	}
	return hm, err
}

// inWords is the relative L2 error of a sum of squares, and what that means.
func inWords(errors, of float64) string {
	rel := math.Sqrt(errors / of)
	switch {
	case errors == 0:
		return "relative L2 error 0, they agree"
	case math.IsNaN(rel) || math.IsInf(rel, 0):
		return "relative L2 error not finite, they differ"
	case rel <= 2e-6:
		return fmt.Sprintf("relative L2 error %.2g, they agree to rounding", rel)
	case rel <= 1e-3:
		return fmt.Sprintf("relative L2 error %.2g, near but not to rounding", rel)
	}
	return fmt.Sprintf("relative L2 error %.2g, they differ", rel)
}
