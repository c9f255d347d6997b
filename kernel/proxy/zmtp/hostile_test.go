package zmtp

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
)

// greeting is how a connection begins, with the NULL mechanism.
func greeting() []byte {
	g := make([]byte, 64)
	g[0], g[9], g[10] = 0xff, 0x7f, 3
	copy(g[12:], "NULL")
	return g
}

// command is a frame of the handshake that claims a size, as a long one.
func command(size uint64, body string) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{6}, size), body...)
}

const ready = "\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER"

// A length in the handshake is as little believed as any other: each of these would take a terabyte, or gigabytes, before the rest is missed.
func TestHandshakeTrustsNoLength(t *testing.T) {
	_, address := echo(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, size := range []uint64{1 << 62, 1 << 40, 1 << 34, maxHandshake + 1} {
		c, err := net.Dial("unix", address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(append(greeting(), command(size, ready)...)); err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(handshakeLimit / 2))
		if _, err := io.Copy(io.Discard, c); err != nil && !bytes.Contains([]byte(err.Error()), []byte("reset")) {
			t.Errorf("a command of %d bytes: %v, want the connection closed at once", size, err)
		}
		c.Close()
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
		t.Errorf("%d bytes were allocated", n)
	}
	if got := ask(t, dial(t, address, zmq4.Dealer, "a"), []byte("q")); string(got[1]) != "q" {
		t.Errorf("got %q", got)
	}
}

// A READY that is sent as a long command is one nevertheless.
func TestLongReady(t *testing.T) {
	_, address := echo(t)
	c, err := net.Dial("unix", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	message := []byte("\x00\x01q")
	if _, err := c.Write(append(append(greeting(), command(uint64(len(ready)), ready)...), message...)); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	var got []byte
	for !bytes.HasSuffix(got, message) {
		b := make([]byte, 256)
		n, err := c.Read(b)
		if got = append(got, b[:n]...); err != nil {
			t.Fatalf("%q, %v", got, err)
		}
	}
}

// FuzzConnection feeds a server what a client may send, from the first byte on.
func FuzzConnection(f *testing.F) {
	f.Add(append(append(greeting(), command(uint64(len(ready)), ready)...), "\x01\x01a\x00\x01b"...))
	f.Add(append(append(greeting(), 4, byte(len(ready))), ready+"\x00\x01q"...))
	f.Add(append(greeting(), command(1<<40, ready)...))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		ours, theirs := net.Pipe()
		go io.Copy(io.Discard, theirs)
		go func() {
			_, _ = theirs.Write(sent)
			theirs.Close()
		}()
		p, err := open(ours, zmq4.Router, "", true)
		if err != nil {
			return
		}
		defer p.Close()
		for {
			frames, err := p.Receive()
			if err != nil {
				return
			}
			total := 0
			for _, frame := range frames {
				total += len(frame)
			}
			if len(frames) == 0 || total > len(sent) {
				t.Fatalf("%d frames of %d bytes from %d", len(frames), total, len(sent))
			}
		}
	})
}
