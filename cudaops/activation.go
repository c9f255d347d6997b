package cudaops

// Activation is a function of one element, as MLPs have between their projections.
type Activation uint8

// The activations in use. Names are those of PyTorch and of Hugging Face's configurations.
const (
	GELU     Activation = iota // x/2 (1 + erf(x/sqrt 2)): "gelu"
	GELUTanh                   // x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))): "gelu_new", "gelu_pytorch_tanh"
	SiLU                       // x / (1 + e^-x): "silu", "swish"
)

// Activate is the activation a of each element. The result lies in memory in the order of x.
func (d *Device) Activate(x *Buffer, a Activation) (*Buffer, error) {
	c, err := d.begin("Activate", operand{"x", x})
	if err != nil {
		return nil, err
	}
	defer c.end()
	if a > SiLU {
		return nil, c.bad([]int{0}, "unknown activation %d", a)
	}
	v := c.views[0]
	return c.run1(like(v), func(o View) error { return d.backend.Activate(o, v, a) })
}

// Multiply is a * b, element by element, of two buffers of one shape. The result lies in memory in the order of a.
func (d *Device) Multiply(a, b *Buffer) (*Buffer, error) {
	return d.pairwise("Multiply", a, b, d.backend.Multiply)
}

// Add adds two buffers of one shape, element by element. The result lies in memory in the order of a.
func (d *Device) Add(a, b *Buffer) (*Buffer, error) {
	return d.pairwise("Add", a, b, d.backend.Add)
}

func (d *Device) pairwise(op string, a, b *Buffer, do func(dst, a, b View) error) (*Buffer, error) {
	c, err := d.begin(op, operand{"a", a}, operand{"b", b})
	if err != nil {
		return nil, err
	}
	defer c.end()
	va, vb := c.views[0], c.views[1]
	if va.H != vb.H || va.S != vb.S || va.D != vb.D {
		return nil, c.bad([]int{0, 1}, "shapes differ")
	}
	return c.run1(like(va), func(o View) error { return do(o, va, vb) })
}
