package bound

import (
	"math"

	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/mat"
)

// Variant is [reference.Variant] with bounds: bias and sinks may be results themselves.
type Variant struct {
	Softcap  float64 // as f32 holds it; 0: none
	Bias     Heads   // none: the zero Heads
	Slopes   []float64
	Diagonal int
	Allowed  reference.Heads
	Sinks    Heads // [1, 1, H]; none: the zero Heads
}

func (v Variant) exact() reference.Variant {
	out := reference.Variant{Softcap: v.Softcap, Bias: v.Bias.Value, Slopes: v.Slopes, Diagonal: v.Diagonal, Allowed: v.Allowed}
	if v.Sinks.Value != nil {
		out.Sinks = v.Sinks.Value[0].RawRowView(0)
	}
	return out
}

// Head is what the variant is for head h alone.
func (v Variant) Head(h int) Variant {
	one := func(x reference.Heads) reference.Heads {
		if len(x) > 1 {
			return x[h : h+1]
		}
		return x
	}
	v.Bias, v.Allowed = Heads{one(v.Bias.Value), one(v.Bias.Err)}, one(v.Allowed)
	if v.Slopes != nil {
		v.Slopes = v.Slopes[h : h+1]
	}
	if v.Sinks.Value != nil {
		cut := func(x reference.Heads) reference.Heads {
			return reference.Heads{mat.NewDense(1, 1, []float64{x[0].At(0, h)})}
		}
		v.Sinks = Heads{cut(v.Sinks.Value), cut(v.Sinks.Err)}
	}
	return v
}

// check refuses what does not fit scores s.
func (v Variant) check(op string, s shape) error {
	refuse := func(detail string) error { return &reference.Error{Op: op, Kind: reference.ErrShape, Detail: detail} }
	if v.Slopes != nil && len(v.Slopes) != s.heads {
		return refuse("as many slopes as heads")
	}
	if v.Bias.Value != nil {
		if _, err := measure(op, "bias", v.Bias); err != nil {
			return err
		}
		if n := len(v.Bias.Value); n != 1 && n != s.heads {
			return refuse("as many heads of bias as of scores, or 1")
		}
	}
	if n := len(v.Allowed); n > 1 && n != s.heads {
		return refuse("as many heads of allowed cells as of scores, or 1")
	}
	for _, m := range v.Allowed {
		if rows, cols := m.Dims(); cols != s.dim || rows != 1 && rows != s.rows {
			return refuse("as many columns and rows of allowed cells as of scores, or 1 row")
		}
	}
	if v.Sinks.Value == nil {
		return nil
	}
	x, err := measure(op, "sinks", v.Sinks)
	if err == nil && x != (shape{1, 1, s.heads}) {
		err = refuse("one sink a head")
	}
	return err
}

// change is Change of one head, of which v is the variant. A softcap c tanh(s/c) does not add to an error: with t = |s|, its slope
// is at most that of tanh at the nearest point, so
//
//	E1 = c (tanh((t+E)/c) - tanh(t/c)), or the same downwards, whichever is more
//	E' = E1 + gamma_10 (|s'| + E1)     division and tanh, 2 ULP each, and the product
//
// since tanh is concave: a relative error of its argument is at most that of its result. tanh must be relative: 1 - 2/(e^2x + 1)
// is not, near 0. Then each addition
//
//	bias      E'' = E' + Eb + u (|s''| + E' + Eb)
//	ALiBi     the same with Eb = gamma_2 |b|    the distance, where it is above 2^24, and the product
//
// each with 2^-126 for what may be flushed.
func (v Variant) change(s Heads) (Heads, error) {
	if v.Softcap == 0 && v.Bias.Value == nil && v.Slopes == nil {
		return s, nil
	}
	value, err := v.exact().Change(s.Value)
	if err != nil {
		return Heads{}, err
	}
	rows, cols := value[0].Dims()
	e := like(value[0])
	for row := range rows {
		x, off, to := s.Value[0].RawRowView(row), s.Err[0].RawRowView(row), e.RawRowView(row)
		for j := range cols {
			at, err := x[j], off[j]
			if v.Softcap != 0 {
				at, err = capped(at, err, v.Softcap)
			}
			if v.Bias.Value != nil {
				bias, be := v.Bias.Value[0], v.Bias.Err[0]
				n, _ := bias.Dims()
				at, err = added(at, err, bias.At(min(row, n-1), j), be.At(min(row, n-1), j))
			}
			if v.Slopes != nil {
				by := -v.Slopes[0] * math.Abs(float64(j-row-v.Diagonal))
				_, err = added(at, err, by, gamma(2)*math.Abs(by))
			}
			to[j] = err
		}
	}
	return Heads{value, reference.Heads{e}}, nil
}

func capped(s, e, c float64) (float64, float64) {
	t, value := math.Abs(s), c*math.Tanh(s/c)
	up := c * (math.Tanh((t+e)/c) - math.Tanh(t/c))
	down := c * (math.Tanh(t/c) - math.Tanh((t-e)/c))
	moved := math.Max(up, down)
	return value, moved + gamma(10)*(math.Abs(value)+moved) + tiny*(1+c)
}

