package detect

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/mat"
)

// The counts that are claimed: 10,000 right inputs without an alarm, 1,000 geometries for each planted fault. They take
// minutes, so an ordinary run takes a share of them, from the same seeds.
var full = flag.Bool("full", false, "run the random tests with all of their inputs")

// right and planted are how many inputs a random test takes.
func right(share int) int   { return counted(10000, share) }
func planted(share int) int { return counted(1000, share) }

func counted(all, share int) int {
	if *full {
		return all
	}
	return all / share
}

// random makes inputs. One seed makes one input, whatever ran before.
type random struct{ *rand.Rand }

func seeded(test, trial int) random {
	return random{rand.New(rand.NewPCG(uint64(test), uint64(trial)))}
}

// between is from lo to hi, both included.
func (r random) between(lo, hi int) int { return lo + r.IntN(hi-lo+1) }

// pick is one of several.
func pick[T any](r random, from ...T) T { return from[r.IntN(len(from))] }

// heads are normal f32 values.
func (r random) heads(heads, rows, dim int) reference.Heads {
	out := zeros(shape{heads, rows, dim})
	for h := range out {
		out[h].Apply(func(_, _ int, _ float64) float64 { return float64(float32(r.NormFloat64())) }, out[h])
	}
	return out
}

func (r random) matrix(rows, dim int) *mat.Dense { return r.heads(1, rows, dim)[0] }

// rounded is x as p keeps it.
func rounded(x reference.Heads, p Precision) reference.Heads {
	out := make(reference.Heads, len(x))
	for h, m := range x {
		out[h] = mat.DenseCopyOf(m)
		out[h].Apply(func(_, _ int, v float64) float64 { return p.Round(v) }, out[h])
	}
	return out
}

func matrix(rows ...[]float64) *mat.Dense {
	m := mat.NewDense(len(rows), len(rows[0]), nil)
	for i, row := range rows {
		m.SetRow(i, row)
	}
	return m
}

func one(rows ...[]float64) reference.Heads { return reference.Heads{matrix(rows...)} }

// must ends the test at an error.
func must[T any](t *testing.T) func(T, error) T {
	return func(x T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
}

// rate counts what a detective found and reports what it missed.
type rate struct {
	found, all int
	missed     []string
}

func (r *rate) count(ok bool, format string, args ...any) {
	r.all++
	if ok {
		r.found++
	} else if len(r.missed) < 5 {
		r.missed = append(r.missed, fmt.Sprintf(format, args...))
	}
}

// atLeast asserts the share that was found.
func (r *rate) atLeast(t *testing.T, share float64) {
	t.Helper()
	got := float64(r.found) / float64(r.all)
	t.Logf("%d of %d found (%.2f%%)", r.found, r.all, 100*got)
	if !(got >= share) {
		t.Errorf("want %.0f%%", 100*share)
	}
	if !(got >= share) || testing.Verbose() {
		for _, m := range r.missed {
			t.Log("missed: ", m)
		}
	}
}

// kindsIn says whether one of the explanations has a fault of this kind.
func kindsIn(k Kind, explanations ...Faults) bool {
	for _, f := range explanations {
		if f.Has(k) {
			return true
		}
	}
	return false
}
