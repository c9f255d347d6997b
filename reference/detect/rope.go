package detect

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/attnb/attnb/reference"
)

// Faults of a rotation.
const (
	WrongPairing     Kind = "pairing"
	WrongStride      Kind = "stride of pairs"
	WrongOutputOrder Kind = "order of the output"
	WrongRotary      Kind = "rotary dims"
	WrongDenominator Kind = "denominator"
	WrongBase        Kind = "base"
	WrongScaling     Kind = "scaling"
	WrongOffset      Kind = "offset"
	WrongPositions   Kind = "positions"
	SamePosition     Kind = "every row at one position"
	RotatedTwice     Kind = "rotated twice"
	NotRotated       Kind = "not rotated"
	Backwards        Kind = "turned backwards"
	AlongHeads       Kind = "positions counted along heads"
	WrongMagnitude   Kind = "magnitude"
	RoundedAngles    Kind = "rounded angles"
	UnknownRotation  Kind = "no rotation fits"
)

// Rotation is one explanation of what happened to a tensor.
type Rotation struct {
	Pairing    Pairing
	Rotary     int
	Frequency  []float64 // radians a position, one a pair
	Spectrum   string    // what these frequencies are
	Positions  []int     // of the rows looked at, at most 24
	Magnitude  float64   // of cosine and sine
	Angles     Angles
	Faults     Faults // against the declaration
	alongHeads bool
}

// RoPEFinding is what RoPE found.
type RoPEFinding struct {
	Faults    Faults     // nil where the declared rotation fits; else those of Fits[0]
	Fits      []Rotation // the explanations with the fewest faults: a tie if several
	Undecided []string   // departures from the declaration that would give these numbers too
	Floor     float64    // relative error of a turned pair that counts as rounding
}

// Tie says whether several explanations are equally good.
func (f RoPEFinding) Tie() bool { return len(f.Fits) > 1 }

// RoPE finds out how before [H, S, d] was turned into after, and how that departs from what was declared. Lengths of pairs are
// kept, which shows the pairing and the rotary dims; the angles of a pair, by atan2, show frequency times position; steps
// from row to row show the frequencies, and the slowest pairs first, then the faster ones, the positions (up to 2^20 either way,
// and near the declared ones). Each explanation is then checked on every element.
//
// A declaration without rotary dims is taken as rotary d, base 1e4 and offset 0, to describe the rotation by.
func RoPE(ctx context.Context, before, after reference.Heads, declared reference.RoPE, p Precision) (RoPEFinding, error) {
	const op = "RoPE"
	s, err := same(op, "before", before, "after", after)
	if err != nil {
		return RoPEFinding{}, err
	}
	if declared.Rotary == 0 {
		declared.Rotary, declared.Base = s.dim-s.dim%2, 1e4
	}
	if err := declared.Validate(s.rows, s.dim); err != nil {
		return RoPEFinding{}, fmt.Errorf("detect: %s: %w", op, err)
	}
	if declared.Base == 0 && declared.InvFreq == nil {
		declared.Base = 1e4
	}
	if largest(before) == 0 {
		return RoPEFinding{}, tooLittle(op, "before is 0 everywhere; needs at least one row that is not")
	}
	d := detective{before, after, s, declared, p, newWatch(ctx)}
	d.watch.stage(0, 0.1)
	f := RoPEFinding{Floor: slack * p.Unit()}
	if right := d.declaredRotation(); d.explains(&right) {
		right.Faults = d.angleFaults(right)
		f.Fits, f.Undecided, f.Faults = []Rotation{right}, d.undecided(right), right.Faults
		return f, d.watch.finish(op)
	}
	d.watch.stage(0.1, 0.8)
	f.Fits = fewest(append(d.coarse(), d.search()...))
	d.watch.stage(0.8, 1)
	if s.heads > 1 && (len(f.Fits) == 0 || f.Fits[0].Faults.weight() > 1) {
		f.Fits = fewest(append(f.Fits, d.searchAlongHeads()...))
	}
	if err := d.watch.finish(op); err != nil {
		return RoPEFinding{}, err
	}
	if len(f.Fits) == 0 {
		f.Faults = Faults{{UnknownRotation, d.nearest(), "compare step by step: the input, the frequencies, the cosines"}}
		return f, nil
	}
	f.Faults = f.Fits[0].Faults
	return f, nil
}

