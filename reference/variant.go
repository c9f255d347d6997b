package reference

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// Softcap is c tanh(s/c), which bounds scores by c (Gemma Team, arXiv:2408.00118, section 2).
func Softcap(s Heads, c float64) (Heads, error) {
	in, err := measure("Softcap", "s", s)
	if err != nil {
		return nil, err
	}
	if !positive(c) {
		return nil, badArgument("Softcap", "cap %v is not a positive number", c)
	}
	out := zeros(in)
	for h := range s {
		out[h].Apply(func(_, _ int, x float64) float64 { return c * math.Tanh(x/c) }, s[h])
	}
	return out, nil
}

// AddBias is s + b: s [H, S, T], b [H, S, T], of which one head or one row serves all.
func AddBias(s, b Heads) (Heads, error) {
	in, err := measure("AddBias", "s", s)
	if err != nil {
		return nil, err
	}
	bs, err := measure("AddBias", "b", b)
	if err != nil {
		return nil, err
	}
	if bs.dim != in.dim || bs.rows != 1 && bs.rows != in.rows || bs.heads != 1 && bs.heads != in.heads {
		return nil, badShape("AddBias", "s %v and b %v: columns, and rows and heads or 1", in, bs)
	}
	out := zeros(in)
	for h := range s {
		by := b[min(h, bs.heads-1)]
		out[h].Apply(func(i, j int, x float64) float64 { return x + by.At(min(i, bs.rows-1), j) }, s[h])
	}
	return out, nil
}

// ALiBi is s - slope |j - own|, own = row+diagonal the row's own column, one slope a head (Press et al., arXiv:2108.12409,
// section 3, for columns up to the own; as FlashAttention has it for those beyond).
func ALiBi(s Heads, slopes []float64, diagonal int) (Heads, error) {
	in, err := measure("ALiBi", "s", s)
	if err != nil {
		return nil, err
	}
	if len(slopes) != in.heads {
		return nil, badShape("ALiBi", "%d slopes for s %v", len(slopes), in)
	}
	out := zeros(in)
	for h := range s {
		out[h].Apply(func(i, j int, x float64) float64 { return x - slopes[h]*math.Abs(float64(j-i-diagonal)) }, s[h])
	}
	return out, nil
}

// ALiBiSlopes are the slopes that ALiBi gives n heads: 2^(-8 i/n), i from 1, where n is a power of 2. Else those of the power of 2
// below, and then every second one of twice as many (arXiv:2108.12409, section 3, and the code that its authors published).
func ALiBiSlopes(n int) ([]float64, error) {
	if n < 1 {
		return nil, badArgument("ALiBiSlopes", "%d heads", n)
	}
	below := 1
	for 2*below <= n {
		below *= 2
	}
	out := make([]float64, n)
	for i := range out {
		if i < below {
			out[i] = math.Exp2(-8 * float64(i+1) / float64(below))
		} else {
			out[i] = math.Exp2(-4 * float64(2*(i-below)+1) / float64(below))
		}
	}
	return out, nil
}

// Variant is what comes between scores and context in a variant of attention. The zero value is plain attention.
type Variant struct {
	Softcap  float64   // 0: none
	Bias     Heads     // nil: none
	Slopes   []float64 // of ALiBi; nil: none
	Diagonal int       // of ALiBi
	Allowed  Heads     // [H, S, T], of which one head or one row serves all: hides where it is 0; nil: nothing
	Sinks    []float64 // one a head; nil: none
}

// Change gives scores their form before the softmax: softcap, then bias, then ALiBi.
func (v Variant) Change(s Heads) (_ Heads, err error) {
	if v.Softcap != 0 {
		if s, err = Softcap(s, v.Softcap); err != nil {
			return nil, err
		}
	}
	if v.Bias != nil {
		if s, err = AddBias(s, v.Bias); err != nil {
			return nil, err
		}
	}
	if v.Slopes != nil {
		return ALiBi(s, v.Slopes, v.Diagonal)
	}
	return s, nil
}

