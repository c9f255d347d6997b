//go:build cuda

package cuda

import (
	"sync/atomic"
	"unsafe"
)

// progress tells which op was running when the device failed. Every kernel begins by storing its op's number in a word of
// host memory (kernels/common.cuh): the last number there is the op that did not end, since the stream runs them in turn.
// A write from the stream behind every op (cuStreamWriteValue32) would say the same, but not every machine has it.
type progress struct {
	memory []byte
	word   *uint32
	device pointer      // of the word
	last   uint32       // number of the op queued last
	names  [1024]string // of the ops numbered last-1023 .. last
}

func (p *progress) open() (err error) {
	if p.memory, err = pinned(4); err != nil {
		return err
	}
	p.word = (*uint32)(unsafe.Pointer(unsafe.SliceData(p.memory)))
	atomic.StoreUint32(p.word, 0)
	p.device, err = onDevice(p.memory)
	return err
}

func (p *progress) close(try func(error)) {
	if p.memory != nil {
		try(freePinned(p.memory))
	}
	p.memory, p.word = nil, nil
}

// next numbers the op whose kernels are queued from now on.
func (p *progress) next(op string) {
	p.last++
	if p.last == 0 { // 0 in the word means that no kernel began
		p.last = 1
	}
	p.names[p.last%uint32(len(p.names))] = op
}

// running names the op whose kernel began last; op is the one that was being queued, or read, when the failure showed.
func (p *progress) running(op string) string {
	if p.word == nil {
		return op
	}
	began := atomic.LoadUint32(p.word)
	switch {
	case began == 0:
		return op
	case p.last-began >= uint32(len(p.names)):
		return "an op before " + p.names[(p.last+1)%uint32(len(p.names))]
	}
	return p.names[began%uint32(len(p.names))]
}
