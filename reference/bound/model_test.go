package bound_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/bound"
	"github.com/attnb/attnb/reference/noise"
)

// norm is LayerNorm in two passes, or RMSNorm.
func (a arithmetic) norm(x tensor, w, b []float32, eps float64, centred bool) tensor {
	out := make(tensor, len(x))
	for h := range x {
		for _, row := range x[h] {
			n := float32(len(row))
			d := append([]float32(nil), row...)
			if centred {
				m := a.off(a.sum(row) / n)
				for i := range d {
					d[i] -= m
				}
			}
			s := a.off(a.dot(d, d)/n) + float32(eps)
			r := a.off(float32(1 / math.Sqrt(float64(s))))
			for i := range d {
				switch {
				case w != nil && a.scaleQ:
					d[i] = a.kept(d[i] * a.kept(r*w[i]))
				case w != nil:
					d[i] = a.kept(a.kept(d[i]*r) * w[i])
				default:
					d[i] = a.kept(d[i] * r)
				}
				if b != nil {
					d[i] += b[i]
				}
			}
			out[h] = append(out[h], d)
		}
	}
	return out
}

// activate follows the formulas that frameworks compute.
func (a arithmetic) activate(x tensor, by reference.Activation) tensor {
	return each(x, x, func(v, _ float32) float32 {
		switch by {
		case reference.GELU:
			z := v * float32(math.Sqrt(0.5))
			return a.kept(v * 0.5 * (1 + a.off(float32(math.Erf(float64(z))))))
		case reference.GELUTanh:
			z := float32(math.Sqrt(2/math.Pi)) * (v + a.kept(0.044715*a.kept(a.kept(v*v)*v)))
			return a.kept(0.5 * v * (1 + a.off(float32(math.Tanh(float64(z))))))
		}
		return a.off(v / (1 + a.off(float32(math.Exp(float64(-v))))))
	})
}

func each(x, y tensor, f func(v, w float32) float32) tensor {
	out := make(tensor, len(x))
	for h := range x {
		for i := range x[h] {
			row := make([]float32, len(x[h][i]))
			for j := range row {
				row[j] = f(x[h][i][j], y[h][i][j])
			}
			out[h] = append(out[h], row)
		}
	}
	return out
}

// mlp is what one does: a norm, projections, an activation, a gate.
type mlp struct {
	centred  bool
	by       reference.Activation
	n, rows  int
	size     float64 // of the rows
	at       float64 // their mean
	eps      float64
	wide     int
	affinity bool // has weights and biases
}

func (m mlp) String() string {
	return fmt.Sprintf("n%d_rows%d_size%g_at%g_eps%g_activation%d", m.n, m.rows, m.size, m.at, m.eps, m.by)
}

func mlps() []mlp {
	return []mlp{
		{centred: true, n: 1, rows: 3, size: 1, eps: 1e-5, wide: 2},
		{centred: true, by: reference.GELU, n: 7, rows: 5, size: 1, at: 1, eps: 1e-5, wide: 9, affinity: true},
		{centred: true, by: reference.GELUTanh, n: 577, rows: 3, size: 3, at: -2, eps: 1e-12, wide: 37, affinity: true},
		{by: reference.SiLU, n: 129, rows: 4, size: 0.02, eps: 1e-6, wide: 33, affinity: true},
		{by: reference.SiLU, n: 4096, rows: 2, size: 40, at: 3, eps: 1e-5, wide: 5, affinity: true},
		{centred: true, by: reference.GELU, n: 130, rows: 3, size: 1e-4, at: 10, eps: 1e-5, wide: 11}, // a mean far above the deviations
		{by: reference.GELUTanh, n: 64, rows: 3, size: 1e-20, eps: 1e-6, wide: 11},
	}
}

