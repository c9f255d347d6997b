package optest

import (
	"strings"
	"testing"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/host"
)

func TestSelfTest(t *testing.T) {
	d := cudaops.NewDevice(host.New(host.Options{}))
	defer d.Close()
	cells, seen := 0, map[string]bool{}
	if !SelfTest(d, func(l Line) {
		cells += l.Cells
		if seen[l.Op] {
			t.Errorf("a second line about %s", l.Op)
		}
		seen[l.Op] = true
		if l.Err != nil || l.Cases == 0 || !strings.HasPrefix(l.String(), "ok ") {
			t.Error(l)
		}
	}) {
		t.Error("it did not pass")
	}
	if cells < 100000 {
		t.Errorf("only %d cells were compared", cells)
	}
}

// A device that lacks an op does not pass.
func TestSelfTestFindsALack(t *testing.T) {
	unsupported := func(cudaops.Backend, cudaops.View, cudaops.View, cudaops.View, cudaops.View, float32, cudaops.Mask, cudaops.Reduce) error {
		return cudaops.ErrUnsupported
	}
	d := cudaops.NewDevice(broken{Backend: host.New(host.Options{}), pool: unsupported})
	defer d.Close()
	lines := map[string]string{}
	if SelfTest(d, func(l Line) { lines[l.Op] = l.String() }) {
		t.Error("passes without Pool")
	}
	if !strings.HasPrefix(lines["pool"], "FAIL  ") || !strings.HasPrefix(lines["lse"], "ok ") {
		t.Errorf("%q", lines)
	}
}

// A self-test that a broken device passes is worth nothing: the op that is broken is named, and no copy is blamed.
func TestSelfTestFindsAFault(t *testing.T) {
	d := cudaops.NewDevice(broken{Backend: host.New(host.Options{}), add: func(b cudaops.Backend, dst, x, _ cudaops.View) error { return b.Add(dst, x, x) }})
	defer d.Close()
	var failed []string
	passed := SelfTest(d, func(l Line) {
		if l.Err != nil {
			failed = append(failed, l.Op)
			if !strings.HasPrefix(l.String(), "FAIL  ") {
				t.Error(l)
			}
		}
	})
	if passed || strings.Join(failed, " ") != "seed add" {
		t.Errorf("passed: %v, with these failing: %q", passed, failed)
	}
}
