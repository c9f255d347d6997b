package resident

import (
	"flag"
	"syscall"
	"testing"
	"time"
)

var timed = flag.Bool("timed", false, "measure what takes seconds")

// An audit of twelve stages, as one layer of GPT-2 has them, takes less than ten seconds on two cores.
//
//	go test ./kernel/resident -run AuditTime -timed -v
func TestAuditTime(t *testing.T) {
	if !*timed {
		t.Skip("not asked for")
	}
	p := onHost(t)
	c := p.dial()
	defer c.Close()
	x := c.stepByStep(12, 1024, 64)
	began, before := time.Now(), cpuTime(t)
	a := c.audit(x.end)
	took, cpu := time.Since(began), cpuTime(t)-before
	t.Logf("S 1024, H 12, d 64, 12 stages: %v, of both cores %v\n%s", took, cpu, a.Text)
	if !a.Finding.Pass || cpu > 20*time.Second { // so that it is not a matter of what else runs here
		t.Error("wrong or too slow")
	}
}

// cpuTime is what this process has had of all cores.
func cpuTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
