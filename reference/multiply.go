package reference

// Multiply is a b, element by element, of two tensors of one shape: a gate, as of SwiGLU.
func Multiply(a, b Heads) (Heads, error) {
	as, err := measure("Multiply", "a", a)
	if err != nil {
		return nil, err
	}
	bs, err := measure("Multiply", "b", b)
	if err != nil {
		return nil, err
	}
	if as != bs {
		return nil, badShape("Multiply", "a %v and b %v differ", as, bs)
	}
	out := zeros(as)
	for h := range out {
		out[h].MulElem(a[h], b[h])
	}
	return out, nil
}
