package detect

import (
	"math"

	"github.com/attnb/attnb/reference"
)

// Pairing is which elements of a head turn together, and where the result goes.
type Pairing uint8

const (
	HalfSplit     Pairing = iota // (i, i+r/2): NeoX, Hugging Face
	Interleaved                  // (2i, 2i+1): GPT-J, Meta
	HalfOfHead                   // (i, i+d/2) for i < r/2: frequencies padded with zeros to the head dim
	Concatenated                 // pairs (2i, 2i+1), results at (i, i+r/2): never interleaved again
	Reinterleaved                // pairs (i, i+r/2), results at (2i, 2i+1)
	pairings      = int(iota)
)

func (p Pairing) String() string {
	return [...]string{
		"half-split, pairs (i, i+r/2)", "interleaved, pairs (2i, 2i+1)", "pairs (i, i+d/2)",
		"interleaved pairs with results concatenated", "half-split pairs with results interleaved",
	}[p]
}

// elements are where pair i is read and written.
func (p Pairing) elements(i, rotary, dim int) (a, b, toA, toB int) {
	half := rotary / 2
	switch p {
	case Interleaved:
		return 2 * i, 2*i + 1, 2 * i, 2*i + 1
	case HalfOfHead:
		return i, i + dim/2, i, i + dim/2
	case Concatenated:
		return 2 * i, 2*i + 1, i, i + half
	case Reinterleaved:
		return i, i + half, 2 * i, 2*i + 1
	}
	return i, i + half, i, i + half
}

// distinct says whether p is not another pairing under another name. One pair is the same in all of them.
func (p Pairing) distinct(rotary, dim int) bool {
	switch p {
	case HalfSplit:
		return true
	case HalfOfHead:
		return rotary < dim && dim%2 == 0
	}
	return rotary > 2
}

// turns are what a pairing makes of two tensors: the angle by which each pair of each row turned, and one magnitude for all.
type turns struct {
	pairing   Pairing
	rotary    int
	magnitude float64
	angle     [][]float64 // [row][pair], in (-pi, pi]
	known     [][]bool    // false where the pair is 0
	rows      int         // rows looked at
}

// slack is how many unit roundoffs a turned pair may be off by: those of its inputs, products and sum, and of the cosine and sine.
const slack = 8

// turned reads the angles of the first rows under a pairing. It fails where lengths of pairs are not kept (up to one
// magnitude for all), or an element outside of the pairs changed.
func turned(x, y reference.Heads, s shape, pairing Pairing, rotary int, p Precision) (turns, bool) {
	t := turns{pairing: pairing, rotary: rotary, rows: min(s.rows, turnRows)}
	unit := p.Unit()
	paired := make([]bool, s.dim)
	var before, after float64
	for i := range rotary / 2 {
		a, b, toA, toB := pairing.elements(i, rotary, s.dim)
		paired[a], paired[b] = true, true
		for h := range x {
			for row := range t.rows {
				from, to := x[h].RawRowView(row), y[h].RawRowView(row)
				before += from[a]*from[a] + from[b]*from[b]
				after += to[toA]*to[toA] + to[toB]*to[toB]
			}
		}
	}
	t.magnitude = 1
	if before > 0 {
		t.magnitude = math.Sqrt(after / before)
	}
	if math.Abs(t.magnitude-1) <= 2*slack*unit {
		t.magnitude = 1
	}
	if !(t.magnitude > 0) || math.IsInf(t.magnitude, 0) {
		return t, false
	}
	for h := range x {
		for row := range t.rows {
			from, to := x[h].RawRowView(row), y[h].RawRowView(row)
			for i, in := range paired {
				if !in && !(math.Abs(to[i]-from[i]) <= slack*unit*math.Abs(from[i])) {
					return t, false
				}
			}
			for i := range rotary / 2 {
				a, b, toA, toB := pairing.elements(i, rotary, s.dim)
				length, got := t.magnitude*math.Hypot(from[a], from[b]), math.Hypot(to[toA], to[toB])
				if !(math.Abs(got-length) <= slack*unit*length+smallest) {
					return t, false
				}
			}
		}
	}
	t.read(x, y, s)
	return t, true
}

const (
	turnRows = 24      // rows whose angles are read; the result is checked on all
	smallest = 1e-37   // below this f32 has denormals, which may be flushed
	visible  = 0x1p-16 // a pair has an angle where it is this share of the longest one of its row
)

// read fills the angles: over all heads, which turn alike, the turn that fits best in the least squares.
func (t *turns) read(x, y reference.Heads, s shape) {
	t.angle, t.known = make([][]float64, t.rows), make([][]bool, t.rows)
	for row := range t.rows {
		t.angle[row], t.known[row] = make([]float64, t.rotary/2), make([]bool, t.rotary/2)
		lengths, longest := make([]float64, t.rotary/2), 0.0
		for i := range t.angle[row] {
			a, b, toA, toB := t.pairing.elements(i, t.rotary, s.dim)
			var dot, cross float64
			for h := range x {
				from, to := x[h].RawRowView(row), y[h].RawRowView(row)
				dot += from[a]*to[toA] + from[b]*to[toB]
				cross += from[a]*to[toB] - from[b]*to[toA]
				lengths[i] += from[a]*from[a] + from[b]*from[b]
			}
			t.angle[row][i] = math.Atan2(cross, dot)
			longest = max(longest, lengths[i])
		}
		for i := range lengths {
			t.known[row][i] = lengths[i] > longest*visible*visible
		}
	}
}
