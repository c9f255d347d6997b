// Package peer tells whose process is at the other end of a unix socket, as the operating system knows it.
package peer

import (
	"fmt"
	"net"
	"os"
)

// Error says that a process of another user has connected.
type Error struct{ UID int }

func (e *Error) Error() string {
	return fmt.Sprintf("the client is of user %d, not %d", e.UID, os.Getuid())
}

// Check refuses a client of another user, root too, with an [*Error]. It is the second lock: the first is a directory that no other user
// can enter.
func Check(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var uid int
	var failed error
	if err := raw.Control(func(fd uintptr) { uid, failed = uidOf(int(fd)) }); err != nil {
		return err
	}
	switch {
	case failed != nil:
		return os.NewSyscallError("getsockopt", failed)
	case uid != os.Getuid():
		return &Error{uid}
	}
	return nil
}
