//go:build cuda

package cuda

import (
	"strings"
	"sync/atomic"
	"unsafe"

	"gorgonia.org/cu"
)

// progress tells which op was running when the device failed. Behind each op the stream writes the op's number to a
// word of host memory; what follows the last number written is the op that did not end.
type progress struct {
	memory []byte
	word   *uint32
	device cu.DevicePtr
	last   uint32
	names  [1024]string // of the ops numbered last-1023 .. last
	off    bool         // the driver cannot write from a stream
}

func (p *progress) open(s cu.Stream) (err error) {
	if p.memory, err = pinned(4); err != nil {
		return err
	}
	p.word = (*uint32)(unsafe.Pointer(unsafe.SliceData(p.memory)))
	atomic.StoreUint32(p.word, 0)
	if p.device, err = onDevice(p.memory); err != nil {
		return err
	}
	p.off = s.WriteValue32(p.device, 0, 0) != nil
	return nil
}

func (p *progress) close(try func(error)) {
	if p.memory != nil {
		try(freePinned(p.memory))
	}
	p.memory, p.word = nil, nil
}

// mark numbers the op that was just queued.
func (p *progress) mark(op string, s cu.Stream) error {
	p.last++
	p.names[p.last%uint32(len(p.names))] = op
	if p.off {
		return nil
	}
	return s.WriteValue32(p.device, p.last, 0)
}

// running names the op that did not end; op is the one that was being queued when the failure showed.
func (p *progress) running(op string) string {
	if p.word == nil {
		return op
	}
	done := atomic.LoadUint32(p.word)
	switch pending := p.last - done; {
	case p.off:
		return "an op before " + op
	case pending == 0:
		return op
	case pending > uint32(len(p.names)):
		return strings.Join([]string{"an op before", p.names[(p.last+1)%uint32(len(p.names))]}, " ")
	}
	return p.names[(done+1)%uint32(len(p.names))]
}
