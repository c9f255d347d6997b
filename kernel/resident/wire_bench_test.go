package resident

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/devices"
	"github.com/attnb/attnb/kernel/wire"
)

// A test binary that finds envServe serves the device that [devices.Variable] names at that socket; with envBare, it takes and gives bare bytes.
const (
	envServe = "RESIDENT_TEST_SERVE"
	envBare  = "RESIDENT_TEST_BARE"
)

const wireSide = 4096

func servingProcess(socket string) int {
	b, _, err := devices.Open(os.Getenv(devices.Variable), 0)
	if err == nil {
		err = Serve(context.Background(), Options{Socket: socket, Device: cudaops.NewDevice(b)})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// bareProcess reads a matrix into memory that is there and answers with a byte, or writes one from there.
func bareProcess(socket string) int {
	l, err := net.Listen("unix", socket)
	if err != nil {
		return 1
	}
	c, err := l.Accept()
	if err != nil {
		return 1
	}
	matrix, what := make([]byte, 4*wireSide*wireSide), make([]byte, 1)
	for i := range matrix {
		matrix[i] = byte(i)
	}
	for {
		if _, err := io.ReadFull(c, what); err != nil {
			return 0
		}
		if what[0] == 'u' {
			if _, err = io.ReadFull(c, matrix); err == nil {
				_, err = c.Write(what)
			}
		} else {
			_, err = c.Write(matrix)
		}
		if err != nil {
			return 1
		}
	}
}

// BenchmarkWire moves a matrix of 4096 x 4096 from a program to the device process and back, and, in turns with it, as many bare bytes over such a
// socket between memory that is there. It reports the medians of both, and of a copy of as many bytes within the program, which is
// what the host backend's upload is beside the socket.
func BenchmarkWire(b *testing.B) {
	dir, err := os.MkdirTemp("", "attnb")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	launch := func(variable, name string) (socket string) {
		socket = filepath.Join(dir, name)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), variable+"="+socket)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		return socket
	}
	device, bare := launch(envServe, "d"), launch(envBare, "b")
	var conn *wire.Conn
	var plain net.Conn
	for deadline := time.Now().Add(20 * time.Second); plain == nil; time.Sleep(time.Millisecond) {
		var err error
		if conn == nil {
			conn, err = wire.Dial(device)
		}
		if err == nil {
			plain, err = net.Dial("unix", bare)
		}
		if err != nil {
			plain = nil
			if time.Now().After(deadline) {
				b.Fatal(err)
			}
		}
	}
	defer conn.Close()
	defer plain.Close()
	file, err := plain.(*net.UnixConn).File() // a blocking one, as the client's own
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()

	values, room := make([]float32, wireSide*wireSide), make([]float32, wireSide*wireSide)
	for i := range values {
		values[i], room[i] = float32(i), 1
	}
	raw := wire.FloatBytes(values)
	answer := make([]byte, 1)
	var up, down, bareUp, bareDown, copied []time.Duration
	took := func(into *[]time.Duration, f func() error) {
		began := time.Now()
		if err := f(); err != nil {
			b.Fatal(err)
		}
		*into = append(*into, time.Since(began))
	}
	for b.Loop() {
		for range 8 {
			var a wire.Answer
			took(&up, func() (err error) {
				a, err = conn.Upload(wire.Request{Kind: wire.KindUpload, Shape: []int{wireSide, wireSide}, Axes: []string{"seq", "dim"}}, values)
				return err
			})
			took(&bareUp, func() error {
				if _, err := file.Write([]byte{'u'}); err != nil {
					return err
				}
				if _, err := file.Write(raw); err != nil {
					return err
				}
				_, err := io.ReadFull(file, answer)
				return err
			})
			var got []float32
			took(&down, func() (err error) {
				got, err = conn.Download(wire.Request{Kind: wire.KindDownload, IDs: []int{a.Tensors[0].ID}})
				return err
			})
			if !slices.Equal(got, values) {
				b.Fatal("other values came back")
			}
			took(&bareDown, func() error {
				if _, err := file.Write([]byte{'d'}); err != nil {
					return err
				}
				_, err := io.ReadFull(file, wire.FloatBytes(room))
				return err
			})
			took(&copied, func() error { copy(room, values); return nil })
			if _, err := conn.Do(wire.Request{Kind: wire.KindFree, IDs: []int{a.Tensors[0].ID}}); err != nil {
				b.Fatal(err)
			}
		}
	}
	median := func(d []time.Duration) float64 {
		slices.Sort(d)
		return d[len(d)/2].Seconds() * 1e3
	}
	b.ReportMetric(median(up), "ms/upload")
	b.ReportMetric(median(bareUp), "ms/bare-upload")
	b.ReportMetric(median(down), "ms/download")
	b.ReportMetric(median(bareDown), "ms/bare-download")
	b.ReportMetric(median(copied), "ms/copy")
	b.ReportMetric((median(bareUp)+median(copied))/median(up), "upload-share")
	b.ReportMetric(median(down)/median(bareDown), "download-ratio")
}
