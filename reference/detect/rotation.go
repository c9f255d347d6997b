package detect

import (
	"fmt"
	"math"
	"slices"
)

// Angles is how the angles of a rotation were computed.
type Angles uint8

const (
	Float64Angles     Angles = iota
	Float32Angles            // position, frequency, their product, cosine and sine each rounded to f32
	BFloat16Positions        // positions rounded to bf16: those above 256 collide
	BFloat16Frequency        // inverse frequencies rounded to bf16
	BFloat16Angles           // position, frequency, product, cosine and sine each rounded to bf16
	BFloat16Cosines          // only cosine and sine rounded to bf16
	Float16Angles            // all of them rounded to fp16
	LooseAngles              // off by up to position * frequency * 2^-22: f32 angles of otherwise rounded frequencies, or fast sines
	angleKinds        = int(iota)
)

func (a Angles) String() string {
	return [...]string{
		"float64 angles", "f32 angles", "positions in bf16", "inverse frequencies in bf16", "bf16 angles", "cosine and sine in bf16",
		"fp16 angles", "angles off as f32 products or fast sines are",
	}[a]
}

// turn is the cosine and sine of a position at a frequency.
func (a Angles) turn(position int, f float64) (cos, sin float64) {
	in, freq, product, out := Float64, Float64, Float64, Float64
	switch a {
	case Float32Angles:
		in, freq, product, out = Float32, Float32, Float32, Float32
	case BFloat16Positions:
		in, freq, product, out = BFloat16, Float32, Float32, Float32
	case BFloat16Frequency:
		in, freq, product, out = Float32, BFloat16, Float32, Float32
	case BFloat16Angles:
		in, freq, product, out = BFloat16, BFloat16, BFloat16, BFloat16
	case BFloat16Cosines:
		in, freq, product, out = Float32, Float32, Float32, BFloat16
	case Float16Angles:
		in, freq, product, out = Float16, Float16, Float16, Float16
	}
	sin, cos = math.Sincos(product.Round(in.Round(float64(position)) * freq.Round(f)))
	return out.Round(cos), out.Round(sin)
}

// explains checks r on every element, completes its positions to all rows, and fills in its angles.
func (d detective) explains(r *Rotation) bool {
	if len(r.Positions) < d.rows && !d.complete(r) {
		return false
	}
	order := []Angles{Float64Angles, Float32Angles, LooseAngles}
	if d.declared.Float32Angles {
		order = []Angles{Float32Angles, Float64Angles, LooseAngles}
	}
	for _, a := range order {
		r.Angles = a
		if d.holds(*r) {
			return true
		}
	}
	return false
}

// complete continues the positions that were read to the rows that were not: by their step, or by the declared ones.
func (d detective) complete(r *Rotation) bool {
	read, declared := r.Positions, d.declaredPositions()
	n := len(read)
	try := func(next func(row int) int) bool {
		positions := slices.Clone(read)
		for row := n; row < d.rows; row++ {
			positions = append(positions, next(row))
		}
		r.Positions = positions
		r.Angles = LooseAngles
		return d.holds(*r)
	}
	step := read[n-1] - read[n-2]
	return try(func(row int) int { return read[n-1] + step*(row-n+1) }) ||
		try(func(row int) int { return declared[row] + read[n-1] - declared[n-1] }) ||
		try(func(row int) int { return 2 * declared[row] }) ||
		try(func(row int) int { return read[row%n] })
}

// holds says whether every element of after is what r makes of before, up to rounding.
func (d detective) holds(r Rotation) bool {
	unit := slack * d.precision.Unit()
	paired := make([]bool, d.dim)
	for i := range r.Rotary / 2 {
		a, b, _, _ := r.Pairing.elements(i, r.Rotary, d.dim)
		paired[a], paired[b] = true, true
	}
	for row := range d.rows {
		if d.watch.stopped() {
			return false
		}
		for i, f := range r.Frequency {
			a, b, toA, toB := r.Pairing.elements(i, r.Rotary, d.dim)
			cos, sin := r.Angles.turn(r.Positions[row], f)
			allowed := unit
			if r.Angles == LooseAngles {
				allowed += math.Abs(float64(r.Positions[row])*f) * angleSlack
			}
			for h := range d.before {
				from, to := d.before[h].RawRowView(row), d.after[h].RawRowView(row)
				most := allowed*r.Magnitude*math.Hypot(from[a], from[b]) + smallest
				if !(math.Abs(to[toA]-r.Magnitude*(from[a]*cos-from[b]*sin)) <= most) ||
					!(math.Abs(to[toB]-r.Magnitude*(from[a]*sin+from[b]*cos)) <= most) {
					return false
				}
			}
		}
		for h := range d.before {
			from, to := d.before[h].RawRowView(row), d.after[h].RawRowView(row)
			for i, in := range paired {
				if !in && !(math.Abs(to[i]-from[i]) <= unit*math.Abs(from[i])) {
					return false
				}
			}
		}
	}
	return true
}

// coarse are the explanations by angles of few bits, at the declared positions.
func (d detective) coarse() []Rotation {
	var out []Rotation
	for a := range angleKinds {
		if r := d.declaredRotation(); a > int(Float32Angles) && a < int(LooseAngles) {
			if r.Angles = Angles(a); d.holds(r) {
				r.Faults = d.angleFaults(r)
				out = append(out, r)
			}
		}
	}
	return out
}

