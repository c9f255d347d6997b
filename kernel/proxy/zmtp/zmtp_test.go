package zmtp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
)

var quiet = slog.New(slog.DiscardHandler)

// echo serves a ROUTER that sends everything back.
func echo(t *testing.T) (s *Server, address string) {
	t.Helper()
	address = filepath.Join(t.TempDir(), "s")
	s, err := Listen("unix", address, zmq4.Router, quiet, func(from string, frames [][]byte) {
		_ = s.Send(from, append([][]byte{[]byte(from)}, frames...))
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(0) })
	return s, address
}

func dial(t *testing.T, address string, kind zmq4.SocketType, id string) *Peer {
	t.Helper()
	p, err := Dial("unix", address, kind, id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func ask(t *testing.T, p *Peer, frames ...[]byte) [][]byte {
	t.Helper()
	if err := p.Send(frames, false); err != nil {
		t.Fatal(err)
	}
	p.conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	got, err := p.Receive()
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestRouter(t *testing.T) {
	_, address := echo(t)
	a, b := dial(t, address, zmq4.Dealer, "a"), dial(t, address, zmq4.Dealer, "")
	big := bytes.Repeat([]byte("x"), 3<<20)
	if got := ask(t, a, []byte{}, []byte("q"), big); len(got) != 4 || string(got[0]) != "a" || len(got[1]) != 0 || !bytes.Equal(got[3], big) {
		t.Errorf("got %d frames from %q", len(got), got[0])
	}
	if got := ask(t, b, []byte("r")); !strings.HasPrefix(string(got[0]), "\x00") || string(got[1]) != "r" {
		t.Errorf("got %q", got)
	}
	// A client that comes back under its name gets the answers.
	a2 := dial(t, address, zmq4.Dealer, "a")
	if got := ask(t, a2, []byte("s")); string(got[1]) != "s" {
		t.Errorf("got %q", got)
	}
}

// zmq4's own sockets, of both sides, understand ours.
func TestSpeaksZeroMQ(t *testing.T) {
	_, address := echo(t)
	d := zmq4.NewDealer(t.Context(), zmq4.WithID(zmq4.SocketIdentity("z")))
	defer d.Close()
	if err := d.Dial("ipc://" + address); err != nil {
		t.Fatal(err)
	}
	if err := d.SendMulti(zmq4.NewMsgFrom([]byte("one"), []byte("two"))); err != nil {
		t.Fatal(err)
	}
	m, err := d.Recv()
	if err != nil || fmt.Sprintf("%s", m.Frames) != "[z one two]" {
		t.Errorf("%v %q", err, m.Frames)
	}
}

// A client that says nothing, one that says nonsense and one with an absurd frame disturb nobody.
func TestBadClients(t *testing.T) {
	_, address := echo(t)
	silent, err := net.Dial("unix", address)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	nonsense, err := net.Dial("unix", address)
	if err != nil {
		t.Fatal(err)
	}
	defer nonsense.Close()
	nonsense.Write(bytes.Repeat([]byte("GET / HTTP/1.1\r\n"), 10))
	absurd := dial(t, address, zmq4.Dealer, "absurd")
	absurd.conn.Write(binary.BigEndian.AppendUint64([]byte{2}, 1<<62))
	long := dial(t, address, zmq4.Dealer, "long") // claims much and sends little
	long.conn.Write(binary.BigEndian.AppendUint64([]byte{2}, maxFrame))

	if got := ask(t, dial(t, address, zmq4.Dealer, "good"), []byte("q")); string(got[1]) != "q" {
		t.Errorf("got %q", got)
	}
	absurd.conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := absurd.Receive(); err == nil {
		t.Error("a peer with an absurd frame was not dropped")
	}
}

func TestPublish(t *testing.T) {
	address := filepath.Join(t.TempDir(), "p")
	s, err := Listen("unix", address, zmq4.Pub, quiet, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(0)
	s.Publish([][]byte{[]byte("nobody listens")}, false)
	a, deaf := dial(t, address, zmq4.Sub, ""), dial(t, address, zmq4.Sub, "")
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		n := len(s.topics)
		s.mu.Unlock()
		if n == 2 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no subscriptions")
		}
	}
	got := make(chan int, 1)
	go func() {
		n := 0
		for {
			m, err := a.Receive()
			if err != nil || string(m[0]) == "end" {
				got <- n
				return
			}
			n++
		}
	}()
	// What one subscriber does not take makes the publisher wait, but not for what is urgent.
	block := bytes.Repeat([]byte("x"), 1<<20)
	sent := make(chan struct{})
	go func() {
		for range 40 {
			s.Publish([][]byte{[]byte("t"), block}, false)
		}
		s.Publish([][]byte{[]byte("end")}, false)
		close(sent)
	}()
	time.Sleep(300 * time.Millisecond)
	select {
	case <-sent:
		t.Error("40 MB were published to a subscriber that takes nothing")
	default:
	}
	began := time.Now()
	s.Publish([][]byte{[]byte("urgent")}, true)
	if took := time.Since(began); took > time.Second {
		t.Errorf("an urgent message waited %v", took)
	}
	deaf.mu.Lock()
	pending := deaf.pending
	deaf.mu.Unlock()
	if pending > queueLimit {
		t.Errorf("%d bytes wait", pending)
	}
	deaf.Close() // the one that does not read has gone
	<-sent
	if n := <-got; n != 41 {
		t.Errorf("the other got %d messages, want 41", n)
	}
}
