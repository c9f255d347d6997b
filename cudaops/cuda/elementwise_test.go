//go:build cuda

package cuda

import (
	"math/rand/v2"
	"testing"
)

// locate is the same function as in common.cuh.
func locate(e extent, block, u, thread uint32) (h, s, c uint32, ok bool) {
	var row uint32
	if e.tiles == 0 {
		per := blockThreads / e.lanes
		row = (block*unroll+u)*per + thread/e.lanes
		c = thread & (e.lanes - 1)
	} else {
		row = block / e.tiles
		c = ((block-row*e.tiles)*unroll+u)*blockThreads + thread
	}
	if e.headsInner != 0 {
		s, h = row/e.heads, row%e.heads
	} else {
		h, s = row/e.rows, row%e.rows
	}
	return h, s, c, c < e.cols && h < e.heads && s < e.rows
}

// Every element of every view is taken exactly once, at the address that the view gives it.
func TestSpreadCoversEveryElementOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	sizes := []int{1, 2, 3, 4, 5, 7, 8, 12, 31, 64, 127, 128, 255, 256, 257, 1023, 1024, 1025, 4096, 5000}
	pick := func() int { return sizes[r.IntN(len(sizes))] }
	for range 2000 {
		d := dims{pick(), pick(), pick()}
		if d.heads*d.rows*d.cols > 1<<16 {
			continue
		}
		var v view
		switch r.IntN(4) {
		case 0: // heads-major, packed
			v = view{0, int64(d.rows * d.cols), int64(d.cols)}
		case 1: // rows-major, packed
			v = view{0, int64(d.cols), int64(d.heads * d.cols)}
		case 2: // part of something larger
			v = view{pointer(4 * r.IntN(5)), int64((d.rows + 3) * (d.cols + 4)), int64(d.cols + 4)}
		default: // capacity behind each head
			v = view{0, int64(2 * d.rows * d.cols), int64(d.cols)}
		}
		want := map[int64]int{}
		for h := range d.heads {
			for s := range d.rows {
				for c := range d.cols {
					want[int64(v.p)/4+int64(h)*v.hs+int64(s)*v.rs+int64(c)]++
				}
			}
		}
		flat := v
		fd := flatten(d, &flat)
		width := 1
		if aligned(fd, &flat) {
			width = 4
		}
		e, blocks := spread(fd, width, &flat)
		for block := range uint32(blocks) {
			for u := range uint32(unroll) {
				for thread := range uint32(blockThreads) {
					h, s, c, ok := locate(e, block, u, thread)
					if !ok {
						continue
					}
					at := int64(flat.p)/4 + int64(h)*flat.hs + int64(s)*flat.rs + int64(c)*int64(width)
					if width == 4 && (at%4 != 0) {
						t.Fatalf("%+v %+v: element %d is not aligned", d, v, at)
					}
					for i := range int64(width) {
						want[at+i]--
					}
				}
			}
		}
		for at, n := range want {
			if n != 0 {
				t.Fatalf("%+v %+v: element %d is missed %d times", d, v, at, n)
			}
		}
	}
}

func TestAligned(t *testing.T) {
	d := dims{2, 3, 8}
	good := view{256, 64, 8}
	if !aligned(d, &good) {
		t.Error("packed rows of 8 are aligned")
	}
	for _, bad := range []view{{252, 64, 8}, {256, 62, 8}, {256, 64, 9}} {
		if aligned(d, &good, &bad) {
			t.Errorf("%+v is not aligned", bad)
		}
	}
	if aligned(dims{2, 3, 6}, &good) {
		t.Error("rows of 6 are not aligned")
	}
	if one := (view{256, 3, 5}); !aligned(dims{1, 1, 8}, &one) {
		t.Error("strides that nothing steps by do not matter")
	}
}