// undecided are single departures from the declaration that these rows cannot see.
func (d detective) undecided(right Rotation) []string {
	var out []string
	try := func(text string, change func(*Rotation)) {
		r := right
		r.Positions = slices.Clone(right.Positions)
		change(&r)
		if d.holds(r) {
			out = append(out, text)
		}
	}
	for p := range pairings {
		if pairing := Pairing(p); pairing != right.Pairing && pairing.distinct(right.Rotary, d.dim) {
			try(pairing.String(), func(r *Rotation) { r.Pairing = pairing })
		}
	}
	refrequency := func(rotary, denominator int, base float64) func(*Rotation) {
		return func(r *Rotation) { r.Rotary, r.Frequency = rotary, powers(rotary, denominator, base) }
	}
	if base := d.declared.Base; base > 0 && d.declared.InvFreq == nil {
		for _, rotary := range []int{right.Rotary - 2, right.Rotary + 2, d.dim - d.dim%2} {
			if rotary >= 2 && rotary <= d.dim && rotary != right.Rotary {
				try(fmt.Sprintf("rotary %d", rotary), refrequency(rotary, rotary, base))
			}
		}
		if d.dim != right.Rotary {
			try(fmt.Sprintf("denominator %d", d.dim), refrequency(right.Rotary, d.dim, base))
		}
		try(fmt.Sprintf("base %.6g", 10*base), refrequency(right.Rotary, right.Rotary, 10*base))
	}
	for _, off := range []int{-1, 1} {
		try(fmt.Sprintf("offset %+d", off), func(r *Rotation) {
			for i := range r.Positions {
				r.Positions[i] += off
			}
		})
	}
	return out
}

// pairingFaults are how pairing, rotary dims, output order and magnitude depart.
func (d detective) pairingFaults(r Rotation) Faults {
	var out Faults
	want := d.declaredPairing()
	input := map[Pairing]Pairing{Interleaved: Interleaved, Concatenated: Interleaved}[r.Pairing] // else half-split
	if r.Rotary > 2 && d.declared.Rotary == 2 {
		want = input // one pair declares no pairing
		if d.declared.Interleaved {
			want = Interleaved
		}
	}
	if r.Rotary > 2 && input != want {
		out = append(out, Fault{WrongPairing, fmt.Sprintf("%v, declared %v", input, want), "use the other pairing, or permute the weights of q and k"})
	}
	switch r.Pairing {
	case HalfOfHead:
		out = append(out, Fault{WrongStride, fmt.Sprintf("pairs are %d apart, half of the head, not %d, half of the rotary dims", d.dim/2, r.Rotary/2),
			"rotate a slice of the rotary dims; do not pad the frequencies with zeros"})
	case Concatenated:
		out = append(out, Fault{WrongOutputOrder, "evens and odds are concatenated", "interleave them again"})
	case Reinterleaved:
		out = append(out, Fault{WrongOutputOrder, "halves are interleaved", "concatenate them"})
	}
	if r.Rotary != d.declared.Rotary {
		out = append(out, Fault{WrongRotary, fmt.Sprintf("%d of %d turn, declared %d", r.Rotary, d.dim, d.declared.Rotary), "pass the rotary dims (head dim times the partial factor)"})
	}
	if r.Magnitude != d.declaredMagnitude() {
		out = append(out, Fault{WrongMagnitude, fmt.Sprintf("cosine and sine are multiplied by %.6g, declared %.6g", r.Magnitude, d.declaredMagnitude()),
			"YaRN multiplies by its attention factor, once; others do not"})
	}
	return out
}

// angleFaults are how the precision of the angles departs.
func (d detective) angleFaults(r Rotation) Faults {
	declared := Float64Angles
	if d.declared.Float32Angles {
		declared = Float32Angles
	}
	if r.Angles == declared || r.Angles == Float64Angles {
		return nil
	}
	return Faults{{RoundedAngles, fmt.Sprintf("%v, declared %v; off by up to %.2g at position %d", r.Angles, declared, d.worst(r), slices.MaxFunc(r.Positions, func(a, b int) int { return abs(a) - abs(b) })),
		"compute angles in float64, or in f32 without fast-math"}}
}

// worst is the largest distance of after from what float64 angles give, relative to the length of a pair.
func (d detective) worst(r Rotation) float64 {
	most := 0.0
	for row := range d.rows {
		for i, f := range r.Frequency {
			a, b, toA, toB := r.Pairing.elements(i, r.Rotary, d.dim)
			sin, cos := math.Sincos(float64(r.Positions[row]) * f)
			for h := range d.before {
				from, to := d.before[h].RawRowView(row), d.after[h].RawRowView(row)
				if length := r.Magnitude * math.Hypot(from[a], from[b]); length > smallest {
					most = max(most, math.Hypot(to[toA]-r.Magnitude*(from[a]*cos-from[b]*sin), to[toB]-r.Magnitude*(from[a]*sin+from[b]*cos))/length)
				}
			}
		}
	}
	return most
}
