package peer

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"
)

// Turnstile has a server tell clients for whom there is no descriptor left, which otherwise wait for an answer that never comes. It holds one for that.
type Turnstile struct {
	spare *os.File // nil: taken by somebody
}

// NewTurnstile takes the descriptor.
func NewTurnstile() *Turnstile {
	t := &Turnstile{}
	t.take()
	return t
}

func (t *Turnstile) take() {
	if f, err := os.Open(os.DevNull); err == nil {
		t.spare = f
	}
}

// Close gives it back.
func (t *Turnstile) Close() {
	if t.spare != nil {
		t.spare.Close()
		t.spare = nil
	}
}

// TurnAway deals with an accept that failed. Where that was for want of a descriptor, say gets the connection for a second, which is closed then; else there is
// a pause, in which some may close.
func (t *Turnstile) TurnAway(l *net.UnixListener, err error, say func(*net.UnixConn)) {
	const pause = 50 * time.Millisecond
	if t.spare == nil || !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) {
		time.Sleep(pause)
		if t.spare == nil {
			t.take()
		}
		return
	}
	t.Close()
	defer t.take()
	_ = l.SetDeadline(time.Now().Add(pause))
	c, err := l.AcceptUnix()
	_ = l.SetDeadline(time.Time{})
	if err != nil {
		return
	}
	defer c.Close()
	if Check(c) != nil {
		return
	}
	_ = c.SetDeadline(time.Now().Add(time.Second))
	say(c)
}
