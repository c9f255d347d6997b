package resident

import (
	"bytes"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
)

func (c caller) upload(axes []string, shape []int, v []float32) wire.Tensor {
	c.t.Helper()
	a, err := c.Upload(wire.Request{Kind: wire.KindUpload, Shape: shape, Axes: axes}, v)
	if err != nil {
		c.t.Fatal(err)
	}
	return a.Tensors[0]
}

func (c caller) compare(mine, expected wire.Tensor, within float64) wire.Answer {
	c.t.Helper()
	return c.do(wire.Request{Kind: wire.KindCompare, IDs: []int{mine.ID, expected.ID}, Within: within})
}

// What a chain computes is found again where it is expected, in whatever order the axes are, and a planted error is found where
// it is: one cell of many, by less than a part in a million.
func TestCompare(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	defer c.Close()
	x := c.random(1, hsd, 4, 9, 16)
	q := c.run1(wire.OpRoPE, wire.Params{Rotary: 8, Offset: 3}, x)
	c.name(q, "q")
	values := c.download(q)
	swapped := store.Permute(values, []int{4, 9, 16}, []int{1, 0, 2})
	plant := func(v []float32, at int, by float64) []float32 {
		v = append([]float32(nil), v...)
		v[at] += float32(by)
		return v
	}
	at := (2*9+5)*16 + 11 // head 2, seq 5, dim 11: beyond the rotary dims, so that q is exact there
	swappedAt := (5*4+2)*16 + 11
	for _, tc := range []struct {
		name     string
		expected wire.Tensor
		within   float64
		pass     bool
	}{
		{"itself", q, 0, true},
		{"the same values", c.upload(hsd, []int{4, 9, 16}, values), 0, true},
		{"rows-major", c.upload(shd, []int{9, 4, 16}, swapped), 0, true},
		{"a view", c.run1(wire.OpSwap, wire.Params{}, q), 0, true},
		{"one cell off", c.upload(hsd, []int{4, 9, 16}, plant(values, at, 3e-7*math.Abs(float64(values[at])))), 0, false},
		{"one cell off, rows-major", c.upload(shd, []int{9, 4, 16}, plant(swapped, swappedAt, 1e-5)), 0, false},
		{"one cell off, allowed", c.upload(shd, []int{9, 4, 16}, plant(swapped, swappedAt, 1e-5)), 1.1e-5, true},
		{"one cell off, allowed too little", c.upload(shd, []int{9, 4, 16}, plant(swapped, swappedAt, 1e-5)), 0.9e-5, false},
		{"a NaN", c.upload(hsd, []int{4, 9, 16}, plant(values, at, math.NaN())), 1e9, false},
		{"names apart", c.upload([]string{"batch", "row", "col"}, []int{4, 9, 16}, values), 0, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, pair := range [][2]wire.Tensor{{q, tc.expected}, {tc.expected, q}} {
				a := c.compare(pair[0], pair[1], tc.within)
				if a.Verdict.Pass != tc.pass || a.Verdict.Cells != len(values) {
					t.Errorf("%+v\n%s", a.Verdict, a.Text)
				}
				where := "head 2, seq 5, dim 11"
				if tc.name == "names apart" {
					where = ""
				}
				if !tc.pass && !strings.Contains(a.Text, "worst cell: "+where+": ") {
					t.Errorf("another worst cell:\n%s", a.Text)
				}
				d, err := c.Display(a.DisplayID)
				if err != nil || len(d.Parts) != 2 || !bytes.HasPrefix(d.Parts[0].Data, []byte("\x89PNG")) || !strings.HasPrefix(string(d.Parts[1].Data), a.Text[:strings.IndexByte(a.Text, '\n')]) {
					t.Errorf("display: %v, %d parts", err, len(d.Parts))
				}
			}
		})
	}
}

// The report says what the tolerance is made of, and puts first what makes a comparison of numbers idle.
func TestCompareReport(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	defer c.Close()
	one := []string{"seq", "dim"}
	a, b := c.upload(one, []int{2, 2}, []float32{1, 2, 3, 4}), c.upload(one, []int{2, 2}, []float32{0, 0, 0, 0})
	sum := c.run1(wire.OpAdd, wire.Params{}, a, b)
	c.name(sum, "sum")
	x := c.upload([]string{"dim", "seq"}, []int{2, 2}, []float32{1, 3, 2.5, 4})
	c.name(x, "x")
	got := c.do(wire.Request{Kind: wire.KindCompare, IDs: []int{sum.ID, x.ID}, Within: 0.25, Labels: []string{"the", "cat"}}).Text
	want := `Compare "sum" with "x": FAIL, error/tolerance 2, 1 of 4 cells
  [seq 2, dim 2]: 4 cells compared, 1 failed
  max abs 0.5, max rel 0.2, max ULP 2.097e+06
  relative L2 0.088, 1 of its limit 0.088
  3 equal, 1 mismatched
  error/tolerance: exact 3, to 1e+01 1
  worst cell: seq 0 "the", dim 1: "sum" 2, "x" 2.5, off by 0.5
  its tolerance 0.25 = 2.38e-07 (f32 bound of "sum") + 1.49e-07 ("x" rounded to f32) + 0.25 (allowed)
  note: expected is [dim 2, seq 2]: its axes were put into the order of mine, by name
`
	if got != want {
		t.Errorf("report\n%s\nwant\n%s", got, want)
	}
	nan := float32(math.NaN())
	y := c.upload(one, []int{2, 2}, []float32{nan, nan, 3, 4})
	z := c.upload(one, []int{2, 2}, []float32{nan, 2, float32(math.Inf(1)), 4})
	if got := c.compare(y, z, 0).Text; !regexp.MustCompile(`^Compare FromSlice with FromSlice: FAIL, .*, 2 of 4 cells
  NaN and Inf are not in the same places: 1 cells of FromSlice alone, 1 of FromSlice alone, 0 where they differ\n`).MatchString(got) {
		t.Errorf("report\n%s", got)
	}
}

