package figure

import (
	"fmt"
	"math"

	"github.com/attnb/attnb/viz"
)

// Statistics are numbers about a head, each a mean over the queries that see anything.
type Statistics struct {
	Queries  int     // that see anything; 0: the rest says nothing
	Entropy  float64 // bits: -sum p log2 p, 0 of one key, log2 n of n alike
	Distance float64 // keys: sum p |position - key|
	Sink     float64 // the weight on key 0
}

// Measure computes the statistics of probabilities, in float64. A NaN among them makes each sum that it is in NaN.
func Measure(p Rows) Statistics {
	var s Statistics
	for q := range p.Queries {
		from, to := p.seen(q)
		any, at := false, p.position(q)
		for k := from; k < to; k++ {
			if p.Allowed != nil && !p.Allowed(q, k) {
				continue
			}
			any = true
			w := float64(p.row(q)[k])
			if w != 0 { // 0 log 0 is 0
				s.Entropy -= w * math.Log2(w)
			}
			s.Distance += w * math.Abs(float64(at-k))
			if k == 0 {
				s.Sink += w
			}
		}
		if any {
			s.Queries++
		}
	}
	if n := float64(s.Queries); n > 0 {
		s.Entropy, s.Distance, s.Sink = s.Entropy/n+0, s.Distance/n, s.Sink/n // + 0: no -0
	}
	return s
}

// Notes are the statistics in words.
func (s Statistics) Notes() []string {
	if s.Queries == 0 {
		return []string{"no query sees a key"}
	}
	return []string{fmt.Sprintf("entropy %.2f bits", s.Entropy), fmt.Sprintf("distance %.3g keys", s.Distance), fmt.Sprintf("sink %.1f%%", 100*s.Sink)}
}

// Quantity is one of the statistics.
type Quantity uint8

const (
	Entropy Quantity = iota
	Distance
	Sink
)

var quantities = [...]struct {
	title, quantity string
	of              func(Statistics) float64
}{
	{"entropy", "entropy (bits)", func(s Statistics) float64 { return s.Entropy }},
	{"distance attended", "distance (keys)", func(s Statistics) float64 { return s.Distance }},
	{"share of key 0", "weight on key 0", func(s Statistics) float64 { return s.Sink }},
}

// Layers is one cell a head: layer by layer, each with its heads. A layer may have fewer heads than another.
func Layers(title string, layers [][]Statistics, q Quantity) (viz.Heatmap, error) {
	if int(q) >= len(quantities) {
		return viz.Heatmap{}, fmt.Errorf("unknown statistic %d", q)
	}
	about := quantities[q]
	most := 0
	for _, l := range layers {
		most = max(most, len(l))
	}
	m := viz.Matrix{Rows: len(layers), Cols: most, Values: make([]float32, len(layers)*most)}
	for i, l := range layers {
		for h, s := range l {
			m.Values[i*most+h] = float32(about.of(s))
		}
	}
	m.Absent = func(layer, head int) bool { return head >= len(layers[layer]) }
	m.Hidden = func(layer, head int) bool { return head < len(layers[layer]) && layers[layer][head].Queries == 0 }
	if title == "" {
		title = "Mean " + about.title + " of each head"
	}
	return viz.Heatmap{Title: title, Kind: viz.Amounts, Quantity: about.quantity, RowAxis: "layer", ColAxis: "head", Matrices: []viz.Matrix{m}}, nil
}
