package bound

import (
	"fmt"
	"math"

	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// Linear is [reference.Linear] of plain matrices; the zero Heads as b means none. A sum of n products, in any order, takes at
// most n roundings a product, the bias one more:
//
//	E = (1 + gamma_(n+1)) (sum (|x| + Ex)(|w| + Ew) + |b| + Eb) - (sum |x||w| + |b|)
func Linear(x, w, b Heads) (Heads, error) {
	if err := plain("Linear", "x", x); err != nil {
		return Heads{}, err
	}
	if err := plain("Linear", "w", w); err != nil {
		return Heads{}, err
	}
	var bias *mat.Dense
	if b.Value != nil || b.Err != nil {
		if err := plain("Linear", "b", b); err != nil {
			return Heads{}, err
		}
		bias = b.Value[0]
	}
	value, err := reference.Linear(x.Value[0], w.Value[0], bias)
	if err != nil {
		return Heads{}, err
	}
	exact, most := products(x.head(0), w.head(0))
	_, n := x.Value[0].Dims()
	rounding := 1 + gamma(n+1)
	e := like(value)
	e.Apply(func(i, j int, most float64) float64 {
		least := exact.At(i, j)
		if bias != nil {
			least += math.Abs(bias.At(0, j))
			most += math.Abs(bias.At(0, j)) + b.Err[0].At(0, j)
		}
		return rounding*most - least + float64(n)*tiny
	}, most)
	return Heads{reference.Heads{value}, reference.Heads{e}}, nil
}

// Scores is [reference.Scores]. A sum of d products, and at most 4 roundings more: scale to f32, the product with it, and both
// again for an exponential to base 2.
//
//	E = |scale| ((1 + gamma_(d+4)) sum (|q| + Eq)(|k| + Ek) - sum |q||k|)
//
// and where denormal results are flushed to 0, 2^-126 each: of d+1 products, and of a scaled q against |k|.
func Scores(q, k Heads, scale float64) (Heads, error) {
	qs, err := measure("Scores", "q", q)
	if err != nil {
		return Heads{}, err
	}
	ks, err := measure("Scores", "k", k)
	if err != nil {
		return Heads{}, err
	}
	perKV, err := group("Scores", qs, ks)
	if err != nil {
		return Heads{}, err
	}
	if qs.dim != ks.dim {
		return Heads{}, &reference.Error{Op: "Scores", Kind: reference.ErrShape,
			Detail: fmt.Sprintf("q has dim %d, k %d", qs.dim, ks.dim)}
	}
	out := Heads{make(reference.Heads, qs.heads), make(reference.Heads, qs.heads)}
	err = parallel(qs.heads, func(h int) error {
		s, err := scores(q.head(h), k.head(h/perKV), scale)
		if err != nil {
			return err
		}
		out.Value[h], out.Err[h] = s.Value[0], s.Err[0]
		return nil
	})
	return out, err
}

// scores is Scores of one head.
func scores(q, k Heads, scale float64) (Heads, error) {
	value, err := reference.Scores(q.Value, k.Value, scale)
	if err != nil {
		return Heads{}, err
	}
	_, d := q.Value[0].Dims()
	exact, most := products(q, k)
	rounding, size := 1+gamma(d+4), math.Abs(scale)
	floor := make([]float64, exact.RawMatrix().Cols)
	for j := range floor {
		floor[j] = tiny * ((1+size)*float64(d+1) + floats.Norm(k.Value[0].RawRowView(j), 1))
	}
	e := most // in place: score matrices are the largest thing there is
	rows, _ := e.Dims()
	for row := range rows {
		to, least := e.RawRowView(row), exact.RawRowView(row)
		for j := range to {
			to[j] = size*(rounding*to[j]-least[j]) + floor[j]
		}
	}
	return Heads{value, reference.Heads{e}}, nil
}

// products are sum |x||w| and sum (|x| + Ex)(|w| + Ew), for each row of x and row of w.
func products(x, w Heads) (exact, most *mat.Dense) {
	xExact, xMost := magnitudes(x.Value[0], x.Err[0])
	wExact, wMost := magnitudes(w.Value[0], w.Err[0])
	rows, _ := xExact.Dims()
	columns, _ := wExact.Dims()
	exact, most = mat.NewDense(rows, columns, nil), mat.NewDense(rows, columns, nil)
	exact.Mul(xExact, wExact.T())
	most.Mul(xMost, wMost.T())
	return exact, most
}