func added(a, ea, b, eb float64) (float64, float64) {
	sum := a + b
	return sum, ea + eb + u*(math.Abs(sum)+ea+eb) + tiny
}

// softmax is [Softmax] of one head. A sink is one more column, which the softmax sees in every row and the result does not have.
func (v Variant) softmax(s Heads, vis reference.Visible) (Heads, error) {
	s, sees, err := v.ready(s, vis)
	if err != nil {
		return Heads{}, err
	}
	p, err := softmax(s, sees)
	if err != nil || v.Sinks.Value == nil {
		return p, err
	}
	return Heads{reference.Heads{shorter(p.Value[0])}, reference.Heads{shorter(p.Err[0])}}, nil
}

// ready is the scores of one head as the softmax takes them, and what it sees of them.
func (v Variant) ready(s Heads, vis reference.Visible) (Heads, reference.Visible, error) {
	s, err := v.change(s)
	if err != nil {
		return Heads{}, nil, err
	}
	vis = v.exact().Visible(0, vis)
	if v.Sinks.Value == nil {
		return s, vis, nil
	}
	_, cols := s.Value[0].Dims()
	sees := func(row, col int) bool { return col == cols || vis == nil || vis(row, col) }
	longer := func(m, sink *mat.Dense) reference.Heads {
		rows, _ := m.Dims()
		out := mat.NewDense(rows, cols+1, nil)
		for row := range rows {
			copy(out.RawRowView(row), m.RawRowView(row))
			out.Set(row, cols, sink.At(0, 0))
		}
		return reference.Heads{out}
	}
	return Heads{longer(s.Value[0], v.Sinks.Value[0]), longer(s.Err[0], v.Sinks.Err[0])}, sees, nil
}

// shorter is m without its last column.
func shorter(m *mat.Dense) *mat.Dense {
	rows, cols := m.Dims()
	return mat.DenseCopyOf(m.Slice(0, rows, 0, cols-1))
}

// Softmax is [reference.Variant.Softmax]: the bounds of the changes and of [Softmax], one on another.
func (v Variant) Softmax(s Heads, vis reference.Visible) (Heads, error) {
	return v.eachHead("Softmax", s, func(h int) (Heads, error) { return v.Head(h).softmax(s.head(h), vis) })
}

// LSE is [reference.Variant.LSE]; the result is [1, H, S].
func (v Variant) LSE(s Heads, vis reference.Visible) (Heads, error) {
	by, err := v.eachHead("LSE", s, func(h int) (Heads, error) {
		ready, sees, err := v.Head(h).ready(s.head(h), vis)
		if err != nil {
			return Heads{}, err
		}
		return LSE(ready, sees)
	})
	if err != nil {
		return Heads{}, err
	}
	_, rows := by.Value[0].Dims()
	join := func(x reference.Heads) reference.Heads {
		out := mat.NewDense(len(x), rows, nil)
		for h := range x {
			out.SetRow(h, x[h].RawRowView(0))
		}
		return reference.Heads{out}
	}
	return Heads{join(by.Value), join(by.Err)}, nil
}

func (v Variant) eachHead(op string, s Heads, f func(h int) (Heads, error)) (Heads, error) {
	in, err := measure(op, "s", s)
	if err == nil {
		err = v.check(op, in)
	}
	if err != nil {
		return Heads{}, err
	}
	out := Heads{make(reference.Heads, in.heads), make(reference.Heads, in.heads)}
	err = parallel(in.heads, func(h int) error {
		x, err := f(h)
		if err == nil {
			out.Value[h], out.Err[h] = x.Value[0], x.Err[0]
		}
		return err
	})
	return out, err
}

// Attention is [reference.Variant.Attention]: the bounds of Scores, the changes, Softmax and Context, a head at a time.
func (v Variant) Attention(q, k, values Heads, scale float64, vis reference.Visible) (Heads, error) {
	qs, perKV, err := checkAttention(q, k, values)
	if err == nil {
		keys, _ := k.Value[0].Dims()
		err = v.check("Attention", shape{qs.heads, qs.rows, keys})
	}
	if err != nil {
		return Heads{}, err
	}
	out := Heads{make(reference.Heads, qs.heads), make(reference.Heads, qs.heads)}
	err = parallel(qs.heads, func(h int) error {
		one, kv := v.Head(h), h/perKV
		value, err := one.exact().Attention(q.Value[h:h+1], k.Value[kv:kv+1], values.Value[kv:kv+1], scale, vis)
		if err != nil {
			return err
		}
		s, err := scores(q.head(h), k.head(kv), scale)
		if err != nil {
			return err
		}
		p, err := one.softmax(s, vis)
		if err != nil {
			return err
		}
		out.Value[h], out.Err[h] = value[0], weighed(p, values.head(kv))
		return nil
	})
	return out, err
}
