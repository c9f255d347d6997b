package toolchain

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/attnb/attnb/kernel/wire"
)

const reader = `package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	text, err := io.ReadAll(os.Stdin)
	fmt.Printf("%s %v %q", text, err, os.Getenv("ATTNB_STREAMS"))
	fmt.Fprint(os.Stderr, "err")
	os.Exit(4)
}
`

// taker is the proxy's side: it answers one launcher, and returns what came beside and over the program's streams.
func taker(t *testing.T, answer string) (path string, out <-chan [3]string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "streams")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path = filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	got := make(chan [3]string, 1)
	go func() {
		defer close(got)
		conn, err := l.AcceptUnix()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		said, rights := make([]byte, 100), make([]byte, syscall.CmsgSpace(12))
		n, m, _, _, err := conn.ReadMsgUnix(said, rights)
		if err != nil || string(said[:n]) != nonce {
			t.Errorf("the launcher said %q: %v", said[:n], err)
			return
		}
		messages, err := syscall.ParseSocketControlMessage(rights[:m])
		if err != nil || len(messages) != 1 {
			t.Errorf("%d control messages: %v", len(messages), err)
			return
		}
		fds, err := syscall.ParseUnixRights(&messages[0])
		if err != nil || len(fds) != 3 {
			t.Errorf("%d descriptors: %v", len(fds), err)
			return
		}
		var files []*os.File
		for _, fd := range fds {
			syscall.CloseOnExec(fd)
			f := os.NewFile(uintptr(fd), "stream")
			files = append(files, f)
			defer func() { _ = f.Close() }()
		}
		if _, err := io.WriteString(conn, answer); err != nil || answer != string(wire.StreamsTaken) {
			return
		}
		_, err = files[0].WriteString("typed")
		_ = files[0].Close()
		if err != nil {
			t.Error(err)
		}
		stdout, _ := io.ReadAll(files[1])
		stderr, _ := io.ReadAll(files[2])
		beside, _ := io.ReadAll(conn)
		got <- [3]string{string(stdout), string(stderr), string(beside)}
	}()
	return path, got
}

func TestStreamsAreHandedOver(t *testing.T) {
	c := newCell(t)
	c.build(reader)
	env := c.env
	path, got := taker(t, string(wire.StreamsTaken))
	c.env = append(slices.Clone(env), wire.EnvStreams+"="+path)
	if text, marks, code := c.run(); text != "" || len(marks) > 0 || code != 4 {
		t.Errorf("the launcher's own stdout: %q %q, code %d", text, marks, code)
	}
	out := <-got
	text, marks := scan([]byte(out[2]))
	if out[0] != `typed <nil> ""` || out[1] != "err" || text != "" || !slices.Equal(marks, []string{"start ", "exit 4"}) {
		t.Errorf("stdout %q, stderr %q, beside them %q %q", out[0], out[1], text, marks)
	}
}

// Whatever else the proxy does, the program runs, and its output goes where it went before.
func TestStreamsStay(t *testing.T) {
	c := newCell(t)
	c.build(reader)
	env := c.env
	left, _ := taker(t, string(wire.StreamsLeft))
	gone, _ := taker(t, "")
	odd, _ := taker(t, "x")
	for name, path := range map[string]string{"left": left, "gone": gone, "odd": odd, "no socket": left + "x", "too long": "/" + strings.Repeat("x", 200)} {
		c.env = append(slices.Clone(env), wire.EnvStreams+"="+path)
		if text, marks, code := c.run(); text != ` <nil> ""` || !slices.Equal(marks, []string{"start ", "exit 4"}) || code != 4 {
			t.Errorf("%s: %q %q, code %d", name, text, marks, code)
		}
	}
}