// detective is one question.
type detective struct {
	before, after reference.Heads
	shape
	declared  reference.RoPE
	precision Precision
	watch     *watch
}

func (d detective) declaredPositions() []int {
	out := make([]int, d.rows)
	for row := range out {
		out[row] = d.declared.Position(row)
	}
	return out
}

func (d detective) declaredPairing() Pairing {
	if d.declared.Interleaved && d.declared.Rotary > 2 {
		return Interleaved
	}
	return HalfSplit
}

func (d detective) declaredMagnitude() float64 {
	if d.declared.Magnitude == 0 {
		return 1
	}
	return d.declared.Magnitude
}

func (d detective) declaredRotation() Rotation {
	return Rotation{
		Pairing: d.declaredPairing(), Rotary: d.declared.Rotary, Magnitude: d.declaredMagnitude(),
		Frequency: declaredSpectra(d.declared.Rotary, d.dim, d.declared)[0].frequency, Spectrum: "the declared frequencies",
		Positions: d.declaredPositions(),
	}
}

// search is every explanation with the fewest faults.
func (d detective) search() []Rotation {
	var kept []turns
	for pairing := range pairings {
		for rotary := 2; rotary <= d.dim; rotary += 2 {
			if d.watch.stopped() || !Pairing(pairing).distinct(rotary, d.dim) {
				continue
			}
			if t, ok := turned(d.before, d.after, d.shape, Pairing(pairing), rotary, d.precision); ok {
				kept = append(kept, t)
			}
		}
	}
	var out []Rotation
	for _, thorough := range []bool{false, true} {
		for i, t := range kept {
			if !d.watch.at(i+len(kept)*btoi(thorough), 2*len(kept)) {
				break
			}
			out = append(out, d.explain(t, thorough)...)
		}
		if len(out) > 0 {
			break
		}
	}
	return fewest(out)
}

// fewest are the explanations with the fewest faults, one of each kind and place.
func fewest(all []Rotation) []Rotation {
	least := math.MaxInt
	for _, r := range all {
		least = min(least, r.Faults.weight())
	}
	var out []Rotation
	for _, r := range all {
		if r.Faults.weight() == least && !slices.ContainsFunc(out, func(o Rotation) bool {
			return o.Faults.kinds() == r.Faults.kinds() && o.Pairing == r.Pairing && o.Rotary == r.Rotary && slices.Equal(o.Positions, r.Positions)
		}) {
			out = append(out, r)
		}
	}
	return out
}

// explain are the explanations under one pairing that hold on every element. Positions are searched for the frequencies that
// were declared or measured, and only when thorough for all others.
func (d detective) explain(t turns, thorough bool) []Rotation {
	var out []Rotation
	spectra := declaredSpectra(t.rotary, d.dim, d.declared)
	noise := slack * d.precision.Unit()
	declared := d.declaredPositions()[:t.rows]
	if f, uncertain, ok := t.steps(noise); ok && math.Abs(f[0]) > 16*uncertain[0] {
		spectra = append(spectra, measuredSpectra(f, uncertain, t.rotary, d.dim, d.declared)...)
		if t.sharpen(f, uncertain, noise, declared) {
			spectra = append(spectra, measuredSpectra(f, uncertain, t.rotary, d.dim, d.declared)...)
		}
	}
	for _, spec := range spectra {
		if d.watch.stopped() {
			return nil
		}
		solver := newSolver(spec.frequency, d.precision)
		for _, positions := range solver.sequences(t, declared, spec.search || thorough && !spec.stretched) {
			r := Rotation{
				Pairing: t.pairing, Rotary: t.rotary, Frequency: spec.frequency, Spectrum: spec.text, Magnitude: t.magnitude,
				Positions: positions,
			}
			if m := d.declaredMagnitude(); math.Abs(t.magnitude-m) <= 2*slack*d.precision.Unit()*m {
				r.Magnitude = m
			}
			if !d.explains(&r) {
				continue
			}
			for _, where := range d.positionFaults(r.Positions, len(spec.faults) == 0) {
				named := r
				named.Faults = slices.Concat(d.pairingFaults(r), spec.faults, where, d.angleFaults(r))
				out = append(out, named)
			}
		}
	}
	return out
}

