package noise

import (
	"math"

	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/mat"
)

// Variant is [reference.Variant] with the variances of what may be results themselves.
type Variant struct {
	Softcap  float64
	Bias     Heads // none: the zero Heads
	Slopes   []float64
	Diagonal int
	Allowed  reference.Heads
	Sinks    Heads // [1, 1, H]; none: the zero Heads
}

// head is the exact variant of head h alone, and the variances of its bias and of its sink.
func (v Variant) head(h int) (exact reference.Variant, bias, sink *mat.Dense) {
	exact = reference.Variant{Softcap: v.Softcap, Diagonal: v.Diagonal}
	if v.Bias.Value != nil {
		at := min(h, len(v.Bias.Value)-1)
		exact.Bias, bias = v.Bias.Value[at:at+1], v.Bias.Var[at]
	}
	if v.Slopes != nil {
		exact.Slopes = v.Slopes[h : h+1]
	}
	if v.Allowed != nil {
		at := min(h, len(v.Allowed)-1)
		exact.Allowed = v.Allowed[at : at+1]
	}
	if v.Sinks.Value != nil {
		exact.Sinks, sink = []float64{v.Sinks.Value[0].At(0, h)}, v.Sinks.Var[0]
		sink = mat.NewDense(1, 1, []float64{sink.At(0, h)})
	}
	return exact, bias, sink
}

func (v Variant) check(op string, heads, rows, cols int) error {
	in := [3]int{heads, rows, cols}
	if v.Bias.Value != nil {
		h, s, t, err := v.Bias.shape(op, "bias")
		if err != nil {
			return err
		}
		if h != 1 && h != heads || s != 1 && s != rows || t != cols {
			return unfit(op, in, [3]int{h, s, t})
		}
	}
	if n := len(v.Slopes); v.Slopes != nil && n != heads {
		return unfit(op, in, [3]int{n, 1, 1})
	}
	if n := len(v.Allowed); n > 1 && n != heads {
		return unfit(op, in, [3]int{n, rows, cols})
	}
	for _, m := range v.Allowed {
		if s, t := m.Dims(); t != cols || s != 1 && s != rows {
			return unfit(op, in, [3]int{len(v.Allowed), s, t})
		}
	}
	if v.Sinks.Value == nil {
		return nil
	}
	h, s, n, err := v.Sinks.shape(op, "sinks")
	if err == nil && (h != 1 || s != 1 || n != heads) {
		err = unfit(op, in, [3]int{h, s, n})
	}
	return err
}

// softmax is the softmax of one head. Its scores change first:
//
//	softcap  V' = (1 - (s'/c)^2)^2 V + 33 u^2 s'^2    the slope of tanh; division and tanh, 4u each, and the product
//	bias     V'' = V' + Vb + u^2 s''^2
//	ALiBi    the same with Vb = u^2 b^2
//
// A sink is one more column, which the result does not have.
func (v Variant) softmax(h int, s cells, vis reference.Visible) (cells, error) {
	exact, bias, sink := v.head(h)
	value, err := exact.Change(reference.Heads{s.value})
	if err != nil {
		return cells{}, err
	}
	rows, cols := s.value.Dims()
	wide := cols + len(exact.Sinks)
	out := cells{mat.NewDense(rows, wide, nil), mat.NewDense(rows, wide, nil)}
	for row := range rows {
		to, variance := out.value.RawRowView(row), out.variance.RawRowView(row)
		copy(to, value[0].RawRowView(row))
		for j := range cols {
			variance[j] = v.changed(exact, row, j, s.value.At(row, j), s.variance.At(row, j), to[j], bias)
		}
		if sink != nil {
			to[cols], variance[cols] = exact.Sinks[0], sink.At(0, 0)
		}
	}
	seen := exact.Visible(0, vis)
	sees := func(row, col int) bool { return col == cols || seen == nil || seen(row, col) }
	p := softmax(out, sees)
	cut := func(m *mat.Dense) *mat.Dense { return mat.DenseCopyOf(m.Slice(0, rows, 0, cols)) }
	return cells{cut(p.value), cut(p.variance)}, nil
}

// changed is the variance of a score s that became to.
func (v Variant) changed(exact reference.Variant, row, j int, s, variance, to float64, bias *mat.Dense) float64 {
	if exact.Softcap != 0 {
		t := math.Tanh(s / exact.Softcap)
		s = exact.Softcap * t
		variance = (1-t*t)*(1-t*t)*variance + 33*u*u*s*s
	}
	if bias != nil {
		n, _ := bias.Dims()
		s += exact.Bias[0].At(min(row, n-1), j)
		variance += bias.At(min(row, n-1), j) + u*u*s*s
	}
	if exact.Slopes != nil {
		by := exact.Slopes[0] * math.Abs(float64(j-row-exact.Diagonal))
		variance += u*u*by*by + u*u*to*to
	}
	if variance-variance != 0 {
		return 0 // of a value that is not finite
	}
	return variance
}

// Softmax is the variance of [reference.Variant.Softmax].
func (v Variant) Softmax(s Heads, vis reference.Visible) (reference.Heads, error) {
	heads, rows, cols, err := s.shape("Softmax", "s")
	if err == nil {
		err = v.check("Softmax", heads, rows, cols)
	}
	if err != nil {
		return nil, err
	}
	errs := make([]error, heads)
	out := eachHead(heads, func(h int) *mat.Dense {
		p, err := v.softmax(h, s.head(h), vis)
		errs[h] = err
		return p.variance
	})
	if err := first(errs); err != nil {
		return nil, err
	}
	return out, nil
}

// Attention is the variance of [reference.Variant.Attention], a head at a time.
func (v Variant) Attention(q, k, values Heads, scale float64, vis reference.Visible) (reference.Heads, error) {
	heads, perKV, err := attends(q, k, values)
	if err != nil {
		return nil, err
	}
	rows, _ := q.Value[0].Dims()
	cols, _ := k.Value[0].Dims()
	if err := v.check("Attention", heads, rows, cols); err != nil {
		return nil, err
	}
	errs := make([]error, heads)
	out := eachHead(heads, func(h int) *mat.Dense {
		p, err := v.softmax(h, scores(q.head(h), k.head(h/perKV), scale), vis)
		if err != nil {
			errs[h] = err
			return nil
		}
		return multiply(p, values.head(h/perKV)).variance
	})
	if err := first(errs); err != nil {
		return nil, err
	}
	return out, nil
}

func first(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
