package bound

import (
	"math"

	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/mat"
)

// LayerNorm is [reference.LayerNorm] in two passes, or by updates of mean and variance that are as accurate (Welford): not by the
// difference of mean squares, which cancels. weight and bias are [1, n] matrices; the zero Heads mean none. With the n elements of a row
//
//	Em = ((1 + gamma_(n+2)) sum (|x| + E) - sum |x|) / n                   of the mean
//	Ed = (E + Em)(1 + u) + u |d|                                           of d = x - m
//	Ev = ((1 + gamma_(n+3)) sum (|d| + Ed)^2 - sum d^2) / n + 2u (v + eps)  of s = v + eps
//	R  = (1 + 8u) / sqrt(1 - Ev/s)                                         the factor that 1/sqrt(s) may be off by
//	E  = (1 + gamma_4) ((|d| + Ed) R (|w| + Ew) / sqrt(s) + |b| + Eb) - (|d w| / sqrt(s) + |b|)
//
// The mean square of d is at least d^2/n whatever its errors, so |d| / sqrt(s) and what f32 makes of it are sqrt(n) at most: where R is
// undetermined, E is 2 sqrt(n) (|w| + Ew), and the bias.
func LayerNorm(x, weight, bias Heads, eps float64) (Heads, error) {
	return normed("LayerNorm", x, weight, bias, eps, true)
}

// RMSNorm is [reference.RMSNorm]; weight as in [LayerNorm]. d is x and Ed is E, the rest is the same.
func RMSNorm(x, weight Heads, eps float64) (Heads, error) {
	return normed("RMSNorm", x, weight, Heads{}, eps, false)
}

func normed(op string, x, weight, bias Heads, eps float64, centred bool) (Heads, error) {
	s, err := measure(op, "x", x)
	if err != nil {
		return Heads{}, err
	}
	w, b := affine{fallback: 1}, affine{}
	if err := w.read(op, "weight", weight); err != nil {
		return Heads{}, err
	}
	if err := b.read(op, "bias", bias); err != nil {
		return Heads{}, err
	}
	var value reference.Heads
	if centred {
		value, err = reference.LayerNorm(x.Value, w.value, b.value, eps)
	} else {
		value, err = reference.RMSNorm(x.Value, w.value, eps)
	}
	if err != nil {
		return Heads{}, err
	}
	out := Heads{value, make(reference.Heads, s.heads)}
	for h := range value {
		out.Err[h] = like(value[h])
		for row := range s.rows {
			r := deviations(x.Value[h].RawRowView(row), x.Err[h].RawRowView(row), eps, centred)
			for i := range s.dim {
				wv, we := w.at(i)
				bv, be := b.at(i)
				out.Err[h].Set(row, i, r.element(i, wv, we, bv, be))
			}
		}
	}
	return out, nil
}

// affine is a weight or a bias with its errors; without values each is the fallback.
type affine struct {
	value, err *mat.Dense
	fallback   float64
}

func (a *affine) read(op, name string, x Heads) error {
	if x.Value == nil && x.Err == nil {
		return nil
	}
	if err := plain(op, name, x); err != nil {
		return err
	}
	a.value, a.err = x.Value[0], x.Err[0]
	return nil
}

// at is the magnitude of element i, and its error.
func (a affine) at(i int) (value, err float64) {
	if a.value == nil {
		return a.fallback, 0
	}
	return math.Abs(a.value.At(0, i)), a.err.At(0, i)
}

// deviation is a row less its mean, in magnitudes, and the factor that all of it is divided by.
type deviation struct {
	d, err  []float64
	s       float64 // mean square and eps
	growth  float64 // R; +Inf where nothing is known
	largest float64 // sqrt(n)
}

func deviations(x, xErr []float64, eps float64, centred bool) deviation {
	n := float64(len(x))
	r := deviation{d: make([]float64, len(x)), err: make([]float64, len(x)), largest: math.Sqrt(n)}
	mean, meanErr, shift := 0.0, 0.0, 0.0
	if centred {
		least, most := 0.0, 0.0
		for i, v := range x {
			mean += v / n
			least += math.Abs(v)
			most += math.Abs(v) + xErr[i]
		}
		meanErr, shift = ((1+gamma(len(x)+2))*most-least)/n+tiny, u
	}
	square, most := 0.0, 0.0
	for i, v := range x {
		r.d[i] = math.Abs(v - mean)
		r.err[i] = (xErr[i]+meanErr)*(1+shift) + shift*r.d[i]
		square += r.d[i] * r.d[i]
		most += (r.d[i] + r.err[i]) * (r.d[i] + r.err[i])
	}
	r.s = square/n + eps
	off := (1+gamma(len(x)+3))*most/n - square/n + 2*u*r.s + tiny
	r.growth = math.Inf(1)
	if off < r.s {
		r.growth = (1 + 8*u) / math.Sqrt(1-off/r.s)
	}
	return r
}

// element is the bound of element i, of weight w and bias b.
func (r deviation) element(i int, w, wErr, b, bErr float64) float64 {
	root := math.Sqrt(r.s)
	least := r.d[i] * w / root
	most := (1+gamma(4))*((r.d[i]+r.err[i])*r.growth*(w+wErr)/root+b+bErr) - least - b
	if limit := (1 + gamma(len(r.d)+8)) * (2*r.largest*(w+wErr) + bErr + u*b); !(most < limit) {
		most = limit
	}
	return most + tiny*(2+w+r.d[i])
}
