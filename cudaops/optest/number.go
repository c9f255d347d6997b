package optest

import (
	"fmt"
	"math"

	"github.com/attnb/attnb/cudaops"
)

// offsets are positions near and far, and before 0.
var offsets = []int{0, 1, 3, 40, 2000, 16000, 131071, 1048575, -1, -64, -131071, cudaops.MaxPosition - 300}

func ropeCases() []testCase {
	var all []testCase
	add := func(h, s, d int, r cudaops.RoPE, note string) {
		name := fmt.Sprintf("rope/H%d S%d d%d rotary%d convention%d %s", h, s, d, r.Rotary, r.Convention, note)
		all = append(all, ropeCase(name, normal(source(name), 1, h, s, d), r))
	}
	for _, c := range []cudaops.Convention{cudaops.HalfSplit, cudaops.Interleaved} {
		for _, at := range offsets {
			r := cudaops.RoPE{Rotary: 6, Base: 1e4, Convention: c, Offset: at}
			add(3, 5, 10, r, fmt.Sprintf("offset %d", at))
			r.Angle = cudaops.AngleFloat32
			add(2, 4, 9, r, fmt.Sprintf("offset %d f32 angles", at))
		}
		for _, s := range []int{1, 31, 33, 255, 256, 257} {
			add(2, s, 16, cudaops.RoPE{Rotary: 16, Base: 1e4, Convention: c, Offset: 7}, "")
		}
		for _, d := range []int{2, 64, 80, 128, 256} {
			add(3, 7, d, cudaops.RoPE{Rotary: d, Base: 5e5, Convention: c, Offset: 4095}, "base 5e5")
		}
		add(2, 6, 8, cudaops.RoPE{Rotary: 2, Base: 1e4, Convention: c, Offset: 5}, "")
		add(1, 1, 2, cudaops.RoPE{Rotary: 2, Base: 1e4, Convention: c}, "position 0")
		add(2, 5, 8, cudaops.RoPE{Rotary: 4, Base: 1e4, Convention: c, Positions: []int{0, 0, 0, 1, 2}}, "left padding")
		add(2, 6, 8, cudaops.RoPE{Rotary: 8, Base: 1e4, Convention: c, Positions: []int{1048575, -3, 0, 7, 7, 131071}}, "any positions")
		add(2, 5, 10, cudaops.RoPE{Rotary: 6, InvFreq: []float64{1, -0.25, 1e-3}, Convention: c, Offset: 2000}, "own frequencies")
		add(2, 5, 10, cudaops.RoPE{Rotary: 6, InvFreq: []float64{1, 0.03, 0}, Convention: c, Magnitude: 1.138629436111989, Offset: 3}, "magnitude")
		add(2, 5, 10, cudaops.RoPE{
			Rotary: 6, Base: 1e4, Convention: c, Magnitude: 1.138629436111989, Offset: 5000,
			Angle: cudaops.AngleFloat32,
		}, "magnitude f32 angles")
	}
	return all
}

func softmaxCases() []testCase {
	var all []testCase
	add := func(h, s, t int, amplitude float64, m cudaops.Mask) {
		name := fmt.Sprintf("softmax/H%d S%d T%d %s amplitude%v", h, s, t, maskName(m), amplitude)
		all = append(all, softmaxCase(name, normal(source(name), amplitude, h, s, t), m))
	}
	diagonal := func(d int) cudaops.Mask { return cudaops.Mask{Causal: true, Diagonal: d} }
	for _, t := range []int{1, 2, 5, 31, 33, 127, 255, 256, 257, 511, 512, 513, 1025, 4097} {
		add(2, 3, t, 2, cudaops.Mask{})
		add(2, 3, t, 2, diagonal(t-3)) // bottom-right; empty rows for t below 3
	}
	for _, m := range []cudaops.Mask{diagonal(0), diagonal(-2), diagonal(3), diagonal(100), diagonal(-100), diagonal(-4)} {
		add(3, 5, 7, 1, m)
		add(2, 7, 5, 1, m)
	}
	add(1, 257, 513, 4, diagonal(256))
	add(2, 257, 255, 4, diagonal(-2))
	add(2, 4, 37, 30, cudaops.Mask{})   // weights down to 0
	add(2, 4, 37, 300, cudaops.Mask{})  // one-hot
	add(2, 4, 37, 1e38, cudaops.Mask{}) // as large as f32 allows
	add(2, 4, 37, 0, diagonal(2))       // uniform
	return all
}

// sumCases are add and linear.
func sumCases() []testCase {
	var all []testCase
	for _, s := range [][3]int{{1, 1, 1}, {3, 5, 7}, {2, 255, 3}, {2, 256, 4}, {1, 257, 33}, {4, 9, 513}} {
		name := fmt.Sprintf("add/H%d S%d d%d", s[0], s[1], s[2])
		r := source(name)
		all = append(all, addCase(name, normal(r, 1, s[0], s[1], s[2]), normal(r, 1e3, s[0], s[1], s[2])))
	}
	for _, s := range [][3]int{{1, 1, 1}, {5, 7, 3}, {1, 257, 129}, {33, 64, 65}, {3, 513, 2}, {9, 192, 577}} {
		name := fmt.Sprintf("linear/S%d in%d out%d", s[0], s[1], s[2])
		r := source(name)
		x, w, b := normal(r, 1, 1, s[0], s[1]), normal(r, 0.1, 1, s[2], s[1]), normal(r, 1, 1, 1, s[2])
		all = append(all, linearCase(name, x, w), linearCase(name+" bias", x, w, b))
	}
	return all
}

