//go:build cuda

package cuda

import (
	"runtime"
	"sync"
	"unsafe"

	"github.com/attnb/attnb/cudaops"
	"gorgonia.org/cu"
)

const (
	slotBytes = 4 << 20
	slots     = 4
)

// staging is pinned host memory through which transfers pass: the GPU moves to and from it at the speed of the bus, and from
// Go's memory at a fraction of that. Its slots are used in turn, so that the copy by the processor and the transfer
// overlap.
type staging struct {
	memory []byte
	moved  [slots]cu.Event // recorded behind the last transfer of a slot
	made   int             // events made
	next   int
}

func (s *staging) open() (err error) {
	if s.memory, err = pinned(slots * slotBytes); err != nil {
		return err
	}
	for i := range s.moved {
		if s.moved[i], err = cu.MakeEvent(eventTimingOff); err != nil {
			return err
		}
		s.made++
	}
	return nil
}

func (s *staging) close(try func(error)) {
	for i := range s.made {
		try(cu.DestroyEvent(&s.moved[i]))
	}
	if s.memory != nil {
		try(freePinned(s.memory))
	}
	*s = staging{}
}

// slot returns the next slot, at most n bytes of it, once its last transfer is over.
func (s *staging) slot(n int) (memory []byte, moved cu.Event, err error) {
	i := s.next
	s.next = (i + 1) % slots
	return s.memory[i*slotBytes:][:min(n, slotBytes)], s.moved[i], s.moved[i].Synchronize()
}

func bytesOf[T any](x []T) []byte {
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(zero)))
}

// Upload copies src to dst[offset:].
func (b *Backend) Upload(dst cudaops.Memory, offset int, src []float32) error {
	return b.queue("Upload", func() error { return b.upload(address(dst, offset), bytesOf(src)) })
}

func (b *Backend) upload(to pointer, src []byte) error {
	for len(src) > 0 {
		slot, moved, err := b.stage.slot(len(src))
		if err != nil {
			return err
		}
		copyBytes(slot, src)
		if err := cu.MemcpyHtoDAsync(cu.DevicePtr(to), unsafe.Pointer(unsafe.SliceData(slot)), int64(len(slot)), b.stream); err != nil {
			return err
		}
		if err := moved.Record(b.stream); err != nil {
			return err
		}
		to += pointer(len(slot))
		src = src[len(slot):]
	}
	return nil
}

// Download waits for the queued work and copies src[offset:] to dst.
func (b *Backend) Download(dst []float32, src cudaops.Memory, offset int) error {
	return b.do("Download", func() error { return b.download(bytesOf(dst), address(src, offset)) })
}

func (b *Backend) download(dst []byte, from pointer) error {
	type transfer struct {
		slot  []byte
		moved cu.Event
	}
	var queued []transfer
	asked := 0
	for len(dst) > 0 {
		for asked < len(dst) && len(queued) < slots {
			slot, moved, err := b.stage.slot(len(dst) - asked)
			if err != nil {
				return err
			}
			if err := cu.MemcpyDtoHAsync(unsafe.Pointer(unsafe.SliceData(slot)), cu.DevicePtr(from), int64(len(slot)), b.stream); err != nil {
				return err
			}
			if err := moved.Record(b.stream); err != nil {
				return err
			}
			queued = append(queued, transfer{slot, moved})
			from += pointer(len(slot))
			asked += len(slot)
		}
		t := queued[0]
		queued = queued[1:]
		if err := t.moved.Synchronize(); err != nil {
			return err
		}
		copyBytes(dst, t.slot)
		dst = dst[len(t.slot):]
		asked -= len(t.slot)
	}
	return nil
}

// copyBytes is copy, by several cores where one would hold up the bus.
func copyBytes(dst, src []byte) {
	const piece = 512 << 10
	n := min(len(dst), len(src))
	workers := min(n/piece, runtime.GOMAXPROCS(0), 8)
	if workers < 2 {
		copy(dst, src)
		return
	}
	var wg sync.WaitGroup
	for i := range workers {
		from, to := n*i/workers, n*(i+1)/workers
		wg.Go(func() { copy(dst[from:to], src[from:to]) })
	}
	wg.Wait()
}
