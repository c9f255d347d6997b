package attn_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/devices"
	"github.com/attnb/attnb/cudaops/host"
	"github.com/attnb/attnb/kernel/resident"
	"github.com/attnb/attnb/kernel/wire"
)

const nonce = "00112233445566778899aabbccddeeff"

// here is this folder, which tests leave: see onPage.
var here, golden = func() (string, string) {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	return dir, filepath.Join(dir, "../../cudaops/optest/testdata/golden/neox_a.npz")
}()

// On a machine without Go, as bench/gpu.sh has it: the compiled testdata/cell, and the device that the device process takes.
const (
	programVariable = "ATTNB_TEST_CELL"
	deviceVariable  = "ATTNB_TEST_DEVICE"
)

// program is the compiled testdata/cell.
var program string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "attn")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		if built := os.Getenv(programVariable); built != "" {
			var err error
			if program, err = filepath.Abs(built); err != nil {
				panic(err)
			}
			return onPage(dir, m.Run)
		}
		program = filepath.Join(dir, "cell")
		build := exec.Command("go", "build", "-o", program, "./testdata/cell")
		if out, err := build.CombinedOutput(); err != nil {
			os.Stderr.Write(out)
			return 1
		}
		return onPage(dir, m.Run)
	}())
}

// kernel is a device process, served inside of the test, and the place where its cells run.
type kernel struct {
	t      *testing.T
	device *cudaops.Device
	socket string
	dir    string
	conn   *wire.Conn // as the proxy's
}

func openBackend() (cudaops.Backend, error) {
	if spec := os.Getenv(deviceVariable); spec != "" {
		backend, _, err := devices.Open(spec, 0)
		return backend, err
	}
	return host.New(host.Options{}), nil
}

func newKernel(t *testing.T) *kernel {
	t.Helper()
	dir, err := os.MkdirTemp("", "attnb")
	if err != nil {
		t.Fatal(err)
	}
	backend, err := openBackend()
	if err != nil {
		t.Fatal(err)
	}
	k := &kernel{t: t, device: cudaops.NewDevice(backend), socket: filepath.Join(dir, "s"), dir: t.TempDir()}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- resident.Serve(ctx, resident.Options{Socket: k.socket, Device: k.device}) }()
	t.Cleanup(func() {
		if k.conn != nil {
			k.conn.Close()
		}
		cancel()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if n := k.device.InUse(); n != 0 {
			t.Errorf("%d bytes in use after Serve returned", n)
		}
		k.device.Close()
		os.RemoveAll(dir)
	})
	for deadline := time.Now().Add(10 * time.Second); k.conn == nil; time.Sleep(time.Millisecond) {
		if k.conn, err = wire.Dial(k.socket); err != nil && time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	return k
}

// ran is what a cell left: what it printed, with displays in their place, and how it ended.
type ran struct {
	out      string // "<display>" where a display stands
	displays []wire.Display
	fail     string // the message of a fail marker
	stderr   string
	exit     int
}

// run runs a cell as the launcher does, and reads its stdout as the proxy does.
func (k *kernel) run(cell string, extra ...string) ran {
	k.t.Helper()
	return k.runProgram(program, cell, extra...)
}

func (k *kernel) runProgram(program, cell string, extra ...string) ran {
	k.t.Helper()
	cmd := exec.Command(program, cell)
	cmd.Dir = k.dir
	cmd.Env = append([]string{wire.EnvSocket + "=" + k.socket, wire.EnvNonce + "=" + nonce, "GOLDEN=" + golden}, extra...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		k.t.Fatal(err)
	}
	r := ran{stderr: stderr.String(), exit: cmd.ProcessState.ExitCode()}
	s := wire.NewScanner(nonce)
	for _, p := range append(s.Feed(stdout.Bytes()), s.Flush()...) {
		switch p.Marker.Kind {
		case "":
			r.out += string(p.Text)
		case wire.MarkDisplay:
			d, err := k.conn.Display(p.Marker.Arg)
			if err != nil {
				k.t.Fatal(err)
			}
			r.out += "<display>"
			r.displays = append(r.displays, d)
		case wire.MarkFail:
			text, ok := wire.Unhex(p.Marker.Arg)
			if !ok {
				k.t.Errorf("fail marker with %q", p.Marker.Arg)
			}
			r.fail = text
		default:
			k.t.Errorf("marker %+v", p.Marker)
		}
	}
	return r
}

