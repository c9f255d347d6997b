package reference_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/mat"
)

// Laws that need no expected values, on awkward shapes.

func random(r *rand.Rand, heads, rows, dim int) reference.Heads {
	out := make(reference.Heads, heads)
	for h := range out {
		out[h] = mat.NewDense(rows, dim, nil)
		out[h].Apply(func(int, int, float64) float64 { return r.NormFloat64() }, out[h])
	}
	return out
}

// A score depends on the distance of query and key only, and a rotation keeps norms.
func TestRoPEIsRelative(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	for _, interleaved := range []bool{false, true} {
		q, k := random(r, 3, 5, 14), random(r, 3, 7, 14)
		near := reference.RoPE{Rotary: 10, Base: 1e4, Interleaved: interleaved}
		scores := func(q, k reference.Heads, qAt, kAt int) reference.Heads {
			rq, rk := near, near
			rq.Offset, rk.Offset = qAt, kAt
			return must(t)(reference.Scores(must(t)(reference.ApplyRoPE(q, rq)), must(t)(reference.ApplyRoPE(k, rk)), 1))
		}
		want := scores(q, k, 2, 0)
		agree(t, "shifted scores", scores(q, k, 1002, 1000), want, 1e-11)
		agree(t, "negative positions", scores(q, k, -5, -7), want, 1e-11)
		turned := must(t)(reference.ApplyRoPE(q, reference.RoPE{Rotary: 10, Base: 1e4, Offset: 40, Interleaved: interleaved, Magnitude: 1.5}))
		for h := range q {
			rotary, whole := q[h].Slice(0, 5, 0, 10), turned[h].Slice(0, 5, 0, 10)
			if got, want := mat.Norm(whole, 2), 1.5*mat.Norm(rotary, 2); math.Abs(got-want) > 1e-12 {
				t.Errorf("norm %v, want %v", got, want)
			}
		}
	}
}

// Rows of probabilities sum to 1, hidden cells are 0, LSE normalises, and adding a constant changes nothing.
func TestSoftmaxLaws(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 0))
	s := random(r, 3, 7, 13)
	for _, vis := range []reference.Visible{nil, reference.Causal(0), reference.Causal(6), func(row, col int) bool { return (row+col)%3 == 0 }} {
		p := must(t)(reference.Softmax(s, vis))
		lse, err := reference.LSE(s, vis)
		if err != nil {
			t.Fatal(err)
		}
		for h := range p {
			for row := range 7 {
				sum := 0.0
				for col := range 13 {
					want := 0.0
					if vis == nil || vis(row, col) {
						want = math.Exp(s[h].At(row, col) - lse.At(h, row))
					}
					if got := p[h].At(row, col); !(math.Abs(got-want) <= 1e-14) {
						t.Fatalf("p[%d, %d] = %v, want %v", row, col, got, want)
					}
					sum += p[h].At(row, col)
				}
				if math.Abs(sum-1) > 1e-14 {
					t.Errorf("row %d sums to %v", row, sum)
				}
			}
		}
	}
}

// Prefill, prefill in two chunks behind a cache, and decode row by row are one function.
func TestChunksAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 0))
	q, k, v := random(r, 6, 11, 5), random(r, 2, 11, 5), random(r, 2, 11, 5)
	whole := must(t)(reference.Attention(q, k, v, .4, reference.Causal(0)))
	behind := must(t)(reference.Attention(rows(q, 4, 11), k, v, .4, reference.Causal(4)))
	agree(t, "second chunk", behind, rows(whole, 4, 11), 1e-15)
	for row := range 11 {
		step := must(t)(reference.Attention(rows(q, row, row+1), rows(k, 0, row+1), rows(v, 0, row+1), .4, nil))
		agree(t, "step", step, rows(whole, row, row+1), 1e-15)
	}
}

// No op changes its arguments.
func TestArgumentsStay(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 0))
	q, k, v := random(r, 4, 3, 6), random(r, 2, 5, 6), random(r, 2, 5, 6)
	before := must(t)(reference.Append(nil, q))
	must(t)(reference.Attention(q, k, v, .5, reference.Causal(2)))
	must(t)(reference.ApplyRoPE(q, reference.RoPE{Rotary: 4, Base: 1e4, Offset: 3}))
	must(t)(reference.Softmax(q, nil))
	must(t)(reference.Add(q, q))
	agree(t, "q", q, before, 0)
}
