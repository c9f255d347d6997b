package detect

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/attnb/attnb/reference"
)

// Attention is an attention function under test: q [H, S, d], k and v [KV, T, d], result [H, S, d].
type Attention func(q, k, v reference.Heads) (reference.Heads, error)

// Geometry is the size of what a probe asks with.
type Geometry struct{ Heads, KVHeads, Rows, Keys, Dim int }

func (g Geometry) check(op string) error {
	if g.Heads < 1 || g.KVHeads < 1 || g.Heads%max(1, g.KVHeads) != 0 || g.Rows < 1 || g.Keys < 1 || g.Dim < 1 {
		return badArgument(op, "%d heads, %d KV heads, %d rows, %d keys and dim %d are no attention", g.Heads, g.KVHeads, g.Rows, g.Keys, g.Dim)
	}
	return nil
}

// ProbeFinding is what Probe found.
type ProbeFinding struct {
	MaskFinding
	Queries, Keys reference.Heads // that it was asked with
	Probabilities reference.Heads // as the function showed them
}

// Faults of a function that a probe sees and a mask does not.
const NotLinear Kind = "not linear in the values"

// Probe asks an attention function what its rule is: queries and keys with scores of some spread, so that a softcap bends them, and
// values that are columns of the identity, so that the result is the probabilities themselves, dim columns a call.
func Probe(ctx context.Context, f Attention, g Geometry, declared Rule, p Precision) (ProbeFinding, error) {
	const op = "Probe"
	if err := g.check(op); err != nil {
		return ProbeFinding{}, err
	}
	r := rand.New(rand.NewPCG(1, 2))
	// Scores of standard deviation 4 at the declared scale: a cap of 50 bends those by far more than rounding.
	spread := 2.0
	if declared.Scale != 0 {
		spread = math.Sqrt(4 / math.Abs(declared.Scale) / math.Sqrt(float64(g.Dim)))
	}
	q, k := normal(r, shape{g.Heads, g.Rows, g.Dim}, spread, p), normal(r, shape{g.KVHeads, g.Keys, g.Dim}, spread, p)
	weights, err := reveal(f, q, k)
	if err != nil {
		return ProbeFinding{}, fmt.Errorf("detect: %s: %w", op, err)
	}
	found, err := Mask(ctx, q, k, weights, declared, p)
	if err != nil {
		return ProbeFinding{}, err
	}
	out := ProbeFinding{found, q, k, weights}
	v := normal(r, shape{g.KVHeads, g.Keys, g.Dim}, 1, p)
	got, err := f(q, k, v)
	if err != nil {
		return ProbeFinding{}, fmt.Errorf("detect: %s: %w", op, err)
	}
	if _, err := same(op, "the result", got, "q", q); err != nil {
		return ProbeFinding{}, err
	}
	want, err := reference.Context(weights, v)
	if err != nil {
		return ProbeFinding{}, fmt.Errorf("detect: %s: %w", op, err)
	}
	limit := 4 * slack * p.Unit() * math.Sqrt(float64(g.Keys)) * largest(v)
	if off, where := distance(got, want); !(off <= limit) && !math.IsNaN(off) {
		out.Faults = append(out.Faults, Fault{NotLinear, fmt.Sprintf("the result is off by %.2g from its own probabilities times the values, at %s", off, where), "look at which value each weight meets"})
	}
	return out, nil
}

// reveal reads the probabilities of a function, by values that are columns of the identity.
func reveal(f Attention, q, k reference.Heads) (reference.Heads, error) {
	qs, err := measure("Probe", "q", q)
	if err != nil {
		return nil, err
	}
	ks, err := measure("Probe", "k", k)
	if err != nil {
		return nil, err
	}
	out := zeros(shape{qs.heads, qs.rows, ks.rows})
	for first := 0; first < ks.rows; first += ks.dim {
		v := zeros(ks)
		for h := range v {
			for i := range min(ks.dim, ks.rows-first) {
				v[h].Set(first+i, i, 1)
			}
		}
		got, err := f(q, k, v)
		if err != nil {
			return nil, err
		}
		if _, err := same("Probe", "the result", got, "q", q); err != nil {
			return nil, err
		}
		for h := range got {
			for row := range qs.rows {
				for i := range min(ks.dim, ks.rows-first) {
					out[h].Set(row, first+i, got[h].At(row, i))
				}
			}
		}
	}
	return out, nil
}

// normal are random values in the precision of the data.
func normal(r *rand.Rand, s shape, spread float64, p Precision) reference.Heads {
	out := zeros(s)
	for h := range out {
		for row := range s.rows {
			x := out[h].RawRowView(row)
			for i := range x {
				x[i] = p.Round(Float32.Round(spread * r.NormFloat64()))
			}
		}
	}
	return out
}

// distance is the largest difference of two tensors of one shape, NaN where there is one, and where.
func distance(a, b reference.Heads) (most float64, where string) {
	where = "no element"
	for h := range a {
		rows, dim := a[h].Dims()
		for row := range rows {
			for i := range dim {
				off := math.Abs(a[h].At(row, i) - b[h].At(row, i))
				if a[h].At(row, i) == b[h].At(row, i) {
					off = 0 // also of infinities
				}
				if !(off <= most) {
					most, where = off, fmt.Sprintf("head %d row %d dim %d", h, row, i)
					if math.IsNaN(off) {
						return off, where
					}
				}
			}
		}
	}
	return most, where
}
