package peer

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A client that comes when no descriptor is left is told so, each time; who comes when there is one again is served.
func TestTurnstile(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "attnb-peer-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	full := NewTurnstile()
	defer full.Close()
	var clients []net.Conn
	for range 3 { // they wait in the backlog
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		clients = append(clients, c)
	}

	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	low := limit
	low.Cur = 64
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	var filled []*os.File
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		filled = append(filled, f)
	}
	for _, c := range clients[:2] {
		_, err := l.AcceptUnix()
		if !errors.Is(err, syscall.EMFILE) {
			t.Errorf("accept: %v", err)
		}
		full.TurnAway(l, err, func(c *net.UnixConn) {
			if _, err := c.Write([]byte("full")); err != nil {
				t.Error(err)
			}
		})
		if said, err := io.ReadAll(c); string(said) != "full" || err != nil {
			t.Errorf("%q, %v", said, err)
		}
	}
	for _, f := range filled {
		f.Close()
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	c, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if full.spare == nil {
		t.Error("it has no descriptor for the next")
	}
}
