package peer

import (
	"net"
	"syscall"
	"time"
)

// Vigil runs left when the other end closes its connection while it waits for an answer, once that has taken as long as patience. It takes nothing out of
// the stream, and is over when the other end sends. end ends it, and returns when left runs no more.
func Vigil(c *net.UnixConn, patience time.Duration, left func()) (end func()) {
	ended := make(chan struct{})
	timer := time.AfterFunc(patience, func() {
		defer close(ended)
		watch(c, left)
	})
	return func() {
		if timer.Stop() {
			return
		}
		_ = c.SetReadDeadline(time.Unix(1, 0)) // ends the watch
		<-ended
		_ = c.SetReadDeadline(time.Time{})
	}
}

// watch waits until the other end closes, or sends, or a deadline passes.
func watch(c *net.UnixConn, left func()) {
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	var one [1]byte
	_ = raw.Read(func(fd uintptr) (done bool) {
		for {
			n, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
			switch {
			case err == syscall.EINTR:
				continue
			case err == syscall.EAGAIN:
				return false
			case n == 0 || err != nil:
				left()
			}
			return true
		}
	})
}