// good is run for a cell that must succeed.
func (k *kernel) good(cell string) ran {
	k.t.Helper()
	r := k.run(cell)
	if r.exit != 0 || r.stderr != "" || r.fail != "" {
		k.t.Fatalf("%s: exit %d, stderr %q, fail %q", cell, r.exit, r.stderr, r.fail)
	}
	return r
}

func TestCells(t *testing.T) {
	k := newKernel(t)
	if got, want := k.good("load").out, "loaded \"qkv\" [seq 9, hidden 192]\n"; got != want {
		t.Errorf("load printed %q, want %q", got, want)
	}
	layer := k.good("layer")
	start, report, _ := strings.Cut(layer.out, "after\n")
	if want := "before\n<display>between\n<display>"; start != want || !strings.HasSuffix(report, "\n<display>") {
		t.Errorf("layer printed %q, want %q, a report and a display", layer.out, want)
	}
	for i, d := range layer.displays {
		if len(d.Parts) != 2 || d.Parts[0].MIME != "image/png" || d.Parts[1].MIME != "text/plain" ||
			!bytes.HasPrefix(d.Parts[0].Data, []byte("\x89PNG")) {
			t.Errorf("display %d: %d parts", i, len(d.Parts))
		}
	}
	for _, want := range []string{"Check \"out\": pass", "neox_a.npz: qkv", "worst cell: head ", "rotary 8, half-split, offset 0, base 10000"} {
		if !strings.Contains(report, want) {
			t.Errorf("the report lacks %q:\n%s", want, report)
		}
	}

	compare := k.run("compare")
	verdicts := regexp.MustCompile(`Compare .*: (pass|FAIL),.*\n(  .*\n)+<display>|must fail\n`).FindAllString(compare.out, -1)
	if len(verdicts) != 5 || strings.Join(verdicts, "") != compare.out || !strings.HasPrefix(compare.fail, "Require: FAIL: error/bound ") {
		t.Errorf("compare printed %q, fail %q", compare.out, compare.fail)
	}
	if r := k.run("panic"); r.exit != 2 || !strings.Contains(r.stderr, "on purpose") {
		t.Errorf("panic: exit %d, %q", r.exit, r.stderr)
	}
	k.good("layer") // all is still there

	if got, want := k.good("once").out, "computing\n\"noise\" [dim 3] [1 2 3]\n"; got != want {
		t.Errorf("once printed %q, want %q", got, want)
	}
	if got, want := k.good("once").out, "\"noise\" [dim 3] [1 2 3]\n"; got != want {
		t.Errorf("once again printed %q, want %q", got, want)
	}
	// A cell whose declaration changed computes again, and then not again.
	changed := filepath.Join(k.dir, "changed")
	build := exec.Command("go", "build", "-ldflags", "-X 'github.com/attnb/attnb/kernel/attn.onceHashes=other=1;noise=2'", "-o", changed, "./testdata/cell")
	build.Dir = here
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for i, want := range []string{"computing\n\"noise\" [dim 3] [1 2 3]\n", "\"noise\" [dim 3] [1 2 3]\n"} {
		if got := k.runProgram(changed, "once").out; got != want {
			t.Errorf("changed once, run %d, printed %q, want %q", i, got, want)
		}
	}
	if r := k.run("goroutine"); r.exit != 1 || r.fail != `Get: no tensor is named "nothing"` {
		t.Errorf("goroutine: exit %d, fail %q", r.exit, r.fail)
	}
}

func TestOps(t *testing.T) {
	k := newKernel(t)
	r := k.good("ops")
	want, err := os.ReadFile(filepath.Join(here, "testdata/ops.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if r.out != string(want) {
		t.Errorf("ops printed\n%s\nwant\n%s", r.out, want)
	}
}
