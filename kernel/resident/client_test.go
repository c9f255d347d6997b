package resident

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/host"
	"github.com/attnb/attnb/kernel/wire"
)

// token is what the clients of a test's process know.
const token = "0123456789abcdef"

// process is a device process within the test.
type process struct {
	t      *testing.T
	d      *cudaops.Device
	socket string
	stop   context.CancelFunc
	served chan error
	s      *server
}

// start serves on the backend. When the test ends nothing may be left on the device.
func start(t *testing.T, b cudaops.Backend) *process {
	t.Helper()
	return startWith(t, b, func(*Options) {})
}

// startWith is start with other options.
func startWith(t *testing.T, b cudaops.Backend, set func(*Options)) *process {
	t.Helper()
	dir, err := os.MkdirTemp("", "attnb") // short: a socket's path has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, d: cudaops.NewDevice(b), socket: filepath.Join(dir, "s"), served: make(chan error, 1)}
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	o := Options{Socket: p.socket, Token: token, Device: p.d, Log: slog.New(slog.NewTextHandler(testLog{t}, nil))}
	set(&o)
	p.s = newServer(ctx, o)
	go func() { p.served <- p.s.serve(o) }()
	t.Cleanup(func() {
		stop()
		if err := <-p.served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if n := p.d.InUse(); n != 0 {
			t.Errorf("%d bytes in use at the end", n)
		}
		p.d.Close()
		os.RemoveAll(dir)
	})
	p.dial().Close()
	return p
}

// testLog sends a server's log to the test.
type testLog struct{ t *testing.T }

func (l testLog) Write(b []byte) (int, error) {
	l.t.Logf("%s", b[:len(b)-1])
	return len(b), nil
}

func onHost(t *testing.T) *process { return start(t, host.New(host.Options{Workers: 2})) }

// caller is a connection with the calls that tests need. A call that fails ends the test.
type caller struct {
	t *testing.T
	*wire.Conn
}

func (p *process) dial() caller {
	p.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		c, err := wire.DialAs(p.socket, token)
		if err == nil {
			return caller{p.t, c}
		}
		if time.Now().After(deadline) {
			p.t.Fatal(err)
		}
	}
}

func (c caller) do(r wire.Request) wire.Answer {
	c.t.Helper()
	a, err := c.Do(r)
	if err != nil {
		c.t.Fatalf("%+v: %v", r, err)
	}
	return a
}

// random uploads seeded values.
func (c caller) random(seed uint64, axes []string, shape ...int) wire.Tensor {
	c.t.Helper()
	n := 1
	for _, s := range shape {
		n *= s
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	data := make([]float32, n)
	for i := range data {
		data[i] = float32(rng.NormFloat64())
	}
	a, err := c.Upload(wire.Request{Kind: wire.KindUpload, Shape: shape, Axes: axes}, data)
	if err != nil {
		c.t.Fatal(err)
	}
	return a.Tensors[0]
}

func (c caller) run(op wire.Op, p wire.Params, in ...wire.Tensor) []wire.Tensor {
	c.t.Helper()
	return c.do(wire.Request{Kind: wire.KindRun, Op: op, Params: p, IDs: ids(in)}).Tensors
}

func (c caller) run1(op wire.Op, p wire.Params, in ...wire.Tensor) wire.Tensor {
	c.t.Helper()
	return c.run(op, p, in...)[0]
}

func (c caller) name(x wire.Tensor, name string) {
	c.t.Helper()
	c.do(wire.Request{Kind: wire.KindName, IDs: []int{x.ID}, Name: name})
}

func (c caller) get(name string) wire.Tensor {
	c.t.Helper()
	return c.do(wire.Request{Kind: wire.KindGet, Name: name}).Tensors[0]
}

func (c caller) check(x wire.Tensor) wire.Answer {
	c.t.Helper()
	return c.do(wire.Request{Kind: wire.KindCheck, IDs: []int{x.ID}})
}

func (c caller) download(x wire.Tensor) []float32 {
	c.t.Helper()
	data, err := c.Download(wire.Request{Kind: wire.KindDownload, IDs: []int{x.ID}})
	if err != nil {
		c.t.Fatal(err)
	}
	return data
}

func ids(in []wire.Tensor) []int {
	var out []int
	for _, x := range in {
		out = append(out, x.ID)
	}
	return out
}

// settle waits until want bytes are in use: a closed connection is noticed a moment later.
func (p *process) settle(want int64) {
	p.t.Helper()
	var n int64
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if n = p.d.InUse(); n == want {
			return
		}
	}
	p.t.Fatalf("%d bytes in use, want %d", n, want)
}

var (
	hsd    = []string{"heads", "seq", "dim"}
	shd    = []string{"seq", "heads", "dim"}
	fused  = []string{"seq", "hidden"}
	causal = wire.Params{Mask: wire.MaskCausal}
)
