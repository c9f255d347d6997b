package far

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/host"
	"github.com/attnb/attnb/kernel/resident"
	"github.com/attnb/attnb/kernel/wire"
)

// keeping is a keeper beside a real device process, both in this one.
type keeping struct {
	t     *testing.T
	path  string
	ended chan error
}

const token = "0123456789abcdef"

var hello = Hello{Version: "1", Protocol: wire.Version, Token: token, Grace: time.Minute}

func keep(t *testing.T, grace time.Duration) *keeping {
	t.Helper()
	dir, err := os.MkdirTemp("", "attnb")
	if err != nil {
		t.Fatal(err)
	}
	device := cudaops.NewDevice(host.New(host.Options{Workers: 1}))
	ctx, stop := context.WithCancel(context.Background())
	k := &keeping{t: t, path: filepath.Join(dir, "link"), ended: make(chan error, 1)}
	served := make(chan error, 1)
	go func() {
		served <- resident.Serve(ctx, resident.Options{Socket: filepath.Join(dir, "device"), Token: token, Device: device})
	}()
	go func() {
		k.ended <- Keep(ctx, Keeping{Socket: k.path, Device: filepath.Join(dir, "device"), Token: token, Version: "1", Grace: grace})
	}()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-k.ended, <-served); err != nil {
			t.Error(err)
		}
		if n := device.InUse(); n != 0 {
			t.Errorf("%d bytes in use at the end", n)
		}
		device.Close()
		os.RemoveAll(dir)
	})
	return k
}

func (k *keeping) dial() *net.UnixConn {
	k.t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		c, err := dial(k.path)
		if err == nil {
			k.t.Cleanup(func() { c.Close() })
			return c
		}
		if time.Now().After(end) {
			k.t.Fatal(err)
		}
	}
}

// greet says hello and returns the answer.
func (k *keeping) greet(h Hello) (*net.UnixConn, *bufio.Reader, Welcome, error) {
	k.t.Helper()
	c := k.dial()
	if err := writeHello(c, h); err != nil {
		k.t.Fatal(err)
	}
	r := bufio.NewReader(c)
	w, _, err := readWelcome(r)
	return c, r, w, err
}

// link is one that says hello.
func (k *keeping) link(keep ...uint64) *yamux.Session {
	k.t.Helper()
	h := hello
	h.Keep = keep
	c, r, w, err := k.greet(h)
	if err != nil || w.Error != "" || w.Instance == "" {
		k.t.Fatalf("%+v, %v", w, err)
	}
	mux, err := yamux.Client(pipe{r, c}, settings(30*time.Second))
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() { mux.Close() })
	return mux
}

