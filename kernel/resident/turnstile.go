package resident

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/attnb/attnb/kernel/peer"
	"github.com/attnb/attnb/kernel/wire"
)

// turnstile tells clients for whom there is no descriptor left. It holds one for that: without, they would wait for an answer that never comes.
type turnstile struct {
	log   *slog.Logger
	spare *os.File // nil: taken by somebody
}

func newTurnstile(log *slog.Logger) *turnstile {
	t := &turnstile{log: log}
	t.take()
	return t
}

func (t *turnstile) take() {
	if f, err := os.Open(os.DevNull); err == nil {
		t.spare = f
	}
}

func (t *turnstile) close() {
	if t.spare != nil {
		t.spare.Close()
		t.spare = nil
	}
}

// turnAway deals with an accept that failed.
func (t *turnstile) turnAway(l *net.UnixListener, err error) {
	const pause = 50 * time.Millisecond
	t.log.Warn("accept", "error", err)
	if t.spare == nil || !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) {
		time.Sleep(pause) // let some close
		if t.spare == nil {
			t.take()
		}
		return
	}
	t.close()
	defer t.take()
	_ = l.SetDeadline(time.Now().Add(pause))
	c, err := l.AcceptUnix()
	_ = l.SetDeadline(time.Time{})
	if err != nil {
		return
	}
	defer c.Close()
	if peer.Check(c) != nil {
		return
	}
	_ = c.SetDeadline(time.Now().Add(time.Second))
	if _, err := wire.ReadFrame(c); err == nil {
		a := failure(wire.Errorf(wire.Refused, "the device process has no descriptor left for another connection: end programs that hold some, or raise the limit (ulimit -n)"))
		_ = wire.WriteFrame(c, a.Encode())
	}
}
