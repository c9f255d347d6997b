package cudaops

import (
	"fmt"
	"math"
)

// RoPE rotates x, [H, S, D], by the positions of its rows. The result lies in memory in the order of x: rows seen by
// head ([Buffer.AsHeads]) stay rows. Formula: Su et al., RoFormer, arXiv 2104.09864, section 3.2.
func (d *Device) RoPE(x *Buffer, r RoPE) (*Buffer, error) {
	c, err := d.begin("RoPE", operand{"x", x})
	if err != nil {
		return nil, err
	}
	defer c.end()
	v := c.views[0]
	r, err = r.complete(v.S, v.D, &d.powers)
	if err != nil {
		return nil, c.bad([]int{0}, "%s", reason(err))
	}
	return c.run1(like(v), func(o View) error { return d.backend.RoPE(o, v, r) })
}

// powers keeps the frequencies that were asked for last: a model has one base, and 64 powers take longer than all else that a rotation costs the host.
type powers struct {
	rotary int
	base   float64
	freq   []float64
}

// of returns Base^(-2i/Rotary), to be read only. The exponent's denominator is the number of rotary dims, not the head dim.
func (p *powers) of(rotary int, base float64) []float64 {
	if p.rotary != rotary || p.base != base {
		*p = powers{rotary, base, make([]float64, rotary/2)}
		for i := range p.freq {
			p.freq[i] = math.Pow(base, -2*float64(i)/float64(rotary))
		}
	}
	return p.freq
}

// complete checks the parameters for rows rows of dim elements and fills in the frequencies and the magnitude.
func (r RoPE) complete(rows, dim int, known *powers) (RoPE, error) {
	switch {
	case r.Rotary <= 0:
		return r, fmt.Errorf("rotary dims is %d, must be at least 2", r.Rotary)
	case r.Rotary%2 != 0:
		return r, fmt.Errorf("rotary dims %d is odd", r.Rotary)
	case r.Rotary > dim:
		return r, fmt.Errorf("rotary dims %d is more than the head dim %d", r.Rotary, dim)
	case r.Convention > Interleaved:
		return r, fmt.Errorf("unknown convention %d", r.Convention)
	case r.Angle > AngleFloat32:
		return r, fmt.Errorf("unknown angle precision %d", r.Angle)
	case !finite(float64(float32(r.Magnitude))):
		return r, fmt.Errorf("magnitude is %v, must be finite in f32", r.Magnitude)
	}
	if r.Magnitude == 0 {
		r.Magnitude = 1
	}
	farthest, err := r.farthest(rows)
	if err != nil {
		return r, err
	}
	if err := r.frequencies(known); err != nil {
		return r, err
	}
	for i, f := range r.InvFreq {
		// What bounds the accuracy is the angle: a position at frequency 1.
		if math.Abs(f)*float64(farthest) >= MaxPosition {
			return r, fmt.Errorf("inverse frequency %d is %v: |position| %d times it must be below %d", i, f, farthest, MaxPosition)
		}
	}
	return r, nil
}

// farthest is the largest |position|.
func (r RoPE) farthest(rows int) (int, error) {
	if r.Positions == nil {
		// A difference of two positions in range cannot overflow; a sum of Offset and rows could.
		if r.Offset <= -MaxPosition || r.Offset >= MaxPosition || rows-1 >= MaxPosition-r.Offset {
			return 0, fmt.Errorf("offset %d with %d rows: |position| must be below %d", r.Offset, rows, MaxPosition)
		}
		return max(-r.Offset, r.Offset+rows-1), nil
	}
	if len(r.Positions) != rows {
		return 0, fmt.Errorf("%d positions for %d rows", len(r.Positions), rows)
	}
	if r.Offset != 0 {
		return 0, fmt.Errorf("offset %d and positions are both given", r.Offset)
	}
	far := 0
	for row, p := range r.Positions {
		if p <= -MaxPosition || p >= MaxPosition {
			return 0, fmt.Errorf("position %d of row %d: |position| must be below %d", p, row, MaxPosition)
		}
		far = max(far, p, -p)
	}
	return far, nil
}

// frequencies fills in InvFreq.
func (r *RoPE) frequencies(known *powers) error {
	n := r.Rotary / 2
	freq := make([]float64, n)
	switch {
	case r.InvFreq != nil:
		if len(r.InvFreq) != n {
			return fmt.Errorf("%d inverse frequencies for %d rotary dims, which need %d", len(r.InvFreq), r.Rotary, n)
		}
		copy(freq, r.InvFreq)
	case !finite(r.Base) || r.Base <= 0:
		return fmt.Errorf("base is %v, must be positive and finite", r.Base)
	default:
		copy(freq, known.of(r.Rotary, r.Base))
	}
	for i, f := range freq {
		switch single := float64(float32(f)); {
		case !finite(f):
			return fmt.Errorf("inverse frequency %d is %v, must be finite", i, f)
		case r.Angle == AngleFloat32 && !finite(single):
			return fmt.Errorf("inverse frequency %d is %v, must be finite in f32", i, f)
		case r.Angle == AngleFloat32:
			freq[i] = single
		}
	}
	r.InvFreq = freq
	return nil
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