// Every f32 implementation stays within the bound of every cell, and within the limit of the relative L2 error, at every stage of an MLP that
// it ran in f32 alone.
func TestSoundMLP(t *testing.T) {
	shares := map[string]float64{}
	for n, m := range mlps() {
		t.Run(m.String(), func(t *testing.T) {
			var worst ratios
			for _, a := range arithmetics() {
				m.run(t, rand.New(rand.NewPCG(uint64(n), 3)), a, func(stage string, got tensor, want bound.Heads, v reference.Heads, err error) {
					t.Helper()
					worst.note(t, stage, compare(t, got, want))
					if m.n == 1 {
						return // zeros have no relative error
					}
					_, of := share(t, got, want.Value, v, err)
					shares[stage] = max(shares[stage], of)
					if !(of <= 0.8) {
						t.Errorf("%s, %s: %.3g of the limit", a.name, stage, of)
					}
				})
			}
			worst.log(t)
		})
	}
	t.Log(shares)
}

func (m mlp) run(t *testing.T, r *rand.Rand, a arithmetic, note func(stage string, got tensor, want bound.Heads, v reference.Heads, err error)) {
	x := normal(r, 2, m.rows, m.n, m.size)
	for _, head := range x {
		for _, row := range head {
			for i := range row {
				row[i] += float32(m.at)
			}
		}
	}
	var w, b []float32
	var bw, bb bound.Heads
	var nw, nb noise.Heads
	if m.affinity {
		wt, bt := normal(r, 1, 1, m.n, 1), normal(r, 1, 1, m.n, 1)
		w, bw, nw = wt[0][0], bound.Leaf(wide(wt)), noise.Exact(wide(wt))
		if m.centred {
			b, bb, nb = bt[0][0], bound.Leaf(wide(bt)), noise.Exact(wide(bt))
		}
	}
	var nx reference.Heads
	var err error
	by := bound.Leaf(wide(x))
	y := a.norm(x, w, b, m.eps, m.centred)
	if m.centred {
		nx, err = noise.LayerNorm(noise.Exact(wide(x)), nw, nb, m.eps)
		by = must(t)(bound.LayerNorm(by, bw, bb, m.eps))
	} else {
		nx, err = noise.RMSNorm(noise.Exact(wide(x)), nw, m.eps)
		by = must(t)(bound.RMSNorm(by, bw, m.eps))
	}
	note("norm", y, by, nx, err)

	up, gate := normal(r, 1, m.wide, m.n, 2/math.Sqrt(float64(m.n))), normal(r, 1, m.wide, m.n, 1/math.Sqrt(float64(m.n)))
	by, ny := bound.Heads{Value: by.Value[:1], Err: by.Err[:1]}, noise.Heads{Value: by.Value[:1], Var: nx[:1]}
	project := func(w tensor) (tensor, bound.Heads, noise.Heads) {
		want := must(t)(bound.Linear(by, bound.Leaf(wide(w)), bound.Heads{}))
		v, err := noise.Linear(ny, noise.Exact(wide(w)), noise.Heads{})
		if err != nil {
			t.Fatal(err)
		}
		return tensor{a.linear(y[0], w[0], nil)}, want, noise.Heads{Value: want.Value, Var: v}
	}
	g, bg, ng := project(gate)
	z, bz, nz := project(up)
	z, bz = a.activate(z, m.by), must(t)(bound.Activate(bz, m.by))
	v, err := noise.Activate(nz, m.by)
	note(fmt.Sprintf("activation %d", m.by), z, bz, v, err)
	nz = noise.Heads{Value: bz.Value, Var: v}
	v, err = noise.Multiply(nz, ng)
	note("product", each(z, g, func(v, w float32) float32 { return a.kept(v * w) }), must(t)(bound.Multiply(bz, bg)), v, err)
}

// Activations alone, over all that f32 holds.
func TestSoundActivations(t *testing.T) {
	var x []float32
	for v := 1e-44; v < 1e38; v *= 1.07 {
		x = append(x, float32(v), -float32(v))
	}
	for v := float32(-110); v < 110; v += 1. / 32 {
		x = append(x, v)
	}
	var worst ratios
	for by := reference.GELU; by <= reference.SiLU; by++ {
		want := must(t)(bound.Activate(bound.Leaf(wide(tensor{{x}})), by))
		for _, a := range arithmetics() {
			worst.note(t, fmt.Sprint("activation ", by), compare(t, a.activate(tensor{{x}}, by), want))
		}
	}
	worst.log(t)
}

