// Command avogen writes the kernels of package host for amd64: kernels_amd64.s and the declarations in kernels_amd64.go, which
// say what each computes. It is a module of its own, so that nothing else depends on avo.
package main

import . "github.com/mmcloughlin/avo/build"

func main() {
	ConstraintExpr("amd64")
	for _, s := range []strip{strip16, strip64} {
		s.products()
		s.weighted()
		s.maximum()
		s.exponentials()
	}
	dots()
	addWeighted()
	fold()
	scaleRow()
	maximumRow()
	exponentialsRow()
	finite()
	transpose()
	Generate()
}
