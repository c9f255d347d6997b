package optest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/reference/parity"
)

// Line is what [SelfTest] found about one op.
type Line struct {
	Op    string
	Cases int
	Cells int     // compared with the truth
	Worst float64 // error / bound of the worst cell; copies are exact, or fail
	Took  time.Duration
	Err   error // of the first case that failed
}

func (l Line) String() string {
	if l.Err != nil {
		return fmt.Sprintf("FAIL  %-13s %v", l.Op, l.Err)
	}
	text := fmt.Sprintf("ok    %-13s %3d cases", l.Op, l.Cases)
	if l.Cells > 0 {
		text += fmt.Sprintf(", %7d cells, worst error/bound %.3g", l.Cells, l.Worst)
	}
	return text + fmt.Sprintf(", %d ms", l.Took.Milliseconds())
}

// SelfTest runs each case of the table once on a device, with its inputs packed, then the captured layers, and hands over what
// came of each op. It says whether everything passed. It is for a machine that cannot run the suite: [Run] looks closer.
func SelfTest(d *cudaops.Device, report func(Line)) bool {
	all := cases()
	passed := true
	tell := func(l Line, start time.Time) {
		l.Took = time.Since(start)
		passed = passed && l.Err == nil
		report(l)
	}
	for i, c := range all {
		op, start := opOf(c), time.Now()
		if slices.ContainsFunc(all[:i], func(c testCase) bool { return opOf(c) == op }) {
			continue // its cases do not all stand together
		}
		line := Line{Op: op}
		for _, c := range all[i:] {
			if opOf(c) == op {
				line.take(d, c)
			}
		}
		tell(line, start)
	}
	start := time.Now()
	line := Line{Op: "real layers"}
	for _, g := range goldens() {
		line.Cases++
		if err := g.check(d); err != nil && line.Err == nil {
			line.Err = fmt.Errorf("%s: %w", g.name, err)
		}
	}
	tell(line, start)
	return passed
}

// opOf is the part of a case's name that says which op it is of.
func opOf(c testCase) string {
	op, _, _ := strings.Cut(c.name, "/")
	return op
}

// take runs a case.
func (l *Line) take(d *cudaops.Device, c testCase) {
	l.Cases++
	got, err := c.run(d, placements[0])
	if err == nil {
		err = c.compare(got)
	}
	if err != nil {
		if l.Err == nil {
			l.Err = fmt.Errorf("%s: %w", c.name, err)
		}
		return
	}
	want, err := c.truth()
	for i := 0; i < len(want) && err == nil; i++ {
		var r parity.Report
		r, err = parity.Compare(got[i], flat(want[i].Value), flat(want[i].Err))
		l.Cells += r.N
		l.Worst = max(l.Worst, r.MaxRatio)
	}
	if l.Err == nil {
		l.Err = err
	}
}
