package attn

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/attnb/attnb/kernel/wire"
)

var client struct {
	once sync.Once
	conn *wire.Conn
	err  error
}

// connect returns the cell's one connection, made at the first call.
func connect() *wire.Conn {
	client.once.Do(func() {
		client.conn, client.err = dial(os.Getenv(wire.EnvSocket))
	})
	switch {
	case os.Getenv(wire.EnvSocket) == "":
		stop("no device process: " + wire.EnvSocket + " is not set; package attn works in notebooks of the attnb kernel")
	case client.err != nil:
		stop(client.err.Error())
	}
	return client.conn
}

// startLimit is how long a cell waits for a device process that is being started, perhaps in place of one that failed.
const startLimit = 5 * time.Second

// dial connects to the device process. Where none answers but its kernel lives, one is about to.
func dial(path string) (*wire.Conn, error) {
	for end := time.Now().Add(startLimit); ; time.Sleep(10 * time.Millisecond) {
		conn, err := wire.Dial(path)
		if err == nil || !starting(err, path) || time.Now().After(end) {
			return conn, err
		}
	}
}

func starting(err error, path string) bool {
	var refused *wire.Error
	if errors.As(err, &refused) {
		return refused.Code == wire.DeviceFault // on its way out
	}
	end := strings.LastIndexByte(path, '/')
	if end < 0 {
		return false
	}
	_, gone := os.Stat(path[:end+1])
	return gone == nil
}

// do sends a request. A failure stops the cell.
func do(r wire.Request) wire.Answer {
	a, err := connect().Do(r)
	if err != nil {
		stop(err.Error())
	}
	return a
}

func all(a wire.Answer) []Tensor {
	ts := make([]Tensor, len(a.Tensors))
	for i, t := range a.Tensors {
		ts[i] = Tensor{t}
	}
	return ts
}

func one(a wire.Answer) Tensor { return exactly(1, a)[0] }

func exactly(n int, a wire.Answer) []Tensor {
	if len(a.Tensors) != n {
		stop("the device process answered " + strconv.Itoa(len(a.Tensors)) + " tensors, not " + strconv.Itoa(n))
	}
	return all(a)
}

func run(op wire.Op, p wire.Params, n int, in ...Tensor) []Tensor {
	r := wire.Request{Kind: wire.KindRun, Op: op, Params: p}
	for _, x := range in {
		r.IDs = append(r.IDs, x.t.ID)
	}
	return exactly(n, do(r))
}

func run1(op wire.Op, p wire.Params, in ...Tensor) Tensor { return run(op, p, 1, in...)[0] }

// publish puts on the page what an answer brings: its report, then its picture. A variable, since the examples have no page.
var publish = func(report, displayID string) {
	fmt.Print(report)
	if displayID != "" {
		show(displayID)
	}
}

// show puts a marker on stdout, where the kernel puts the display. One write, so that it stays whole among other output.
func show(id string) {
	if nonce := os.Getenv(wire.EnvNonce); nonce != "" {
		os.Stdout.Write(wire.AppendMarker(nil, nonce, wire.MarkDisplay, id))
	}
}

// maxFailure bounds a message in a marker, whose argument takes two bytes a character.
const maxFailure = 4 << 10

// stop ends the cell: one line on stderr with the line of the cell, a marker for the kernel, exit status 1.
func stop(message string) {
	message = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, message)
	if nonce := os.Getenv(wire.EnvNonce); nonce != "" {
		short := message[:min(len(message), maxFailure)]
		os.Stdout.Write(wire.AppendMarker(nil, nonce, wire.MarkFail, wire.Hex(short)))
	}
	os.Stderr.WriteString(caller() + message + "\n")
	os.Exit(1)
}

// caller is the place of the innermost call into this package, "DIR/main.go:12: ". GoNB turns it into the cell's own line.
func caller() string {
	const here = "github.com/attnb/attnb/kernel/attn."
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		if f.Function != "" && !strings.HasPrefix(f.Function, here) && !strings.HasPrefix(f.Function, "sync.") {
			return f.File + ":" + strconv.Itoa(f.Line) + ": "
		}
		if !more {
			return ""
		}
	}
}
