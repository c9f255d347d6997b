package wire

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// answering serves one connection with f, which answers each request.
func answering(t *testing.T, f func(Request, []float32) (Answer, []float32)) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "wire")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		for {
			body, err := ReadFrame(c)
			if err != nil {
				return
			}
			r, err := DecodeRequest(body)
			if err != nil {
				return
			}
			up, err := ReadFloats(c, r.DataLen)
			if err != nil {
				return
			}
			a, down := f(r, up)
			if a.Number < 0 { // stands for a process that dies
				return
			}
			a.DataLen = 4 * len(down)
			if WriteFrame(c, a.Encode()) != nil {
				return
			}
			if _, err := c.Write(FloatBytes(down)); err != nil {
				return
			}
		}
	}()
	return path
}

// echo answers hello, and any data with twice itself.
func echo(r Request, up []float32) (Answer, []float32) {
	if r.Kind == KindHello {
		return Answer{Number: Version, Text: "echo"}, nil
	}
	down := make([]float32, len(up))
	for i, v := range up {
		down[i] = 2 * v
	}
	return Answer{Text: r.Name}, down
}

func TestConn(t *testing.T) {
	c, err := Dial(answering(t, echo))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Backend != "echo" {
		t.Errorf("backend %q", c.Backend)
	}
	var refused *Error
	if _, err := c.Do(Request{Kind: KindGet, Name: strings.Repeat("x", MaxFrame)}); !errors.As(err, &refused) || refused.Code != Refused {
		t.Errorf("a request too large: %v", err)
	}
	// Larger than any socket's buffer, in both directions.
	data := make([]float32, 3<<20)
	for i := range data {
		data[i] = float32(i)
	}
	_, down, err := c.exchange(Request{Kind: KindUpload, DataLen: 4 * len(data)}, data)
	if err != nil || len(down) != len(data) {
		t.Fatalf("%d values, %v", len(down), err)
	}
	for i, v := range down {
		if v != 2*float32(i) {
			t.Fatalf("value %d is %v", i, v)
		}
	}
}

// Goroutines of a cell share the connection; each gets its own answers.
func TestConnConcurrent(t *testing.T) {
	c, err := Dial(answering(t, echo))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			name := strings.Repeat("x", g+1)
			for range 50 {
				if a, err := c.Do(Request{Kind: KindGet, Name: name}); err != nil || a.Text != name {
					t.Errorf("goroutine %d: %q, %v", g, a.Text, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestDialErrors(t *testing.T) {
	old := answering(t, func(Request, []float32) (Answer, []float32) { return Answer{Number: Version + 1}, nil })
	dies := answering(t, func(Request, []float32) (Answer, []float32) { return Answer{Number: -1}, nil })
	refuses := answering(t, func(Request, []float32) (Answer, []float32) { return Answer{Code: BadRequest, Message: "no"}, nil })
	long := "/" + strings.Repeat("x", 200)
	for _, c := range []struct{ path, want string }{
		{old, "the device process speaks version 2, this program version 1"},
		{dies, "lost the device process: it ended"},
		{refuses, "no"},
		{"/nowhere/s", "no device process at /nowhere/s: connect: no such file or directory"},
		{long, "no device process at " + long + ": connect: invalid argument"},
	} {
		conn, err := Dial(c.path)
		if conn != nil || err == nil || err.Error() != c.want {
			t.Errorf("%v, %v, want %q", conn, err, c.want)
		}
	}
	_, err := Dial(refuses + "x")
	var e *Error
	if errors.As(err, &e) {
		t.Errorf("%v passes for an answer", err)
	}
}

func TestLostProcess(t *testing.T) {
	hello := true
	c, err := Dial(answering(t, func(Request, []float32) (Answer, []float32) {
		a := Answer{Number: Version}
		if !hello {
			a.Number = -1
		}
		hello = false
		return a, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 2 { // and again: not a crash, not a hang
		if _, err := c.Do(Request{Kind: KindList}); err == nil || !strings.HasPrefix(err.Error(), "lost the device process: ") {
			t.Errorf("error %v", err)
		}
	}
}
