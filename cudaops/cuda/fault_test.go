//go:build cuda && cudafault

package cuda

import (
	"errors"
	"testing"
	"time"

	"github.com/attnb/attnb/cudaops"
)

// After an illegal address every call says which op failed, nothing hangs, and closing ends in order.
func TestFault(t *testing.T) {
	if emulated {
		t.Skip("the emulator knows no faults")
	}
	b := openBackend(t, Options{})
	d := cudaops.NewDevice(b)
	x, err := d.Upload(make([]float32, 1000), 1, 10, 100)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Add(x, x); err != nil {
		t.Fatal(err)
	}
	if err := b.Fault(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	var y *cudaops.Buffer
	for range 3 { // queued behind the fault: they may or may not notice
		if y, err = d.Add(x, x); err != nil {
			break
		}
	}
	_ = y
	_, err = d.Download(x)
	var fault *FaultError
	if !errors.As(err, &fault) || !errors.Is(err, cudaops.ErrDevice) {
		t.Fatalf("got %v, want a FaultError", err)
	}
	t.Log(err)
	if fault.Op != "Fault" {
		t.Errorf("the op is %q, want Fault", fault.Op)
	}
	if _, again := d.Add(x, x); !errors.As(again, &fault) {
		t.Errorf("a later op: %v, want the fault again", again)
	}
	if err := x.Release(); err != nil {
		t.Errorf("release after the fault: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Errorf("close after the fault: %v", err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}