// stream opens one for a connection, and says how many requests it has carried.
func stream(t *testing.T, mux *yamux.Session, id uint64) (*yamux.Stream, uint64) {
	t.Helper()
	st, err := mux.OpenStream()
	if err != nil {
		t.Fatal(err)
	}
	var head [8]byte
	if _, err := st.Write(idBytes(id)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(st, head[:]); err != nil {
		t.Fatal(err)
	}
	return st, binary.LittleEndian.Uint64(head[:])
}

func ask(t *testing.T, st io.ReadWriter, r wire.Request, data []float32) wire.Answer {
	t.Helper()
	r.DataLen = 4 * len(data)
	if err := wire.WriteFrame(st, r.Encode()); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Write(wire.FloatBytes(data)); err != nil {
		t.Fatal(err)
	}
	body, err := wire.ReadFrame(st)
	if err != nil {
		t.Fatal(err)
	}
	a, err := wire.DecodeAnswer(body)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func tensors(t *testing.T, mux *yamux.Session) int {
	t.Helper()
	st, _ := stream(t, mux, newID())
	defer st.Close()
	a := ask(t, st, wire.Request{Kind: wire.KindStatus}, nil)
	if a.Status == nil {
		t.Fatalf("%+v", a)
	}
	return a.Status.Tensors
}

// A connection outlives its link where it waits for nothing and the next link names it; its number tells the two sides what each has heard.
func TestConnectionsOutliveLinks(t *testing.T) {
	k := keep(t, time.Minute)
	one := []float32{1}
	put := wire.Request{Kind: wire.KindUpload, Shape: []int{1}, Axes: []string{"dim"}}
	mux := k.link()
	for id := uint64(1); id <= 3; id++ {
		st, carried := stream(t, mux, id)
		if carried != 0 {
			t.Errorf("a new connection has carried %d", carried)
		}
		ask(t, st, put, one)
	}
	cut, _ := stream(t, mux, 4)
	put.DataLen = 400
	if err := wire.WriteFrame(cut, put.Encode()); err != nil { // and no values
		t.Fatal(err)
	}
	if n := tensors(t, mux); n != 3 {
		t.Fatalf("%d tensors", n)
	}
	mux.Close()
	mux = k.link(1, 2, 4)
	if n := tensors(t, mux); n != 2 {
		t.Errorf("%d tensors, of the two connections that the link names", n)
	}
	st, carried := stream(t, mux, 1)
	if carried != 1 {
		t.Errorf("it has carried %d", carried)
	}
	st.Close()
	if _, carried := stream(t, mux, 4); carried != broken {
		t.Errorf("one that waited: %d", carried)
	}
	for end := time.Now().Add(10 * time.Second); tensors(t, mux) != 1 && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	// A second link takes the place of the first.
	if n := tensors(t, k.link(2)); n != 1 {
		t.Errorf("%d tensors", n)
	}
	if _, err := mux.OpenStream(); err == nil && !mux.IsClosed() {
		if _, err := mux.Ping(); err == nil {
			t.Error("two links at once")
		}
	}
}

func TestKeeperRefuses(t *testing.T) {
	k := keep(t, time.Minute)
	wrong := hello
	wrong.Token = "another"
	if _, r, w, err := k.greet(wrong); err != nil || w.Error != "it is of another kernel" || w.Instance != "" {
		t.Errorf("a wrong token: %+v, %v", w, err)
	} else if _, err := r.ReadByte(); err != io.EOF {
		t.Errorf("the link goes on: %v", err)
	}
	old := hello
	old.Version = "0.9"
	if _, r, w, err := k.greet(old); err != nil || w.Version != "1" {
		t.Errorf("another version: %+v, %v", w, err)
	} else if _, err := r.ReadByte(); err != io.EOF {
		t.Errorf("the link goes on: %v", err)
	}
	for _, text := range []string{"{}\n{", "no JSON\n", strings.Repeat("x", maxLine+1), ""} {
		c := k.dial()
		_, _ = io.WriteString(c, text)
		_ = c.CloseWrite()
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		if said, err := io.ReadAll(c); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) && !strings.Contains(err.Error(), "reset") || strings.Contains(string(said), `"instance"`) {
			t.Errorf("%.20q: %q, %v", text, said, err)
		}
	}
	// Streams that say nonsense end alone.
	mux := k.link()
	st, _ := stream(t, mux, 1)
	if err := wire.WriteFrame(st, []byte{0xff, 0xff, 0xff}); err != nil {
		t.Fatal(err)
	}
	if n, err := st.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("%d bytes of an answer to nonsense", n)
	}
	st, err := mux.OpenStream()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = st.Write([]byte{1, 2})
	st.Close()
	if n := tensors(t, mux); n != 0 {
		t.Errorf("%d tensors", n)
	}
}

// A keeper ends when no link has come for the grace time, as the last hello had it.
func TestKeeperEnds(t *testing.T) {
	k := keep(t, time.Minute)
	st, _ := stream(t, k.link(), 1)
	ask(t, st, wire.Request{Kind: wire.KindStatus}, nil)
	h := hello
	h.Grace = 200 * time.Millisecond
	c, _, w, err := k.greet(h)
	if err != nil || w.Instance == "" {
		t.Fatalf("%+v, %v", w, err)
	}
	select {
	case err := <-k.ended:
		t.Fatalf("it ended with a link: %v", err)
	case <-time.After(500 * time.Millisecond):
	}
	began := time.Now()
	c.Close()
	k.over(func(took time.Duration) bool { return took >= h.Grace }, began)
}

// It ends at once when the kernel does.
func TestKeeperHearsOfTheEnd(t *testing.T) {
	k := keep(t, time.Minute)
	mux := k.link()
	began := time.Now()
	st, err := mux.OpenStream()
	if err == nil {
		_, err = st.Write(idBytes(bye))
	}
	if err != nil {
		t.Fatal(err)
	}
	k.over(func(took time.Duration) bool { return took < 10*time.Second }, began)
}

// over waits for the end, which must have taken long enough, or not too long.
func (k *keeping) over(right func(time.Duration) bool, began time.Time) {
	k.t.Helper()
	select {
	case err := <-k.ended:
		if took := time.Since(began); err != nil || !right(took) {
			k.t.Errorf("it ended after %v: %v", took, err)
		}
		k.ended <- nil
	case <-time.After(20 * time.Second):
		k.t.Error("it does not end")
	}
}
