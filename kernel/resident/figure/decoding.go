package figure

import (
	"fmt"

	"github.com/attnb/attnb/viz"
)

// maxDecoding bounds the cells of all heads of a decoding run.
const maxDecoding = 1 << 26

// Decoding stacks the steps of a run, each a matrix a head, by query: one row a query, as many keys as the last step has. A key that
// a step did not have yet is absent, which is not masked.
func Decoding(title string, kind viz.Kind, steps [][]Rows, names []string) (viz.Heatmap, error) {
	rows, keys := 0, 0
	for i, s := range steps {
		if len(s) != len(names) {
			return viz.Heatmap{}, fmt.Errorf("step %d has %d heads, step 0 has %d", i, len(s), len(names))
		}
		rows += s[0].Queries
		keys = max(keys, s[0].Keys)
	}
	if rows > maxDecoding/keys/len(names) {
		return viz.Heatmap{}, fmt.Errorf("%d heads of %d queries and %d keys are too many: pick one with OnlyHead(i)", len(names), rows, keys)
	}
	hm := viz.Heatmap{Title: title, Kind: kind, RowAxis: "query", ColAxis: "key"}
	type place struct{ step, query int }
	places := make([]place, 0, rows)
	for i, s := range steps {
		for q := range s[0].Queries {
			places = append(places, place{i, q})
		}
	}
	for head, name := range names {
		m := viz.Matrix{Name: name, Rows: rows, Cols: keys, Values: make([]float32, rows*keys)}
		at := 0
		for _, s := range steps {
			for q := range s[head].Queries {
				copy(m.Values[at*keys:], s[head].row(q))
				at++
			}
		}
		m.Absent = func(row, col int) bool { return col >= steps[places[row].step][head].Keys }
		m.Hidden = func(row, col int) bool { return steps[places[row].step][head].hides(places[row].query, col) }
		hm.Matrices = append(hm.Matrices, m)
	}
	return hm, nil
}
