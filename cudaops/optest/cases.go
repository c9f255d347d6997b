package optest

import (
	"errors"
	"fmt"
	"sync"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/bound"
)

// cases is the whole table.
var cases = sync.OnceValue(func() []testCase {
	var all []testCase
	for _, group := range [][]testCase{
		seedCases(), moveCases(), ropeCases(), softmaxCases(), sumCases(),
		scoresCases(), contextCases(), prefillCases(), decodeCases(), maskedCases(), appendCases(), lseCases(), poolCases(), variantCases(),
		knownVariants(), modelCases(),
	} {
		all = append(all, group...)
	}
	seen := map[string]bool{}
	for i, c := range all {
		if seen[c.name] {
			panic("two cases are named " + c.name)
		}
		seen[c.name] = true
		all[i].truth = sync.OnceValues(c.expect)
	}
	return all
})

// expect is what the outputs should be.
func (c testCase) expect() ([]bound.Heads, error) {
	in := make([]bound.Heads, len(c.in))
	for i, x := range c.in {
		in[i] = x.leaf()
	}
	return c.want(in)
}

// one is the outputs of an op with one output.
func one(b *cudaops.Buffer, err error) ([]*cudaops.Buffer, error) {
	if err != nil {
		return nil, err
	}
	return []*cudaops.Buffer{b}, nil
}

// truth is the same for a reference.
func truth(x bound.Heads, err error) ([]bound.Heads, error) { return []bound.Heads{x}, err }

// visible is a mask as the references take it.
func visible(m cudaops.Mask) reference.Visible {
	if !m.Causal {
		return nil
	}
	return reference.Causal(m.Diagonal)
}

// maskName is a mask in the name of a case.
func maskName(m cudaops.Mask) string {
	if !m.Causal {
		return "full"
	}
	return fmt.Sprintf("diagonal%d", m.Diagonal)
}

func softmaxCase(name string, x tensor, m cudaops.Mask) testCase {
	return testCase{
		name: name,
		in:   []tensor{x},
		do: func(d *cudaops.Device, in []*cudaops.Buffer) ([]*cudaops.Buffer, error) {
			y, empty, err := d.Softmax(in[0], m)
			if err != nil {
				return nil, err
			}
			if want := x.h * emptyRows(x.s, x.d, m); empty != want {
				return one(y, fmt.Errorf("%d empty rows, want %d", empty, want))
			}
			return one(y, nil)
		},
		want: func(in []bound.Heads) ([]bound.Heads, error) { return truth(bound.Softmax(in[0], visible(m))) },
	}
}

// emptyRows counts the rows of one head that see nothing, cell by cell.
func emptyRows(rows, columns int, m cudaops.Mask) int {
	n := 0
	for r := range rows {
		seen := false
		for j := range columns {
			seen = seen || !m.Causal || j <= r+m.Diagonal
		}
		if !seen {
			n++
		}
	}
	return n
}

func ropeCase(name string, x tensor, r cudaops.RoPE) testCase {
	return testCase{
		name: name,
		in:   []tensor{x},
		do: func(d *cudaops.Device, in []*cudaops.Buffer) ([]*cudaops.Buffer, error) {
			return one(d.RoPE(in[0], r))
		},
		want: func(in []bound.Heads) ([]bound.Heads, error) {
			return truth(bound.ApplyRoPE(in[0], referenceRoPE(r)))
		},
	}
}

func referenceRoPE(r cudaops.RoPE) reference.RoPE {
	return reference.RoPE{
		Rotary: r.Rotary, Base: r.Base, Interleaved: r.Convention == cudaops.Interleaved,
		Offset: r.Offset, Positions: r.Positions, InvFreq: r.InvFreq,
		Float32Angles: r.Angle == cudaops.AngleFloat32, Magnitude: r.Magnitude,
	}
}

