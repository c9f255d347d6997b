//go:build cuda

package main

import (
	"math"
	"runtime"
	"sync"
)

// normal returns n values of nearly normal distribution (the sum of four uniform ones), element i from the hash of
// seed and i. bench/torch_peer.py makes the same bits: the sum is exact, and one rounding follows.
func normal(seed uint64, n int) []float32 {
	x := make([]float32, n)
	scale := float32(math.Sqrt(3) / 65536)
	parallel(n, func(from, to int) {
		for i := from; i < to; i++ {
			h := mix(seed<<40 + uint64(i))
			sum := int(h&0xffff) + int(h>>16&0xffff) + int(h>>32&0xffff) + int(h>>48) - 2*65535
			x[i] = float32(sum) * scale
		}
	})
	return x
}

// mix is splitmix64's finaliser (Steele, Lea, Flood 2014).
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// parallel cuts 0..n into pieces, one a core.
func parallel(n int, f func(from, to int)) {
	var wg sync.WaitGroup
	workers := min(runtime.GOMAXPROCS(0), n)
	for w := range workers {
		wg.Go(func() { f(n*w/workers, n*(w+1)/workers) })
	}
	wg.Wait()
}

// shaped changes normal values to those of a kind of input: "" as they are, "amp4" four times as large, "weights" a 64th, "positive" absolute, "denormal"
// with every 17th 2^-130 times as large, "spread" with powers of two from 1 to 2^-24 in turn.
func shaped(x []float32, kind string) []float32 {
	for i, v := range x {
		switch kind {
		case "amp4":
			x[i] = 4 * v
		case "weights": // 4096 inputs to a sum: its size is theirs
			x[i] = v / 64
		case "positive":
			x[i] = float32(math.Abs(float64(v)))
		case "denormal":
			if i%17 == 0 {
				x[i] = float32(math.Ldexp(float64(v), -130))
			}
		case "spread":
			x[i] = float32(math.Ldexp(float64(v), -(i * 7 % 25)))
		}
	}
	return x
}

// sampled are the (head, row) pairs whose results are compared with float64: up to 64, spread from the last row.
func sampled(heads, rows int) (pairs [][2]int) {
	n := min(64, heads*rows)
	step := max(1, rows/64)
	for i := range n {
		pairs = append(pairs, [2]int{i * 5 % heads, ((rows-1-i*step)%rows + rows) % rows})
	}
	return pairs
}

// relL2 is ||got - want|| / ||want||.
func relL2(got []float32, want []float64) float64 {
	var diff, norm float64
	for i, w := range want {
		d := float64(got[i]) - w
		diff += d * d
		norm += w * w
	}
	return math.Sqrt(diff / norm)
}
