//go:build cuda

package cuda

import (
	"slices"
	"testing"

	"github.com/attnb/attnb/cudaops/plan"
)

// An append to a cache is one view, whatever the number of heads.
func TestJoinCopiesAppend(t *testing.T) {
	_, rows, err := plan.Append{Heads: 32, Old: 100, New: 1, Dim: 128, HasPrevious: true, Capacity: 256, OldCapacity: 256}.Plan()
	if err != nil {
		t.Fatal(err)
	}
	got := joinCopies(1<<20, 1<<30, rows)
	if len(got) != 1 || got[0].d != (dims{32, 1, 128}) || got[0].dst.hs != 256*128 || got[0].src.hs != 128 {
		t.Errorf("%d views, first %+v", len(got), got[0])
	}
}

// The views copy what the plan says, in any order of irregular copies.
func TestJoinCopies(t *testing.T) {
	copies := []plan.PitchedCopy{
		{SrcOffset: 0, DstOffset: 0, SrcPitch: 4, DstPitch: 3, Width: 2, Height: 2},
		{SrcOffset: 10, DstOffset: 8, SrcPitch: 4, DstPitch: 3, Width: 2, Height: 2},
		{SrcOffset: 20, DstOffset: 16, SrcPitch: 4, DstPitch: 3, Width: 2, Height: 2},
		{SrcOffset: 31, DstOffset: 24, SrcPitch: 4, DstPitch: 3, Width: 2, Height: 2}, // another step
		{SrcOffset: 41, DstOffset: 32, SrcPitch: 4, DstPitch: 3, Width: 2, Height: 2},
		{SrcOffset: 60, DstOffset: 50, SrcPitch: 1, DstPitch: 1, Width: 1, Height: 5}, // another shape
	}
	type move struct{ dst, src int64 }
	var want, got []move
	for _, c := range copies {
		for r := range c.Height {
			for i := range c.Width {
				want = append(want, move{int64(c.DstOffset + r*c.DstPitch + i), int64(c.SrcOffset + r*c.SrcPitch + i)})
			}
		}
	}
	pairs := joinCopies(0, 0, copies)
	if len(pairs) != 3 {
		t.Errorf("%d views, want 3", len(pairs))
	}
	for _, p := range pairs {
		for h := range int64(p.d.heads) {
			for s := range int64(p.d.rows) {
				for i := range int64(p.d.cols) {
					got = append(got, move{int64(p.dst.p)/4 + h*p.dst.hs + s*p.dst.rs + i, int64(p.src.p)/4 + h*p.src.hs + s*p.src.rs + i})
				}
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}
