package detect

import (
	"cmp"
	"math"
	"slices"
)

const (
	// searchPositions bounds the positions that are searched; a declared one may lie beyond.
	searchPositions = 1 << 20

	// angleSlack is how far an angle computed in f32 may be off, relatively: roundings of the frequency, of its power and of the product.
	angleSlack = 0x1p-22

	// exactSlack is that of a float64 angle, whose frequency is a power that two libraries round apart.
	exactSlack = 0x1p-48
)

// wrap is an angle in (-pi, pi].
func wrap(a float64) float64 { return math.Remainder(a, 2*math.Pi) }

// solver finds integer positions from the angles of a row.
type solver struct {
	frequency []float64
	noise     float64 // of an angle that was read
	slack     float64 // relative error of the angles: 0, or angleSlack
	order     []int   // pairs, slowest first
}

func newSolver(frequency []float64, p Precision) *solver {
	s := &solver{frequency: frequency, noise: slack * p.Unit()}
	for i, f := range frequency {
		if f != 0 {
			s.order = append(s.order, i)
		}
	}
	slices.SortStableFunc(s.order, func(a, b int) int {
		return cmp.Compare(math.Abs(frequency[a]), math.Abs(frequency[b]))
	})
	return s
}

// at says whether a row at this position turns by these angles.
func (s *solver) at(position float64, angle []float64, known []bool) bool {
	for i, f := range s.frequency {
		turn := position * f
		if known[i] && !(math.Abs(wrap(angle[i]-turn)) <= s.noise+math.Abs(turn)*(s.slack+exactSlack)) {
			return false
		}
	}
	return true
}

// positions are the integers at which the row turns so, nearest to the hint first; at most limit are kept.
func (s *solver) positions(angle []float64, known []bool, hint, limit int) []int {
	var pairs []int
	for _, i := range s.order {
		if known[i] {
			pairs = append(pairs, i)
		}
	}
	if len(pairs) == 0 {
		return nil
	}
	var out []int
	budget := 1 << 20
	// Each pair, slowest first, narrows the interval: it allows angle/f + k turns within it.
	var narrow func(level int, middle, width float64)
	narrow = func(level int, middle, width float64) {
		if budget--; budget < 0 {
			return
		}
		if level == len(pairs) {
			for p := math.Ceil(middle - width); p <= middle+width; p++ {
				if s.at(p, angle, known) {
					out = append(out, int(p))
				}
			}
			return
		}
		f := s.frequency[pairs[level]]
		uncertain := (s.noise+math.Abs(middle*f)*(s.slack+exactSlack))/math.Abs(f) + 1e-9
		if level == 0 {
			uncertain = (s.noise+math.Abs(f)*searchPositions*(s.slack+exactSlack))/math.Abs(f) + 1e-9
		}
		period := 2 * math.Pi / math.Abs(f)
		if uncertain >= width {
			narrow(level+1, middle, width)
			return
		}
		base := angle[pairs[level]] / f
		for k := math.Ceil((middle - width - uncertain - base) / period); ; k++ {
			center := base + k*period
			if center > middle+width+uncertain {
				break
			}
			narrow(level+1, center, uncertain)
		}
	}
	narrow(0, 0, searchPositions)
	slices.SortFunc(out, func(a, b int) int {
		return cmp.Or(cmp.Compare(abs(a-hint), abs(b-hint)), cmp.Compare(a, b))
	})
	out = slices.Compact(out)
	return out[:min(len(out), limit)]
}

func abs(x int) int {
	if x < 0 {
		return -x
	}
	return x
}

// sequences are the positions of all rows that were read, by which they turned so. A ramp is preferred to anything else.
// Unless search is set, only positions that need no search are tried: the declared ones, twice and minus those.
func (s *solver) sequences(t turns, declared []int, search bool) [][]int {
	anchor := slices.IndexFunc(t.known, func(known []bool) bool { return slices.Contains(known, true) })
	if anchor < 0 {
		return nil
	}
	for _, s.slack = range []float64{0, angleSlack} {
		if out := s.patterns(t, anchor, declared, search); len(out) > 0 {
			return out
		}
	}
	return nil
}

// patterns are sequences with the slack that is set, counted from the anchor, a row whose angles are known.
func (s *solver) patterns(t turns, anchor int, declared []int, search bool) [][]int {
	var out [][]int
	add := func(position func(row int) int) bool {
		positions := make([]int, t.rows)
		for row := range positions {
			positions[row] = position(row)
			if !s.at(float64(positions[row]), t.angle[row], t.known[row]) {
				return false
			}
		}
		if !slices.ContainsFunc(out, func(o []int) bool { return slices.Equal(o, positions) }) {
			out = append(out, positions)
		}
		return true
	}
	if add(func(row int) int { return declared[row] }) {
		return out
	}
	add(func(row int) int { return 2 * declared[row] })
	add(func(row int) int { return -declared[row] })
	add(func(int) int { return 0 })
	if !search {
		return out
	}
	candidates := s.positions(t.angle[anchor], t.known[anchor], declared[anchor], 16)
	for off := 1; off <= 64; off++ { // beyond what is searched
		for _, p := range []int{declared[anchor] - off, declared[anchor] + off} {
			if abs(p) > searchPositions && s.at(float64(p), t.angle[anchor], t.known[anchor]) {
				candidates = append(candidates, p)
			}
		}
	}
	for _, p := range candidates {
		steps := []int{1, 2, 0, -1}
		if s.slack > 0 {
			steps = steps[:1]
		}
		for _, step := range steps {
			add(func(row int) int { return p + step*(row-anchor) })
		}
		add(func(row int) int { return p + declared[row] - declared[anchor] })
	}
	if len(out) > 0 || len(candidates) == 0 || s.slack > 0 {
		return out[:min(len(out), 4)] // with slack, a row for itself fits anything
	}
	// No ramp: each row for itself, near what the row before suggests.
	positions := make([]int, t.rows)
	for row := range positions {
		positions[row] = declared[row]
		if !slices.Contains(t.known[row], true) {
			continue
		}
		if row > 0 {
			positions[row] = positions[row-1] + 1
		}
		found := s.positions(t.angle[row], t.known[row], positions[row], 1)
		if len(found) == 0 {
			return nil
		}
		positions[row] = found[0]
	}
	return [][]int{positions}
}
