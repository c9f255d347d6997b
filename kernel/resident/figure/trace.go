package figure

import (
	"fmt"
	"math"

	"github.com/attnb/attnb/viz"
)

// Query is one query of one head on its way from scores to its context.
type Query struct {
	Scores []float32 // of each key
	// Changed are the scores as the softmax takes them, and By what was done to them, as "softcap 50". Nil: nothing was.
	Changed       []float32
	By            string
	From, To      int                // the keys that it sees: up to but without To
	Allowed       func(key int) bool // of these; nil: all
	Probabilities []float32
	Values        []float32 // a row of Dim for each key
	Dim           int
}

// Trace charts the query's scores, what the mask leaves of them, the probabilities, how much each value adds to the context
// (|p| |v|, the length of p v), and its share of the context (p v.c / c.c, signed; all shares together are 1), on one axis of keys.
func Trace(title string, q Query, tokens []string) viz.Plot {
	n := len(q.Scores)
	hidden := func(key int) bool { return key < q.From || key >= q.To || q.Allowed != nil && !q.Allowed(key) }
	seen, most := 0, -1
	added, share := make([]float32, n), make([]float32, n)
	context := make([]float64, q.Dim)
	for k := q.From; k < q.To; k++ {
		if hidden(k) {
			continue
		}
		for i, v := range q.Values[k*q.Dim:][:q.Dim] {
			context[i] += float64(q.Probabilities[k]) * float64(v)
		}
	}
	square := dot(context, context)
	sum, entropy := 0.0, 0.0
	for k := q.From; k < q.To; k++ {
		if hidden(k) {
			continue
		}
		p, v := float64(q.Probabilities[k]), widen(q.Values[k*q.Dim:][:q.Dim])
		added[k] = float32(math.Abs(p) * math.Sqrt(dot(v, v)))
		share[k] = float32(p * dot(v, context) / square)
		sum += p
		if p != 0 {
			entropy -= p * math.Log2(p)
		}
		if seen++; most < 0 || added[k] > added[most] {
			most = k
		}
	}
	about := "the query sees no key"
	note := ""
	if seen > 0 {
		about = fmt.Sprintf("sum %.6g, entropy %.3g bits", sum, entropy)
		note = fmt.Sprintf("the most by key %d", most)
		if tokens != nil {
			note += fmt.Sprintf(" “%s”", tokens[most])
		}
	}
	shares := "p v·c / c·c, signed; together 1"
	if square == 0 && seen > 0 {
		shares = "none: the context is 0"
	}
	bars := func(v []float32, masked bool) []viz.Series {
		s := viz.Series{Values: v}
		if masked {
			s.Hidden = hidden
		}
		return []viz.Series{s}
	}
	charts := []viz.Chart{{Name: "scores", Quantity: "score", Note: "scale · q·k", Series: bars(q.Scores, false)}}
	last := q.Scores
	if q.Changed != nil {
		last = q.Changed
		charts = append(charts, viz.Chart{Name: "changed", Quantity: "score", Note: q.By, Series: bars(last, false)})
	}
	return viz.Plot{Title: title, Axis: "key", Labels: tokens, Charts: append(charts, []viz.Chart{
		{Name: "masked", Quantity: "score", Note: fmt.Sprintf("%d of %d keys are seen", seen, n), Series: bars(last, true)},
		{Name: "probabilities", Quantity: "probability", Note: about, Series: bars(q.Probabilities, true)},
		{Name: "added to the context", Quantity: "|p| |v|", Note: note, Series: bars(added, true)},
		{Name: "share of the context", Quantity: "share", Note: shares, Series: bars(share, true)},
	}...)}
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

func widen(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}
