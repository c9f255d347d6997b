package resident

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/host"
	"github.com/attnb/attnb/kernel/wire"
)

// A test binary that finds this variable is a device process at the socket that it names.
const envProcess = "RESIDENT_TEST_PROCESS"

func TestMain(m *testing.M) {
	if socket := os.Getenv(envProcess); socket != "" {
		os.Exit(deviceProcess(socket))
	}
	if socket := os.Getenv(envEcho); socket != "" {
		os.Exit(echoProcess(socket))
	}
	if socket := os.Getenv(envServe); socket != "" {
		os.Exit(servingProcess(socket))
	}
	if socket := os.Getenv(envBare); socket != "" {
		os.Exit(bareProcess(socket))
	}
	os.Exit(m.Run())
}

// deviceProcess is a process whose device fails for good in a softmax of 13 columns, as a GPU does.
func deviceProcess(socket string) int {
	d := cudaops.NewDevice(&doomed{Backend: host.New(host.Options{Memory: 1 << 20})})
	err := Serve(context.Background(), Options{Socket: socket, Device: d, Record: filepath.Join(filepath.Dir(socket), "names"),
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	var fault *FaultError
	switch {
	case errors.As(err, &fault):
		return ExitFault
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// doomed fails as a GPU does: the error shows at the next download, names the op that failed, and stays.
type doomed struct {
	*host.Backend
	dead error
}

// Elements makes it no [cudaops.Addressable], which a GPU is not.
func (d *doomed) Elements() {}

type illegal struct{ op string }

func (e illegal) Error() string    { return e.op + " failed: " + e.Unwrap().Error() }
func (e illegal) Unwrap() error    { return errors.New("illegal address") }
func (e illegal) FailedOp() string { return e.op }

func (d *doomed) Softmax(dst, src cudaops.View, m cudaops.Mask) error {
	if src.D == 13 {
		d.dead = illegal{"Softmax"}
		return nil
	}
	return d.Backend.Softmax(dst, src, m)
}

func (d *doomed) Download(dst []float32, src cudaops.Memory, offset int) error {
	if d.dead != nil {
		return d.dead
	}
	return d.Backend.Download(dst, src, offset)
}

// supervised starts a device process and starts it anew whenever it ends by a fault, as the proxy does.
type supervised struct {
	*process
	cmd   *exec.Cmd
	ended chan int
}

func supervise(t *testing.T) *supervised {
	t.Helper()
	dir, err := os.MkdirTemp("", "attnb")
	if err != nil {
		t.Fatal(err)
	}
	s := &supervised{process: &process{t: t, socket: filepath.Join(dir, "s")}}
	s.launch()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-s.ended
		os.RemoveAll(dir)
	})
	return s
}

func (s *supervised) launch() {
	s.t.Helper()
	s.cmd = exec.Command(os.Args[0])
	s.cmd.Env = append(os.Environ(), envProcess+"="+s.socket)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan int, 1)
	s.ended = ended
	cmd := s.cmd
	go func() {
		_ = cmd.Wait()
		ended <- cmd.ProcessState.ExitCode()
	}()
}

// A fault of the device costs its tensors and no more: the request that meets it says what failed and what is lost, what was shown can
// still be fetched, the process ends with a status of its own, and the next one knows what became of each name.
func TestFault(t *testing.T) {
	s := supervise(t)
	proxy := s.dial()
	defer proxy.Close()
	if err := proxy.Cell(7); err != nil {
		t.Fatal(err)
	}
	c := s.dial()
	defer c.Close()
	q := c.random(1, hsd, 2, 3, 4)
	c.name(q, "q")
	c.name(c.random(2, hsd, 2, 3, 4), "once")
	k := c.random(3, hsd, 2, 3, 4)
	c.name(k, "k")
	c.do(wire.Request{Kind: wire.KindFree, Name: "k"})
	shown := c.do(wire.Request{Kind: wire.KindPicture, IDs: []int{q.ID}}).DisplayID
	bad := c.run1(wire.OpSoftmax, wire.Params{}, c.random(4, fused, 2, 13))
	_, err := c.Download(wire.Request{Kind: wire.KindDownload, IDs: []int{bad.ID}})
	const want = `Download: the device failed in Softmax: illegal address. Lost are "once", "q" and 3 tensors without a name. A fresh device process starts`
	var known *wire.Error
	if !errors.As(err, &known) || known.Code != wire.DeviceFault || known.Message != want {
		t.Errorf("error %v\nwant  %s", err, want)
	}
	if _, err := c.Do(wire.Request{Kind: wire.KindGet, Name: "q"}); err == nil || "Download: "+err.Error() != want {
		t.Errorf("the next request: %v", err)
	}
	if d, err := proxy.Display(shown); err != nil || len(d.Parts) != 2 {
		t.Errorf("what was shown before: %v", err)
	}
	failed := time.Now()
	if code := <-s.ended; code != ExitFault {
		t.Fatalf("exit status %d, want %d", code, ExitFault)
	}
	s.launch()
	c = s.dial()
	defer c.Close()
	if took := time.Since(failed); took > 3*time.Second {
		t.Errorf("a fresh process took %v", took)
	}
	for name, want := range map[string]string{
		"q":    `Get: tensor "q" was lost when the device failed in Softmax (cell 7)`,
		"once": `Get: tensor "once" was lost when the device failed in Softmax (cell 7)`,
		"k":    `Get: no tensor is named "k": none has a name now; run the cell that gives it`,
	} {
		if _, err := c.Do(wire.Request{Kind: wire.KindGet, Name: name}); err == nil || err.Error() != want {
			t.Errorf("error %v\nwant  %s", err, want)
		}
	}
	// Once finds nothing, so that its tensor is computed again; then it is as good as ever.
	if a := c.do(wire.Request{Kind: wire.KindOnce, Name: "once", Hash: "h"}); len(a.Tensors) != 0 {
		t.Errorf("Once found %v", a.Tensors)
	}
	c.do(wire.Request{Kind: wire.KindName, IDs: []int{c.random(2, hsd, 2, 3, 4).ID}, Name: "once", Hash: "h"})
	if a := c.do(wire.Request{Kind: wire.KindOnce, Name: "once", Hash: "h"}); len(a.Tensors) != 1 {
		t.Errorf("Once found %v", a.Tensors)
	}

	// A sudden end leaves word too, of both processes.
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.ended
	s.launch()
	c = s.dial()
	defer c.Close()
	for name, want := range map[string]string{
		"q":    `Get: tensor "q" was lost when the device failed in Softmax (cell 7)`,
		"once": `Get: tensor "once" was lost when the device process ended`,
	} {
		if _, err := c.Do(wire.Request{Kind: wire.KindGet, Name: name}); err == nil || err.Error() != want {
			t.Errorf("error %v\nwant  %s", err, want)
		}
	}
	// An end in order leaves nothing.
	if err := c.Shutdown(); err != nil {
		t.Fatal(err)
	}
	if code := <-s.ended; code != 0 {
		t.Errorf("exit status %d", code)
	}
	left, err := os.ReadDir(filepath.Dir(s.socket))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	s.ended <- 0 // for the end of the test
}

// A record that no process wrote is no reason not to serve.
func TestDamagedRecord(t *testing.T) {
	s := supervise(t)
	c := s.dial()
	c.name(c.random(1, fused, 2, 3), "x")
	c.Close()
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.ended
	if err := os.WriteFile(filepath.Join(filepath.Dir(s.socket), "names"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.launch()
	c = s.dial()
	defer c.Close()
	if _, err := c.Do(wire.Request{Kind: wire.KindGet, Name: "x"}); err == nil || err.Error() != `Get: no tensor is named "x": none has a name now; run the cell that gives it` {
		t.Errorf("error %v", err)
	}
}

// Out of memory says what was asked, what there is and what takes most of it, and costs nothing.
func TestOutOfMemory(t *testing.T) {
	p := start(t, host.New(host.Options{Memory: 100 << 10}))
	c := p.dial()
	defer c.Close()
	big := c.random(1, fused, 64, 192) // 48 KiB
	c.name(big, "qkv")
	parts := c.run(wire.OpSplit, wire.Params{Layout: wire.LayoutNeoX, Heads: 4}, c.random(2, fused, 8, 192)) // 6 KiB, and three of 2
	c.name(parts[1], "k")
	for range 2 {
		c.run1(wire.OpIndex, wire.Params{Axis: "heads", Index: 1}, parts[1]) // a view takes nothing
	}
	_, err := c.Do(wire.Request{Kind: wire.KindRun, Op: wire.OpAdd, IDs: []int{big.ID, big.ID}})
	const want = `Add: out of memory: 48.0 KiB asked for, 60.0 KiB in use (a: "qkv" [seq 64, hidden 192], b: "qkv" [seq 64, hidden 192])` +
		`; there are 100.0 KiB in all; in use: "qkv" [seq 64, hidden 192] 48.0 KiB, FromSlice [seq 8, hidden 192] 6.0 KiB, ` +
		`SplitHeads [heads 4, seq 8, dim 16] 2.0 KiB, "k" [heads 4, seq 8, dim 16] 2.0 KiB, 1 more`
	if err == nil || err.Error() != want {
		t.Errorf("error %v\nwant  %s", err, want)
	}
	if got := len(c.download(big)); got != 64*192 {
		t.Errorf("%d values", got)
	}
}

// stuck is a backend whose Add runs until it is interrupted.
type stuck struct {
	*host.Backend
	running, interrupted chan bool
}

func (s *stuck) Add(dst, x, y cudaops.View) error {
	s.running <- true
	if <-s.interrupted {
		return cudaops.ErrInterrupted
	}
	return nil
}

func (s *stuck) Interrupt() {
	select {
	case s.interrupted <- true:
	default:
	}
}

// A cell that dies in the middle of an op ends it, and no other's; the device tells about itself meanwhile.
func TestClientLeaves(t *testing.T) {
	b := &stuck{Backend: host.New(host.Options{}), running: make(chan bool), interrupted: make(chan bool)}
	p := start(t, b)
	keeper, cell := p.dial(), p.dial()
	defer keeper.Close()
	defer cell.Close()
	x := cell.random(1, fused, 2, 3)
	go func() { _, _ = cell.Do(wire.Request{Kind: wire.KindRun, Op: wire.OpAdd, IDs: []int{x.ID, x.ID}}) }()
	<-b.running
	began := time.Now()
	status, err := keeper.Status()
	if err != nil || status.Backend != "host" || status.Tensors != 1 || status.InUse != 24 {
		t.Errorf("status while an op runs: %+v, %v", status, err)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("status took %v", took)
	}
	// Another client, whose download waits, goes: the op that runs is not its.
	other := p.raw()
	y := x.ID
	if _, err := other.Write(append(hello(wire.Version), frame((&wire.Request{Kind: wire.KindDownload, IDs: []int{y}}).Encode())...)); err != nil {
		t.Fatal(err)
	}
	other.Close()
	time.Sleep(3 * patience)
	select {
	case b.interrupted <- false:
		t.Log("still running, and let go") // the op of the cell was not interrupted by the other's end
	case <-time.After(5 * time.Second):
		t.Fatal("the op was interrupted by the end of another client")
	}

	dying := p.raw()
	if _, err := dying.Write(append(hello(wire.Version), frame((&wire.Request{Kind: wire.KindRun, Op: wire.OpAdd, IDs: []int{x.ID, x.ID}}).Encode())...)); err != nil {
		t.Fatal(err)
	}
	<-b.running
	dying.Close()
	free := make(chan bool)
	go func() {
		keeper.random(1, fused, 2, 3)
		close(free)
	}()
	select {
	case <-free:
	case <-time.After(5 * time.Second):
		t.Fatal("the device is still busy for a client that is gone")
	}
}

// A check, which computes on the processor for long, ends with its client as well.
func TestClientLeavesCheck(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	x := c.random(1, hsd, 2, 300, 16)
	for range 24 {
		x = c.run1(wire.OpPrefill, causal, x, x, x)
	}
	began := time.Now()
	c.check(x)
	whole := time.Since(began)
	dying := p.raw()
	if _, err := dying.Write(append(hello(wire.Version), frame((&wire.Request{Kind: wire.KindCheck, IDs: []int{x.ID}}).Encode())...)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * patience)
	c.Close()
	dying.Close()
	began = time.Now()
	p.settle(0) // nothing of it is held any more
	if took := time.Since(began); took > whole/2 {
		t.Errorf("the check went on for %v, all of it takes %v", took, whole)
	}
}
