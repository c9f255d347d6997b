package reference_test

import (
	"errors"
	"math"
	"testing"

	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/mat"
)

// Every refusal, its kind and its words.
func TestRefusals(t *testing.T) {
	x := func(heads, rows, dim int) reference.Heads {
		out := make(reference.Heads, heads)
		for h := range out {
			out[h] = mat.NewDense(rows, dim, nil)
		}
		return out
	}
	m := func(rows, dim int) *mat.Dense { return mat.NewDense(rows, dim, nil) }
	split := func(rows *mat.Dense, l reference.Layout, heads, kv, dim int) func() (any, error) {
		return func() (any, error) {
			q, k, v, err := reference.Split(rows, l, heads, kv, dim)
			if q != nil || k != nil || v != nil {
				return q, err
			}
			return nil, err
		}
	}
	rope := func(r reference.RoPE) func() (any, error) {
		return func() (any, error) { return orNil(reference.ApplyRoPE(x(2, 3, 8), r)) }
	}
	for _, c := range []struct {
		call func() (any, error)
		kind error
		want string
	}{
		{split(nil, 0, 1, 1, 1), reference.ErrShape, "reference: Split: shapes do not fit: rows: head 0 is empty"},
		{split(&mat.Dense{}, 0, 1, 1, 1), reference.ErrShape, "reference: Split: shapes do not fit: rows: head 0 is empty"},
		{split(m(2, 12), reference.GPT2, 2, 2, 3), reference.ErrShape, "reference: Split: shapes do not fit: rows [2, 12] are not 2+2*2 heads of dim 3"},
		{split(m(2, 12), reference.GPT2, 2, 2, math.MaxInt), reference.ErrShape, "reference: Split: shapes do not fit: rows [2, 12] are not 2+2*2 heads of dim 9223372036854775807"},
		{split(m(2, 12), reference.GPT2, math.MaxInt, 1, 1), reference.ErrShape, "reference: Split: shapes do not fit: rows [2, 12] are not 9223372036854775807+2*1 heads of dim 1"},
		{split(m(2, 2), reference.GPT2, 6148914691236517206, 6148914691236517206, 1), reference.ErrShape, // three times as much wraps to 2
			"reference: Split: shapes do not fit: rows [2, 2] are not 6148914691236517206+2*6148914691236517206 heads of dim 1"},
		{split(m(2, 12), reference.GPT2, 0, 2, 2), reference.ErrArgument, "reference: Split: bad argument: heads 0, KV heads 2 and dim 2 must be positive"},
		{split(m(2, 12), reference.Grouped, 3, 2, 2), reference.ErrArgument, "reference: Split: bad argument: 3 heads are no multiple of 2 KV heads"},
		{split(m(2, 8), reference.NeoX, 2, 1, 2), reference.ErrArgument, "reference: Split: bad argument: layout NeoX has as many KV heads as heads, not 1 and 2"},
		{split(m(2, 12), 9, 2, 2, 2), reference.ErrArgument, "reference: Split: bad argument: unknown layout 9"},

		{func() (any, error) { return orNil(reference.Merge(nil)) }, reference.ErrShape, "reference: Merge: shapes do not fit: x has no heads"},
		{func() (any, error) { return orNil(reference.Merge(reference.Heads{m(2, 3), m(3, 2)})) }, reference.ErrShape,
			"reference: Merge: shapes do not fit: x: head 1 is [3, 2], head 0 is [2, 3]"},
		{func() (any, error) { return orNil(reference.Merge(reference.Heads{m(2, 3), m(2, 4)})) }, reference.ErrShape,
			"reference: Merge: shapes do not fit: x: head 1 is [2, 4], head 0 is [2, 3]"},
		{func() (any, error) { return orNil(reference.Unmerge(m(2, 6), 4)) }, reference.ErrShape, "reference: Unmerge: shapes do not fit: rows [2, 6] are not 4 heads"},
		{func() (any, error) { return orNil(reference.Unmerge(m(2, 6), 0)) }, reference.ErrShape, "reference: Unmerge: shapes do not fit: rows [2, 6] are not 0 heads"},
		{func() (any, error) { return orNil(reference.Swap(reference.Heads{nil})) }, reference.ErrShape, "reference: Swap: shapes do not fit: x: head 0 is empty"},

		{rope(reference.RoPE{Rotary: 3, Base: 1e4}), reference.ErrArgument, "reference: ApplyRoPE: bad argument: rotary 3 is not an even number from 2 to the head dim 8"},
		{rope(reference.RoPE{Rotary: 10, Base: 1e4}), reference.ErrArgument, "reference: ApplyRoPE: bad argument: rotary 10 is not an even number from 2 to the head dim 8"},
		{rope(reference.RoPE{Base: 1e4}), reference.ErrArgument, "reference: ApplyRoPE: bad argument: rotary 0 is not an even number from 2 to the head dim 8"},
		{rope(reference.RoPE{Rotary: 4}), reference.ErrArgument, "reference: ApplyRoPE: bad argument: base 0 is not a positive number"},
		{rope(reference.RoPE{Rotary: 4, Base: math.NaN()}), reference.ErrArgument, "reference: ApplyRoPE: bad argument: base NaN is not a positive number"},
		{rope(reference.RoPE{Rotary: 4, InvFreq: []float64{1}}), reference.ErrShape, "reference: ApplyRoPE: shapes do not fit: 1 inverse frequencies for 2 pairs"},
		{rope(reference.RoPE{Rotary: 4, InvFreq: []float64{1, math.Inf(1)}}), reference.ErrArgument, "reference: ApplyRoPE: bad argument: inverse frequency 1 is +Inf"},
		{rope(reference.RoPE{Rotary: 4, Base: 1e4, Positions: []int{1, 2}}), reference.ErrShape, "reference: ApplyRoPE: shapes do not fit: 2 positions for 3 rows"},
		{rope(reference.RoPE{Rotary: 4, Base: 1e4, Positions: []int{0, -1 << 27, 0}}), reference.ErrArgument,
			"reference: ApplyRoPE: bad argument: row 1 is at position -134217728; |position| must be below 134217728"},
		{rope(reference.RoPE{Rotary: 4, Base: 1e4, Offset: 1<<27 - 2}), reference.ErrArgument,
			"reference: ApplyRoPE: bad argument: row 2 is at position 134217728; |position| must be below 134217728"},
		{rope(reference.RoPE{Rotary: 4, Base: 1e4, Offset: math.MaxInt}), reference.ErrArgument,
			"reference: ApplyRoPE: bad argument: row 0 is at position 9223372036854775807; |position| must be below 134217728"},
		{rope(reference.RoPE{Rotary: 4, Base: 1e4, Magnitude: math.Inf(1)}), reference.ErrArgument, "reference: ApplyRoPE: bad argument: magnitude +Inf is not finite"},

		{func() (any, error) { return orNil(reference.Scores(x(2, 3, 4), x(2, 5, 3), 1)) }, reference.ErrShape,
			"reference: Scores: shapes do not fit: q [2, 3, 4] and k [2, 5, 3] differ in dim"},
		{func() (any, error) { return orNil(reference.Scores(x(3, 3, 4), x(2, 5, 4), 1)) }, reference.ErrShape,
			"reference: Scores: shapes do not fit: q [3, 3, 4] has 3 heads, no multiple of the 2 of k [2, 5, 4]"},
		{func() (any, error) { return orNil(reference.Softmax(nil, nil)) }, reference.ErrShape, "reference: Softmax: shapes do not fit: s has no heads"},
		{func() (any, error) { return orNil(reference.LSE(nil, nil)) }, reference.ErrShape, "reference: LSE: shapes do not fit: s has no heads"},
		{func() (any, error) { return orNil(reference.Context(x(2, 3, 5), x(2, 4, 2))) }, reference.ErrShape,
			"reference: Context: shapes do not fit: p [2, 3, 5] has 5 columns, v [2, 4, 2] has 4 rows"},
		{func() (any, error) { return orNil(reference.Context(x(3, 3, 5), x(2, 5, 2))) }, reference.ErrShape,
			"reference: Context: shapes do not fit: p [3, 3, 5] has 3 heads, no multiple of the 2 of v [2, 5, 2]"},
		{func() (any, error) { return orNil(reference.Attention(x(2, 3, 4), x(2, 5, 4), x(1, 5, 4), 1, nil)) }, reference.ErrShape,
			"reference: Attention: shapes do not fit: k [2, 5, 4] and v [1, 5, 4] differ in heads or rows"},
		{func() (any, error) { return orNil(reference.Append(x(2, 3, 4), x(2, 1, 5))) }, reference.ErrShape,
			"reference: Append: shapes do not fit: old [2, 3, 4] and rows [2, 1, 5] differ in heads or dim"},
		{func() (any, error) { return orNil(reference.Append(x(2, 3, 4), nil)) }, reference.ErrShape, "reference: Append: shapes do not fit: rows has no heads"},
		{func() (any, error) { return orNil(reference.Append(reference.Heads{}, x(2, 3, 4))) }, reference.ErrShape, "reference: Append: shapes do not fit: old has no heads"},
		{func() (any, error) { return orNil(reference.Add(x(2, 3, 4), x(2, 4, 3))) }, reference.ErrShape, "reference: Add: shapes do not fit: a [2, 3, 4] and b [2, 4, 3] differ"},
		{func() (any, error) { return orNil(reference.Linear(m(2, 3), m(4, 2), nil)) }, reference.ErrShape,
			"reference: Linear: shapes do not fit: x [2, 3] and w [4, 2] differ in inputs"},
		{func() (any, error) { return orNil(reference.Linear(m(2, 3), m(4, 3), m(1, 3))) }, reference.ErrShape,
			"reference: Linear: shapes do not fit: b is [1, 3], want [1, 4]"},
	} {
		got, err := c.call()
		switch {
		case err == nil:
			t.Errorf("accepted, want %q", c.want)
		case err.Error() != c.want:
			t.Errorf("got  %q\nwant %q", err, c.want)
		case !errors.Is(err, c.kind):
			t.Errorf("%v is not of kind %v", err, c.kind)
		case got != nil:
			t.Errorf("%v: came with a result", err)
		}
	}
}

// orNil makes a nil result an untyped nil.
func orNil[T reference.Heads | *mat.Dense](x T, err error) (any, error) {
	switch x := any(x).(type) {
	case reference.Heads:
		if x != nil {
			return x, err
		}
	case *mat.Dense:
		if x != nil {
			return x, err
		}
	}
	return nil, err
}

// The last positions that are accepted.
func TestPositionLimits(t *testing.T) {
	x := reference.Heads{mat.NewDense(2, 2, []float64{1, 2, 3, 4})}
	for _, r := range []reference.RoPE{
		{Rotary: 2, Base: 1e4, Offset: reference.MaxPosition - 2},
		{Rotary: 2, Base: 1e4, Offset: 1 - reference.MaxPosition},
	} {
		if _, err := reference.ApplyRoPE(x, r); err != nil {
			t.Errorf("offset %d: %v", r.Offset, err)
		}
	}
}
