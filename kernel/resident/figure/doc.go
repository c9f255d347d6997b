// Package figure makes pictures of attention from values that are there: what heads look at, a query on its way to its context, a decode
// run, the writes of a cache, rotations, differences. It computes in float64 and knows no device, no server and no names; package viz
// draws what it makes.
package figure

import "fmt"

// Rows is one head's matrix of probabilities or scores [queries, keys], the last index running fastest.
type Rows struct {
	Queries, Keys int
	Values        []float32
	// Seen is what a query sees: the keys from up to but without to. Nil: all.
	Seen func(query int) (from, to int)
	// Allowed says which of these keys a query sees. Nil: all.
	Allowed func(query, key int) bool
	// Position is the key that stands where a query does. Nil: the last query stands at the last key.
	Position func(query int) int
}

func (r Rows) seen(query int) (from, to int) {
	if r.Seen == nil {
		return 0, r.Keys
	}
	return r.Seen(query)
}

// hides says that a query does not see a key.
func (r Rows) hides(query, key int) bool {
	from, to := r.seen(query)
	return key < from || key >= to || r.Allowed != nil && !r.Allowed(query, key)
}

func (r Rows) position(query int) int {
	if r.Position == nil {
		return query + r.Keys - r.Queries
	}
	return r.Position(query)
}

func (r Rows) row(query int) []float32 { return r.Values[query*r.Keys:][:r.Keys] }

// maxAboveOne is what roundings may take a probability above 1.
const maxAboveOne = 1e-3

// Probable says why visible values are not probabilities, or nil. NaN and infinities pass: they are seen in the picture.
func (r Rows) Probable() error {
	for q := range r.Queries {
		from, to := r.seen(q)
		for k := from; k < to; k++ {
			if r.Allowed != nil && !r.Allowed(q, k) {
				continue
			}
			p := r.row(q)[k]
			if p < 0 && p-p == 0 || p > 1+maxAboveOne && p-p == 0 {
				return fmt.Errorf("these are no probabilities: %g at query %d, key %d", p, q, k)
			}
		}
	}
	return nil
}
