package resident

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/attnb/attnb/kernel/wire"
)

// A test binary that finds this variable answers every frame at the socket that it names with the same frame.
const envEcho = "RESIDENT_TEST_ECHO"

func echoProcess(socket string) int {
	l, err := net.Listen("unix", socket)
	if err != nil {
		return 1
	}
	c, err := l.Accept()
	if err != nil {
		return 1
	}
	in := wire.NewReader(c)
	for {
		body, err := wire.ReadFrame(in)
		if err != nil {
			return 0
		}
		if err := wire.WriteFrame(c, body); err != nil {
			return 1
		}
	}
}

// BenchmarkQueue is a cell that runs 1,000 ops on tiny tensors, one after the other and without a read, against a process of its own
// on the host. It reports the median of an op, the median of a bare round trip of frames of the same size through such a socket,
// measured in turn with it, and the difference.
func BenchmarkQueue(b *testing.B) {
	const ops = 1000
	dir, err := os.MkdirTemp("", "attnb")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	launch := func(variable, name string) (socket string) {
		socket = filepath.Join(dir, name)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), variable+"="+socket)
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		return socket
	}
	device, echo := launch(envProcess, "d"), launch(envEcho, "e")
	var conn *wire.Conn
	var bare net.Conn
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		var err error
		if conn == nil {
			conn, err = wire.Dial(device)
		}
		if err == nil {
			bare, err = net.Dial("unix", echo)
		}
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			b.Fatal(err)
		}
	}
	defer conn.Close()
	defer bare.Close()
	file, err := bare.(*net.UnixConn).File() // a blocking one, as the client's own
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	in := wire.NewReader(file)
	a, err := conn.Upload(wire.Request{Kind: wire.KindUpload, Shape: []int{2, 2}, Axes: []string{"seq", "dim"}}, []float32{1, 2, 3, 4})
	if err != nil {
		b.Fatal(err)
	}
	add := wire.Request{Kind: wire.KindRun, Op: wire.OpAdd, IDs: []int{a.Tensors[0].ID, a.Tensors[0].ID}}
	frame := add.Encode()
	var op, trip []time.Duration
	for b.Loop() {
		for range ops {
			began := time.Now()
			if _, err := conn.Do(add); err != nil {
				b.Fatal(err)
			}
			op = append(op, time.Since(began))
		}
		for range ops {
			began := time.Now()
			if err := wire.WriteFrame(file, frame); err != nil {
				b.Fatal(err)
			}
			if _, err := wire.ReadFrame(in); err != nil {
				b.Fatal(err)
			}
			trip = append(trip, time.Since(began))
		}
	}
	median := func(d []time.Duration) float64 {
		slices.Sort(d)
		return float64(d[len(d)/2].Nanoseconds()) / 1e3
	}
	b.ReportMetric(median(op), "us/op-median")
	b.ReportMetric(median(trip), "us/bare-median")
	b.ReportMetric(median(op)-median(trip), "us/over-median")
}
