package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/host"
	"github.com/attnb/attnb/kernel/proxy/jupyter"
	"github.com/attnb/attnb/kernel/proxy/runtimedir"
	"github.com/attnb/attnb/kernel/proxy/zmtp"
	"github.com/attnb/attnb/kernel/resident"
	"github.com/attnb/attnb/kernel/spec"
	"github.com/attnb/attnb/kernel/wire"
)

// TestMain is also the device process of the kernels under test: one that knows displays and nothing else, or a real one
// on the host.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "device" {
		if err := displaysOnly(os.Args[3], os.Args[5]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == "resident" {
		d := cudaops.NewDevice(host.New(host.Options{}))
		err := resident.Serve(context.Background(), resident.Options{Socket: os.Args[3], Device: d, Lifeline: os.NewFile(3, "lifeline")})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == "kernel" {
		if err := kernelProcess(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if home.root != "" {
		os.RemoveAll(home.root)
	}
	os.Exit(code)
}

// kernelProcess is a kernel in a process of its own.
func kernelProcess(file, root string) error {
	c, err := jupyter.ReadConnection(file)
	if err != nil {
		return err
	}
	return Run(context.Background(), options(c, root))
}

func options(c jupyter.Connection, root string) Options {
	bin := filepath.Join(root, "bin")
	return Options{Connection: c, Version: "test", ID: "0a1b2c3d-0001", Gonb: filepath.Join(bin, "gonb"),
		Path: []string{filepath.Join(bin, "path"), bin}, Device: []string{os.Args[0], "device"}}
}

// displaysOnly answers a request for display X with the text "shown X". It cleans up when its lifeline ends.
func displaysOnly(socket, dir string) error {
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	signal.Ignore(os.Interrupt)
	go func() {
		lifeline := os.NewFile(3, "lifeline")
		io.Copy(io.Discard, lifeline)
		runtimedir.Clean(dir)
		os.Exit(0)
	}()
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			for {
				body, err := wire.ReadFrame(c)
				if err != nil {
					return
				}
				r, err := wire.DecodeRequest(body)
				if err != nil {
					return
				}
				a := wire.Answer{Number: wire.Version}
				if r.Kind == wire.KindDisplay {
					id, update, _ := strings.Cut(r.Name, "/")
					a.Display = &wire.Display{Parts: []wire.Part{{MIME: "text/plain", Data: []byte("shown " + id)}, {MIME: "image/png", Data: []byte{0x89, 'P'}}},
						UpdateID: update, Replaces: strings.HasPrefix(id, "again")}
				}
				if err := wire.WriteFrame(c, a.Encode()); err != nil {
					return
				}
			}
		}()
	}
}

// home is an installation with what a kernel needs, made once.
var home struct {
	sync.Once
	root   string
	reason string // why there is none
}

func makeHome() error {
	repo, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	if _, err := exec.LookPath("go"); err != nil {
		return errors.New("no go command")
	}
	goimports := filepath.Join(repo, "bin", "goimports")
	if _, err := os.Stat(goimports); err != nil {
		if goimports, err = exec.LookPath("goimports"); err != nil {
			return errors.New("no goimports, which gonb needs: ./install.sh test brings it")
		}
	}
	root, err := os.MkdirTemp("", "attnb-home-")
	if err != nil {
		return err
	}
	home.root = root
	for _, d := range []string{"bin/path", "src", "mod"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			return err
		}
	}
	for name, pkg := range map[string]string{"gonb": "github.com/janpfeifer/gonb", "attnb-cell": spec.Module + "/kernel/cmd/attnb-cell"} {
		out, err := exec.Command("go", "build", "-o", filepath.Join(root, "bin", name), pkg).CombinedOutput()
		if err != nil {
			return fmt.Errorf("cannot build %s: %v\n%s", pkg, err, out)
		}
	}
	for name, text := range map[string]string{"go.mod": "module " + spec.Module + "\n\ngo 1.26.0\n", "go.sum": ""} {
		if err := os.WriteFile(filepath.Join(root, "src", name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	gopls := filepath.Join(repo, "bin", "gopls")
	if _, err := os.Stat(gopls); err == nil {
		os.Symlink(gopls, filepath.Join(root, "bin", "gopls"))
	}
	return errors.Join(os.Symlink(goimports, filepath.Join(root, "bin", "goimports")),
		os.Symlink("../attnb-cell", filepath.Join(root, "bin", "path", "go")))
}

// client is a Jupyter client of a kernel under test.
type client struct {
	t       *testing.T
	codec   *jupyter.Codec
	shell   *zmtp.Peer
	control *zmtp.Peer
	stdin   *zmtp.Peer
	iopub   *zmtp.Peer
	conn    jupyter.Connection
	ended   chan error
	stop    context.CancelFunc

	mu      sync.Mutex
	change  *sync.Cond
	iopubs  []*jupyter.Message
	replies []*jupyter.Message
}

const testKey = "a key"

// start runs a kernel in this process, and connects to it.
func start(t *testing.T) *client {
	t.Helper()
	return startWith(t, "device")
}

// startWith takes the kind of device process: device for the one that knows displays, resident for a real one.
func startWith(t *testing.T, device string) *client {
	t.Helper()
	c := newClient(t)
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	opts := options(c.conn, home.root)
	opts.Device = []string{os.Args[0], device}
	opts.Log = slog.New(slog.NewTextHandler(testLog{t}, &slog.HandlerOptions{Level: slog.LevelError + 1}))
	go func() { c.ended <- Run(ctx, opts) }()
	t.Cleanup(c.shutdown)
	c.connect()
	return c
}

// newClient returns a client for a kernel that is still to be started.
func newClient(t *testing.T) *client {
	t.Helper()
	if testing.Short() {
		t.Skip("runs gonb and compiles cells: not in short mode")
	}
	home.Do(func() {
		if err := makeHome(); err != nil {
			home.reason = err.Error()
		}
	})
	if home.reason != "" {
		t.Skip(home.reason)
	}
	dir, err := os.MkdirTemp("", "attnb-t-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c := &client{t: t, codec: jupyter.NewCodec(testKey), ended: make(chan error, 1),
		conn: jupyter.Connection{Transport: "ipc", IP: filepath.Join(dir, "s"), Shell: 1, Control: 2, Stdin: 3, IOPub: 4, Heartbeat: 5, Key: testKey}}
	c.change = sync.NewCond(&c.mu)
	return c
}

func (c *client) connect() {
	c.t.Helper()
	identity := jupyter.NewID()
	for _, s := range []struct {
		at   **zmtp.Peer
		port int
		kind zmq4.SocketType
	}{{&c.iopub, 4, zmq4.Sub}, {&c.shell, 1, zmq4.Dealer}, {&c.control, 2, zmq4.Dealer}, {&c.stdin, 3, zmq4.Dealer}} {
		*s.at = c.dial(s.port, s.kind, identity)
	}
	go c.collect(c.iopub, &c.iopubs)
	go c.collect(c.shell, &c.replies)
	go c.collect(c.control, &c.replies)
	// The subscription counts from some time on.
	for deadline := time.Now().Add(patience); ; {
		id := c.send(c.control, "kernel_info_request", map[string]any{})
		if c.until(200*time.Millisecond, func() bool { return c.idle(id) }) {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatal("the kernel does not answer")
		}
	}
}

type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	fmt.Fprintf(os.Stderr, "%s: %s", l.t.Name(), p)
	return len(p), nil
}

func (c *client) dial(port int, kind zmq4.SocketType, identity string) *zmtp.Peer {
	c.t.Helper()
	network, address := c.conn.Endpoint(port)
	var err error
	for range 500 {
		var p *zmtp.Peer
		if p, err = zmtp.Dial(network, address, kind, identity); err == nil {
			return p
		}
		time.Sleep(10 * time.Millisecond)
	}
	c.t.Fatal(err)
	return nil
}

func (c *client) collect(p *zmtp.Peer, into *[]*jupyter.Message) {
	for {
		frames, err := p.Receive()
		if err != nil {
			return
		}
		m, err := c.codec.Parse(frames)
		if err != nil {
			c.t.Errorf("the kernel sent %q: %v", frames, err)
			continue
		}
		c.mu.Lock()
		*into = append(*into, m)
		c.change.Broadcast()
		c.mu.Unlock()
	}
}

func (c *client) shutdown() {
	c.stop()
	select {
	case err := <-c.ended:
		if err != nil {
			c.t.Errorf("Run: %v", err)
		}
		c.ended <- nil // for whoever asks again
	case <-time.After(patience):
		c.t.Error("the kernel does not end")
	}
}

func (c *client) send(to *zmtp.Peer, kind string, content any) (id string) {
	m := c.codec.New(kind, nil, content)
	if err := to.Send(c.codec.Frames(m), true); err != nil {
		c.t.Fatal(err)
	}
	return m.Header.MsgID
}

// until waits for a condition on what came in, which it checks under the lock.
func (c *client) until(limit time.Duration, done func() bool) bool {
	deadline := time.Now().Add(limit)
	timer := time.AfterFunc(limit, c.change.Broadcast)
	defer timer.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for !done() {
		if !time.Now().Before(deadline) {
			return false
		}
		c.change.Wait()
	}
	return true
}

func (c *client) idle(id string) bool {
	for _, m := range c.iopubs {
		if m.Header.Type == "status" && strings.Contains(string(m.Content), "idle") && parentID(m) == id {
			return true
		}
	}
	return false
}

func (c *client) answer(id string) *jupyter.Message {
	for _, m := range c.replies {
		if parentID(m) == id {
			return m
		}
	}
	return nil
}

// result is all that came of a request.
type result struct {
	Status    string   `json:"status"`
	Name      string   `json:"ename"`
	Value     string   `json:"evalue"`
	Traceback []string `json:"traceback"`
	Count     int      `json:"execution_count"`
	reply     *jupyter.Message
	iopub     []*jupyter.Message
}

func (r result) stream(name string) string {
	var b strings.Builder
	for _, m := range r.iopub {
		if s, ok := streamOf(m); ok && s.Name == name {
			b.WriteString(s.Text)
		}
	}
	return b.String()
}

func (r result) trace() string { return strings.Join(r.Traceback, "\n") }

func (c *client) result(id string, limit time.Duration) result {
	c.t.Helper()
	if !c.until(limit, func() bool { return c.idle(id) && c.answer(id) != nil }) {
		c.t.Fatalf("no end of request %s after %v", id, limit)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r := result{reply: c.answer(id)}
	for _, m := range c.iopubs {
		if parentID(m) == id {
			r.iopub = append(r.iopub, m)
		}
	}
	if err := json.Unmarshal(r.reply.Content, &r); err != nil {
		c.t.Fatal(err)
	}
	return r
}

func (c *client) execute(code string) string {
	return c.send(c.shell, "execute_request", map[string]any{"code": code})
}

func (c *client) run(code string) result {
	c.t.Helper()
	return c.result(c.execute(code), 60*time.Second)
}

// prints runs a cell that must succeed with this output.
func (c *client) prints(code, want string) {
	c.t.Helper()
	r := c.run(code)
	if got := r.stream("stdout"); r.Status != "ok" || got != want {
		c.t.Fatalf("%q: %s %s: %s, stdout %q, want ok and %q\n%s", code, r.Status, r.Name, r.Value, got, want, r.trace())
	}
}