// prefillCase also asks for the LSE, as a second output.
func prefillCase(name string, q, k, v tensor, a cudaops.Attention) testCase {
	a.LSE = true
	return testCase{
		name: name,
		in:   []tensor{q, k, v},
		do: func(d *cudaops.Device, in []*cudaops.Buffer) ([]*cudaops.Buffer, error) {
			r, err := d.Prefill(in[0], in[1], in[2], a)
			if err != nil {
				return nil, err
			}
			if want := q.h * emptyRows(q.s, k.s, a.Mask); r.Empty != want {
				err = fmt.Errorf("%d empty rows, want %d", r.Empty, want)
			}
			return []*cudaops.Buffer{r.Context, r.LSE}, err
		},
		want: func(in []bound.Heads) ([]bound.Heads, error) {
			vis := visible(a.Mask)
			context, err := bound.Attention(in[0], in[1], in[2], a.Scale, vis)
			if err != nil {
				return nil, err
			}
			s, err := bound.Scores(in[0], in[1], a.Scale)
			if err != nil {
				return nil, err
			}
			lse, err := bound.LSE(s, vis)
			return []bound.Heads{context, lse}, err
		},
	}
}

func decodeCase(name string, q, k, v tensor, scale float64) testCase {
	return testCase{
		name: name,
		in:   []tensor{q, k, v},
		do: func(d *cudaops.Device, in []*cudaops.Buffer) ([]*cudaops.Buffer, error) {
			return one(d.Decode(in[0], in[1], in[2], scale))
		},
		want: func(in []bound.Heads) ([]bound.Heads, error) {
			return truth(bound.Attention(in[0], in[1], in[2], scale, nil))
		},
	}
}

func scoresCase(name string, q, k tensor, scale float64) testCase {
	return testCase{
		name: name,
		in:   []tensor{q, k},
		do: func(d *cudaops.Device, in []*cudaops.Buffer) ([]*cudaops.Buffer, error) {
			return one(d.Scores(in[0], in[1], scale))
		},
		want: func(in []bound.Heads) ([]bound.Heads, error) { return truth(bound.Scores(in[0], in[1], scale)) },
	}
}

func contextCase(name string, p, v tensor) testCase {
	return testCase{
		name: name,
		in:   []tensor{p, v},
		do: func(d *cudaops.Device, in []*cudaops.Buffer) ([]*cudaops.Buffer, error) {
			return one(d.Context(in[0], in[1]))
		},
		want: func(in []bound.Heads) ([]bound.Heads, error) { return truth(bound.Context(in[0], in[1])) },
	}
}

func addCase(name string, a, b tensor) testCase {
	return testCase{
		name: name,
		in:   []tensor{a, b},
		do: func(d *cudaops.Device, in []*cudaops.Buffer) ([]*cudaops.Buffer, error) {
			return one(d.Add(in[0], in[1]))
		},
		want: func(in []bound.Heads) ([]bound.Heads, error) { return truth(bound.Add(in[0], in[1])) },
	}
}

// linearCase takes x, w and, where there is a bias, b.
func linearCase(name string, in ...tensor) testCase {
	return testCase{
		name: name,
		in:   in,
		do: func(d *cudaops.Device, in []*cudaops.Buffer) ([]*cudaops.Buffer, error) {
			if len(in) == 2 {
				in = append(in, nil)
			}
			return one(d.Linear(in[0], in[1], in[2]))
		},
		want: func(in []bound.Heads) ([]bound.Heads, error) {
			if len(in) == 2 {
				in = append(in, bound.Heads{})
			}
			return truth(bound.Linear(in[0], in[1], in[2]))
		},
	}
}

// finish ends an op of several steps: it releases what was made between, and the result too where that fails.
func finish(result *cudaops.Buffer, err error, between ...*cudaops.Buffer) ([]*cudaops.Buffer, error) {
	if err = errors.Join(err, release(between...)); err != nil {
		if result != nil {
			err = errors.Join(err, result.Release())
		}
		return nil, err
	}
	return []*cudaops.Buffer{result}, nil
}
