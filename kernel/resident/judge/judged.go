package judge

import (
	"fmt"

	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference/parity"
)

// judged is the outcome of a comparison. Two things must hold: each cell lies within its bound, and all of them together within
// the relative L2 error that rounding explains. The first finds a wrong cell, the second a wrong sum of many terms, whose
// bound is wide.
type judged struct {
	report  parity.Report
	limitL2 float64
	failed  []int // flat indices of the cells that failed
}

func (j judged) pass() bool { return j.report.Pass && j.passL2() }

func (j judged) passL2() bool { return j.report.RelL2 <= j.limitL2 }

// fail notes the cells beyond their limit.
func (j *judged) fail(ratios []float32) {
	for i, r := range ratios {
		if !(r <= 1) {
			j.failed = append(j.failed, i)
		}
	}
}

// outcome is the verdict in a few words. allowed is what the tolerance of a cell is called.
func (j judged) outcome(allowed string) string {
	r := j.report
	switch {
	case j.pass():
		return fmt.Sprintf("pass, error/%s %.3g", allowed, r.MaxRatio)
	case r.Pass:
		return fmt.Sprintf("FAIL, relative L2 %.3g is over its limit %.3g", r.RelL2, j.limitL2)
	}
	return fmt.Sprintf("FAIL, error/%s %.3g, %d of %d cells", allowed, r.MaxRatio, r.Failed, r.N)
}

// wordsL2 is the second criterion.
func (j judged) wordsL2() string {
	switch rel := j.report.RelL2; {
	case j.limitL2 > 0:
		return fmt.Sprintf("relative L2 %.3g, %.3g of its limit %.3g", rel, rel/j.limitL2, j.limitL2)
	case rel > 0:
		return fmt.Sprintf("relative L2 %.3g, where nothing is rounded", rel)
	}
	return "relative L2 0"
}

func (j judged) verdict() *wire.Verdict {
	r := j.report
	return &wire.Verdict{Pass: j.pass(), Cells: r.N, Failed: r.Failed, MaxRatio: r.MaxRatio, MaxAbs: r.MaxAbs, MaxRel: r.MaxRel,
		MaxULP: r.MaxULP, RelL2: r.RelL2, LimitL2: j.limitL2}
}
