package resident

import (
	"syscall"
	"time"

	"github.com/attnb/attnb/kernel/wire"
)

// patience is how long a request may take before its client is watched.
const patience = 20 * time.Millisecond

// vigil ends the client's context when the client goes away while its request is answered: a cell that is interrupted must not
// leave the device busy. The returned function ends the vigil. An op that is only queued has none: it could not be stopped, and a
// timer costs more than the rest of the answer where processors are slow to wake.
func (c *conn) vigil(r wire.Request) (end func()) {
	if r.Kind == wire.KindRun && !c.s.d.Interruptible() {
		return func() {}
	}
	ended := make(chan struct{})
	timer := time.AfterFunc(patience, func() {
		defer close(ended)
		c.watchPeer()
	})
	return func() {
		if timer.Stop() {
			return
		}
		_ = c.c.SetReadDeadline(time.Unix(1, 0)) // ends the watch
		<-ended
		_ = c.c.SetReadDeadline(time.Time{})
	}
}

// watchPeer waits until the client closes its connection, or sends, or a deadline passes. It takes nothing out of the stream.
func (c *conn) watchPeer() {
	raw, err := c.c.SyscallConn()
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
				c.leave()
			}
			return true
		}
	})
}
