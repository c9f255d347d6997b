package plan

import (
	"errors"
	"math"
	"slices"
	"testing"
)

func TestValidate(t *testing.T) {
	block := PitchedCopy{SrcOffset: 1, SrcPitch: 5, DstPitch: 3, Width: 3, Height: 2} // 2 x 3 out of 2 x 5
	exact := PitchedCopy{SrcPitch: 4, DstPitch: 4, Width: 4, Height: 2}
	with := func(change func(c *PitchedCopy)) PitchedCopy {
		c := exact
		change(&c)
		return c
	}
	const top = math.MaxInt
	for _, test := range []struct {
		name     string
		copy     PitchedCopy
		src, dst int
		want     string // "" accepts
	}{
		{"block", block, 10, 6, ""},
		{"exact fit", exact, 8, 8, ""},
		{"width 0", with(func(c *PitchedCopy) { c.Width = 0 }), 8, 8, "pitched copy: width is 0, must be at least 1"},
		{"height 0", with(func(c *PitchedCopy) { c.Height = 0 }), 8, 8, "pitched copy: height is 0, must be at least 1"},
		{"width -1", with(func(c *PitchedCopy) { c.Width = -1 }), 8, 8, "pitched copy: width is -1, must be at least 1"},
		{"source pitch", with(func(c *PitchedCopy) { c.SrcPitch = 3 }), 8, 8, "pitched copy: source pitch 3 is below the width 4"},
		{"destination pitch", with(func(c *PitchedCopy) { c.DstPitch = 3 }), 8, 8, "pitched copy: destination pitch 3 is below the width 4"},
		{"source offset", with(func(c *PitchedCopy) { c.SrcOffset = 1 }), 8, 8, "pitched copy: source ends at 9, past its 8 elements"},
		{"destination offset", with(func(c *PitchedCopy) { c.DstOffset = 1 }), 8, 8, "pitched copy: destination ends at 9, past its 8 elements"},
		{"source offset -1", with(func(c *PitchedCopy) { c.SrcOffset = -1 }), 8, 8, "pitched copy: source offset is -1, must not be negative"},
		{"rows overflow", with(func(c *PitchedCopy) { c.SrcPitch = top }), top, 8,
			"pitched copy: source end (2 rows at pitch 9223372036854775807 from offset 0) overflows"},
		{"sum overflows", with(func(c *PitchedCopy) { c.DstOffset = top - 5 }), 8, top,
			"pitched copy: destination end (2 rows at pitch 4 from offset 9223372036854775802) overflows"},
		{"a pitch that nothing steps by", PitchedCopy{SrcPitch: top, DstPitch: top, Width: 4, Height: 1}, 4, 4, ""},
	} {
		t.Run(test.name, func(t *testing.T) { refused(t, test.copy.Validate(test.src, test.dst), test.want) })
	}
}

