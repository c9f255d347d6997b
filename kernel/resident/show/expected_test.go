package show

import (
	"math"
	"strings"
	"testing"
)

func TestInWords(t *testing.T) {
	for want, x := range map[string][2]float64{
		"relative L2 error 0, they agree": {0, 0}, "relative L2 error 1e-07, they agree to rounding": {1e-14, 1}, "relative L2 error 0.0001, near but not to rounding": {1e-8, 1},
		"relative L2 error 1, they differ": {4, 4}, "relative L2 error not finite, they differ": {math.NaN(), 1}, "relative L2 error not finite, they differ ": {1, 0},
	} {
		if got := inWords(x[0], x[1]); got != strings.TrimSpace(want) {
			t.Errorf("%g: %s, want %s", x, got, want)
		}
	}
}
