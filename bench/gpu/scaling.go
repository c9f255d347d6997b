//go:build cuda

package main

import "github.com/attnb/attnb/cudaops/cuda"

// fewSamples are taken of each of many sizes.
const fewSamples = 5

// tensorLimit is the FLOP/s of f32 products made of three fp16 ones, by the units and the highest clock: tensor cores of Hopper make 16 times the
// FLOPs of the units for f32.
func tensorLimit(f cuda.Facts) float64 { return 16 * f.FFMA / 3 }

// by4 are the sizes from, 4 from, 16 from, up to most.
func by4(from, most int) (sizes []int) {
	for s := from; s <= most; s *= 4 {
		sizes = append(sizes, s)
	}
	return sizes
}

// scalingCases are the ops over four decades of sizes, or as far as one GPU's memory goes: how cost grows with work.
func scalingCases() [][]benchCase {
	var all [][]benchCase
	over := func(sizes []int, make func(size int) benchCase) {
		for _, s := range sizes {
			c := make(s)
			c.row.Few = true
			all = append(all, []benchCase{c})
		}
	}
	over([]int{4, 16, 64, 128, 256, 1024, 4096, 16384, 65536}, func(s int) benchCase { return prefillCase(8, 8, 128, s, "") })
	over(by4(32, 524288), func(t int) benchCase { return decodeCase(8, 8, 128, t, "") })
	over(by4(4, 65536), func(s int) benchCase { return ropeCase(s, 0) })
	over(by4(4, 65536), gatherCase)
	over(by4(4, 65536), func(s int) benchCase { return softmaxCase(s, 4096, false) })
	over(by4(512, 524288), appendCase) // behind fewer the cache would grow on the way
	over(by4(1, 16384), func(s int) benchCase { return linearCase(s, 4096) })
	over(by4(128, 131072), func(n int) benchCase { return pooledCase(picture{n, 64}) })
	return all
}