// Scores under a mask are no scores yet: others keep -Inf or a large number there.
func TestCompareMaskedScores(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	defer c.Close()
	s := c.run1(wire.OpScores, causal, c.random(1, hsd, 2, 3, 4), c.random(2, hsd, 2, 5, 4))
	v := c.download(s)
	for i := range v {
		if row, col := i/5%3, i%5; col > row+2 {
			v[i] = -1e9
		}
	}
	a := c.compare(s, c.upload([]string{"heads", "query", "key"}, []int{2, 3, 5}, v), 0)
	if !a.Verdict.Pass || a.Verdict.Cells != 24 || !strings.Contains(a.Text, "6 scores under the mask are not compared") {
		t.Errorf("%+v\n%s", a.Verdict, a.Text)
	}
	v[17] += 1e-3 // head 1, query 0, key 2
	a = c.compare(s, c.upload([]string{"heads", "query", "key"}, []int{2, 3, 5}, v), 0)
	if a.Verdict.Pass || a.Verdict.Failed != 1 || !strings.Contains(a.Text, "worst cell: head 1, query 0, key 2: ") {
		t.Errorf("%+v\n%s", a.Verdict, a.Text)
	}
}

func TestCompareRefuses(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	defer c.Close()
	q := c.random(1, hsd, 2, 3, 4)
	c.name(q, "q")
	for want, r := range map[string]wire.Request{
		`Compare: shapes differ (mine: "q" [heads 2, seq 3, dim 4], expected: [seq 2, heads 3, dim 4])`:                                                                    {IDs: []int{q.ID, c.random(1, shd, 2, 3, 4).ID}},
		`Compare: shapes differ: Merge lays the heads of a row side by side (mine: "q" [heads 2, seq 3, dim 4], expected: [seq 3, hidden 8])`:                              {IDs: []int{q.ID, c.random(1, fused, 3, 8).ID}},
		`Compare: shapes differ: where a file has rows before heads, Axes("seq heads dim") says so (mine: "q" [heads 2, seq 3, dim 4], expected: [heads 3, seq 2, dim 4])`: {IDs: []int{q.ID, c.random(1, hsd, 3, 2, 4).ID}},
		`Compare: shapes differ: Batch(0) takes the one out of a batch (mine: "q" [heads 2, seq 3, dim 4], expected: [batch 1, heads 2, seq 3, dim 4])`:                    {IDs: []int{q.ID, c.random(1, []string{"batch", "heads", "seq", "dim"}, 1, 2, 3, 4).ID}},
		`Compare: shapes differ (mine: "q" [heads 2, seq 3, dim 4], expected: [seq 6, hidden 4])`:                                                                          {IDs: []int{q.ID, c.random(1, fused, 6, 4).ID}},
		`Compare: Within(-1): must be 0 or more, and finite (mine: "q" [heads 2, seq 3, dim 4], expected: "q" [heads 2, seq 3, dim 4])`:                                    {IDs: []int{q.ID, q.ID}, Within: -1},
		`Compare: Within(NaN): must be 0 or more, and finite (mine: "q" [heads 2, seq 3, dim 4], expected: "q" [heads 2, seq 3, dim 4])`:                                   {IDs: []int{q.ID, q.ID}, Within: math.NaN()},
		`Compare: 1 tensors, it takes 2`: {IDs: []int{q.ID}},
	} {
		r.Kind = wire.KindCompare
		if _, err := c.Do(r); err == nil || err.Error() != want {
			t.Errorf("error %v\nwant  %s", err, want)
		}
	}
}

// A tensor of which a leaf was freed is compared as one that was brought.
func TestCompareWithoutLeaves(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	defer c.Close()
	x := c.random(1, hsd, 2, 3, 4)
	q := c.run1(wire.OpRoPE, wire.Params{Rotary: 4}, x)
	c.do(wire.Request{Kind: wire.KindFree, IDs: []int{x.ID}})
	a := c.compare(q, q, 0)
	if !a.Verdict.Pass || !strings.Contains(a.Text, "RoPE rounded to f32: what it came from was freed") {
		t.Errorf("%s", a.Text)
	}
}