// refused compares an error of this package with its message, "" for none.
func refused(t *testing.T, err error, want string) {
	t.Helper()
	got := ""
	if err != nil {
		got = err.Error()
		if e := (*Error)(nil); !errors.As(err, &e) {
			t.Errorf("%T is no *Error", err)
		}
	}
	if got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// FuzzValidate compares Validate with looking at every element.
func FuzzValidate(f *testing.F) {
	f.Add(1, 0, 5, 3, 3, 2, 10, 6)
	f.Add(0, 0, 4, 4, 4, 2, 8, 8)
	f.Add(0, 0, 4, 3, 4, 2, 8, 8)
	f.Add(-1, 0, 4, 4, 4, 2, 8, 8)
	f.Add(math.MaxInt, 0, math.MaxInt, 4, 4, 3, 8, 8)
	f.Add(0, 3, 2, 7, 2, 3, 6, 19)
	f.Fuzz(func(t *testing.T, srcOffset, dstOffset, srcPitch, dstPitch, width, height, srcLen, dstLen int) {
		c := PitchedCopy{srcOffset, dstOffset, srcPitch, dstPitch, width, height}
		if srcLen < 0 || dstLen < 0 || srcLen > 1<<12 || dstLen > 1<<12 {
			t.Skip("no such array")
		}
		if got, want := c.Validate(srcLen, dstLen) == nil, naive(c, srcLen, dstLen); got != want {
			t.Errorf("%+v in %d to %d elements: accepted %v, want %v", c, srcLen, dstLen, got, want)
		}
	})
}

// naive looks at every element of a copy. Arrays are so small that a long copy leaves them at once.
func naive(c PitchedCopy, srcLen, dstLen int) bool {
	if c.Width <= 0 || c.Height <= 0 || c.SrcPitch < c.Width || c.DstPitch < c.Width {
		return false
	}
	inside := func(offset, pitch, length int) bool {
		at := offset
		for r := range c.Height {
			if r > 0 {
				if pitch > length {
					return false // the next row begins past the end, wherever this one began
				}
				at += pitch
			}
			for i := range c.Width {
				if at < 0 || at >= length || at+i >= length {
					return false
				}
			}
		}
		return true
	}
	return inside(c.SrcOffset, c.SrcPitch, srcLen) && inside(c.DstOffset, c.DstPitch, dstLen)
}

func TestGather(t *testing.T) {
	for _, test := range []struct {
		name   string
		gather Gather
		want   []PitchedCopy
	}{
		{"GPT-2 keys", Gather{Rows: 3, SrcRowStride: 12, CompOffset: 4, HeadStride: 2, Heads: 2, Dim: 2, HeadsMajor: true},
			[]PitchedCopy{{4, 0, 12, 2, 2, 3}, {6, 6, 12, 2, 2, 3}}},
		{"NeoX queries", Gather{Rows: 2, SrcRowStride: 12, HeadStride: 6, Heads: 2, Dim: 2},
			[]PitchedCopy{{0, 0, 12, 4, 2, 2}, {6, 2, 12, 4, 2, 2}}},
		{"merge", Gather{Rows: 3, SrcRowStride: 2, HeadStride: 6, Heads: 2, Dim: 2},
			[]PitchedCopy{{0, 0, 2, 4, 2, 3}, {6, 2, 2, 4, 2, 3}}},
		{"merge by name", Merge(2, 3, 2), []PitchedCopy{{0, 0, 2, 4, 2, 3}, {6, 2, 2, 4, 2, 3}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.gather.Copies()
			if err != nil || !slices.Equal(got, test.want) {
				t.Errorf("got  %v, %v\nwant %v", got, err, test.want)
			}
			src, _ := test.gather.SrcLen()
			dst, _ := test.gather.Len()
			for _, c := range got {
				if err := c.Validate(src, dst); err != nil {
					t.Error(err)
				}
			}
			if last := got[len(got)-1]; last.Validate(src-1, dst) == nil || last.Validate(src, dst-1) == nil {
				t.Error("the lengths are not exact")
			}
		})
	}
}

func TestGatherRefuses(t *testing.T) {
	good := Gather{Rows: 3, SrcRowStride: 12, CompOffset: 4, HeadStride: 2, Heads: 2, Dim: 2}
	for _, test := range []struct {
		change func(g *Gather)
		want   string
	}{
		{func(g *Gather) {}, ""},
		{func(g *Gather) { g.Rows = 0 }, "gather: rows is 0, must be at least 1"},
		{func(g *Gather) { g.Heads = 0 }, "gather: heads is 0, must be at least 1"},
		{func(g *Gather) { g.Dim = 0 }, "gather: dim is 0, must be at least 1"},
		{func(g *Gather) { g.CompOffset = -1 }, "gather: component offset is -1, must not be negative"},
		{func(g *Gather) { g.HeadStride = -1 }, "gather: head stride is -1, must not be negative"},
		{func(g *Gather) { g.SrcRowStride = 1 }, "gather: row stride 1 is below the head dim 2"},
		{func(g *Gather) { g.Rows = 1 << 33 }, "gather: rows is 8589934592, more than 4294967295"},
		{func(g *Gather) { g.Rows, g.Heads, g.Dim = 1<<31, 1<<31, 4 }, "gather: heads 2147483648 * rows 2147483648 * dim 4 overflows"},
		{func(g *Gather) { g.HeadStride = math.MaxInt },
			"gather: end of the source (3 rows of 12, 2 heads at 4 + 9223372036854775807 each) overflows"},
	} {
		g := good
		test.change(&g)
		copies, err := g.Copies()
		refused(t, err, test.want)
		if err != nil && copies != nil {
			t.Errorf("%+v: copies beside an error", g)
		}
	}
}

func TestSplit(t *testing.T) {
	// Where each head begins in a row, told from the words of each layout.
	for _, test := range []struct {
		split   Split
		q, k, v []int
	}{
		{Split{Layout: GPT2, Rows: 3, Heads: 2, KVHeads: 2, Dim: 2}, []int{0, 2}, []int{4, 6}, []int{8, 10}},
		{Split{Layout: GPT2, Rows: 3, Heads: 4, KVHeads: 2, Dim: 1}, []int{0, 1, 2, 3}, []int{4, 5}, []int{6, 7}},
		{Split{Layout: NeoX, Rows: 2, Heads: 2, KVHeads: 2, Dim: 2}, []int{0, 6}, []int{2, 8}, []int{4, 10}},
		{Split{Layout: Grouped, Rows: 1, Heads: 4, KVHeads: 2, Dim: 1}, []int{0, 1, 4, 5}, []int{2, 6}, []int{3, 7}},
		{Split{Layout: Grouped, Rows: 5, Heads: 3, KVHeads: 3, Dim: 2}, []int{0, 6, 12}, []int{2, 8, 14}, []int{4, 10, 16}},
		{Split{Layout: Grouped, Rows: 5, Heads: 3, KVHeads: 1, Dim: 2, RowStride: 13}, []int{0, 2, 4}, []int{6}, []int{8}},
	} {
		q, k, v, err := test.split.Pieces()
		if err != nil {
			t.Fatal(err)
		}
		for i, pieces := range [][]Piece{q, k, v} {
			var starts []int
			for _, p := range pieces {
				if p.FirstHead != len(starts) {
					t.Errorf("%+v: heads begin at %d, want %d", test.split, p.FirstHead, len(starts))
				}
				copies, err := p.Copies()
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range copies {
					starts = append(starts, c.SrcOffset)
					if row, _ := test.split.RowLen(); c.SrcPitch != max(row, test.split.RowStride) {
						t.Errorf("%+v: rows step by %d", test.split, c.SrcPitch)
					}
				}
			}
			if want := [][]int{test.q, test.k, test.v}[i]; !slices.Equal(starts, want) {
				t.Errorf("%+v: %c heads at %v, want %v", test.split, "qkv"[i], starts, want)
			}
		}
	}
}

func TestSplitRefuses(t *testing.T) {
	for _, test := range []struct {
		split Split
		want  string
	}{
		{Split{Layout: GPT2, Rows: 0, Heads: 2, KVHeads: 2, Dim: 2}, "gather: rows is 0, must be at least 1"},
		{Split{Layout: GPT2, Rows: 1, Heads: 0, KVHeads: 2, Dim: 2}, "split: heads is 0, must be at least 1"},
		{Split{Layout: GPT2, Rows: 1, Heads: 2, KVHeads: 0, Dim: 2}, "split: KV heads is 0, must be at least 1"},
		{Split{Layout: GPT2, Rows: 1, Heads: 2, KVHeads: 2, Dim: 0}, "split: dim is 0, must be at least 1"},
		{Split{Layout: GPT2, Rows: 1, Heads: 4, KVHeads: 3, Dim: 2}, "split: 4 heads are not a multiple of 3 KV heads"},
		{Split{Layout: GPT2, Rows: 1, Heads: 2, KVHeads: 4, Dim: 2}, "split: 2 heads are not a multiple of 4 KV heads"},
		{Split{Layout: NeoX, Rows: 1, Heads: 4, KVHeads: 2, Dim: 2},
			"split: layout NeoX has as many KV heads as heads, not 2 and 4: that is Grouped"},
		{Split{Layout: 9, Rows: 1, Heads: 2, KVHeads: 2, Dim: 2}, "split: unknown layout Layout(9)"},
		{Split{Layout: GPT2, Rows: 2, Heads: 2, KVHeads: 2, Dim: 2, RowStride: 11},
			"split: row stride 11 is below the 12 elements of a row"},
		{Split{Layout: GPT2, Rows: 1, Heads: 1 << 31, KVHeads: 1 << 31, Dim: 1}, "split: heads + 2 * KV heads is 6442450944, more than 4294967295"},
		{Split{Layout: GPT2, Rows: 1 << 31, Heads: 1 << 16, KVHeads: 1 << 16, Dim: 1 << 16},
			"gather: end of the source (2147483648 rows of 12884901888, 1 heads at 12884836352 + 65536 each) overflows"},
	} {
		q, k, v, err := test.split.Pieces()
		refused(t, err, test.want)
		if q != nil || k != nil || v != nil {
			t.Errorf("%+v: pieces beside an error", test.split)
		}
	}
}

func TestAppend(t *testing.T) {
	for _, test := range []struct {
		name      string
		append    Append
		old, rows []PitchedCopy
	}{
		{"behind two rows", Append{Heads: 2, Old: 2, New: 1, Dim: 3, HasPrevious: true},
			[]PitchedCopy{{0, 0, 6, 6, 6, 1}, {6, 9, 6, 6, 6, 1}}, []PitchedCopy{{0, 6, 3, 3, 3, 1}, {3, 15, 3, 3, 3, 1}}},
		{"fresh", Append{Heads: 2, Old: 0, New: 3, Dim: 3},
			nil, []PitchedCopy{{0, 0, 9, 9, 9, 1}, {9, 9, 9, 9, 9, 1}}},
		{"with capacity", Append{Heads: 2, Old: 2, New: 1, Dim: 3, HasPrevious: true, Capacity: 8, OldCapacity: 4},
			[]PitchedCopy{{0, 0, 6, 6, 6, 1}, {12, 24, 6, 6, 6, 1}}, []PitchedCopy{{0, 6, 3, 3, 3, 1}, {3, 30, 3, 3, 3, 1}}},
		{"rows that hold all heads", Append{Heads: 2, Old: 1, New: 2, Dim: 3, HasPrevious: true, NewHeadStride: 3, NewRowStride: 6},
			[]PitchedCopy{{0, 0, 3, 3, 3, 1}, {3, 9, 3, 3, 3, 1}}, []PitchedCopy{{0, 3, 6, 3, 3, 2}, {3, 12, 6, 3, 3, 2}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			old, rows, err := test.append.Plan()
			if err != nil || !slices.Equal(old, test.old) || !slices.Equal(rows, test.rows) {
				t.Errorf("got  %v, %v, %v\nwant %v, %v", old, rows, err, test.old, test.rows)
			}
		})
	}
}

func TestAppendRefuses(t *testing.T) {
	for _, test := range []struct {
		append Append
		want   string
	}{
		{Append{Heads: 0, New: 1, Dim: 3}, "append: heads is 0, must be at least 1"},
		{Append{Heads: 2, Old: 2, New: 0, Dim: 3, HasPrevious: true}, "append: new rows is 0, must be at least 1"},
		{Append{Heads: 2, Old: 0, New: 0, Dim: 3}, "append: new rows is 0, must be at least 1"},
		{Append{Heads: 2, New: 1, Dim: 0}, "append: dim is 0, must be at least 1"},
		{Append{Heads: 2, Old: 0, New: 1, Dim: 3, HasPrevious: true}, "append: a previous array was given, but it has 0 rows"},
		{Append{Heads: 2, Old: 2, New: 1, Dim: 3}, "append: 2 old rows, but no previous array"},
		{Append{Heads: 2, Old: -1, New: 1, Dim: 3}, "append: old rows is -1, must not be negative"},
		{Append{Heads: 1, Old: math.MaxUint32, New: 1, Dim: 1, HasPrevious: true}, "append: 4294967295 old rows and 1 new rows are more than 4294967295"},
		{Append{Heads: 2, Old: 2, New: 2, Dim: 3, HasPrevious: true, Capacity: 3}, "append: capacity 3 is below 2 old and 2 new rows"},
		{Append{Heads: 2, Old: 2, New: 1, Dim: 3, HasPrevious: true, OldCapacity: 1}, "append: capacity 1 of the previous array is below its 2 rows"},
		{Append{Heads: 1 << 20, Old: 1 << 31, New: 1, Dim: 1 << 20, HasPrevious: true},
			"append: heads 1048576 * capacity 2147483649 * dim 1048576 overflows"},
		{Append{Heads: 2, New: 1, Dim: 3, NewRowStride: 2}, "gather: row stride 2 is below the head dim 3"},
	} {
		old, rows, err := test.append.Plan()
		refused(t, err, test.want)
		if old != nil || rows != nil {
			t.Errorf("%+v: copies beside an error", test.append)
		}
	}
}