// Visible is what head h sees.
func (v Variant) Visible(h int, vis Visible) Visible {
	if v.Allowed == nil {
		return vis
	}
	return All(vis, Allowed(v.Allowed[min(h, len(v.Allowed)-1)]))
}

// check refuses allowed cells and sinks that do not fit scores.
func (v Variant) check(op string, s shape) error {
	if v.Sinks != nil && len(v.Sinks) != s.heads {
		return badShape(op, "%d sinks for s %v", len(v.Sinks), s)
	}
	if v.Allowed == nil {
		return nil
	}
	a, err := measure(op, "allowed", v.Allowed)
	if err != nil {
		return err
	}
	if a.dim != s.dim || a.rows != 1 && a.rows != s.rows || a.heads != 1 && a.heads != s.heads {
		return badShape(op, "s %v and allowed %v: columns, and rows and heads or 1", s, a)
	}
	return nil
}

func (v Variant) sink(h int) []float64 {
	if v.Sinks == nil {
		return nil
	}
	return v.Sinks[h : h+1]
}

// Softmax is exp(s'_j) / (sum_k exp(s'_k) + exp(sink)) of the changed scores s', over the visible columns k: the sink, one
// unscaled logit a head, takes its part of the sum and belongs to no column (Xiao et al., arXiv:2309.17453; gpt-oss).
func (v Variant) Softmax(s Heads, vis Visible) (Heads, error) {
	s, in, err := v.changed("Softmax", s)
	if err != nil {
		return nil, err
	}
	out := zeros(in)
	for h, scores := range s {
		sees := v.Visible(h, vis)
		for row := range in.rows {
			softmaxRow(out[h].RawRowView(row), scores.RawRowView(row), row, sees, v.sink(h)...)
		}
	}
	return out, nil
}

// LSE is [LSE] of the changed scores and the sink. Of a row that sees nothing it is the sink, or -Inf where there is none.
func (v Variant) LSE(s Heads, vis Visible) (*mat.Dense, error) {
	s, in, err := v.changed("LSE", s)
	if err != nil {
		return nil, err
	}
	out := mat.NewDense(in.heads, in.rows, nil)
	for h, scores := range s {
		sees := v.Visible(h, vis)
		for row := range in.rows {
			out.Set(h, row, lseRow(scores.RawRowView(row), row, sees, v.sink(h)...))
		}
	}
	return out, nil
}

func (v Variant) changed(op string, s Heads) (Heads, shape, error) {
	in, err := measure(op, "s", s)
	if err == nil {
		err = v.check(op, in)
	}
	if err != nil {
		return nil, in, err
	}
	s, err = v.Change(s)
	return s, in, err
}

// Attention is [Attention] of the variant.
func (v Variant) Attention(q, k, values Heads, scale float64, vis Visible) (Heads, error) {
	ks, err := measure("Attention", "k", k)
	if err != nil {
		return nil, err
	}
	vs, err := measure("Attention", "v", values)
	if err != nil {
		return nil, err
	}
	if ks.heads != vs.heads || ks.rows != vs.rows {
		return nil, badShape("Attention", "k %v and v %v differ in heads or rows", ks, vs)
	}
	s, err := Scores(q, k, scale)
	if err != nil {
		return nil, err
	}
	p, err := v.Softmax(s, vis)
	if err != nil {
		return nil, err
	}
	out, perKV := make(Heads, len(p)), len(p)/len(values)
	for h := range p {
		sees := v.Visible(h, vis)
		if sees == nil {
			sees = func(int, int) bool { return true }
		}
		one, err := context("Attention", p[h:h+1], values[h/perKV:h/perKV+1], sees)
		if err != nil {
			return nil, err
		}
		out[h] = one[0]
	}
	return out, nil
}
