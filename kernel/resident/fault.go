package resident

import (
	"errors"
	"fmt"
	"time"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
)

// ExitFault is the exit status of a device process that ends because its device failed, so that its parent starts a
// fresh one: nothing else revives a GPU after a fault. It is EX_TEMPFAIL of sysexits.
const ExitFault = 75

// FaultError ends Serve: the device failed, and every tensor is lost.
type FaultError struct {
	Device string // "the GPU"
	Op     string // the op that it failed in, as far as known
	Cell   int    // the cell that ran; 0 where unknown
	Err    error  // what the device said
}

func (e *FaultError) Error() string { return fmt.Sprintf("%s failed in %s: %v", e.Device, e.Op, e.Err) }

// Unwrap returns what the device said.
func (e *FaultError) Unwrap() error { return e.Err }

// lastPictures is how long a process waits, before it ends, for the proxy to fetch what cells have shown.
const lastPictures = 500 * time.Millisecond

// fail notes that the device failed, once, leaves word of what is lost, and completes the answer.
func (s *server) fail(f *store.DeviceFault) {
	s.faultMu.Lock()
	defer s.faultMu.Unlock()
	if s.fault == nil {
		s.fault = s.newFault(f.Cause)
		s.log.Error("the device failed", "op", s.fault.Op, "error", s.fault.Err)
		s.lost = s.store.Remains()
		if err := s.saveNames(s.fault); err != nil {
			s.log.Error("what is lost", "error", err)
		}
		go func() {
			for end := time.Now().Add(lastPictures); s.gallery.Waiting() > 0 && time.Now().Before(end); {
				time.Sleep(5 * time.Millisecond)
			}
			s.stop()
		}()
	}
	f.Answer.Message = fmt.Sprintf("%s: %v. %s. A fresh device process starts", f.Op, s.fault, s.lost)
}

func (s *server) newFault(cause *cudaops.DeviceError) *FaultError {
	f := &FaultError{Device: "the device", Op: cause.FailedOp(), Err: cause.Err}
	if s.d.Info().Backend == "cuda" {
		f.Device = "the GPU"
	}
	// An error that names the op itself is not to name it twice.
	var named interface {
		FailedOp() string
		Unwrap() error
	}
	if errors.As(cause.Err, &named) && named.Unwrap() != nil {
		f.Err = named.Unwrap()
	}
	f.Cell = s.store.CellNow()
	return f
}

// faulted refuses what comes after the fault. Displays can still be fetched.
func (s *server) faulted(r wire.Request) error {
	s.faultMu.Lock()
	defer s.faultMu.Unlock()
	if s.fault == nil || r.Kind == wire.KindDisplay || r.Kind == wire.KindStatus {
		return nil
	}
	return wire.Errorf(wire.DeviceFault, "%v. %s. A fresh device process starts", s.fault, s.lost)
}