// The bound of one cell of each op, worked out from its formula.
func TestModelFormulas(t *testing.T) {
	const eps = 1e-6
	cell := func(x bound.Heads, err error) float64 {
		t.Helper()
		return must(t)(x, err).Err[0].At(0, 0)
	}
	// d is -1 and 1, or x itself: 3 and 1; s is 1 + .5 or 5 + .5.
	mean := ((1+gamma(4))*(4+eps) - 4) / 2
	layer := func() float64 {
		d0, d1 := 1+(eps+mean)*(1+u)+u, 1+mean*(1+u)+u
		off := (1+gamma(5))*(d0*d0+d1*d1)/2 - 1 + 2*u*1.5
		return (1+gamma(4))*(d0*(1+8*u)/math.Sqrt(1-off/1.5)*(2+eps)/math.Sqrt(1.5)+7+eps) - 2/math.Sqrt(1.5) - 7
	}()
	off := (1+gamma(5))*((3+eps)*(3+eps)+1)/2 - 5 + 2*u*5.5
	slope := reference.GELU.Slope(-2)
	f := math.Abs(reference.GELU.Of(-2))
	silu := reference.SiLU.Slope(3)*eps + eps*eps/2
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"multiply", cell(bound.Multiply(with(3, eps), with(-5, 2*eps))), (3+eps)*(5+2*eps)*(1+u) - 15},
		{"layernorm", cell(bound.LayerNorm(with(3, eps, 1, 0), with(2, eps, 1, 0), with(7, eps, 1, 0), .5)), layer},
		{"rmsnorm", cell(bound.RMSNorm(with(3, eps, 1, 0), bound.Heads{}, .5)),
			(1+gamma(4))*(3+eps)*(1+8*u)/math.Sqrt(1-off/5.5)/math.Sqrt(5.5) - 3/math.Sqrt(5.5)},
		{"gelu", cell(bound.Activate(with(-2, eps), reference.GELU)), (1+3*u)*(math.Abs(slope)*eps+eps*eps/2) + 5*u*(2+eps) + 3*u*f},
		{"gelu of anything", cell(bound.Activate(with(-2, 10), reference.GELU)), 11.3 + 5*u*12 + 3*u*(11.3+f)},
		{"silu", cell(bound.Activate(with(3, eps), reference.SiLU)), silu + 12*u*(silu+reference.SiLU.Of(3))},
		{"undetermined norm", cell(bound.RMSNorm(with(3, 100, 1, 0), with(2, 0, 1, 0), .5)), 4 * math.Sqrt2},
		{"undetermined norm and bias", cell(bound.LayerNorm(with(3, 100, 1, 0), with(2, 0, 1, 0), with(7, 1, 1, 0), .5)), 4*math.Sqrt2 + 1},
	} {
		if !(math.Abs(c.got-c.want) <= 1e-3*c.want) {
			t.Errorf("%s: bound %.6g, want %.6g", c.name, c.got, c.want)
		}
	}
	rows := must(t)(bound.Embedding(with(3, eps, 1, 2), []int{0, 0}))
	if rows.Err[0].At(1, 0) != eps || rows.Err[0].At(1, 1) != 2 || rows.Value[0].At(1, 0) != 3 {
		t.Errorf("an embedding: %v", rows)
	}
}