// searchAlongHeads asks whether positions ran along the heads: the axes were taken for one another.
func (d detective) searchAlongHeads() []Rotation {
	x, errX := reference.Swap(d.before)
	y, errY := reference.Swap(d.after)
	if errX != nil || errY != nil {
		return nil
	}
	turnedAxes := detective{x, y, shape{d.rows, d.heads, d.dim}, d.declared, d.precision, d.watch}
	turnedAxes.declared.Positions = nil
	out := turnedAxes.search()
	for i := range out {
		out[i].alongHeads = true
		out[i].Faults = append(Faults{{AlongHeads, fmt.Sprintf("head h is at position %v", ramp(out[i].Positions)), "count along the rows: the axes are taken for one another"}},
			slices.DeleteFunc(slices.Clone(out[i].Faults), func(f Fault) bool { return f.Kind == WrongOffset })...)
	}
	return out
}

// nearest says how far one can follow when nothing fits.
func (d detective) nearest() string {
	var kept []string
	for pairing := range pairings {
		if Pairing(pairing).distinct(d.declared.Rotary, d.dim) {
			if _, ok := turned(d.before, d.after, d.shape, Pairing(pairing), d.declared.Rotary, d.precision); ok {
				kept = append(kept, Pairing(pairing).String())
			}
		}
	}
	if len(kept) == 0 {
		return "no pairing keeps the lengths of its pairs, so this is no rotation of this input"
	}
	return "lengths are kept by " + strings.Join(kept, " and by ") + ", but the angles are of no known frequencies and positions"
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func largest(x reference.Heads) float64 {
	most := 0.0
	for _, m := range x {
		rows, _ := m.Dims()
		for row := range rows {
			for _, v := range m.RawRowView(row) {
				most = max(most, math.Abs(v))
			}
		}
	}
	return most
}

func (r Rotation) String() string {
	along := "rows"
	if r.alongHeads {
		along = "heads"
	}
	s := fmt.Sprintf("%v, rotary %d, %s, %s at %v", r.Pairing, r.Rotary, r.Spectrum, along, ramp(r.Positions))
	if r.Magnitude != 1 {
		s += fmt.Sprintf(", magnitude %.6g", r.Magnitude)
	}
	if r.Angles != Float64Angles {
		s += ", " + r.Angles.String()
	}
	return s
}

func (f RoPEFinding) String() string {
	if len(f.Faults) == 0 {
		s := "the declared rotation fits"
		if len(f.Undecided) > 0 {
			s += ", but these rows cannot tell it from: " + strings.Join(f.Undecided, "; ")
		}
		return s
	}
	s := f.Faults.String()
	if f.Tie() {
		s += fmt.Sprintf("\na tie of %d that give the same numbers:", len(f.Fits))
		for i, r := range f.Fits {
			if i == 8 {
				s += "\n..."
				break
			}
			s += fmt.Sprintf("\n(%s) %v", r.Faults.kinds(), r)
		}
	}
	return s
}

// ramp shortens positions that run on.
type ramp []int

func (p ramp) String() string {
	for i := range p {
		if i > 0 && p[i] != p[i-1]+1 {
			return fmt.Sprint([]int(p))
		}
	}
	if len(p) < 3 {
		return fmt.Sprint([]int(p))
	}
	return fmt.Sprintf("%d, %d, ...", p[0], p[1])
}
