package reference

import "math"

// RoPE are the parameters of a rotary position embedding (Su et al., arXiv:2104.09864). The first Rotary elements of a row
// turn in Rotary/2 pairs, the rest are copied. Pair i at position p turns by the angle p * f_i:
//
//	f_i = Base^(-2i/Rotary), or InvFreq[i] where InvFreq is set
//	p   = Offset+s for row s, or Positions[s] where Positions is set
type RoPE struct {
	Rotary      int     // even, at least 2, at most the head dim
	Base        float64 // positive; not read where InvFreq is set
	Interleaved bool    // pairs (2i, 2i+1): GPT-J, Meta. Else (i, i+Rotary/2): NeoX, Hugging Face
	Offset      int     // position of the first row; may be negative
	Positions   []int   // one a row, instead of Offset
	InvFreq     []float64
	// Float32Angles rounds as frameworks do that compute angles in f32: p and f_i each to f32, their product to f32, its
	// cosine and sine to f32, each times Magnitude to f32. The rotation itself stays float64.
	Float32Angles bool
	Magnitude     float64 // multiplies cosine and sine (YaRN's attention factor, arXiv:2309.00071); 0 means 1
}

// MaxPosition bounds |position|: from here on the rounding of a float64 angle exceeds the rounding of an f32 cosine.
const MaxPosition = 1 << 27

// ApplyRoPE turns each pair (a, b) of each row of x [H, S, d] into (a cos - b sin, a sin + b cos). Every head turns alike.
func ApplyRoPE(x Heads, r RoPE) (Heads, error) {
	in, err := measure("ApplyRoPE", "x", x)
	if err != nil {
		return nil, err
	}
	if err := r.Validate(in.rows, in.dim); err != nil {
		return nil, err
	}
	out := zeros(in)
	for h := range x {
		for row := range in.rows {
			from, to := x[h].RawRowView(row), out[h].RawRowView(row)
			copy(to, from)
			for i := range r.Rotary / 2 {
				a, b := r.Pair(i)
				cos, sin := r.Turn(row, i)
				to[a] = from[a]*cos - from[b]*sin
				to[b] = from[a]*sin + from[b]*cos
			}
		}
	}
	return out, nil
}

// Validate says why r cannot turn rows of dim elements, or nil.
func (r RoPE) Validate(rows, dim int) error {
	const op = "ApplyRoPE"
	switch {
	case r.Rotary < 2 || r.Rotary%2 != 0 || r.Rotary > dim:
		return badArgument(op, "rotary %d is not an even number from 2 to the head dim %d", r.Rotary, dim)
	case r.InvFreq != nil && len(r.InvFreq) != r.Rotary/2:
		return badShape(op, "%d inverse frequencies for %d pairs", len(r.InvFreq), r.Rotary/2)
	case r.InvFreq == nil && !(r.Base > 0 && !math.IsInf(r.Base, 1)):
		return badArgument(op, "base %v is not a positive number", r.Base)
	case r.Positions != nil && len(r.Positions) != rows:
		return badShape(op, "%d positions for %d rows", len(r.Positions), rows)
	case math.IsNaN(r.Magnitude) || math.IsInf(r.Magnitude, 0):
		return badArgument(op, "magnitude %v is not finite", r.Magnitude)
	}
	for i, f := range r.InvFreq {
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return badArgument(op, "inverse frequency %d is %v", i, f)
		}
	}
	for row := range rows {
		// Row 0 is looked at first, so that no sum of offset and row can overflow into range.
		if p := r.Position(row); p <= -MaxPosition || p >= MaxPosition {
			return badArgument(op, "row %d is at position %d; |position| must be below %d", row, p, MaxPosition)
		}
	}
	return nil
}

// Pair is which two elements of a head pair i turns together.
func (r RoPE) Pair(i int) (a, b int) {
	if r.Interleaved {
		return 2 * i, 2*i + 1
	}
	return i, i + r.Rotary/2
}

// Position is the position that row turns to.
func (r RoPE) Position(row int) int {
	if r.Positions != nil {
		return r.Positions[row]
	}
	return r.Offset + row
}

// Frequency is f_i, radians a position.
func (r RoPE) Frequency(i int) float64 {
	if r.InvFreq != nil {
		return r.InvFreq[i]
	}
	return math.Pow(r.Base, -2*float64(i)/float64(r.Rotary))
}

// Turn is the cosine and sine of pair i in row, times the magnitude.
func (r RoPE) Turn(row, i int) (cos, sin float64) {
	magnitude := r.Magnitude
	if magnitude == 0 {
		magnitude = 1
	}
	position, f := r.Position(row), r.Frequency(i)
	if r.Float32Angles {
		angle := float64(float32(position) * float32(f))
		cos = float64(float32(math.Cos(angle)) * float32(magnitude))
		sin = float64(float32(math.Sin(angle)) * float32(magnitude))
		return cos, sin
	}
	sin, cos = math.Sincos(float64(position) * f)
	return cos * magnitude, sin * magnitude
}