// dims are the sizes of an attention case: query heads, KV heads, queries, keys, head dim.
type dims struct{ h, kv, s, t, d int }

func (n dims) String() string {
	return fmt.Sprintf("H%d KV%d S%d T%d d%d", n.h, n.kv, n.s, n.t, n.d)
}

func (n dims) scale() float64 { return 1 / math.Sqrt(float64(n.d)) }

// random makes queries, keys and values. Scores have a standard deviation of amplitude.
func (n dims) random(name string, amplitude float64) (q, k, v tensor) {
	r := source(name)
	return normal(r, amplitude, n.h, n.s, n.d), normal(r, 1, n.kv, n.t, n.d), normal(r, 1, n.kv, n.t, n.d)
}

func scoresCases() []testCase {
	var all []testCase
	for _, n := range []dims{
		{1, 1, 1, 1, 1}, {4, 2, 5, 9, 8}, {6, 3, 3, 257, 7}, {3, 1, 33, 65, 16}, {2, 2, 255, 4, 2},
		{2, 1, 37, 127, 80}, {2, 2, 9, 5, 128}, {1, 1, 3, 513, 64}, {2, 1, 2, 3, 256},
	} {
		name := fmt.Sprintf("scores/%v", n)
		q, k, _ := n.random(name, 1)
		all = append(all, scoresCase(name, q, k, n.scale()))
	}
	n := dims{4, 2, 5, 9, 8}
	q, k, _ := n.random("scores", 1)
	return append(all, scoresCase("scores/scale -3", q, k, -3), scoresCase("scores/scale 0", q, k, 0))
}

func prefillCases() []testCase {
	var all []testCase
	add := func(n dims, m cudaops.Mask, amplitude float64) {
		name := fmt.Sprintf("prefill/%v %s amplitude%v", n, maskName(m), amplitude)
		q, k, v := n.random(name, amplitude)
		all = append(all, prefillCase(name, q, k, v, cudaops.Attention{Scale: n.scale(), Mask: m}))
	}
	bottomRight := func(n dims) cudaops.Mask { return cudaops.Mask{Causal: true, Diagonal: n.t - n.s} }
	for _, n := range []dims{
		{1, 1, 1, 1, 1}, {2, 2, 3, 3, 2}, {4, 2, 5, 9, 8}, {6, 2, 7, 7, 5}, {3, 1, 2, 31, 64}, {4, 4, 33, 33, 16},
		{2, 1, 1, 257, 16}, {2, 2, 31, 95, 80}, {2, 1, 63, 64, 128}, {2, 1, 64, 65, 64}, {1, 1, 65, 129, 256}, {8, 2, 37, 127, 24},
		{2, 1, 255, 255, 16}, {2, 1, 256, 257, 8}, {2, 2, 257, 300, 8}, {1, 1, 511, 513, 16}, {1, 1, 3, 1025, 64},
	} {
		add(n, bottomRight(n), 1)
		add(n, cudaops.Mask{}, 1)
	}
	n := dims{4, 2, 6, 11, 8}
	for _, d := range []int{0, 1, -1, -2, -6, 3, 9, 50, -50} { // top-left, empty rows, all rows empty, nothing hidden
		add(n, cudaops.Mask{Causal: true, Diagonal: d}, 1)
	}
	add(dims{2, 1, 70, 140, 16}, cudaops.Mask{Causal: true, Diagonal: -66}, 1) // a block of empty rows
	add(dims{2, 1, 70, 140, 16}, cudaops.Mask{Causal: true, Diagonal: 0}, 1)
	add(dims{3, 1, 9, 5, 8}, cudaops.Mask{}, 1) // more queries than keys
	for _, amplitude := range []float64{4, 30} {
		add(dims{2, 1, 67, 131, 32}, bottomRight(dims{s: 67, t: 131}), amplitude)
	}
	n = dims{2, 1, 130, 200, 32}
	q, k, v := n.random("positive", 1)
	for i := range v.data {
		v.data[i] = float32(math.Abs(float64(v.data[i])))
	}
	return append(all, prefillCase("prefill/positive values", q, k, v,
		cudaops.Attention{Scale: n.scale(), Mask: bottomRight(n)}))
}

func decodeCases() []testCase {
	var all []testCase
	for _, n := range []dims{
		{1, 1, 1, 1, 1}, {4, 2, 1, 9, 8}, {6, 3, 1, 31, 7}, {3, 1, 1, 64, 64}, {2, 2, 1, 255, 16}, {2, 1, 1, 256, 16}, {2, 1, 1, 257, 16},
		{4, 1, 1, 511, 8}, {4, 4, 1, 512, 8}, {4, 2, 1, 513, 80}, {2, 1, 1, 1025, 128}, {4, 2, 1, 4097, 16}, {1, 1, 1, 1537, 256},
	} {
		for _, amplitude := range []float64{1, 30} {
			name := fmt.Sprintf("decode/%v amplitude%v", n, amplitude)
			q, k, v := n.random(name, amplitude)
			all = append(all, decodeCase(name, q, k, v, n.scale()))
		}
	}
	return all
}
