package cudaops

import "math"

// Norm says how the rows of [Backend.Norm] are normalised.
type Norm struct {
	Centred bool    // less their mean: LayerNorm; else RMSNorm
	Epsilon float32 // added to the mean square
}

// LayerNorm is (x - mean) / sqrt(mean square deviation + eps) * w + b for each row of x, [H, S, D] (Ba et al., arXiv:1607.06450). w and b
// are [1, 1, D] or nil for none. eps must be positive, and not denormal in f32. The result lies in memory in the order of x.
func (d *Device) LayerNorm(x, w, b *Buffer, eps float64) (*Buffer, error) {
	return d.norm("LayerNorm", x, w, b, eps, true)
}

// RMSNorm is x / sqrt(mean square + eps) * w for each row of x (Zhang and Sennrich, arXiv:1910.07467); w and eps as in LayerNorm.
func (d *Device) RMSNorm(x, w *Buffer, eps float64) (*Buffer, error) {
	return d.norm("RMSNorm", x, w, nil, eps, false)
}

func (d *Device) norm(op string, x, w, b *Buffer, eps float64, centred bool) (*Buffer, error) {
	in := []operand{{"x", x}}
	for _, o := range []operand{{"w", w}, {"b", b}} {
		if o.buf != nil {
			in = append(in, o)
		}
	}
	c, err := d.begin(op, in...)
	if err != nil {
		return nil, err
	}
	defer c.end()
	vx := c.views[0]
	var vw, vb View
	for i, v := range c.views[1:] {
		what, to := "weight", &vw
		if in[i+1].name == "b" {
			what, to = "bias", &vb
		}
		if v.H != 1 || v.S != 1 || v.D != vx.D {
			return nil, c.bad([]int{0, i + 1}, "the %s must be [1 1 %d]", what, vx.D)
		}
		*to = v
	}
	n := Norm{Centred: centred, Epsilon: float32(eps)}
	if !(n.Epsilon >= smallestNormal) || math.IsInf(float64(n.Epsilon), 1) {
		return nil, c.bad([]int{0}, "eps is %v, must be a positive number that f32 holds", eps)
	}
	return c.run1(like(vx), func(o View) error { return d.backend.Norm(o, vx, vw, vb, n) })
}

const smallestNormal = 0x1p-126