// The usual mistakes in norms and activations, each in f32, are beyond the bounds of the right ones.
func TestModelFaults(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	const n, eps = 64, 1e-5
	x, w := normal(r, 1, 5, n, 1), normal(r, 1, 1, n, 1)
	for i := range x[0] {
		for j := range x[0][i] {
			x[0][i][j] = x[0][i][j]/2 + 1
		}
	}
	bx, bw := bound.Leaf(wide(x)), bound.Leaf(wide(w))
	layer, rms := must(t)(bound.LayerNorm(bx, bw, bound.Heads{}, eps)), must(t)(bound.RMSNorm(bx, bw, eps))
	exact := must(t)(bound.Activate(bx, reference.GELU))
	for _, a := range arithmetics() {
		for name, c := range map[string]struct {
			got  tensor
			want bound.Heads
		}{
			"without the mean":       {a.norm(x, w[0][0], nil, eps, false), layer},
			"with the mean":          {a.norm(x, w[0][0], nil, eps, true), rms},
			"another eps":            {a.norm(x, w[0][0], nil, 1e-3, true), layer},
			"mean square over n - 1": {each(a.norm(x, w[0][0], nil, eps, true), x, func(v, _ float32) float32 { return v * float32(math.Sqrt(1-1./n)) }), layer},
			"without the weight":     {a.norm(x, nil, nil, eps, true), layer},
			"weight + 1":             {a.norm(x, each(w, w, func(v, _ float32) float32 { return v + 1 })[0][0], nil, eps, false), rms},
			"tanh for erf":           {a.activate(x, reference.GELUTanh), exact},
			"SiLU for GELU":          {a.activate(x, reference.SiLU), exact},
		} {
			if report := compare(t, c.got, c.want); report.Pass || report.MaxRatio < 10 {
				t.Errorf("%s, %s: %v", name, a.name, report)
			}
		}
	}
}

func TestModelRefusals(t *testing.T) {
	x := func(heads, rows, dim int) bound.Heads {
		return bound.Leaf(wide(normal(rand.New(rand.NewPCG(1, 1)), heads, rows, dim, 1)))
	}
	last := func(_ bound.Heads, err error) error { return err }
	none := bound.Heads{}
	for want, err := range map[string]error{
		"reference: Embedding: shapes do not fit: table is not a plain matrix":                last(bound.Embedding(x(2, 2, 3), []int{0})),
		"reference: Embedding: bad argument: token 0 is 2, the table has 2 rows":              last(bound.Embedding(x(1, 2, 3), []int{2})),
		"reference: LayerNorm: shapes do not fit: x has no heads":                             last(bound.LayerNorm(none, none, none, 1)),
		"reference: LayerNorm: shapes do not fit: weight is not a plain matrix":               last(bound.LayerNorm(x(1, 2, 3), x(2, 1, 3), none, 1)),
		"reference: LayerNorm: shapes do not fit: bias is [1, 4], want [1, 3]":                last(bound.LayerNorm(x(1, 2, 3), none, x(1, 1, 4), 1)),
		"reference: LayerNorm: shapes do not fit: bias is not a plain matrix":                 last(bound.LayerNorm(x(1, 2, 3), none, x(2, 1, 3), 1)),
		"reference: RMSNorm: bad argument: eps -1 is not a positive number":                   last(bound.RMSNorm(x(1, 2, 3), none, -1)),
		"reference: Activate: shapes do not fit: x has no heads":                              last(bound.Activate(none, reference.GELU)),
		"reference: Activate: bad argument: unknown activation 9":                             last(bound.Activate(x(1, 2, 3), 9)),
		"reference: Multiply: shapes do not fit: a [1, 2, 3] and b [1, 2, 4] differ":          last(bound.Multiply(x(1, 2, 3), x(1, 2, 4))),
		"reference: Multiply: shapes do not fit: a has no heads":                              last(bound.Multiply(none, x(1, 2, 4))),
		"reference: Multiply: shapes do not fit: b has 1 heads of values and 0 of errors":     last(bound.Multiply(x(1, 2, 4), bound.Heads{Value: x(1, 2, 4).Value})),
		"reference: RMSNorm: shapes do not fit: weight has 1 heads of values and 0 of errors": last(bound.RMSNorm(x(1, 2, 4), bound.Heads{Value: x(1, 1, 4).Value}, 1)),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		if !errors.Is(err, reference.ErrShape) && !errors.Is(err, reference.ErrArgument) {
			t.Errorf("%v has no kind", err)
		}
	}
}
