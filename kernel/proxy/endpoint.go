package proxy

import (
	"errors"
	"net"
	"time"

	"github.com/attnb/attnb/kernel/peer"
)

// endpoint is a unix socket in the runtime directory for what cells and launchers say to the proxy itself.
type endpoint struct {
	path string // empty: it could not be made, and nobody is told of it
	l    *net.UnixListener
}

// listen makes the endpoint, for this user's processes. Each connection has a goroutine of its own, which closes it.
func (k *Kernel) listen(name string, serve func(*net.UnixConn)) endpoint {
	path := k.dir.File(name)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		k.log.Error("no socket", "name", name, "error", err)
		return endpoint{}
	}
	go func() {
		for failing := false; ; {
			conn, err := l.AcceptUnix()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				if !failing {
					k.log.Warn("accept", "name", name, "error", err)
				}
				failing = true
				time.Sleep(50 * time.Millisecond) // out of descriptors, most likely: let some close
				continue
			}
			failing = false
			if err := peer.Check(conn); err != nil {
				k.log.Warn("refused a connection", "name", name, "error", err)
				conn.Close()
				continue
			}
			go serve(conn)
		}
	}()
	return endpoint{path, l}
}

func (e endpoint) close() {
	if e.l != nil {
		e.l.Close()
	}
}
