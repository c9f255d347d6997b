package resident

import (
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference"
)

func cacheFaults() []shipped {
	rows := normals(21, 2, 12, 8)
	r := wire.Params{Rotary: 8}
	full := turned(rows, r)
	hole := each(full, func(row, _ int, v float64) float64 {
		if row == 9 {
			return 0
		}
		return v
	})
	again := turned(rows, wire.Params{Rotary: 8, Positions: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12}})
	never := each(full, func(_, _ int, v float64) float64 { return v })
	for h := range never {
		never[h].SetRow(7, rows[h].RawRowView(7))
	}
	of := func(id, name string, wrong reference.Heads, kind string) shipped {
		return shipped{id, name, "cache", r, nil, map[string]reference.Heads{"rows": rows, "cache": full}, map[string]reference.Heads{"cache": wrong}, kind, "", nil}
	}
	write := func(slot, rows, position int) wire.Fact {
		return wire.Fact{Name: "write", Numbers: []float64{float64(slot), float64(rows), float64(position)}}
	}
	good := []wire.Fact{write(0, 9, 0), write(9, 1, 9), write(10, 1, 10)}
	return []shipped{
		{"O4", "past lengths of 0, 10, 11 told after a prompt of 9", "writes", wire.Params{}, good, nil, nil, "hole", "[9]",
			[]wire.Fact{write(0, 9, 0), write(10, 1, 10), write(11, 1, 11)}},
		{"O3", "slots written where the prompt was counted again", "writes", wire.Params{}, []wire.Fact{write(0, 6, 0), write(6, 1, 6), write(7, 1, 7)}, nil, nil, "hole", "",
			[]wire.Fact{write(0, 6, 0), write(12, 1, 12), write(13, 1, 13)}},
		of("O4", "slot 9 never written", hole, "hole"),
		of("O4", "from slot 9 on one position too far", again, "row at another position"),
		of("O10", "a row cached before it was rotated", never, "row never rotated"),
		of("O10", "all rotated twice", turned(full, r), "row rotated twice"),
	}
}
